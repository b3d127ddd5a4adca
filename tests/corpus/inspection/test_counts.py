from __future__ import annotations

import numpy as np
import pytest

from interlingua.corpus.cleaning.keys import text_keys
from interlingua.corpus.inspection.counts import Order, RatioCounts, SideCounts, copies_of


def test_a_side_is_counted_over_portions(tmp_path):
    side = SideCounts(tmp_path)
    side.add(["one", "", "ONE!", "?"])
    side.add(["two", "one", "  "])
    assert (side.texts, side.empty, side.first_empty, side.duplicates) == (7, 2, 2, 2)
    assert side.lengths().most == 4
    assert side.lengths().median == 3


def test_ratios_are_of_filled_pairs():
    counts = RatioCounts()
    counts.add(np.array([10, 0, 10, 10]), np.array([20, 5, 20, 20]))
    assert counts.ratios() == (2, 2, 2, 2)
    assert RatioCounts().ratios() is None


@pytest.mark.parametrize(
    ("values", "direction"),
    [
        (range(200), "ascending"),
        (range(200, 0, -1), "descending"),
        ([1] * 200, None),
        ([n % 7 for n in range(200)], None),
        (range(20), None),
        ([*range(199), 0], "ascending"),
    ],
)
def test_orders(values, direction):
    for numbers in (np.array(values), [f"{value:04}" for value in values]):
        order = Order(0.98)
        order.add(numbers[:50])
        order.add(numbers[50:])
        assert order.direction() == direction


def test_copies_need_a_letter():
    texts = (["same", "12", "left"], ["Same.", "12", "right"])
    keys = tuple(map(text_keys, texts))
    assert copies_of(*texts, keys).tolist() == [True, False, False]
