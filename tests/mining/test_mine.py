from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.mining.calibration.calibration import save_calibration
from interlingua.mining.defaults import CHEAP, DEFAULT_CHECKS
from interlingua.mining.mine import parse_shard
from interlingua.mining.pair_search import parse_size
from interlingua.runtime.progress import SILENT
from tests.jobs import mine_job
from tests.mining import two_sides
from tests.mining.curves import calibration
from tests.mining.invented import embed, write_lines
from tests.mining.two_sides import rows_of
from tests.progress_records import Recorded
from tests.storage.test_remote import store as store


@pytest.fixture
def sides(tmp_path):
    source, target, pairs = two_sides.sides(tmp_path)
    two_sides.write_gold(tmp_path / "gold.tsv", pairs)
    return [source, target]


def run(job, sides, progress=SILENT):
    return job.run(*sides, "model", progress=progress).lines


def test_from_texts_to_pairs_with_gold_and_report(tmp_path, sides):
    told = Recorded()
    job = mine_job(
        output=tmp_path / "p.tsv",
        threshold=1.05,
        gold=tmp_path / "gold.tsv",
        report=tmp_path / "p.html",
        check="length",
        drop="hub=30",
    )
    lines = run(job, sides, told)
    assert lines[0].endswith("a.de: 70 lines, 70 texts")
    assert "pairs of" in lines[2]
    assert lines[3] == "threshold 1.0500"
    assert lines[4] == "gold: 30 pairs of texts"
    assert lines[5].startswith("best F1 100.00 (precision 100.00, recall 100.00) at threshold 1.")
    assert "at the threshold 1.0500" in lines[6]
    assert (tmp_path / "p.html").is_file()
    assert not (tmp_path / "p.tsv.work").exists()
    steps = list(dict.fromkeys(label for label, _ in told.left))
    assert steps[:4] == ["reading a.de", "reading a.en", "embedding a.de", "embedding a.en"]
    assert steps[4:] == ["nearest neighbors", "choosing pairs", "writing pairs"]


def test_a_folder_that_is_named_is_kept(tmp_path, sides):
    run(mine_job(output=tmp_path / "p.tsv", work=tmp_path / "w"), sides)
    assert (tmp_path / "w" / "vectors-x" / "vectors.npy").is_file()


def test_a_calibration_tells_what_to_expect(tmp_path, sides):
    curve = calibration(
        source_language="deu_Latn", scores=(1.3, 1.5), log_odds=(-5.0, 5.0), cuts=()
    )
    save_calibration(curve, tmp_path / "c.json")
    job = mine_job(
        output=tmp_path / "p.tsv",
        calibration=tmp_path / "c.json",
        precision=0.95,
        gold=tmp_path / "gold.tsv",
    )
    lines = run(job, sides)
    assert any(line.startswith("translations among the ") for line in lines)
    assert any(line.startswith("precision 0.95: ") for line in lines)
    assert not any("may be far off" in line for line in lines)
    kept = len((tmp_path / "p.tsv").read_text().splitlines())
    assert 25 <= kept <= 35
    save_calibration(replace(curve, measures={"separation": 0.7}), tmp_path / "c.json")
    (doubt,) = [line for line in run(job, sides) if "may be far off" in line]
    assert doubt.startswith(
        "warning: held-out right pairs score higher than wrong pairs only 70% of the time"
    )
    with pytest.raises(ConfigError, match="'mine ratio k=4 max', not by 'mine ratio k=3 max'"):
        run(mine_job(output=tmp_path / "p.tsv", calibration=tmp_path / "c.json", k=3), sides)


def test_shards_say_what_is_left(tmp_path, sides, monkeypatch):
    monkeypatch.setattr("interlingua.mining.vectors.PORTION", 20)
    options = {"output": tmp_path / "p.tsv", "work": tmp_path / "w"}
    for shard, told in (
        ("1/2", "those of other shards are not; run the same command again"),
        ("2/2", "shard 2/2 is finished"),
        ("1/2", "shard 1/2 is finished"),
    ):
        assert told in run(mine_job(shard=shard, **options), sides)[0]
    assert len(run(mine_job(**options), sides)) == 4
    run(mine_job(output=tmp_path / "q.tsv"), sides)
    assert (tmp_path / "p.tsv").read_bytes() == (tmp_path / "q.tsv").read_bytes()


def test_a_copy_takes_no_text_from_its_translation(tmp_path, sides):
    """Put ten untranslated sources into the targets. They are rejected, and translations found."""
    sources, targets = (side.path.read_text().splitlines() for side in sides)
    copied = [sources[int(a) - 1] for a, _ in rows_of(tmp_path / "gold.tsv")[:10]]
    write_lines(sides[1].path, [*targets, *copied])
    found = {}
    for drop in ("none", "copied"):
        lines = run(mine_job(output=tmp_path / f"{drop}.tsv", threshold=1.2, drop=drop), sides)
        rows = rows_of(tmp_path / f"{drop}.tsv")
        found[drop] = sum(a != b and a.replace("de", "en") == b for _, a, b in rows)
    assert "copied text 10" in lines[2]
    assert (found["none"], found["copied"]) == (20, 30)


