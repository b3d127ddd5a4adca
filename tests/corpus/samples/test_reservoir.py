from __future__ import annotations

from collections import Counter

import pytest

from interlingua.corpus.samples.reservoir import reservoir


def test_everything_where_there_is_no_more():
    assert reservoir("abc", 5, seed=1) == ["a", "b", "c"]
    assert reservoir("abc", 3, seed=1) == ["a", "b", "c"]
    assert reservoir([], 3, seed=1) == []


def test_pure_in_the_items_and_the_seed():
    first = reservoir(range(1000), 20, seed=3)
    assert first == reservoir(iter(range(1000)), 20, seed=3) != reservoir(range(1000), 20, seed=4)
    assert len(set(first)) == 20


@pytest.mark.parametrize("size", [1, 4])
def test_every_item_is_as_likely_as_any_other(size):
    draws, items = 12_000, 12
    counts = Counter(
        item for seed in range(draws) for item in reservoir(range(items), size, seed=seed)
    )
    expected = draws * size / items
    chi_squared = sum((counts[item] - expected) ** 2 / expected for item in range(items))
    assert chi_squared < 31.3  # 11 degrees of freedom, p = 0.001


def test_a_long_stream_is_read_once_and_not_held():
    read = 0

    def stream():
        nonlocal read
        for item in range(200_000):
            read += 1
            yield item

    sample = reservoir(stream(), 100, seed=1)
    assert read == 200_000
    assert 80_000 < sum(sample) / 100 < 120_000
