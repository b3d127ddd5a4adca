from __future__ import annotations

import itertools

import pytest

from interlingua.runtime.portions import ceil_div, portions, taken_ahead


@pytest.mark.parametrize(("count", "lengths"), [(0, []), (2, [2]), (3, [3]), (7, [3, 3, 1])])
def test_portions_hold_every_item_in_order(count, lengths):
    found = list(portions(range(count), 3))
    assert [len(portion) for portion in found] == lengths
    assert list(itertools.chain.from_iterable(found)) == list(range(count))


def test_no_item_is_read_before_its_portion():
    assert next(portions(itertools.count(), 2)) == [0, 1]


def test_so_many_items_are_taken_ahead_and_no_more():
    items = iter(range(10))
    found = taken_ahead(items, 3)
    assert next(found) == 0
    assert next(items) == 3
    assert list(found) == [1, 2, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(("n", "m", "quotient"), [(0, 3, 0), (1, 3, 1), (3, 3, 1), (4, 3, 2)])
def test_quotients_are_rounded_up(n, m, quotient):
    assert ceil_div(n, m) == quotient
