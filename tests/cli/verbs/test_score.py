from __future__ import annotations

import io
import json
import re
import shutil
import sys
import types
from pathlib import Path

import pytest

from interlingua.corpus.formats.bitext import read_pairs, write_pairs
from tests.conftest import pairs as invented_pairs
from tests.mining.test_score import bitext
from tests.mining.test_score_learning import is_right
from tests.tiny import tiny_encoder

WORDS = Path(__file__).resolve().parents[2] / "mining" / "words.py"
SCORE = "score invented_words:embed --backend function"
PAIRS = bitext(400, wrong=0.4, repeated=0)


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    shutil.copy(WORDS, tmp_path / "invented_words.py")
    monkeypatch.chdir(tmp_path)
    write_pairs(PAIRS, "noisy.de-en.tsv")
    return tmp_path


def test_a_score_column(done):
    said = done(f"{SCORE} noisy.de-en.tsv --drop none")
    rows = [line.split("\t") for line in said.out.splitlines()]
    assert [tuple(row[1:]) for row in rows] == [(pair.source, pair.target) for pair in PAIRS]
    assert said.err.startswith("400 pairs read, 400 kept; ")


@pytest.mark.parametrize("name", ["clean.csv", "clean.xlsx"])
def test_spreadsheets_go_in_and_out(done, refused, name):
    done(f"{SCORE} noisy.de-en.tsv --threshold 1 -o {name} --rejected rest.csv --quiet")
    kept, rest = list(read_pairs(name)), list(read_pairs("rest.csv"))
    assert len(kept) + len(rest) == len(PAIRS)
    assert 150 < len(kept) < 300
    assert min(pair.score for pair in kept) >= 1 > max(pair.score for pair in rest)
    done(f"{SCORE} {name} -o again.tmx")
    assert [pair[:2] for pair in read_pairs("again.tmx")] == [pair[:2] for pair in kept]
    assert sorted(path.name for path in Path().glob("clean*")) == [name]
    assert (
        "out.docx: unknown format of bitext .docx; use one of: .tsv"
        in refused(f"{SCORE} {name} -o out.docx").err
    )


def test_from_standard_input_to_standard_output(done, workplace, monkeypatch):
    text = (workplace / "noisy.de-en.tsv").read_bytes()
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(text)))
    options = "--source-language de --target-language en --format jsonl --quiet --window 64"
    said = done(f"{SCORE} - --threshold 1 --check length,numbers", options)
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert 150 < len(rows) < 300
    assert all(row["score"] >= 1 and row["numbers"] <= 1 <= row["length"] for row in rows)
    first, second, warning = said.err.splitlines()  # and no progress bar
    assert first.startswith("400 pairs read")
    assert second.startswith("score quantiles: 5% ")
    assert "of the pairs" in warning
    assert "--learn" in warning


def test_plain_cosine_and_margins_by_distance(done):
    columns = "--columns score,cosine,source,target --quiet"
    said = done(f"{SCORE} noisy.de-en.tsv --cosine", columns)
    plain = [line.split("\t")[:2] for line in said.out.splitlines()]
    assert all(float(a) == pytest.approx(float(b), abs=2e-6) for a, b in plain)
    said = done(f"{SCORE} noisy.de-en.tsv --margin distance --k 2", columns)
    by_distance = [line.split("\t")[:2] for line in said.out.splitlines()]
    assert [b for _, b in by_distance] == [b for _, b in plain]
    assert all(float(a) < float(b) for a, b in by_distance)


