"""Retrieval of pairs, the walk to the best F1, mteb's F1: computed independently, checked against
LASER's code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from interlingua.evaluation.metrics.retrieval import weighted_scores
from interlingua.functional.margin import MARGINS
from interlingua.mining.candidates import best_both_ways, retrieve
from interlingua.mining.gold import at_threshold, best_threshold
from interlingua.storage.arrays import normalize_rows

FOLDER = Path(__file__).parent
CASES = json.loads((FOLDER / "bucc.json").read_text())
VECTORS = json.loads((FOLDER / "margin.json").read_text())


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("name", ["margin_scores", "margin_scores_extra_targets"])
def test_retrieval(name, margin):
    x, y = (normalize_rows(np.array(VECTORS[name]["inputs"][side])) for side in "XY")
    both = best_both_ways(x, y, k=VECTORS[name]["params"]["k"], margin=margin)
    found = retrieve(*both)
    expected = CASES[name][margin]
    np.testing.assert_allclose(
        found.scores, [score for score, _, _ in expected["max"]], rtol=0, atol=1e-6
    )
    assert list(zip(found.x, found.y, strict=True)) == [(x, y) for _, x, y in expected["max"]]
    common = retrieve(*both, "intersection")
    assert [list(pair) for pair in zip(common.x, common.y, strict=True)] == expected["intersection"]


def test_best_f1():
    case = CASES["bucc_best_f1"]
    gold = {tuple(pair) for pair in case["inputs"]["gold"]}
    scores = np.array([score for score, _, _ in case["inputs"]["candidates"]])
    right = np.array(
        [(source, target) in gold for _, source, target in case["inputs"]["candidates"]]
    )
    found, expected = best_threshold(scores, right, gold=len(gold)), case["expected"]
    assert found.extracted == expected["n_extracted"]
    for key in ("threshold", "precision", "recall", "f1"):
        assert getattr(found, key) == pytest.approx(expected[key], abs=1e-10)
    trace = [at_threshold(scores, right, gold=len(gold), threshold=score).f1 for score in scores]
    assert trace == pytest.approx(expected["f1_trace"], abs=1e-6)


def test_weighted_f1():
    case = CASES["mteb_bitext_f1"]
    gold, predicted = (np.array(case["inputs"][f"{name}_index"]) for name in ("gold", "predicted"))
    assert weighted_scores(predicted, gold)[0].mean() == pytest.approx(
        case["expected"]["weighted_f1"], abs=1e-10
    )
    assert (predicted == gold).mean() == case["expected"]["accuracy"]
