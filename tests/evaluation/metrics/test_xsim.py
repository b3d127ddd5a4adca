from __future__ import annotations

import numpy as np
import pytest

from interlingua.corpus.negatives.hard_negatives import Altered
from interlingua.evaluation.data.augmented_sets import MISALIGNED
from interlingua.evaluation.metrics.xsim import kinds_of_errors, xsim_predictions, xsim_search
from interlingua.functional.margin import MARGINS


def laser_xsim(faiss, x, y, margin, k):
    """Run LASER's computation: two flat indexes, neighbors both ways, best margin of k."""
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
            scores.append(
                {"ratio": cos_xy[i, n] / b, "distance": cos_xy[i, n] - b, "absolute": cos_xy[i, n]}[
                    margin
                ]
            )
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
        assert (
            errors["ratio"] < errors["absolute"]
        )  # the margin repairs hubs, which the common offset makes
    else:
        assert len(set(errors.values())) == 1  # with one neighbor there is nothing to choose


def test_fewer_sentences_than_neighbors():
    predictions = xsim_predictions(np.eye(3), np.eye(3), k=4)
    assert {margin: predicted.tolist() for margin, predicted in predictions.items()} == {
        m: [0, 1, 2] for m in MARGINS
    }


def test_what_misled_a_query():
    targets, altered = (
        ["a", "b ", "c"],
        [Altered("a2", "a", "number"), Altered("b2", "b", "name"), Altered("?", "", "x")],
    )
    predicted = np.array([3, 4, 3])
    assert kinds_of_errors(predicted, np.array([True, True, True]), targets, altered) == [
        "number",
        "name",
        MISALIGNED,
    ]
    assert (
        kinds_of_errors(np.array([1, 4, 5]), np.array([True, False, True]), targets, altered)
        == [MISALIGNED] * 2
    )


def test_any_pair_has_its_margin():
    x, y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.8, 0.6], [0.0, 2.0], [-1.0, 0.0]])
    search = xsim_search(x, y, k=1)
    assert search.ratio(0, 0) == pytest.approx(0.8 / ((0.8 + 0.8) / 2))
    assert search.ratio(1, 0) == pytest.approx(0.6 / ((1.0 + 0.8) / 2))
    assert search.predictions["ratio"].tolist() == [0, 1]


def test_any_pair_can_be_scored():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((5, 4)), rng.standard_normal((7, 4))
    search = xsim_search(x, y, k=2)
    x, y = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (x, y))
    cosines = x @ y.T
    of_x, of_y = (
        np.sort(cosines, axis=1)[:, -2:].mean(axis=1),
        np.sort(cosines, axis=0)[-2:].mean(axis=0),
    )
    for i, j in ((0, 0), (3, 6), (4, search.predictions["ratio"][4])):
        assert search.ratio(i, j) == pytest.approx(
            cosines[i, j] / ((of_x[i] + of_y[j]) / 2), rel=1e-4
        )
    best = search.predictions["ratio"][4]
    nearest = np.argsort(cosines[4])[-2:]
    assert search.ratio(4, best) == max(search.ratio(4, int(j)) for j in nearest)
