"""``mine`` on folders and patterns: one pool of each side, or one output of each two files."""

from __future__ import annotations

import gzip
import json

import openpyxl
import pytest

import interlingua
from interlingua.errors import ConfigError, DataError
from tests.mining.words import embed
from tests.tiny import tiny_encoder

OPTIONS = {"margin": "absolute", "checks": "none", "threshold": 0.9}
"""The texts are too few for a margin."""


def lines(code, numbers):
    return "".join(f"{code}{number} {code}{number + 100}\n" for number in numbers)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for code, words in (("de", "de"), ("en", "en")):
        for name, numbers in (("a.txt", range(5)), ("sub/b.txt", range(5, 12))):
            path = tmp_path / code / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(lines(words, numbers))
    (tmp_path / "de/only.txt").write_text(lines("de", [20]))
    (tmp_path / "en/other.txt").write_text(lines("en", [20, 21]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mine(*arguments, **options):
    return interlingua.mine(embed, *arguments, **OPTIONS | options)


def files_in(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(folder)) for path in files)


@pytest.mark.parametrize(
    "sides", [("de", "en"), ("de/**/*.txt", "en/**/*.txt"), (".", None), ("de", "en/**/*.txt")]
)
def test_all_files_of_a_side_are_one_pool_with_their_origins(folder, sides):
    found = mine(*sides, output="all.jsonl")
    rows = [json.loads(line) for line in (folder / "all.jsonl").read_text().splitlines()]
    assert len(rows) == 13
    [row] = [row for row in rows if "20 " in row["source"]]
    assert row["source_language"] in ("deu_Latn", "eng_Latn")
    origins = {*row["source_origins"], *row["target_origins"]}
    assert {origin.rpartition("/")[2] for origin in origins} == {"only.txt:1", "other.txt:1"}
    assert found.failures == []


def test_pairs_come_back_in_python_and_a_list_goes_with_a_folder(folder):
    found = mine("de", "en")
    assert len(found) == 13
    texts = lines("en", range(12)).splitlines()
    assert len(mine("de", texts, target_language="en")) == 12


@pytest.mark.parametrize("sides", [("de", "en"), ("*/**/*.txt", None)])
def test_a_folder_for_output_has_one_file_of_each_two_files(folder, sides):
    found = mine(*sides, output="out")
    names = {path.name for path in (folder / "out").rglob("*") if path.is_file()}
    assert names == {"a.txt.tsv", "b.txt.tsv", "mine.journal"}
    [pairs] = (folder / "out").rglob("b.txt.tsv")
    assert len(pairs.read_text().splitlines()) == 7
    left_out = [line for line in found.lines if line.startswith("left out")]
    assert len(left_out) == 2
    assert found.lines[-1] == "2 files, 0 not mined"


def test_a_second_run_mines_what_is_new_or_changed_and_names_what_failed(folder):
    mine("de", "en", output="out")
    first = (folder / "out/a.txt.tsv").stat().st_mtime_ns
    (folder / "de/sub/b.txt").write_bytes(b"\xff\xfe\xff\n")
    found = mine("de", "en", output="out")
    assert len(found.failures) == 1
    assert "de/sub/b.txt" in found.failures[0]
    (folder / "de/sub/b.txt").write_text(lines("de", range(5, 10)))
    assert mine("de", "en", output="out").failures == []
    assert (folder / "out/a.txt.tsv").stat().st_mtime_ns == first
    assert len((folder / "out/sub/b.txt.tsv").read_text().splitlines()) == 5


def test_a_model_trained_again_mines_finished_files_again(folder, word_vocabulary):
    outputs = []
    for seed in (0, 0, 1):
        tiny_encoder(word_vocabulary, seed=seed).save("model")
        options = {"margin": "absolute", "checks": "none", "threshold": -1.0}
        found = interlingua.mine("model", "de", "en", output="out", **options)
        skipped = any("earlier run" in line for line in found.lines)
        outputs.append((skipped, (folder / "out/a.txt.tsv").read_text()))
    assert [skipped for skipped, _ in outputs] == [False, True, False]
    assert outputs[0][1] == outputs[1][1] != outputs[2][1]


def test_a_side_may_have_files_of_several_formats(folder):
    with gzip.open(folder / "de/c.txt.gz", "wt") as file:
        file.write(lines("de", [30]))
    (folder / "de/d.csv").write_text("id,text\n1,de31 de131\n")
    book = openpyxl.Workbook()
    book.active.append(["text"])
    book.active.append(["en30 en130"])
    book.save(folder / "en/c.xlsx")
    (folder / "en/d.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nen31 en131\n")
    (folder / "en/e.po").write_text('msgid "a"\nmsgstr "b"\n')
    found = mine("de", "en", output="all.tsv")
    assert len((folder / "all.tsv").read_text().splitlines()) == 15
    assert any("en/e.po" in line and "interlingua score" in line for line in found.lines)


@pytest.mark.parametrize(
    ("sides", "options", "error", "match"),
    [
        (("de", "en"), {"output": "out", "gold": "de/a.txt"}, ConfigError, "--gold"),
        (("de", "en"), {"output": "out", "report": "x.html"}, ConfigError, "--report"),
        (("de", ["en1"]), {"output": "out"}, ConfigError, "folder"),
        (("de/a.txt", None), {}, ConfigError, "TARGET"),
        (("de", "de"), {}, ConfigError, "de/a.txt"),
        (("de", "fr"), {}, DataError, "fr"),
        (("de", None), {}, DataError, "--source-language"),
        (("x.tmx", "en"), {}, DataError, "interlingua score"),
        (("x.tmx", "en/a.txt"), {"source_language": "de"}, DataError, "interlingua score"),
    ],
)
def test_what_is_no_two_sides_is_refused(folder, sides, options, error, match):
    (folder / "x.tmx").write_text("<tmx version='1.4'/>")
    with pytest.raises(error, match=match):
        mine(*sides, **{"target_language": "en" if sides[1] == ["en1"] else None} | options)


def test_more_than_two_languages_in_one_folder_need_a_target_or_outputs(folder):
    (folder / "fr").mkdir()
    (folder / "fr/a.txt").write_text(lines("fr", range(5)))
    with pytest.raises(DataError, match="--target-language"):
        mine(".", output="all.tsv")
    assert len(mine(".", target_language="fr", output="fr.tsv")) == 0
    mine(".", output="out")
    assert files_in(folder / "out") == [
        "de/a.txt.tsv",
        "de/sub/b.txt.tsv",
        "fr/a.txt.tsv",
        "mine.journal",
    ]


def test_the_command_line_takes_folders(run, done, refused, folder):
    words = "--backend function --margin absolute --check none"
    done(f"mine tests.mining.words:embed de en -o all.tsv {words}")
    assert (folder / "all.tsv").exists()
    # Without a model the first folder is a side.
    assert "TARGET" in refused("mine de/a.txt -o x.tsv").err
    (folder / "de/a.txt").write_bytes(b"\xff\xff")
    ran = run(f"mine tests.mining.words:embed de en -o out {words}")
    assert ran.code == 2
    assert "de/a.txt" in ran.err
    assert len((folder / "out/sub/b.txt.tsv").read_text().splitlines()) == 7
    assert run(f"mine tests.mining.words:embed de en -o none --plan {words}").code == 2
    assert not (folder / "none").exists()


def test_another_set_of_checks_that_can_run_mines_finished_files_again(folder, monkeypatch):
    # "all" leaves out a check whose package is not installed, and the journal holds "all".
    skipped = []
    for left_out in ({}, {"language": "not installed"}, {"language": "not installed"}):
        monkeypatch.setattr(
            "interlingua.mining.checks._left_out_of_all",
            lambda glossary, limits, left_out=left_out: {"glossary": "none", **left_out},
        )
        found = mine("de", "en", output="out", checks="all")
        skipped.append(any("earlier run" in line for line in found.lines))
    assert skipped == [False, False, True]


def test_lines_on_the_whole_run_are_reported_once(folder):
    found = mine("de", "en", output="out", checks="all", threshold=None)
    for part in ("--columns score,", "--threshold", "left out of --check all"):
        [line] = [line for line in found.lines if part in line]
        assert ".txt" not in line
    assert found.lines[-1] == "2 files, 0 not mined"


@pytest.mark.parametrize(("checks", "named"), [("none", None), ("script", "script")])
def test_only_requested_checks_are_named_as_columns(folder, checks, named):
    found = mine("de", "en", output="o.tsv", checks=checks, drop="length,copied")
    lines = [line for line in found.lines if "--columns" in line]
    if named is None:
        assert lines == []
    else:
        assert lines[0].endswith(f",{named}")
        assert not lines[0].endswith(("length,script", "copied,script"))


def test_checks_of_consistency_leave_no_work_folder(folder):
    for checks in ("all", "translations,sources"):
        mine("de", "en", output="o.tsv", checks=checks)
        assert not (folder / "o.tsv.work").exists()
