from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.batches.permutation import keys, permute


def order(size: int, key: int) -> np.ndarray:
    sizes = np.full(size, size)
    return permute(np.arange(size), sizes, keys(key, np.zeros(size, dtype=np.int64)))


@settings(max_examples=60, deadline=None)
@given(size=st.integers(1, 3000), key=st.integers(0, 2**63))
def test_it_is_a_bijection(size, key):
    assert sorted(order(size, key).tolist()) == list(range(size))


@settings(max_examples=25, deadline=None)
@given(
    size=st.sampled_from([2**20, 2**20 + 1, 10**12, 2**40 - 1]),
    start=st.integers(0, 2**19),
    key=st.integers(0, 99),
)
def test_large_domains_stay_inside_and_distinct(size, start, key):
    positions = start + np.arange(500)
    out = permute(positions, np.full(500, size), keys(key, np.zeros(500, dtype=np.int64)))
    assert out.min() >= 0
    assert out.max() < size
    assert len(set(out.tolist())) == 500


def test_elements_of_one_call_do_not_depend_on_each_other():
    sizes = np.asarray([1, 7, 1000, 7, 65537])
    positions = np.asarray([0, 3, 999, 6, 12345])
    key = keys(5, np.asarray([0, 1, 2, 1, 4]))
    together = permute(positions, sizes, key)
    alone = [permute(positions[i : i + 1], sizes[i : i + 1], key[i : i + 1])[0] for i in range(5)]
    assert together.tolist() == alone


def test_keys_name_different_orders():
    assert not np.array_equal(order(1000, 1), order(1000, 2))
    parts = keys(1, np.asarray([0, 0, 1, 1]), np.asarray([0, 1, 0, 1]))
    assert len(set(parts.tolist())) == 4


def test_first_places_are_spread_evenly():
    # 4000 orders of 100 things: where the first and the last go is uniform (chi-square, 99 degrees,
    # p = 1e-6).
    key = np.repeat(keys(1, np.arange(4000)), 2)
    ends = permute(np.tile([0, 99], 4000), np.full(8000, 100), key).reshape(4000, 2)
    for end in ends.T:
        counts = np.bincount(end, minlength=100)
        assert ((counts - 40) ** 2 / 40).sum() < 180


def test_neighbors_are_not_kept_together():
    ranks = order(10_000, 3)
    correlation = np.corrcoef(ranks[:-1], ranks[1:])[0, 1]
    assert abs(correlation) < 0.05