def test_learn_then_filter_by_precision(done, refused, workplace):
    labels = [f"{int(is_right(pair))}\t{pair.source}\t{pair.target}\n" for pair in PAIRS[:150]]
    (workplace / "labels.tsv").write_text("".join(labels), encoding="utf-8")
    said = done(f"{SCORE} noisy.de-en.tsv --learn c.json --labels labels.tsv --drop none --quiet")
    assert said.out == ""
    assert "score quantiles: " in said.err
    assert "written: c.json" in said.err
    arguments = "noisy.de-en.tsv --drop none --calibration c.json -o kept.tmx --rejected rest.jsonl"
    said = done(SCORE, arguments, "--precision 0.95")
    kept = list(read_pairs("kept.tmx"))
    assert sum(map(is_right, kept)) > 0.9 * len(kept) > 0.9 * 200
    rest = [
        json.loads(line) for line in Path("rest.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert len(rest) + len(kept) == 400
    assert {reason for row in rest for reason in row["reasons"]} == {"below the threshold"}
    assert "precision 0.95: threshold " in said.err
    done(SCORE, arguments, "--probability 0.5 --prior 0.6 --columns probability,source")
    # another window makes other scores
    assert (
        "'score ratio k=4 window=8192'"
        in refused(f"{SCORE} noisy.de-en.tsv --calibration c.json --window 50").err
    )


def test_one_of_our_encoders(done, tmp_path, word_vocabulary):
    encoder = tiny_encoder(word_vocabulary)
    encoder.save(tmp_path / "tiny")
    rows = invented_pairs("deu_Latn", 12, seed=0)
    Path("set.de").write_text("".join(f"{a}\n" for a, _ in rows), encoding="utf-8")
    Path("set.en").write_text("".join(f"{b}\n" for _, b in rows), encoding="utf-8")
    said = done("score tiny set --cosine --dtype bfloat16 --device cpu")
    found = [float(line.split("\t")[0]) for line in said.out.splitlines()]
    sides = [encoder.encode([row[side] for row in rows]) for side in (0, 1)]
    assert found == pytest.approx((sides[0] * sides[1]).sum(axis=1).tolist(), abs=0.03)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("absent.de-en.tsv", "absent.de-en.tsv: file not found"),
        ("-", "-: the languages are unknown"),
        ("noisy.de-en.tsv --columns scor", "unknown column 'scor'"),
        ("noisy.de-en.tsv --check lenght", "unknown check 'lenght'; did you mean 'length'"),
        ("noisy.de-en.tsv --precision 0.9", "precision requires --calibration"),
        ("noisy.de-en.tsv --calibration absent.json", "absent.json: file not found"),
        ("noisy.de-en.tsv --format tmx", "standard output: expected tsv, jsonl or csv"),
        (
            "noisy.de-en.tsv --parallel noisy.de-en.tsv",
            "--parallel requires --learn",
        ),
        ("noisy.de-en.tsv --learn c.json", "--labels"),
        ("broken.de-en.tsv", "broken.de-en.tsv:2: found 1 column, expected 2"),
        ("latin.de-en.tsv", "latin.de-en.tsv:2: not UTF-8 (byte 0xe4)"),
        ("misaligned", "the two files are not aligned"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    refused, arguments, message, workplace, monkeypatch
):
    Path("broken.de-en.tsv").write_text("a\tb\nc\n", encoding="utf-8")
    Path("latin.de-en.tsv").write_bytes(b"a\tb\n\xe4\tb\n")
    Path("misaligned.de").write_text("a\nb\n", encoding="utf-8")
    Path("misaligned.en").write_text("a\n", encoding="utf-8")
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(b"a\tb\n")))
    output = "" if "--format" in arguments or "--learn" in arguments else "-o out.tsv"
    assert message in refused(SCORE, arguments, output).err
    assert not Path("out.tsv").exists()


def test_without_a_terminal_a_line_a_minute(done, workplace, monkeypatch):
    monkeypatch.setattr("interlingua.runtime.progress.EVERY_SECONDS", 0.05)
    slow = (
        "import time, invented_words\ndef embed(texts):\n    time.sleep(0.1)\n    return"
        " invented_words.embed(texts)\n"
    )
    (workplace / "slower_words.py").write_text(slow, encoding="utf-8")
    command = f"{SCORE.replace('invented', 'slower')} noisy.de-en.tsv -o out.tsv --window 100"
    said = done(command)
    lines = [line for line in said.err.splitlines() if line.startswith("after 0.")]
    # The time left is not known after some tenths of a second.
    assert any(re.search(r"\d+ of 400 pairs, [\d,]+/s$", line) for line in lines)
    assert "after" not in done(command, "--quiet").err


