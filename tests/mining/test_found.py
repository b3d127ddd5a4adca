from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.mining import candidates as found
from interlingua.mining.candidates import CandidatePairs, best_both_ways, descending, retrieve
from interlingua.search.topk.exact import Neighbors, mutual_topk


def unit(rng, n, d=5):
    rows = rng.standard_normal((n, d))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def in_blocks(near, size):
    def blocks(side):
        one = near[side]
        for start in range(0, len(one.indices), size):
            yield (
                start,
                Neighbors(
                    one.similarities[start : start + size], one.indices[start : start + size]
                ),
            )

    return blocks


@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
@pytest.mark.parametrize(("n", "m", "k"), [(40, 50, 4), (5, 3, 4), (1, 1, 2)])
def test_pairs_on_disk_are_those_in_memory(tmp_path, monkeypatch, n, m, k, margin):
    monkeypatch.setattr(found, "CHUNK", 9)
    rng = np.random.default_rng(n)
    x, y = unit(rng, n), unit(rng, m)
    x[n // 2] = x[0]  # equal scores
    both = best_both_ways(x, y, k=k, margin=margin)
    near = dict(zip("xy", mutual_topk(x, y, k=k), strict=True))
    scored = CandidatePairs.of_blocks(
        in_blocks(near, 11), {"x": n, "y": m}, folder=tmp_path, margin=margin
    )
    for retrieval in ("forward", "backward", "intersection", "max"):
        expected = retrieve(*both, retrieval)
        for memory in (2**30, 500):
            for ordered in (True, False):
                pairs = np.concatenate(
                    list(scored.retrieved(retrieval, memory=memory, ordered=ordered))
                )
                order = (
                    np.argsort(-expected.scores, kind="stable")
                    if ordered
                    else np.arange(len(expected.scores))
                )
                assert pairs["x"].tolist() == expected.x[order].tolist()
                assert pairs["y"].tolist() == expected.y[order].tolist()
                assert pairs["score"].tolist() == expected.scores[order].tolist()
                if retrieval == "max":
                    refused = {"refuses": lambda xs, ys: (xs + ys) % 3 == 0}
                    some = np.concatenate(
                        list(scored.retrieved(retrieval, memory=memory, **refused))
                    )
                    without = retrieve(*both, retrieval, **refused)
                    assert some["x"].tolist() == without.x.tolist()
                    assert some["y"].tolist() == without.y.tolist()
                cosines = (x[pairs["x"]] * y[pairs["y"]]).sum(axis=1)
                np.testing.assert_allclose(pairs["cosine"], cosines, atol=1e-6)


def test_hubs_by_hand(tmp_path):
    """y0 is the nearest of x0, x1 and x2; y1 of none."""
    near = {
        "x": Neighbors(torch.tensor([[0.9], [0.8], [0.7]]), torch.tensor([[0], [0], [0]])),
        "y": Neighbors(torch.tensor([[0.9], [0.5]]), torch.tensor([[0], [1]])),
    }
    scored = CandidatePairs.of_blocks(
        in_blocks(near, 2), {"x": 3, "y": 2}, folder=tmp_path, margin="absolute"
    )
    assert scored.hubs["y"].tolist() == [3, 0]
    assert scored.hubs["x"].tolist() == [1, 1, 0]
    (pairs,) = scored.retrieved("max")
    assert pairs[["x", "y", "hub_x", "hub_y"]].tolist() == [(0, 0, 1, 3), (1, 1, 1, 0)]


def test_vectors_of_zeros_have_the_score_zero(tmp_path):
    near = {
        side: Neighbors(torch.zeros(1, 1), torch.zeros(1, 1, dtype=torch.int64)) for side in "xy"
    }
    (pairs,) = CandidatePairs.of_blocks(
        in_blocks(near, 1), {"x": 1, "y": 1}, folder=tmp_path, margin="ratio"
    ).retrieved("max")
    assert pairs["score"].tolist() == [0.0]


@pytest.mark.parametrize("memory", [40, 100, 1000, 2**20])
def test_the_order_is_the_same_in_any_memory(memory):
    scores = np.random.default_rng(0).integers(0, 30, 200) / 7
    places = np.concatenate(list(descending(scores, memory)))
    assert places.tolist() == sorted(range(200), key=lambda place: (-scores[place], place))
    assert list(descending(scores[:0], memory)) == []
