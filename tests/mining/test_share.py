from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from interlingua.mining.calibration import (
    Calibration,
    fit_calibration,
    fit_logistic,
    separation,
    share_interval,
)


def drawn(rng, right, wrong, apart):
    """Scores from two bell curves, with the answers."""
    answers = np.repeat([True, False], [right, wrong])
    return rng.standard_normal(right + wrong) + apart * answers, answers


def calibration(scores, right):
    fit = fit_calibration(scores, right)
    return Calibration(
        source_language="deu_Latn",
        target_language="eng_Latn",
        model="m",
        scoring="s",
        basis="probes",
        shape=fit.curve.shape,
        scores=fit.curve.scores,
        log_odds=fit.curve.log_odds,
        fitted_prior=fit.prior,
        prior=fit.prior,
        pairs=len(scores),
    )


def test_separation_is_the_area_under_the_roc_curve():
    assert separation(np.array([1.0, 2, 2, 3]), np.array([False, True, False, True])) == 3.5 / 4
    scores, right = drawn(np.random.default_rng(0), 70, 90, 1.0)
    scores = scores.round(1)
    assert separation(scores, right) == pytest.approx(roc_auc_score(right, scores))


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_interval_holds_the_share_and_narrows_with_what_is_known(share):
    rng = np.random.default_rng(3)
    widths = []
    for size in (60, 600):
        known, right = drawn(rng, size, size, 2.0)
        scores, _ = drawn(rng, round(4000 * share), round(4000 * (1 - share)), 2.0)
        low, high = share_interval(calibration(known, right), fit_logistic, known, right, scores)
        assert low < share < high
        widths.append(high - low)
    assert widths[1] < widths[0] < 0.4


def test_pairs_that_are_hard_to_tell_apart_give_a_wide_interval():
    rng = np.random.default_rng(5)
    widths = []
    for apart in (0.7, 4.0):
        known, right = drawn(rng, 150, 150, apart)
        scores, _ = drawn(rng, 300, 1700, apart)
        low, high = share_interval(calibration(known, right), fit_logistic, known, right, scores)
        widths.append(high - low)
    assert widths[0] > 3 * widths[1]
