from __future__ import annotations

import itertools
from typing import get_args

import numpy as np
import pytest
import torch

from interlingua.mining import candidates as found
from interlingua.mining.candidates import (
    CandidatePairs,
    Retrieval,
    best_both_ways,
    descending,
    retrieve,
)
from interlingua.retrieval.topk.exact import Neighbors, mutual_topk
from tests.mining.unit_vectors import MARGINS, unit

RETRIEVALS = get_args(Retrieval)


def in_blocks(near, size):
    def blocks(side):
        one = near[side]
        for start in range(0, len(one.indices), size):
            yield start, Neighbors(*(part[start : start + size] for part in one))

    return blocks


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize(("n", "m", "k"), [(40, 50, 4), (5, 3, 4), (1, 1, 2)])
def test_pairs_on_disk_are_those_in_memory(tmp_path, monkeypatch, n, m, k, margin):
    monkeypatch.setattr(found, "_CHUNK", 9)
    rng = np.random.default_rng(n)
    x, y = unit(rng, n), unit(rng, m)
    x[n // 2] = x[0]  # equal scores
    both = best_both_ways(x, y, k=k, margin=margin)
    near = dict(zip("xy", mutual_topk(x, y, k=k), strict=True))
    blocks = in_blocks(near, 11)
    scored = CandidatePairs.of_blocks(blocks, {"x": n, "y": m}, folder=tmp_path, margin=margin)
    refused = {"refuses": lambda xs, ys: (xs + ys) % 3 == 0}

    def assert_found(expected, *how, **options):
        pairs = np.concatenate(list(scored.retrieved(*how, **options)))
        assert pairs["x"].tolist() == expected.x.tolist()
        assert pairs["y"].tolist() == expected.y.tolist()
        assert pairs["score"].tolist() == expected.scores.tolist()
        cosines = (x[pairs["x"]] * y[pairs["y"]]).sum(axis=1)
        np.testing.assert_allclose(pairs["cosine"], cosines, atol=1e-6)

    for retrieval, memory in itertools.product(RETRIEVALS, (2**30, 500)):
        expected = retrieve(*both, retrieval)
        assert_found(expected, retrieval, memory=memory, ordered=False)
        expected = expected.take(np.argsort(-expected.scores, kind="stable"))
        assert_found(expected, retrieval, memory=memory)
        if retrieval == "max":
            assert_found(retrieve(*both, **refused), "max", memory=memory, **refused)


def test_hubs_by_hand(tmp_path):
    """Make y0 the nearest of x0, x1 and x2, and y1 of none."""
    near = {
        "x": Neighbors(torch.tensor([[0.9], [0.8], [0.7]]), torch.tensor([[0], [0], [0]])),
        "y": Neighbors(torch.tensor([[0.9], [0.5]]), torch.tensor([[0], [1]])),
    }
    sizes = {"x": 3, "y": 2}
    scored = CandidatePairs.of_blocks(in_blocks(near, 2), sizes, folder=tmp_path, margin="absolute")
    assert scored.hubs["y"].tolist() == [3, 0]
    assert scored.hubs["x"].tolist() == [1, 1, 0]
    (pairs,) = scored.retrieved("max")
    assert pairs[["x", "y", "hub_x", "hub_y"]].tolist() == [(0, 0, 1, 3), (1, 1, 1, 0)]


def test_vectors_of_zeros_have_the_score_zero():
    near = Neighbors(torch.zeros(1, 1), torch.zeros(1, 1, dtype=torch.int64))
    (pairs,) = CandidatePairs.of_neighbors(near, near, margin="ratio").retrieved("max")
    assert pairs["score"].tolist() == [0.0]


@pytest.mark.parametrize("memory", [40, 100, 1000, 2**20])
def test_the_order_is_the_same_in_any_memory(memory):
    scores = np.random.default_rng(0).integers(0, 30, 200) / 7
    places = np.concatenate(list(descending(scores, memory)))
    assert places.tolist() == sorted(range(200), key=lambda place: (-scores[place], place))
    assert list(descending(scores[:0], memory)) == []
