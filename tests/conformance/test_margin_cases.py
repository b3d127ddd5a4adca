"""Margin scores and xsim predictions, computed independently in float64 and checked against LASER's
own functions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from interlingua.evaluation.metrics.xsim import xsim_predictions
from interlingua.functional.margin import MARGINS, best_neighbor, margin_score, score_neighbors
from interlingua.retrieval.topk.dense import top_k
from interlingua.retrieval.topk.exact import mutual_topk

CASES = json.loads((Path(__file__).parent / "margin.json").read_text())
TOLERANCE = 1e-7


def unit(rows):
    tensor = torch.tensor(rows, dtype=torch.float64)
    return tensor / tensor.norm(dim=1, keepdim=True)


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("name", ["margin_scores", "margin_scores_extra_targets"])
def test_margin_scores(name, margin):
    case = CASES[name]
    x, y, k = unit(case["inputs"]["X"]), unit(case["inputs"]["Y"]), case["params"]["k"]
    expected = case["expected"][margin]
    of_x, of_y = top_k(x @ y.T, k), top_k(y @ x.T, k)
    x_means, y_means = of_x.similarities.mean(dim=1), of_y.similarities.mean(dim=1)
    matrix = margin_score(x @ y.T, x_means[:, None], y_means[None, :], margin=margin)
    for value, key in ((x_means, "mean_xy"), (y_means, "mean_yx"), (matrix, "score_matrix")):
        torch.testing.assert_close(
            value, torch.tensor(expected[key], dtype=torch.float64), rtol=0, atol=TOLERANCE
        )
    forward = score_neighbors(*of_x, x_means, y_means, margin=margin)
    backward = score_neighbors(*of_y, y_means, x_means, margin=margin)
    assert best_neighbor(forward, of_x.indices).tolist() == expected["forward_best"]
    assert best_neighbor(backward, of_y.indices).tolist() == expected["backward_best"]


def test_block_search_gives_the_same_means_in_float32():
    case = CASES["margin_scores"]
    x, y = (unit(case["inputs"][side]).float().numpy() for side in "XY")
    of_x, of_y = mutual_topk(x, y, k=2, rows=4, columns=4)
    np.testing.assert_allclose(
        of_x.similarities.mean(dim=1), case["expected"]["ratio"]["mean_xy"], atol=TOLERANCE * 2
    )
    np.testing.assert_allclose(
        of_y.similarities.mean(dim=1), case["expected"]["ratio"]["mean_yx"], atol=TOLERANCE * 2
    )


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize(
    ("pool", "kind"), [("Y", "xsim"), ("Y_with_synthetic", "xsimpp_pool_of_9")]
)
def test_xsim_predictions(pool, kind, k):
    inputs = CASES["xsim"]["inputs"]
    predictions = xsim_predictions(np.array(inputs["X"]), np.array(inputs[pool]), k=k)
    for margin, predicted in predictions.items():
        expected = CASES["xsim"]["expected"][kind][f"{margin}_k{k}"]
        assert predicted.tolist() == expected["predicted"]
        assert int((predicted != np.arange(6)).sum()) == expected["errors"]
