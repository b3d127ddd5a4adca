from __future__ import annotations

import gzip
import io
import os
import types
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from interlingua.corpus.formats.bitext import TextPair, read_pairs, write_pairs
from interlingua.corpus.formats.tmx import XML_LANG
from interlingua.errors import ConfigError, DataError, InterlinguaError
from interlingua.mining.calibration.calibration import save_calibration
from interlingua.mining.score import (
    BitextScorer,
    ScoreConfig,
    count_pairs,
    open_stream,
)
from interlingua.verbs.score import ScoreOptions
from tests.jobs import ScoreRun, score_job
from tests.mining.curves import calibration
from tests.mining.test_score import bitext
from tests.mining.words import encode
from tests.progress_records import Recorded

PAIRS = bitext(30)


def run(job, **options):
    out = io.StringIO()
    lines = job.run(job.open(), encode, stdout=out, **options)
    return out.getvalue().splitlines(), lines


def expected(config=None):
    return np.concatenate([block.scores for block in BitextScorer(encode, config).score(PAIRS)])


@pytest.fixture
def bitext_file(tmp_path):
    write_pairs(PAIRS, tmp_path / "a.de-en.tsv")
    return str(tmp_path / "a.de-en.tsv")


@pytest.fixture(
    params=["de-en.tsv", "set.csv", "set.xlsx", "de-en.jsonl.gz", "set.tmx", "set", "de-en.zip"]
)
def file(request, tmp_path):
    path = tmp_path / request.param
    write_pairs(PAIRS, path)
    return path


def test_any_format_comes_out_in_its_order(file):
    lines, told = run(score_job(str(file)))
    rows = [line.split("\t") for line in lines]
    assert [row[1:] for row in rows] == [[pair.source, pair.target] for pair in PAIRS]
    assert [float(row[0]) for row in rows] == pytest.approx(expected(), abs=1e-5)
    assert told[0].startswith("30 pairs read, 30 kept; ")
    assert told[0].endswith(" pairs/s")


@pytest.mark.parametrize("name", ["b.de-en.tsv", "b.csv", "b.tmx", "b", "b.de-en.zip", "b.jsonl"])
def test_no_pair_left_is_an_empty_file_of_the_known_languages(bitext_file, tmp_path, name):
    folder = tmp_path / "out"
    folder.mkdir()
    run(score_job(bitext_file, output=folder / name, threshold=99))
    made = sorted(path.name for path in folder.iterdir())
    assert made == (["b.de", "b.en"] if name == "b" else [name])
    assert list(read_pairs(folder / name, source_language="de", target_language="en")) == []


def test_untranslated_copies_and_nearly_empty_sides_are_rejected_by_default(tmp_path):
    pairs = [
        ("Das ist ein Haus.", "This is a house."),
        ("Das ist ein Haus.", "Das ist ein Haus."),
        ("Das ist ein Haus.", "-"),
        ("Das ist ein Haus.", "Это дом."),
        ("Im Jahr 1999", "In the year 2024"),
    ]
    write_pairs(
        [TextPair(*pair, "deu_Latn", "eng_Latn") for pair in pairs], tmp_path / "a.de-en.tsv"
    )
    job = ScoreRun(ScoreOptions("mini", tmp_path / "a.de-en.tsv"))
    assert [line.split("\t")[1:] for line in run(job)[0]] == [list(pairs[0])]
    assert len(run(score_job(tmp_path / "a.de-en.tsv"))[0]) == 5


def test_the_cut_is_that_of_all_pairs_and_not_of_the_first(tmp_path):
    """Sort right pairs first, so that the window sees no others."""
    right = bitext(400, wrong=0, repeated=0)
    pairs_apart = zip(right, right[7:], strict=False)
    wrong = [one._replace(target=other.target) for one, other in pairs_apart]
    write_pairs([*right, *wrong], tmp_path / "a.de-en.tsv")
    curve = calibration(
        source_language="deu_Latn",
        scoring="score ratio k=4 window=50",
        scores=(0.3, 1.3),
        log_odds=(-4.0, 4.0),
    )
    save_calibration(curve, tmp_path / "c.json")
    shares = []
    in_memory = [(pair.source, pair.target) for pair in [*right, *wrong]]
    codes = {"source_language": "de", "target_language": "en"}
    options = {"calibration": tmp_path / "c.json", "window": 50, "precision": 0.95, **codes}
    for source in (tmp_path / "a.de-en.tsv", in_memory):
        _, lines = run(score_job(source, **options))
        (share,) = [line for line in lines if line.startswith("translations among")]
        shares.append(float(share.split()[-1].rstrip("%")))
    assert shares[0] < shares[1] - 20


