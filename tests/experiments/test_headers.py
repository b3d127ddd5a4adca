"""Headers of experiments: the printed numbers of a row, below the names of their columns.

A line of a comment with only numbers and bars is a row of a table; the line above it names
the columns.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "experiments"
FILES = sorted(ROOT.rglob("*.toml"))
NUMBERS = re.compile(r"#[\s\d.|;]*\d[\s\d.|;]*")
ABLATION = sorted(
    path
    for path in (ROOT / "ems").glob("*.toml")
    if "Table XIV, row" in path.read_text(encoding="utf-8")
)


def header_of(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("#")]


def rows_of(lines):
    """Return pairs of a line of names and the line of numbers below it."""
    return [
        (names, numbers)
        for names, numbers in pairwise(lines)
        if "|" in numbers and re.fullmatch(NUMBERS, numbers)
    ]


@pytest.mark.parametrize(
    ("names", "numbers", "expected"),
    [
        ("# Expected: a | b", "#           1 | 2.5", True),
        ("# Expected: a | b; c", "#           1 | 2; 3", True),
        ("# Expected: a | b", "#           1 | 2 | 3", False),
        ("# Expected: a | b; c", "#           1 | 2", False),
    ],
)
def test_whether_numbers_fit_their_names(names, numbers, expected):
    assert rows_of([names, numbers]) == [(names, numbers)]
    assert has_a_name_for_each(names, numbers) is expected


def has_a_name_for_each(names, numbers):
    return all(names.count(mark) == numbers.count(mark) for mark in "|;")


def test_each_printed_number_has_a_column():
    rows = [(path, *row) for path in FILES for row in rows_of(header_of(path))]
    assert len(rows) > 60
    lacking = [
        (path.relative_to(ROOT).as_posix(), numbers)
        for path, names, numbers in rows
        if not has_a_name_for_each(names, numbers)
    ]
    assert lacking == []


@pytest.mark.parametrize("path", ABLATION, ids=lambda path: path.stem)
def test_a_row_of_the_ablation_of_ems_has_all_columns(path):
    """Check table XIV: five columns of retrieval, two of MLDoc, and seconds except for A100."""
    names = " ".join(names for names, _ in rows_of(header_of(path)))
    wanted = ["Tatoeba 58", ">300k 43", "<300k 15", "Flores 182", "Flores 240"]
    wanted += ["English to X", "X to English"]
    wanted += ["seconds"] * (path.stem != "a100")
    assert [name for name in wanted if name not in names] == []
