"""``interlingua.score`` and ``interlingua score`` keep the same pairs with the same scores."""

from __future__ import annotations

import functools

import pytest

import interlingua
from interlingua.errors import ConfigError, DataError
from interlingua.storage.limits import MAX_LINE_CHARACTERS, max_line_characters
from tests.mining.invented import write_lines
from tests.mining.test_score import bitext
from tests.mining.words import embed

LANGUAGES = {"source_language": "de", "target_language": "en"}


@pytest.fixture
def pairs(tmp_path):
    found = [(pair.source, pair.target) for pair in bitext(50)]
    found[7] = (found[7][0], found[8][1])
    write_lines(tmp_path / "a.de-en.tsv", [f"{source}\t{target}" for source, target in found])
    return found


@pytest.fixture
def command_line(written_rows, tmp_path):
    """The rows that the command writes."""
    command = f"score tests.mining.words:embed {tmp_path}/a.de-en.tsv --backend function"
    return functools.partial(written_rows, command)


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ("", {}),
        ("--threshold 1.1 --k 3 --window 20", {"threshold": 1.1, "k": 3, "window": 20}),
        ("--cosine", {"cosine": True}),
        ("--check all --drop length=1.5", {"checks": "all", "drop": {"length": 1.5}}),
    ],
)
def test_function_and_command_line_keep_equal_pairs(command_line, tmp_path, pairs, flags, options):
    if "all" in flags:
        pytest.importorskip("py3langid")
    expected = command_line(flags)
    assert expected
    named = tmp_path / "a.de-en.tsv"
    from_file = interlingua.score("tests.mining.words:embed", named, backend="function", **options)
    from_memory = interlingua.score(embed, iter(pairs), **LANGUAGES, **options)
    for scored in (from_file, from_memory):
        found = list(scored)
        rows = [(pair.score, pair.source, pair.target) for pair in found]
        assert rows == [(row["score"], row["source"], row["target"]) for row in expected]
        assert [
            {**row, **pair.columns} for row, pair in zip(expected, found, strict=True)
        ] == expected
        assert "50 pairs read" in scored.lines[0]


def test_pairs_are_scored_when_their_turn_comes():
    read = []

    def stream():
        for number in range(1000):
            read.append(number)
            yield f"de{number} de{number + 1}", f"en{number} en{number + 1}"

    scored = interlingua.score(embed, stream(), k=1, window=20)
    assert next(scored).score > 0
    assert len(read) < 100


@pytest.mark.parametrize("output", [None, "scored.tsv"])
def test_a_long_line_is_refused_also_where_pairs_stream(tmp_path, output):
    lines = [f"de{number} de{number + 1}\ten{number} en{number + 1}" for number in range(3010)]
    lines.insert(3000, f"{'x' * 500}\ten1")
    file = tmp_path / "a.de-en.tsv"
    write_lines(file, lines)
    written = None
    if output is not None:
        written = tmp_path / output
    with pytest.raises(DataError, match="max-line") as refused:
        list(interlingua.score(embed, file, max_line=100, window=200, output=written))
    assert refused.value.line == 3001


def test_the_limit_for_lines_ends_between_two_pairs(tmp_path, monkeypatch):
    monkeypatch.delenv("INTERLINGUA_MAX_LINE", raising=False)
    scored = interlingua.score(embed, [("de1 de2", "en1 en2")] * 40, window=20, max_line=100)
    limits = [max_line_characters() for _ in scored]
    assert limits == [MAX_LINE_CHARACTERS] * 40


def test_an_output_is_that_of_the_command_line(command_line, tmp_path, pairs):
    command_line()
    scored = interlingua.score(embed, pairs, output=tmp_path / "q.jsonl", **LANGUAGES)
    assert (tmp_path / "q.jsonl").read_bytes() == (tmp_path / "p.jsonl").read_bytes()
    assert list(scored) == []
    assert scored.lines


def test_the_plain_cosine_has_to_be_named():
    with pytest.raises(ConfigError, match="cosine"):
        interlingua.score(embed, [("a", "b")], margin="absolute")
