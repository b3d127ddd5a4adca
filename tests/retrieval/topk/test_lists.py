from __future__ import annotations

import numpy as np
import pytest

from interlingua.retrieval.topk.lists import NeighborLists


def oracle(n, k, pairs):
    """Sort each pair once, by value and then by index."""
    rows = []
    for list_ in range(n):
        found = sorted({(-value, index) for at, value, index in pairs if at == list_})[:k]
        rows.append(
            [(-value, index) for value, index in found] + [(-np.inf, -1)] * (k - len(found))
        )
    return rows


def as_rows(lists):
    return [
        list(zip(v, i, strict=True))
        for v, i in zip(lists.values.tolist(), lists.indices.tolist(), strict=True)
    ]


def some_pairs(rng, n, m, size):
    """Draw few distinct values. A pair always has the same one, like similarities."""
    similarity = rng.integers(0, 5, (n, m)).astype(np.float32)
    at, index = rng.integers(0, n, size), rng.integers(0, m, size)
    return [(int(a), float(similarity[a, i]), int(i)) for a, i in zip(at, index, strict=True)]


def columns(pairs):
    at, values, indices = zip(*pairs, strict=True)
    return np.array(at, np.int64), np.array(values, np.float32), np.array(indices, np.int64)


@pytest.mark.parametrize("parts", [1, 3, 17])
def test_any_order_and_any_parts_give_the_oracle(parts):
    rng = np.random.default_rng(parts)
    pairs = some_pairs(rng, 9, 30, 300)
    lists = NeighborLists.empty(9, 4)
    for part in np.array_split(rng.permutation(len(pairs)), parts):
        lists.add(*columns([pairs[i] for i in part]))
    assert as_rows(lists) == oracle(9, 4, pairs)


def test_a_negative_zero_is_as_good_as_a_zero():
    lists = NeighborLists.empty(1, 3)
    lists.add(np.array([0, 0, 0]), np.array([0.0, -0.0, -1.0], np.float32), np.array([5, 3, 1]))
    assert lists.indices.tolist() == [[3, 5, 1]]


def test_joined_lists_are_the_lists_of_all_pairs():
    rng = np.random.default_rng(0)
    pairs = some_pairs(rng, 7, 20, 120)
    halves = [NeighborLists.empty(7, 3), NeighborLists.empty(7, 3)]
    for half, part in zip(halves, (pairs[:80], pairs[40:]), strict=True):  # they overlap
        half.add(*columns(part))
    halves[0].join(halves[1])
    assert as_rows(halves[0]) == oracle(7, 3, pairs)
    before = as_rows(halves[0])
    halves[0].join(NeighborLists.empty(7, 3))
    halves[0].join(halves[0])
    assert as_rows(halves[0]) == before


def test_a_part_writes_into_the_whole():
    lists = NeighborLists.empty(5, 2)
    lists.part(2, 4).add(np.array([1]), np.array([0.5], np.float32), np.array([9]))
    assert lists.indices[:, 0].tolist() == [-1, -1, -1, 9, -1]
    assert lists.kth_best.tolist() == [-np.inf] * 5
