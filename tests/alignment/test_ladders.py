"""Right links as hunalign writes them, and the choice between its format and vecalign's."""

from __future__ import annotations

import pytest

from interlingua.alignment.align import read_right_links
from interlingua.alignment.ladders import is_rung, is_text_rung
from interlingua.alignment.sentence_alignment import Link
from interlingua.errors import DataError


def written(path, text):
    path.write_text(text, encoding="utf-8", newline="")
    return path


LADDER = "0\t0\t0.3\n1\t1\t1.25\n3\t2\t-0.3\n3\t4\t0\n5\t4\t0.9\n6\t6\t0\n"


@pytest.mark.parametrize(
    "text", [LADDER, LADDER.replace("\t", " ").replace("\n", "\r\n"), f"\n{LADDER}"]
)
def test_a_ladder_of_hunalign_gives_its_links(tmp_path, text):
    # Its rungs: 1-1, 2-1, nothing-2, 2-nothing, 1-2.
    assert read_right_links(written(tmp_path / "gold", text), (6, 6)) == [
        Link((0,), (0,), 0.0),
        Link((1, 2), (1,), 0.0),
        Link((), (2,), 0.0),
        Link((), (3,), 0.0),
        Link((3,), (), 0.0),
        Link((4,), (), 0.0),
        Link((5,), (4, 5), 0.0),
    ]


def test_a_ladder_without_scores_and_its_last_rungs(tmp_path):
    path = written(tmp_path / "gold", "0 0\n1 2\n")
    assert read_right_links(path, (5, 5)) == [Link((0,), (0, 1), 0.0)]


def test_links_of_vecalign_are_right_links(tmp_path):
    path = written(tmp_path / "gold", "\n[0, 1]:[0]:0.2\n")
    assert read_right_links(path, (2, 1)) == [Link((0, 1), (0,), 0.2)]
    assert read_right_links(written(tmp_path / "none", "\n"), (2, 1)) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Ein Satz.\tA sentence.\t0.5\n", "gold:1: .*-text"),
        ("\nEins. ~~~ Zwei.\tOne.\t1\n", "gold:2: .*-text"),
        ("1\t1\t0.5\n2\t2\t0\n", "gold:1: .*0 0.*1 1"),
        ("0\t0\t0.5\n2\t2\t0\n1\t3\t0\n", "gold:3: .*1 3.*2 2"),
        ("0\t0\t0.5\n2\t2\t0\n2\t2\t0\n", "gold:3: .*2 2"),
        ("0\t0\t0.5\n7\t2\t0\n", "gold:2: .*7 2.*length 5"),
        ("0\t0\t0.5\n[0]:[0]\n", r"gold:2: .*\[0\]:\[0\]"),
        ("0\t0\t0.5\n", "gold: .*two rungs"),
        ("A sentence.\n", "gold:1: .*hunalign.*A sentence"),
    ],
)
def test_gold_that_is_neither_links_nor_a_ladder(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_right_links(written(tmp_path / "gold", text), (5, 3))


@pytest.mark.parametrize(
    ("line", "rung", "text"),
    [
        ("0\t0\t0.5", True, False),
        ("12 13", True, False),
        ("1\t2\t-1e-3", True, False),
        ("1\t2\tnan", True, False),
        ("12", False, False),
        ("1\t2\t3\t4", False, False),
        ("Ein Satz.\tA sentence.\t0.5", False, True),
        ("1984\tNineteen\t.5", False, True),
        ("\tOne.\t-0.3", False, True),
        ("Ein Satz.\tA sentence.", False, False),
    ],
)
def test_lines_of_both_forms_are_told_apart(line, rung, text):
    assert is_rung(line) == rung
    assert is_text_rung(line) == text