def test_like_laser_nothing_is_checked(tmp_path, sides):
    run(
        mine_job(output=tmp_path / "p.tsv", laser=True, check=",".join(CHEAP), drop=DEFAULT_CHECKS),
        sides,
    )
    rows = rows_of(tmp_path / "p.tsv")
    assert len(rows) > 30
    assert float(rows[0][0]) == np.float32(rows[0][0])


def test_gold_of_other_texts(tmp_path, sides):
    write_lines(tmp_path / "gold.tsv", ["zh-1\ten-1"])
    with pytest.raises(DataError, match="no gold pair"):
        run(mine_job(output=tmp_path / "p.tsv", gold=tmp_path / "gold.tsv"), sides)


def test_from_a_store_to_a_store(tmp_path, sides, store, monkeypatch):
    """Use texts in two parts, and vectors of one side in two.

    Pairs and report are sent when they are whole.
    """
    monkeypatch.chdir(tmp_path)
    texts = [side.path.read_text().splitlines() for side in sides]
    run(mine_job(output=tmp_path / "p.tsv"), sides)
    cut = [
        write_lines(tmp_path / f"part-{n}.de", part)
        for n, part in enumerate((texts[0][:40], texts[0][40:]))
    ]
    for n, part in enumerate((texts[1][:10], texts[1][10:])):
        np.save(tmp_path / f"{n}.npy", embed(part))
    files = (
        sides[0]._replace(path="part-*.de", parts=cut),
        sides[1]._replace(encode=None, vectors=[tmp_path / "0.npy", tmp_path / "1.npy"]),
    )
    job = mine_job(output="memory://out/p.tsv", report="memory://out/p.html")
    assert job.folder == Path("p.tsv.work")
    lines = run(job, files)
    assert lines[0] == "part-*.de: 70 lines, 70 texts"
    found = [line.split("\t") for line in store.cat("/out/p.tsv").decode().splitlines()]
    assert [row[1:] for row in found] == [row[1:] for row in rows_of(tmp_path / "p.tsv")]
    assert b"<html" in store.cat("/out/p.html")
    assert not job.folder.exists()


def test_what_is_read_is_not_written_over(tmp_path, sides):
    before = sides[1].path.read_bytes()
    with pytest.raises(ConfigError, match=r"a\.en is both"):
        run(mine_job(output=tmp_path / "p.tsv", report=tmp_path / "x" / ".." / "a.en"), sides)
    link = tmp_path / "link.tsv"
    link.symlink_to(tmp_path / "a.en")
    for job in (
        mine_job(output=link),
        mine_job(output="memory://a/p.tsv", report="memory://a/p.tsv"),
    ):
        with pytest.raises(ConfigError, match=r"be overwritten|two outputs"):
            job.plan(*sides, "model")
    with pytest.raises(DataError, match="is a folder"):
        run(mine_job(output=tmp_path / "p.tsv", report=tmp_path), sides)
    assert sides[1].path.read_bytes() == before
    assert not (tmp_path / "p.tsv.work").exists()


def test_a_place_that_nothing_can_be_written_to_shows_before_the_work(tmp_path, sides):
    report = tmp_path / "a.de" / "new" / "p.html"
    with pytest.raises(DataError, match=r"p\.html: .*Not a directory"):
        mine_job(output=tmp_path / "p.tsv", report=report).plan(*sides, "model")
    assert not (tmp_path / "p.tsv.work").exists()


def test_a_full_disk_says_where(tmp_path, sides, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with (
        monkeypatch.context() as patch,
        pytest.raises(OSError, match=r"No space .*p\.tsv\.work"),
    ):
        patch.setattr("interlingua.mining.vectors.os.pwrite", full)
        run(mine_job(output=tmp_path / "p.tsv"), sides)
    assert "pairs of" in run(mine_job(output=tmp_path / "p.tsv"), sides)[2]


@pytest.mark.parametrize(
    ("text", "count"), [("4GiB", 2**32), ("800 MB", 800 * 2**20), ("1.5k", 1536), ("77", 77)]
)
def test_sizes(text, count):
    assert parse_size(text) == count


def test_no_sizes_and_no_shards():
    for text in ("", "GiB", "-4G", "4 Gigs"):
        with pytest.raises(ConfigError, match="--memory: expected a size"):
            parse_size(text)
    with pytest.raises(ConfigError, match="'0'"):
        parse_size("0")
    assert parse_shard(" 2/8 ") == (2, 8)
    for text in ("0/2", "3/2", "1", "a/b"):
        with pytest.raises(ConfigError, match="shard"):
            parse_shard(text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": 0.9}, "--calibration"),
        ({"shard": "1/2"}, "--shard requires --work"),
        ({"laser": True, "precision": 0.9}, "--laser and --precision"),
        ({"laser": True, "check": "length"}, "--laser and --check"),
        ({"laser": True, "drop": "length=2"}, "--laser and --drop"),
        ({"drop": "lenght"}, "unknown check 'lenght'"),
        ({"margin": "ratios"}, "unknown margin 'ratios'"),
        ({"documents": "url"}, "equal, urls"),
        ({"approximate": "lsh"}, "unknown approximate search 'lsh'"),
    ],
)
def test_slips_show_before_anything_is_loaded(tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        mine_job(output=tmp_path / "p.tsv", **options)
