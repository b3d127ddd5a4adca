"""``interlingua.mine`` and ``interlingua mine`` find the same pairs in the same texts."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import interlingua
from interlingua.config.options import declared
from interlingua.errors import ConfigError, DataError
from interlingua.mining.checks import CheckPlan
from interlingua.mining.defaults import CHEAP, DEFAULT_CHECKS
from interlingua.verbs.mine import MineOptions, check_mine
from tests.mining.invented import corpora, embed, write_lines

FUNCTION = "tests.mining.invented:embed"
LANGUAGES = {"source_language": "de", "target_language": "en"}


OUTSIDE = "tests.mining.test_checks:Politeness"


def test_a_check_of_another_package_is_a_column_and_a_reason(command_line, tmp_path, texts):
    sources = [f"{source}!!!" if row < 5 else source for row, source in enumerate(texts[0])]
    write_lines(tmp_path / "a.de", sources)
    report = tmp_path / "r.html"
    rows = command_line(f"--check none --drop {OUTSIDE} --report {report}")
    assert rows
    assert {row["politeness"] for row in rows} == {0}
    assert "impolite" in report.read_text(encoding="utf-8")


@pytest.fixture
def texts(tmp_path):
    """Two sides with rejects of each check: copies, a long side, equal sentences, a blank line."""
    sources, targets, _ = corpora(30, 40)
    targets = [*targets, *sources[:10], "", targets[0], f"{targets[1]} {' '.join(targets[2:20])}"]
    write_lines(tmp_path / "a.de", sources)
    write_lines(tmp_path / "a.en", targets)
    return sources, targets


@pytest.fixture
def command_line(written_rows, tmp_path):
    """The rows that the command writes."""
    command = f"mine {FUNCTION} {tmp_path}/a.de {tmp_path}/a.en --backend function"
    return functools.partial(written_rows, command)


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ("", {}),
        ("--threshold 1.2 --k 3", {"threshold": 1.2, "k": 3}),
        ("--retrieval forward", {"retrieval": "forward"}),
        (
            "--retrieval intersection --margin distance",
            {"retrieval": "intersection", "margin": "distance"},
        ),
        ("--drop length=2", {"drop": {"length": 2}}),
        ("--check length --drop none", {"checks": ["length"], "drop": ()}),
        ("--check none", {"checks": ()}),
        ("--check none --drop copied", {"checks": (), "drop": ["copied"]}),
        (f"--check none --drop {OUTSIDE}=50", {"checks": (), "drop": {OUTSIDE: 50}}),
        ("--laser", {"laser": True}),
        ("--memory 8MiB --equal folded", {"memory": 8 * 2**20, "equal": "folded"}),
    ],
)
def test_function_and_command_line_give_equal_pairs(command_line, tmp_path, texts, flags, options):
    expected = command_line(flags)
    assert expected
    from_files = interlingua.mine(
        FUNCTION, tmp_path / "a.de", str(tmp_path / "a.en"), backend="function", **options
    )
    from_lists = interlingua.mine(embed, *texts, **LANGUAGES, **options)
    for found in (from_files, from_lists):
        rows = [(pair.score, pair.source, pair.target) for pair in found]
        assert rows == [(row["score"], row["source"], row["target"]) for row in expected]
        assert [dict(columns) for columns in found.columns] == expected
        assert [texts[0][pair.source_row] for pair in found] == [pair.source for pair in found]
        assert [texts[1][pair.target_row] for pair in found] == [pair.target for pair in found]


def test_empty_checks_reject_nothing(tmp_path, texts):
    with_checks = interlingua.mine(embed, *texts, **LANGUAGES)
    without = interlingua.mine(embed, *texts, **LANGUAGES, checks=())
    assert any(pair.source == pair.target for pair in without)
    assert not any(pair.source == pair.target for pair in with_checks)
    assert with_checks.written.rejected["copied text"] == 10
    assert not without.written.rejected


def test_an_output_is_that_of_the_command_line(command_line, tmp_path, texts):
    command_line()
    found = interlingua.mine(
        FUNCTION,
        tmp_path / "a.de",
        tmp_path / "a.en",
        backend="function",
        output=tmp_path / "q.jsonl",
    )
    assert (tmp_path / "q.jsonl").read_bytes() == (tmp_path / "p.jsonl").read_bytes()
    assert found == []
    assert found.written.pairs == len((tmp_path / "q.jsonl").read_text().splitlines())
    assert not (tmp_path / "q.jsonl.work").exists()


def test_a_list_may_be_mined_against_a_file(tmp_path, texts):
    found = interlingua.mine(embed, texts[0], tmp_path / "a.en", source_language="deu")
    assert found == interlingua.mine(embed, *texts, **LANGUAGES)


def test_texts_of_unknown_language_pass_the_script_check():
    sources, targets, _ = corpora(30, 40)
    assert interlingua.mine(embed, sources, targets) == interlingua.mine(
        embed, sources, targets, **LANGUAGES
    )


def test_a_plan_finds_no_pairs(texts):
    found = interlingua.mine(embed, *texts, plan=True)
    assert found == []
    assert found.lines[0].startswith("texts:")


def test_pairs_do_not_depend_on_a_line_break_within(texts):
    sources = [*texts[0][:20], texts[0][20].replace(" ", "\n"), *texts[0][21:]]

    def embed_words(lines: list[str]) -> object:
        return embed([" ".join(line.split()) for line in lines])

    found = interlingua.mine(embed_words, sources, texts[1], **LANGUAGES)
    plain = interlingua.mine(embed, *texts, **LANGUAGES)
    assert [pair[3:] for pair in found] == [pair[3:] for pair in plain]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"k": 0}, "k: expected"),
        ({"columns": "score"}, "columns"),
        ({"report": "p.html"}, "report"),
        ({"shard": "1/2"}, "--work"),
        ({"backend": "onnx"}, "backend"),
        ({"dtype": "int8"}, "dtype"),
        ({"source_vectors": "v.npy"}, "vectors"),
        ({"ray": "local"}, "by its name"),
        ({"max_line": 0}, "max_line"),
    ],
)
def test_what_does_not_go_together_is_refused(texts, options, match):
    with pytest.raises(ConfigError, match=match):
        interlingua.mine(embed, *texts, **options)


def test_a_side_without_sentences_is_refused():
    with pytest.raises(DataError, match="target"):
        interlingua.mine(embed, ["a"], ["", " "])


def test_defaults_are_those_of_the_checks():
    options = MineOptions("m", "a", "b")
    assert options.checks == ",".join(CHEAP)
    found = check_mine(options)
    assert (
        found == CheckPlan.parse(",".join(CHEAP), DEFAULT_CHECKS) != CheckPlan.parse("none", "none")
    )
    without = check_mine(MineOptions("m", "a", "b", checks="none"))
    assert without == CheckPlan.parse("none", "none")
    (help_text,) = [
        declaration.help for field, declaration in declared(MineOptions) if field.name == "drop"
    ]
    assert DEFAULT_CHECKS in help_text


def test_unequal_numbers_are_no_translations_and_few_texts_are_told():
    found = interlingua.mine(
        embed_numbers,
        ["12", "2024", "3.5"],
        ["3.5", "12", "1999"],
        source_language="de",
        target_language="en",
    )
    assert sorted((pair.source, pair.target) for pair in found) == [("12", "12"), ("3.5", "3.5")]
    assert any(line.startswith("warning: a margin") for line in found.lines)


def embed_numbers(texts):
    """Return vectors that are similar for all numbers."""
    draws = [np.random.default_rng(round(10 * float(text))).standard_normal(16) for text in texts]
    return np.stack(draws).astype(np.float32) * 0.3 + 1
