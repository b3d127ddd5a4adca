from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from interlingua.evaluation.metrics.precision import (
    pair_average_precision,
    resampled_average_precision,
)


def test_a_case_worked_by_hand():
    # ranks 1, 3 and 4 of four are positive: (1/1 + 2/3 + 3/4) / 3
    found = pair_average_precision(
        np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, False, True, True])
    )
    assert found == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)


def test_equal_scores_share_the_precision_of_the_last():
    # both at 0.5 count together: precision 2/3 for the one positive among them
    found = pair_average_precision(np.array([0.9, 0.5, 0.5]), np.array([True, True, False]))
    assert found == pytest.approx((1 + 2 / 3) / 2)
    assert pair_average_precision(np.array([0.5, 0.5, 0.9]), np.array([False, True, True])) == found


@pytest.mark.parametrize("decimals", [1, 2, 12])
def test_scikit_learn_agrees(decimals):
    draw = np.random.RandomState(decimals)
    for size in (2, 10, 300):
        positive = draw.rand(size) < 0.4
        positive[0] = True
        scores = (draw.rand(size) + 0.3 * positive).round(decimals)
        assert pair_average_precision(scores, positive) == pytest.approx(
            average_precision_score(positive, scores)
        )


def test_resamples_are_samples_with_repetitions():
    draw = np.random.RandomState(5)
    positive, scores = draw.rand(40) < 0.5, draw.rand(40).round(1)
    counts = draw.multinomial(40, np.full(40, 1 / 40), size=6)
    found = resampled_average_precision(scores, positive, counts)
    for value, drawn in zip(found, counts, strict=True):
        rows = np.repeat(np.arange(40), drawn)
        assert value == pytest.approx(average_precision_score(positive[rows], scores[rows]))


def plain_loop(scores, positive, drawn):
    """Sum precision at each distinct score, times the share of positives gained there."""
    total = (drawn * positive).sum()
    found = taken = area = 0
    for score in sorted(set(scores.tolist()), reverse=True):
        here = scores == score
        gained = (drawn * positive)[here].sum()
        found, taken = found + gained, taken + drawn[here].sum()
        area += gained * found / max(taken, 1)
    return area / max(total, 1)


@pytest.mark.parametrize("dtype", [np.int16, np.int64])
@pytest.mark.parametrize(("decimals", "share"), [(1, 0.5), (2, 0.05), (12, 0.3), (12, 1.0)])
def test_resamples_are_those_of_a_plain_loop(decimals, share, dtype):
    draw = np.random.RandomState(decimals)
    positive, scores = draw.rand(60) < share, draw.rand(60).round(decimals)
    counts = draw.multinomial(60, np.full(60, 1 / 60), size=50).astype(dtype)
    counts[0] *= ~positive  # no positive drawn
    found = resampled_average_precision(scores, positive, counts)
    expected = [plain_loop(scores, positive, drawn) for drawn in counts.astype(int)]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=0)
    assert found[0] == 0


def test_nothing_positive_is_0():
    assert pair_average_precision(np.array([0.1, 0.2]), np.array([False, False])) == 0
    assert resampled_average_precision(
        np.ones(2), np.zeros(2, bool), np.ones((3, 2), int)
    ).tolist() == [0, 0, 0]
