from __future__ import annotations

import numpy as np
import pytest

from interlingua.evaluation.metrics.ranking import DEPTH
from interlingua.evaluation.tasks.retrieval.passage_search import (
    EmbeddedPassages,
    Questions,
    search_pools,
)


def pools_of(seed, *sizes):
    rng = np.random.default_rng(seed)
    names = ["sw", "te", "ko"][: len(sizes)]
    return {
        name: EmbeddedPassages(
            [f"p{row}" for row in range(size)],
            rng.integers(-2, 3, (size, 3)).astype(np.float32),
            "",
        )
        for name, size in zip(names, sizes, strict=True)
    }


def questions_of(vectors):
    texts = {f"q{row}": "" for row in range(len(vectors))}
    return Questions("sw", "swh_Latn", {}, texts, vectors)


@pytest.mark.parametrize("seed", range(3))
def test_ranking_over_pools_equals_a_full_sort(seed):
    """Use small integers, so that many scores are equal, also at the last place."""
    pools = pools_of(seed, 90, 70, 40)
    queries = np.random.default_rng(seed + 9).integers(-2, 3, (6, 3)).astype(np.float32)
    run = search_pools(questions_of(queries), pools)
    for row in range(6):
        scores = {
            f"{name}/{passage}": float(queries[row] @ vector)
            for name, pool in pools.items()
            for passage, vector in zip(pool.ids, pool.vectors, strict=True)
        }
        found = run[f"q{row}"]
        assert len(found) == DEPTH
        assert all(found[passage] == scores[passage] for passage in found)
        assert sorted(found.values()) == sorted(scores.values())[-DEPTH:]


def test_a_lone_pool_keeps_its_ids():
    pools = {"": pools_of(0, 3)["sw"]}
    assert set(search_pools(questions_of(np.ones((1, 3), np.float32)), pools)["q0"]) == {
        "p0",
        "p1",
        "p2",
    }


def test_no_questions_give_no_ranking():
    assert search_pools(questions_of(np.zeros((0, 1), np.float32)), pools_of(0, 3)) == {}
