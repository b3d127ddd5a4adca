"""tools/words.py: which words it finds, and where it looks."""

from __future__ import annotations

import pytest

from tools import words


@pytest.mark.parametrize(
    "text",
    [
        "as it was asked",
        "self.asked",
        "NOBODY",
        "mend the line",
        "dtype: see there.",
        "tokenising",
        "normalisation",
        "summarised",
        "the colours of neighbours",
        "a learnt threshold",
        "misspelt",
        "labelled",
    ],
)
def test_old_words_and_british_spellings_are_found(text):
    assert words.OLD_WORDS.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "masked",
        "recommended amendments",
        "see therefore",
        "raising, rising, arises, promised, precise, surprising, otherwise, pairwise, supervised",
        "exercise, premise, denoise, comparison, emphasis, enterprise",
        "tokenizing the neighbors of a labeled set",
        "aria-labelledby",
        "analyse",
    ],
)
def test_other_words_are_not_found(text):
    assert not words.OLD_WORDS.search(text)


def test_of_tests_comments_and_docstrings_alone_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(words, "ROOT", tmp_path)
    (tmp_path / "tests").mkdir()
    code = '"""Nobody."""\nx = "nobody"\n\n\ndef f():\n    """One\n    whose."""  # told\n'
    inside = tmp_path / "tests" / "test_x.py"
    outside = tmp_path / "x.py"
    for path in (inside, outside):
        path.write_text(code)
    assert [line[0] for line in words.old_words(inside)] == ["1", "7"]
    assert [line[0] for line in words.old_words(outside)] == ["1", "2", "7"]


def test_what_is_found_is_printed_and_ends_with_an_error(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(words, "ROOT", tmp_path)
    path = tmp_path / "a.md"
    path.write_text("Fine.\nNobody.\n")
    assert words.main([path]) == 1
    assert capsys.readouterr().out == "a.md:2: Nobody.\n"
    path.write_text("Fine.\n")
    assert words.main([path]) == 0


def test_all_kinds_of_files_are_read():
    found = {path.relative_to(words.ROOT).as_posix() for path in words.documents()}
    assert found >= {
        "README.md",
        "Makefile",
        "benchmarks/encode.py",
        "docs/data.md",
        "examples/tour.ipynb",
        "models/mini/README.md",
        "src/interlingua/report/templates/mine.html",
        "tests/tools/test_words.py",
        "tools/density.py",
    }
    assert "tools/words.py" not in found
