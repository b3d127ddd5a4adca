from __future__ import annotations

from pathlib import Path

import pytest

from interlingua.verbs.shared import as_path, joined, listed


@pytest.mark.parametrize(
    ("names", "expected"),
    [("a, b,,", ["a", "b"]), (["a", "b"], ["a", "b"]), (("a",), ["a"]), ("", []), ((), []), (None, None)],
)
def test_names_come_with_commas_or_as_a_list(names, expected):
    assert listed(names) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [("length=2,hub", "length=2,hub"), ({"length": 2.5, "hub": None}, "length=2.5,hub"), (["a", "b"], "a,b"), ((), "")],
)
def test_limits_come_as_text_or_as_a_mapping(names, expected):
    assert joined(names) == expected


def test_a_path_may_be_a_text():
    assert as_path("a/b") == Path("a/b")
    assert as_path(None) is None