def test_named_columns_are_read_at_both_times(tmp_path):
    """Read a file twice, as with a calibration. Its other columns contain wrong pairs."""
    right = bitext(60, wrong=0, repeated=0)
    rows = [
        f"{one.target}\t{two.source}\t{one.source}\t{one.target}\n"
        for one, two in zip(right, [*right[7:], *right[:7]], strict=True)
    ]
    (tmp_path / "a.tsv").write_text("".join(rows))
    curve = calibration(
        source_language="deu_Latn",
        scoring="score ratio k=4 window=20",
        scores=(0.3, 1.3),
        log_odds=(-4.0, 4.0),
    )
    save_calibration(curve, tmp_path / "c.json")
    codes = {"source_language": "de", "target_language": "en"}
    columns = {"source_column": "3", "target_column": "4", "window": 20, "columns": ["score"]}
    once, _ = run(score_job(tmp_path / "a.tsv", **codes, **columns))
    twice, _ = run(
        score_job(tmp_path / "a.tsv", calibration=tmp_path / "c.json", **codes, **columns)
    )
    assert once == twice
    assert len(once) == 60


def test_a_translation_memory_keeps_its_units(tmp_path):
    units = "".join(
        f'<tu tuid="u{n}"><prop type="domain">d{n}</prop><tuv'
        f' xml:lang="de-AT"><seg>{pair.source}</seg></tuv>'
        f'<tuv xml:lang="en-GB"><seg>{pair.target}<ph>x</ph></seg></tuv></tu>'
        for n, pair in enumerate(PAIRS)
    )
    head = '<tmx version="1.4"><header srclang="de-AT" segtype="sentence"/>'
    (tmp_path / "a.tmx").write_text(f"{head}<body>{units}</body></tmx>", encoding="utf-8")
    run(score_job(tmp_path / "a.tmx", output=tmp_path / "b.tmx", threshold=1.0))
    kept = list(ElementTree.parse(tmp_path / "b.tmx").iter("tu"))
    assert 0 < len(kept) < 30
    for unit in kept:
        assert unit.get("tuid") == "u" + unit.findall("prop")[1].text.removeprefix("d")
        assert float(unit.find("prop").text) >= 1
        variants = [variant.attrib for variant in unit.findall("tuv")]
        assert variants == [{XML_LANG: "de-AT"}, {XML_LANG: "en-GB"}]
        assert unit.find("tuv/seg/ph").text == "x"


def test_standard_input(monkeypatch):
    text = "".join(f"{pair.source}\t{pair.target}\n" for pair in PAIRS) + "\n"
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(text.encode("utf-8"))))
    options = {"source_language": "de", "target_language": "en", "format": "jsonl"}
    lines, told = run(score_job("-", **options))
    assert len(lines) == 30
    assert told[2] == "left out: empty line 1"


def test_options_reach_the_score_and_the_filter(bitext_file):
    config = ScoreConfig(margin="distance", k=2, window=8)
    how = {"margin": "distance", "k": 2, "window": 8, "threshold": 0.1}
    checked = {"checks": "length", "drop": "duplicate", "columns": ["length", "score"]}
    lines, _ = run(score_job(bitext_file, **how, **checked))
    scores = [float(line.split("\t")[1]) for line in lines]
    assert 0 < len(scores) < 30
    assert min(scores) >= 0.1
    assert all(np.abs(expected(config) - score).min() < 1e-5 for score in scores)


