from __future__ import annotations

import gzip
import json
import random

import numpy as np
import pytest

from interlingua.corpus.formats.bitext import read_pairs
from tests.mining.invented import corpora, embed, write_lines

MINE = "mine tests.mining.invented:embed --backend function"


@pytest.fixture
def texts(tmp_path):
    sources, targets, pairs = corpora(30, 40)
    write_lines(tmp_path / "gold.tsv", [f"{a + 1}\t{b + 1}" for a, b in pairs])
    return write_lines(tmp_path / "a.de", sources), write_lines(tmp_path / "news.en.txt", targets)


def test_from_two_files_to_pairs(done, tmp_path, texts):
    said = done(
        MINE,
        *texts,
        f"-o {tmp_path}/p.tsv --threshold 1.4 --gold {tmp_path}/gold.tsv",
        f"--report {tmp_path}/p.html",
    )
    rows = [line.split("\t") for line in (tmp_path / "p.tsv").read_text().splitlines()]
    assert 28 <= len(rows) <= 32
    assert all(a.replace("de", "en") == b for _, a, b in rows[:28])
    assert "best F1 100.00" in said.out
    assert "German and English" in (tmp_path / "p.html").read_text()
    assert not (tmp_path / "p.tsv.work").exists()


def test_columns_checks_and_json_lines(done, tmp_path, texts):
    options = "--check numbers,hub --drop length=4 --retrieval intersection --margin distance"
    done(MINE, *texts, f"-o {tmp_path}/p.jsonl", options, "--quiet")
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert {"length", "numbers", "hub", "source_origins"} <= set(rows[0])
    assert rows[0]["source_language"] == "deu_Latn"
    assert max(row["score"] for row in rows) < 1


@pytest.mark.parametrize("name", ["p.csv", "p.xlsx"])
def test_pairs_go_to_a_spreadsheet(done, tmp_path, texts, name):
    done(MINE, *texts, f"-o {tmp_path}/{name} --quiet")
    pairs = list(read_pairs(tmp_path / name))
    assert sum(pair.source.replace("de", "en") == pair.target for pair in pairs) >= 28
    assert (pairs[0].source_language, pairs[0].target_language) == ("deu_Latn", "eng_Latn")
    assert pairs[0].score > 1


def test_bad_lines_are_skipped_where_that_is_wanted(refused, done, tmp_path, texts):
    broken = tmp_path / "b.de"
    broken.write_bytes(b"\xe4\xe4\n" + texts[0].read_bytes())
    arguments = f"{MINE} {broken} {texts[1]} -o {tmp_path}/p.tsv --quiet"
    said = refused(arguments)
    assert "b.de:1: not UTF-8" in said.err
    said = done(arguments, "--on-error skip")
    assert "1 line could not be read" in said.out
    assert "b.de\t1\tnot UTF-8\t" in (tmp_path / "p.tsv.bad-lines.tsv").read_text()
    assert len((tmp_path / "p.tsv").read_text().splitlines()) >= 28


def test_known_vectors_need_no_model(done, tmp_path, texts):
    for name, path in (("x", texts[0]), ("y", texts[1])):
        np.save(tmp_path / f"{name}.npy", embed(path.read_text().splitlines()))
    known = f"--source-vectors {tmp_path}/x.npy --target-vectors {tmp_path}/y.npy"
    done("mine some-model", *texts, f"-o {tmp_path}/p.tsv", known, "--laser")
    done(MINE, *texts, f"-o {tmp_path}/q.tsv --laser")
    rows = [
        [line.split("\t") for line in (tmp_path / name).read_text().splitlines()]
        for name in ("p.tsv", "q.tsv")
    ]
    assert [row[1:] for row in rows[0]] == [row[1:] for row in rows[1]]
    np.testing.assert_allclose(*([float(row[0]) for row in side] for side in rows), rtol=1e-5)


def test_matched_documents(done, tmp_path, texts):
    for path, language in zip(texts, ("de", "en"), strict=True):
        lines = sorted(path.read_text().splitlines())
        write_lines(
            path, [f"http://a.org/{language}/{n % 3}\t{line}" for n, line in enumerate(lines)]
        )
    said = done(
        MINE,
        *texts,
        f"-o {tmp_path}/p.tsv --documents urls --columns source_origins,target_origins",
    )
    assert "3 of 3 matches" in said.out
    for line in (tmp_path / "p.tsv").read_text().splitlines():
        one, other = (cell.split("#")[0] for cell in line.split("\t"))
        assert one.replace("/de/", "/en/") == other


