from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from interlingua.mining.calibration import (
    fit_calibration,
    fit_logistic,
    separation,
    share_interval,
)


def drawn(rng, right, wrong, apart):
    """Scores from two bell curves, with the answers."""
    answers = np.repeat([True, False], [right, wrong])
    return rng.standard_normal(right + wrong) + apart * answers, answers


def interval(rng, known, mined, apart):
    """Of the share of right ones, from numbers of known and of mined pairs, right and wrong."""
    scores, right = drawn(rng, *known, apart)
    fit = fit_calibration(scores, right)
    languages = ("deu_Latn", "eng_Latn")
    found = fit.calibration(languages=languages, model="m", scoring="s", basis="probes")
    return share_interval(found, fit_logistic, scores, right, drawn(rng, *mined, apart)[0])


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
        mined = (round(4000 * share), round(4000 * (1 - share)))
        low, high = interval(rng, (size, size), mined, 2.0)
        assert low < share < high
        widths.append(high - low)
    assert widths[1] < widths[0] < 0.4


def test_pairs_that_are_hard_to_tell_apart_give_a_wide_interval():
    rng = np.random.default_rng(5)
    widths = []
    for apart in (0.7, 4.0):
        low, high = interval(rng, (150, 150), (300, 1700), apart)
        widths.append(high - low)
    assert widths[0] > 3 * widths[1]
