from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from interlingua.mining.calibration.calibrate import (
    Known,
    learn_from_known,
    learn_from_samples,
    relative_to_list,
)
from interlingua.mining.calibration.calibration import (
    precision_interval,
    separation,
    share_interval,
)
from interlingua.mining.calibration.score_mixture import draw_like, fit_mixture
from tests.mining.curves import calibration


def drawn(rng, right, wrong, apart):
    """Draw scores from two bell curves, with the answers."""
    answers = np.repeat([True, False], [right, wrong])
    return rng.standard_normal(right + wrong) + apart * answers, answers


def interval(rng, known, mined, apart):
    """Compute the interval of the share of right pairs from numbers of known and mined ones."""
    scores, right = drawn(rng, *known, apart)
    languages = ("deu_Latn", "eng_Latn")
    learned = learn_from_known(Known(scores, right, []))
    found = learned.calibration(languages=languages, model="m", scoring="s", basis="probes")
    return share_interval(found, drawn(rng, *mined, apart)[0])


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


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_the_interval_holds_the_true_precision(share):
    rng = np.random.default_rng(7)
    known = drawn(rng, 400, 400, 3.0)
    learned = learn_from_known(Known(*known, []))
    found = learned.calibration(
        languages=("deu_Latn", "eng_Latn"), model="m", scoring="s", basis="probes"
    )
    scores, right = drawn(rng, round(5000 * share), round(5000 * (1 - share)), 3.0)
    found = found.of_pairs(scores)
    cut = found.threshold(0.95)
    low, high = precision_interval(found, scores, cut)
    assert low <= right[scores >= cut].mean() <= high
    assert low > 0.9


def test_shares_of_a_mixture_are_found():
    rng = np.random.default_rng(1)
    right, wrong = rng.normal(3, 1, 500), [rng.normal(0, 1, 500), rng.normal(-4, 1, 500)]
    parts = rng.normal(3, 1, 2500), rng.normal(0, 1, 2000), rng.normal(-4, 1, 500)
    found = fit_mixture(np.concatenate(parts), right, wrong)
    assert not found.is_moved
    assert [found.right, *found.wrong] == pytest.approx([0.5, 0.4, 0.1], abs=0.03)


def test_right_pairs_of_another_kind_are_moved_to_the_list():
    rng = np.random.default_rng(2)
    scores, right = drawn(rng, 1500, 1500, 4.0)
    # Held-out pairs score more by two deviations than those of the list.
    known = rng.normal(6, 1, 400)
    wrong = rng.normal(0, 1, 400)
    found = fit_mixture(scores, known, [wrong])
    assert found.is_moved
    assert found.shift == pytest.approx(-2, abs=0.4)
    assert found.right == pytest.approx(0.5, abs=0.04)
    learned = learn_from_samples(known, [wrong], scores)
    made = learned.calibration(
        languages=("deu_Latn", "eng_Latn"), model="m", scoring="s", basis="probes"
    ).of_pairs(scores)
    cut = made.threshold(0.95)
    assert right[scores >= cut].mean() == pytest.approx(0.95, abs=0.03)
    low, high = precision_interval(made, scores, cut)
    assert low <= right[scores >= cut].mean() <= high


def test_drawn_in_proportion_and_at_most_once():
    samples = [np.arange(100.0), np.arange(200.0, 300.0)]
    drawn_ones = draw_like(samples, [0.75, 0.25])
    assert len(set(drawn_ones.tolist())) == len(drawn_ones)
    assert [(drawn_ones < 100).sum(), (drawn_ones >= 200).sum()] == [100, 33]


def judged(rng, chosen, mined, apart=3.0):
    """Return a calibration of chosen ones of all mined pairs, and the scores of all."""
    scores, right = drawn(rng, *mined, apart)
    places = chosen(scores)
    languages = ("deu_Latn", "eng_Latn")
    learned = learn_from_known(Known(scores[places], right[places], []))
    return (
        learned.calibration(languages=languages, model="m", scoring="s", basis="labels"),
        scores,
    )


def test_a_list_of_right_pairs_only_is_no_certainty():
    """Check a list whose share of maximum likelihood is 1, which would make each pair certain."""
    found, _ = judged(np.random.default_rng(0), lambda scores: slice(None), (30, 30))
    better = np.random.default_rng(1).standard_normal(500) + 5.0
    assert found.estimate_prior(better) > 0.9999
    share = found.of_pairs(better).prior
    low, high = share_interval(found, better)
    assert low <= share <= high
    assert 0.95 < share < 0.995


def test_a_share_of_one_percent_is_not_drawn_to_one_half():
    curve = calibration(log_odds=(-12.0, 12.0), pairs=60)
    scores = np.repeat([1.2, 1.0], [10, 990])
    # Half a right and half a wrong pair more than 60 pairs would make it 0.018.
    assert curve.estimate_share(scores) == curve.estimate_prior(scores)
    assert curve.estimate_share(scores) == pytest.approx(0.01, abs=1e-4)


@pytest.mark.parametrize(("score", "share"), [(1.0, 0.5 / 61), (1.2, 1 - 0.5 / 61)])
def test_a_share_is_never_quite_zero_or_one(score, share):
    curve = calibration(log_odds=(-12.0, 12.0), pairs=60)
    scores = np.full(1000, score)
    assert curve.estimate_share(scores) == pytest.approx(share)
    low, high = share_interval(curve, scores)
    assert low <= curve.estimate_share(scores) <= high


@pytest.mark.parametrize("seed", range(3))
def test_pairs_judged_worst_first_give_the_share_of_the_whole_list(seed):
    rng = np.random.default_rng(seed)
    found, scores = judged(rng, lambda scores: np.argsort(scores)[:150], (940, 60))
    assert found.fitted_prior < 0.7
    assert found.estimate_prior(scores) > 0.97
    whole = relative_to_list(found, scores).of_pairs(scores)
    assert whole.prior == pytest.approx(0.94, abs=0.03)
    low, high = share_interval(whole, scores)
    assert low <= whole.prior <= high