def test_plan_says_what_it_takes_and_stops(done, tmp_path, texts, monkeypatch):
    monkeypatch.setattr("interlingua.retrieval.topk.speed.TRIED_VECTORS", 256)
    said = done(MINE, *texts, f"-o {tmp_path}/p.tsv --plan")
    assert [line.split(":")[0] for line in said.out.splitlines()] == [
        "texts",
        "embedding",
        "nearest neighbors",
        "pairs",
        "time",
        "disk",
        "memory",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.de", "gold.tsv", "news.en.txt"]


def test_shards_and_joining(done, tmp_path, texts):
    whole = (MINE, *texts, f"-o {tmp_path}/p.tsv --work {tmp_path}/w")
    for shard in ("1/2", "2/2"):
        said = done(*whole, f"--shard {shard}")
    assert "shard 2/2 is finished" in said.out
    done(*whole)
    done(MINE, *texts, f"-o {tmp_path}/q.tsv")
    assert (tmp_path / "p.tsv").read_bytes() == (tmp_path / "q.tsv").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "--memory much",
            "--memory: expected a size with a unit, such as 4GiB",
        ),
        ("--layout xml", "unknown layout 'xml'; use one of: auto, lines, ids, documents"),
        ("--documents urls", "a.de:1: expected document TAB text, found no tab"),
        ("--documents urls --layout lines", "--layout documents"),
        ("--threshold nan", "--threshold"),
        ("--columns ''", "--columns: no column is named; use one or more of: score, source"),
        ("--target-language xyzzy", "unknown language 'xyzzy'"),
        ("--memory 1KiB", "--memory"),
        ("--set a.b=1", "expected BACKEND.OPTION=VALUE"),
        ("--columns probability", "--precision"),
    ],
)
def test_mistakes_are_one_line(refused, tmp_path, texts, options, message):
    assert message in refused(MINE, *texts, f"-o {tmp_path}/p.tsv --quiet", options).err


def test_two_columns_of_one_table(done, tmp_path):
    sources, targets, _ = corpora(30, 30)
    rows = "".join(
        f"{number},{a},{b}\n" for number, (a, b) in enumerate(zip(sources, targets, strict=True))
    )
    bad_line = len(sources) + 2  # behind the header
    (tmp_path / "m.csv").write_text(f"id,de,words\n{rows}too,many,cells,here\n")
    (tmp_path / "lines.de.txt").write_text("".join(f"{a}\n" for a in sources))
    (tmp_path / "lines.en.txt").write_text("".join(f"{b}\n" for b in targets))
    codes = "--source-language de --target-language en --target-column words --on-error skip"
    table = tmp_path / "m.csv"
    said = done(f"{MINE} {table} {table}", codes, f"-o {tmp_path}/p.tsv --quiet")
    assert f"m.csv:{bad_line}: expected 3 columns, found 4" in said.out
    assert not (tmp_path / "p.tsv.work").exists()
    files = (tmp_path / "lines.de.txt", tmp_path / "lines.en.txt")
    said = done(MINE, *files, f"-o {tmp_path}/q.tsv --quiet")
    assert (tmp_path / "p.tsv").read_text() == (tmp_path / "q.tsv").read_text()


def test_lines_before_the_damage_of_a_side_are_mined(done, refused, tmp_path, texts):
    content = gzip.compress(random.Random(0).randbytes(200_000).hex("\n", 20).encode())
    (tmp_path / "cut.de.gz").write_bytes(content[: len(content) // 2])
    arguments = f"{MINE} {tmp_path}/cut.de.gz {texts[1]} -o {tmp_path}/p.tsv --quiet"
    said = refused(arguments)
    assert "cut.de.gz" in said.err
    said = done(arguments, "--on-error skip")
    assert "lines before the damage" in said.out
    assert (tmp_path / "p.tsv.bad-lines.tsv").read_text().count("cut.de.gz") == 1