def test_bad_lines_are_skipped_where_that_is_wanted(done, refused, workplace):
    lines = (workplace / "noisy.de-en.tsv").read_bytes().splitlines(keepends=True)
    (workplace / "bad.de-en.tsv").write_bytes(
        b"".join([*lines[:50], b"one cell\n", b"\xe4\tb\n", *lines[50:]])
    )
    said = refused(f"{SCORE} bad.de-en.tsv -o out.tsv --quiet")
    assert said.err.startswith("interlingua: bad.de-en.tsv:5")
    said = done(f"{SCORE} bad.de-en.tsv -o out.tsv --quiet --on-error skip")
    said = said.err.splitlines()
    assert said[0].startswith("400 pairs read")
    assert said[2:-1] == [
        "warning: 2 lines could not be read and were left out; they are listed in"
        " out.tsv.bad-lines.tsv",
        "  bad.de-en.tsv:51: found 1 column, expected 2 columns; remove tabs inside a text",
        "  bad.de-en.tsv:52: not UTF-8",
    ]
    assert "\tone cell\n" in (workplace / "out.tsv.bad-lines.tsv").read_text()
    done(f"{SCORE} bad.de-en.tsv --on-error skip --bad-lines rest --cosine --quiet")
    assert len((workplace / "rest").read_text().splitlines()) == 3
    assert "expected stop or skip" in refused(f"{SCORE} bad.de-en.tsv --on-error ignore").err


def test_scores_that_reject_nothing_are_named(done):
    def named(options):
        err = done(f"{SCORE} noisy.de-en.tsv -o o.jsonl --quiet", options).err
        return [line for line in err.splitlines() if line.startswith("no pair is rejected")]

    [line] = named("")
    assert all(option in line for option in ("--threshold", "--precision", "--calibration"))
    assert named("--threshold 1") == []
    write_pairs(bitext(200, seed=7, wrong=0, repeated=0), "good.de-en.tsv")
    done(f"{SCORE} noisy.de-en.tsv --learn c.json --parallel good.de-en.tsv --quiet")
    assert len(named("--calibration c.json")) == 1
    assert named("--calibration c.json --precision 0.9") == []
    assert named("--calibration c.json --probability 0.5") == []


def test_all_checks_are_those_that_can_run(done, refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "py3langid", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    err = done(f"{SCORE} noisy.de-en.tsv --check all --cosine -o o.jsonl --quiet").err
    [line] = [line for line in err.splitlines() if "left out" in line]
    for part in ("glossary (needs --glossary)", "language (", "[langid]", "hub ("):
        assert part in line
    names = set(json.loads(Path("o.jsonl").read_text(encoding="utf-8").splitlines()[0]))
    assert {"script", "ending", "duplicate"} < names
    assert not names & {"glossary", "language", "hub"}
    # A check that is named is not left out.
    assert "langid" in refused(f"{SCORE} noisy.de-en.tsv --check language -o o.jsonl").err
    assert "--cosine" in refused(f"{SCORE} noisy.de-en.tsv --check hub --cosine -o o.jsonl").err


@pytest.mark.parametrize(
    ("output", "columns"),
    [("o.tsv", "--columns score,source,target,script"), ("o.tmx", ".jsonl"), ("o.jsonl", None)],
)
def test_formats_without_columns_of_checks_are_named(done, output, columns):
    err = done(f"{SCORE} noisy.de-en.tsv --check script --drop none -o {output} --quiet").err
    lines = [
        line
        for line in err.splitlines()
        if "columns for the checks" in line or "are no columns" in line
    ]
    assert len(lines) == (columns is not None)
    assert all(str(columns) in line for line in lines)
    err = done(f"{SCORE} noisy.de-en.tsv --check script -o o.tsv --columns score,script").err
    assert "--columns" not in err


@pytest.mark.parametrize(
    ("check", "named"), [("none", None), ("script", "script"), ("hub,script", "script,hub")]
)
def test_only_requested_checks_are_named_as_columns(done, check, named):
    # Checks of the default --drop are measured and not requested.
    err = done(f"{SCORE} noisy.de-en.tsv --check {check} -o o.tsv --quiet").err
    lines = [line for line in err.splitlines() if "--columns" in line]
    if named is None:
        assert lines == []
    else:
        assert [line.partition("--columns ")[2] for line in lines] == [
            f"score,source,target,{named}"
        ]


@pytest.mark.parametrize("output", ["out", "o.tsv"])
def test_lines_on_the_whole_run_are_printed_once(done, output):
    for name in ("a.de-en.tsv", "b.de-en.tsv"):
        Path("l10n").mkdir(exist_ok=True)
        shutil.copy("noisy.de-en.tsv", f"l10n/{name}")
    err = done(f"{SCORE} l10n/*.tsv --check all -o {output} --quiet").err
    for part in ("--columns score,", "--threshold", "left out of --check all"):
        [line] = [line for line in err.splitlines() if part in line]
        assert "de-en" not in line
