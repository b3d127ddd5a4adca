from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.corpus.cleaning.dedup import ExactDeduplicator, is_in


def first_seen_by_a_set(chunks):
    seen = set()
    return [[not (key in seen or seen.add(key)) for key in chunk] for chunk in chunks]


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 40), max_size=30), max_size=12), st.integers(1, 20))
def test_a_set_says_the_same(tmp_path_factory, chunks, run_keys):
    dedup = ExactDeduplicator(tmp_path_factory.mktemp("keys"), run_keys=run_keys)
    found = [dedup.first_seen(np.array(chunk, np.uint64)).tolist() for chunk in chunks]
    assert found == first_seen_by_a_set(chunks)


def test_many_keys_in_many_runs(tmp_path):
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 2**64, 60_000, np.uint64)[rng.integers(0, 60_000, 200_000)]
    dedup = ExactDeduplicator(tmp_path, run_keys=5_000)
    found = np.concatenate([dedup.first_seen(chunk) for chunk in np.array_split(keys, 37)])
    expected = np.zeros(len(keys), bool)
    expected[np.unique(keys, return_index=True)[1]] = True
    assert (found == expected).all()
    assert len(list(tmp_path.iterdir())) >= 5
    assert sum(map(len, dedup._recent)) < 5_000


def test_memory_holds_at_most_one_run(tmp_path):
    dedup = ExactDeduplicator(tmp_path, run_keys=1 << 12)
    for first in range(0, 1 << 16, 500):
        dedup.first_seen(np.arange(first, first + 500, dtype=np.uint64))
        lengths = [len(part) for part in dedup._recent]
        assert sum(lengths) < 1 << 12
        assert all(a >= 2 * b for a, b in pairwise(lengths))
    written = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert written + 8 * sum(lengths) == 8 * 500 * len(range(0, 1 << 16, 500))


@pytest.mark.parametrize("known", [[], [5], [0, 2**64 - 1], [3, 7, 9]])
def test_is_in(known):
    asked = np.array([0, 3, 4, 5, 9, 10, 2**64 - 1], np.uint64)
    assert is_in(np.array(known, np.uint64), asked).tolist() == [
        key in known for key in asked.tolist()
    ]
