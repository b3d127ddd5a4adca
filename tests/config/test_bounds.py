from __future__ import annotations

from typing import Annotated

import pytest

from interlingua.config.bounds import (
    NEARLY_ONE,
    TINY,
    Above,
    AtLeast,
    Between,
    InsideFolder,
    Longest,
    bounds_of,
)
from interlingua.config.loader import ValueOrigin, describe_type

NAN = float("nan")
INFINITY = float("inf")


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (Between(1, 9), [1, 9, 1.5], [0, 10, NAN, INFINITY, int("9" * 400)]),
        (Between(TINY, 1), [1e-30, 1], [0, 1e-31]),
        (Between(0, NEARLY_ONE), [0, NEARLY_ONE], [1, 1 - 1e-10]),
        (AtLeast(1), [1, INFINITY], [0.999, NAN]),
        (AtLeast(0, below=1), [0, 1 - 1e-16], [1, -5e-324, NAN]),
        (Above(0), [5e-324, INFINITY], [0, NAN]),
        (Above(0, 1), [5e-324, 1], [0, 1.1]),
        (Above(0, below=1), [0.5], [0, 1]),
        (Longest(2), [[], [1, 2]], [[1, 2, 3]]),
        (
            InsideFolder(),
            ["", "1_Pooling", "a/b", "a..b"],
            ["/etc", "..", "a/../b", "\\x", "a\0"],
        ),
    ],
)
def test_a_rule_takes_what_is_in_it_and_nothing_else(rule, good, bad):
    assert [value for value in good if not rule.holds(value)] == []
    assert [value for value in bad if rule.holds(value)] == []


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Between(1, 2**62), "a number from 1 to 4611686018427387904"),
        (Between(TINY, 1e38), "a number above 0 and at most 1e+38"),
        (Between(0, NEARLY_ONE), "a number from 0 to below 1"),
        (AtLeast(0.5), "a number of at least 0.5"),
        (AtLeast(0, below=1), "a number from 0 to below 1"),
        (Above(0), "a number above 0"),
        (Above(0, below=1), "a number above 0 and below 1"),
        (Above(0, 1), "a number above 0 and at most 1"),
    ],
)
def test_a_rule_says_its_range(rule, words):
    assert rule.describe("a number") == words


def test_bounds_are_found_in_alternatives_and_in_lists():
    class Numbers:
        __module__ = __name__
        plain: int
        one: Annotated[int, Between(1, 2)]
        maybe: Annotated[float, Above(0)] | None
        several: tuple[Annotated[float, AtLeast(0)], ...]
        absent: OnlyForTypeCheckers | None

    class Narrower(Numbers):
        __module__ = __name__
        one: int  # type: ignore[assignment]

    found = {"one": Between(1, 2), "maybe": Above(0), "several": AtLeast(0)}
    assert {name: bounded.rule for name, bounded in bounds_of(Numbers).items()} == found
    assert bounds_of(Numbers)["one"].kind is int
    assert set(bounds_of(Narrower)) == {"maybe", "several"}


def test_a_type_is_described_with_its_bound():
    assert describe_type(tuple[int, ...], ValueOrigin()) == "a list"
    assert describe_type(int, ValueOrigin(numbers=Between(0, 5))) == "a whole number from 0 to 5"