@pytest.mark.parametrize(
    ("pairs", "options", "warned"),
    [
        (1, {}, True),
        (19, {"k": 2}, True),
        (20, {"k": 2}, False),
        (30, {"k": 2, "window": 8}, True),
        (1, {"cosine": True}, False),
    ],
)
def test_too_few_pairs_for_a_margin_are_told(tmp_path, pairs, options, warned):
    path = tmp_path / "a.de-en.tsv"
    write_pairs(PAIRS[:pairs], path)
    _, told = run(score_job(path, **options))
    warnings = [line for line in told if line.startswith("warning: a margin ")]
    assert bool(warnings) == warned


@pytest.mark.parametrize(
    "name",
    ["de-en.tsv", "de-en.tsv.gz", "de-en.jsonl.xz", "set.tmx", "set.tmx.gz", "set", "de-en.zip"],
)
def test_pairs_are_counted_for_the_time_left(tmp_path, name):
    write_pairs(PAIRS, tmp_path / name)
    assert count_pairs(str(tmp_path / name)) == 30


def test_progress_knows_the_total(tmp_path, bitext_file):
    told = Recorded()
    run(score_job(bitext_file), progress=told)
    assert told.counts[-1] == (pytest.approx(30), 30)
    assert count_pairs("-", "tsv") is None
    os.mkfifo(tmp_path / "pipe.tsv")
    assert count_pairs(str(tmp_path / "pipe.tsv")) is None
    cut = tmp_path / "b.de-en.tsv.gz"
    cut.write_bytes(gzip.compress(Path(bitext_file).read_bytes())[:-20])
    assert count_pairs(str(cut)) is None
    for absent in ("a.tmx", "a.tsv", "a"):
        assert count_pairs(str(tmp_path / absent)) is None


def test_ctrl_c(tmp_path, bitext_file):
    seen = []

    def stopped(texts, *, language):
        if language == "eng_Latn" and len(seen) > 1:
            raise KeyboardInterrupt
        seen.append(language)
        return encode(texts)

    job, out = score_job(bitext_file, window=10), io.StringIO()
    with pytest.raises(InterlinguaError, match="stopped after 10 pairs"):
        job.run(job.open(), stopped, stdout=out)
    assert len(out.getvalue().splitlines()) == 10
    seen.clear()
    job = score_job(bitext_file, output=tmp_path / "out.tsv", window=10)
    with pytest.raises(KeyboardInterrupt):
        job.run(job.open(), stopped, stdout=out)
    assert not (tmp_path / "out.tsv").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["scor"]}, "unknown column 'scor'"),
        ({"columns": []}, "no column is named"),
        ({"output": Path("a.tsv")}, "a.tsv .*be overwritten"),
        ({"output": Path("b.tsv"), "rejected": Path("b.tsv")}, "b.tsv .*two outputs"),
        ({"columns": ["probability"]}, "probability .*--calibration"),
        ({"format": "tmx"}, "tsv, jsonl or csv"),
        ({"rejected": "x.tmx"}, "rejected pairs .*.tsv, .jsonl"),
        ({"prior": 0.5}, "prior .*--calibration"),
        ({"cosine": True, "checks": "hub"}, "hub and --cosine"),
    ],
)
def test_slips_are_seen_before_anything_is_loaded(options, message):
    with pytest.raises(ConfigError, match=message):
        score_job(**options)


def test_bitexts_that_can_not_be_read(tmp_path, monkeypatch):
    (tmp_path / "de-en.tsv").write_text("\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"de-en\.tsv: the file contains no pair"):
        open_stream(str(tmp_path / "de-en.tsv"))
    (tmp_path / "x.de").write_text("a\n", encoding="utf-8")
    (tmp_path / "x.en").write_text("a\nb\n", encoding="utf-8")
    with pytest.raises(DataError, match="not aligned"):
        list(open_stream(str(tmp_path / "x")).pairs)
    with pytest.raises(ConfigError, match=r"moses .*standard input"):
        open_stream("-", "moses")
    for text, message in (
        (b"a\tb\nc\n", "-:2: found 1 column, expected 2"),
        (b"a\t\xff\n", r"-: not UTF-8 \(byte 0xff\)"),
    ):
        monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(text)))
        with pytest.raises(DataError, match=message):
            list(open_stream("-", None, "de", "en").pairs)
