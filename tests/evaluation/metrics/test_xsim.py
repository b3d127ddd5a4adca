from __future__ import annotations

import numpy as np
import pytest

from interlingua.evaluation.metrics.xsim import xsim_predictions
from interlingua.functional.margin import MARGINS


def laser_xsim(faiss, x, y, margin, k):
    """LASER's computation: two flat indexes, neighbours both ways, margin of the k candidates, best one."""
    x, y = x.copy(), y.copy()
    faiss.normalize_L2(x)
    faiss.normalize_L2(y)
    index_x, index_y = faiss.IndexFlatIP(x.shape[1]), faiss.IndexFlatIP(y.shape[1])
    index_x.add(x)
    index_y.add(y)
    cos_xy, idx_xy = index_y.search(x, k)
    cos_yx, _ = index_x.search(y, k)
    mean_xy, mean_yx = cos_xy.mean(axis=1), cos_yx.mean(axis=1)
    best = []
    for i in range(len(x)):
        scores = []
        for n in range(k):
            b = (mean_xy[i] + mean_yx[idx_xy[i, n]]) / 2
            scores.append({"ratio": cos_xy[i, n] / b, "distance": cos_xy[i, n] - b, "absolute": cos_xy[i, n]}[margin])
        best.append(idx_xy[i, int(np.argmax(scores))])
    return best


@pytest.mark.parametrize("distractors", [0, 150])
@pytest.mark.parametrize("k", [1, 4])
def test_laser_with_faiss_agrees(k, distractors):
    faiss = pytest.importorskip("faiss")
    rng = np.random.default_rng(k)
    x = rng.standard_normal((300, 24)).astype(np.float32) + 0.5
    y = np.concatenate([x, rng.standard_normal((distractors, 24)).astype(np.float32)])
    y = y + rng.standard_normal(y.shape).astype(np.float32)
    ours = xsim_predictions(x, y, k=k)
    for margin in MARGINS:
        assert ours[margin].tolist() == laser_xsim(faiss, x, y, margin, k)
    errors = {margin: float((ours[margin] != np.arange(300)).mean()) for margin in MARGINS}
    assert 0 < errors["ratio"] < 1
    if k > 1:
        assert errors["ratio"] < errors["absolute"]  # the margin repairs hubs, which the common offset makes
    else:
        assert len(set(errors.values())) == 1  # with one neighbour there is nothing to choose


def test_fewer_sentences_than_neighbours():
    predictions = xsim_predictions(np.eye(3), np.eye(3), k=4)
    assert {margin: predicted.tolist() for margin, predicted in predictions.items()} == {m: [0, 1, 2] for m in MARGINS}
