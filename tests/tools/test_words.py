"""tools/words.py: which words it finds, and where it looks."""

from __future__ import annotations

import pytest

from tools import words
from tools.rules.base import SourceFile


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


def test_constructions_are_found_in_docstrings_and_comments(tmp_path):
    code = (
        '"""What a run leaves."""\nx = "so many"  # a run goes on\n\n\n'
        'def f():\n    """See ``Task.run``."""\n\n\n'
        'def g():\n    """Return what it was told; see ``Task.run``."""\n'
        '# If none is given, or ``x`` alone: ``Workspace.alone`` is no word, nor is "alone".\n'
    )
    lines = {}
    for path in ("src/interlingua/cli/x.py", "tools/x.py"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(code, encoding="utf-8")
        found = words.Words().check(SourceFile(tmp_path, path))
        lines[path] = sorted(finding.line for finding in found)
    assert lines == {
        "src/interlingua/cli/x.py": [1, 2, 6, 10, 11],
        "tools/x.py": [1, 2, 6, 10, 11],
    }


def test_of_tests_comments_and_docstrings_alone_are_read(tmp_path):
    code = '"""Nobody."""\nx = "nobody"\n\n\ndef f():\n    """One\n    foretold."""  # told\n'
    lines = {}
    for path in ("tests/test_x.py", "tools/x.py"):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(code, encoding="utf-8")
        found = words.Words().check(SourceFile(tmp_path, path))
        lines[path] = [finding.line for finding in found]
    assert lines == {"tests/test_x.py": [1, 7], "tools/x.py": [1, 2, 7]}


@pytest.mark.parametrize(
    ("text", "has_any"), [("He\nsaid.", True), ("Aria, see there", True), ("unsaid, SAIDs", False)]
)
def test_whether_a_text_has_any_such_word(text, has_any):
    assert words.has_old_words(text) == has_any


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "Makefile",
        "benchmarks/encode.py",
        "docs/data.md",
        "examples/tour.ipynb",
        "models/mini/README.md",
        "src/interlingua/getting_started/train.toml",
        "src/interlingua/report/templates/mine.html",
        "tests/tools/test_words.py",
        "tools/density.py",
    ],
)
def test_all_kinds_of_files_are_read(path):
    assert words.is_read(path)


@pytest.mark.parametrize(
    "path",
    ["LICENSE", "constraints.txt", "experiments/a/results.json", "tests/x.toml", "tools/words.py"],
)
def test_data_and_the_list_itself_are_not_read(path):
    assert not words.is_read(path)
