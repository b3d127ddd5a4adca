from __future__ import annotations

import itertools

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.mining.calibration.calibration import (
    fit_calibration,
    fit_isotonic,
    fit_logistic,
    measure_calibration,
    reliability,
    reliability_by_tenths,
)


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x)))


def drawn(count, share, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(1.05, 0.1, count)
    return scores, rng.random(count) < share(scores)


def loss(slope, offset, scores, targets):
    guess = sigmoid(slope * scores + offset)
    return -(targets * np.log(guess) + (1 - targets) * np.log(1 - guess)).sum()


def test_logistic_is_the_likeliest_line_for_platts_answers():
    scores, right = drawn(300, lambda s: sigmoid(20 * (s - 1.0)))
    curve = fit_logistic(scores, right)
    slope = (curve.log_odds[1] - curve.log_odds[0]) / (curve.scores[1] - curve.scores[0])
    offset = curve.log_odds[0] - slope * curve.scores[0]
    targets = np.where(right, (right.sum() + 1) / (right.sum() + 2), 1 / ((~right).sum() + 2))
    best = loss(slope, offset, scores, targets)
    for a, b in itertools.product((-0.05, 0, 0.05), (-0.05, 0, 0.05)):
        assert loss(slope + a, offset + b, scores, targets) >= best - 1e-9
    assert curve.probability(scores).tolist() == pytest.approx(
        sigmoid(slope * scores + offset).tolist()
    )


def test_separable_answers_give_no_infinite_line():
    scores = np.array([1.0, 1.1, 1.2, 1.3])
    guess = fit_logistic(scores, scores > 1.15).probability(scores)
    assert ((guess > 0.05) & (guess < 0.95)).all()
    assert (np.diff(guess) > 0).all()


def test_a_line_never_falls():
    scores, right = drawn(200, lambda s: sigmoid(-20 * (s - 1.0)))
    guess = fit_logistic(scores, right).probability(scores)
    assert np.ptp(guess) == pytest.approx(0)


def oracle_isotonic(hits, pairs):
    """Fit least squares without decrease: min over ends of the max over starts of the mean."""
    count = len(hits)

    def share(i, k):
        return sum(hits[i : k + 1]) / sum(pairs[i : k + 1])

    return [
        min(max(share(i, k) for i in range(j + 1)) for k in range(j, count)) for j in range(count)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_isotonic_pools_the_same_steps_as_the_oracle(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 12, 60) / 10
    right = rng.random(60) < scores / 1.5
    curve = fit_isotonic(scores, right)
    values = np.unique(scores)
    hits = [int(right[scores == value].sum()) for value in values]
    pairs = [int((scores == value).sum()) for value in values]
    shares = oracle_isotonic(hits, pairs)
    expected = []
    for value in shares:  # steps of one share, softened by half a pair of either answer
        own = [place for place, other in enumerate(shares) if other == value]
        expected.append((sum(hits[p] for p in own) + 0.5) / (sum(pairs[p] for p in own) + 1))
    assert curve.probability(values).tolist() == pytest.approx(
        np.maximum.accumulate(expected).tolist()
    )


def test_steps_by_hand():
    """Use right: no, yes, no, yes. The middle two are pooled: shares 0.25, 0.5, 0.75."""
    curve = fit_isotonic(np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, True, False, True]))
    assert curve.scores == (1.0, 2.0, 3.0, 4.0)
    assert sigmoid(curve.log_odds).tolist() == pytest.approx([0.25, 0.5, 0.5, 0.75])


def test_a_line_is_taken_for_a_line_and_steps_for_steps():
    line = fit_calibration(*drawn(3000, lambda s: sigmoid(30 * (s - 1.05))))
    steps = fit_calibration(*drawn(3000, lambda s: np.where(s < 1.05, 0.05, 0.8)))
    assert (line.curve.shape, steps.curve.shape) == ("logistic", "isotonic")
    assert steps.compared["isotonic"] < steps.compared["logistic"]
    for fit in (line, steps):
        assert fit.measures["ece"] < 0.03
        assert sum(one.pairs for one in fit.bins) == 3000
        for one in fit.bins:
            assert abs(one.right - one.probability) < 0.08
    assert line.prior == pytest.approx(drawn(3000, lambda s: sigmoid(30 * (s - 1.05)))[1].mean())


def test_measures_are_of_pairs_the_fit_has_not_seen():
    scores, right = drawn(80, lambda s: np.full(len(s), 0.5))
    fit = fit_calibration(scores, right)
    seen = measure_calibration(fit.curve.probability(scores), right)
    assert fit.measures["log_loss"] > seen["log_loss"] + 0.001


def test_measures_by_hand():
    """Put four pairs in bins of one each: gaps 0.1, 0.2, 0.4, 0."""
    guess, right = np.array([0.1, 0.8, 0.4, 1.0]), np.array([False, True, False, True])
    found = measure_calibration(guess, right)
    assert found["ece"] == pytest.approx((0.1 + 0.2 + 0.4 + 0) / 4)
    assert found["brier"] == pytest.approx((0.01 + 0.04 + 0.16 + 0) / 4)
    assert found["log_loss"] == pytest.approx(-(np.log(0.9) + np.log(0.8) + np.log(0.6)) / 4)


def test_bins_hold_as_many_pairs_each():
    guess = np.linspace(0, 1, 25)
    bins = reliability(guess, guess > 0.5, guess + 1)
    assert [one.pairs for one in bins] == [3] * 5 + [2] * 5
    assert [one.lowest for one in bins] == sorted(one.lowest for one in bins)
    assert bins[0].right == 0
    assert bins[-1].right == 1


def test_tenths_by_hand():
    """Put 0.05 and 0.07 in the first tenth, 0.3 at the start of the fourth, 1 in the last.

    Seven have no pair.
    """
    guess, right = np.array([1.0, 0.05, 0.3, 0.07]), np.array([True, False, False, True])
    bins = reliability_by_tenths(guess, right, np.array([1.4, 1.0, 1.2, 1.1]))
    assert [one.probability for one in bins] == pytest.approx([0.06, 0.3, 1.0])
    assert [bin_[1:] for bin_ in bins] == [(0.5, 2, 1.0), (0.0, 1, 1.2), (1.0, 1, 1.4)]


def test_too_few_pairs_of_an_answer():
    scores = np.arange(100.0)
    with pytest.raises(DataError, match=r"3 right and 97 wrong .* 5"):
        fit_calibration(scores, scores > 96)
