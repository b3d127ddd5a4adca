from __future__ import annotations

import numpy as np
import pytest

from interlingua.mining.gold import at_threshold, best_threshold, cross_validated


def walk(scores, right, gold):
    """Pair by pair, as LASER's and sentence-transformers' scripts do, clamped at the end."""
    items = sorted(zip(scores, right, strict=True), key=lambda item: -item[0])
    correct, best, threshold = 0, 0.0, None
    for place, (score, is_right) in enumerate(items):
        correct += is_right
        if correct:
            precision, recall = correct / (place + 1), correct / gold
            f1 = 2 * precision * recall / (precision + recall)
            if f1 > best + 1e-12:
                best, threshold = f1, (score + items[min(place + 1, len(items) - 1)][0]) / 2
    return threshold, best


@pytest.mark.parametrize("seed", range(20))
def test_naive_walk(seed):
    rng = np.random.default_rng(seed)
    scores = rng.permutation(60) / 60
    right = rng.random(60) < scores
    gold = int(right.sum()) + seed
    found = best_threshold(scores, right, gold=gold)
    assert (found.threshold, found.f1) == pytest.approx(walk(scores, right, gold))
    assert at_threshold(scores, right, gold=gold, threshold=found.threshold) == found
    everywhere = [at_threshold(scores, right, gold=gold, threshold=score).f1 for score in scores]
    assert found.f1 == pytest.approx(max(everywhere))


def test_worked_by_hand():
    # one right of one: P 1, R 1/2, F1 2/3; the second is wrong, the third right: P 2/3, R 1, F1 4/5
    found = best_threshold(np.array([0.7, 0.9, 0.8]), np.array([True, True, False]), gold=2)
    assert (found.extracted, found.precision, found.recall) == (3, pytest.approx(2 / 3), 1.0)
    assert found.f1 == pytest.approx(0.8)
    assert found.threshold == 0.7  # the last pair's score, where nothing follows


def test_the_higher_of_two_equally_good_thresholds():
    scores, right = np.array([4.0, 3.0, 2.0, 1.0]), np.array([True, False, False, True])
    # after the first pair: P 1, R 1/2; after the last: P 1/2, R 1; both have F1 2/3
    assert best_threshold(scores, right, gold=2).threshold == 3.5


def test_equal_scores_around_the_threshold():
    """Stop the walk between equal scores, where no threshold can separate."""
    scores, right = np.array([2.0, 1.0, 1.0]), np.array([True, True, False])
    found = best_threshold(scores, right, gold=2)
    assert (found.f1, found.threshold) == (1.0, 1.0)
    assert at_threshold(scores, right, gold=2, threshold=1.0).f1 == pytest.approx(0.8)


@pytest.mark.parametrize("scores", [[], [0.3, 0.2]])
def test_nothing_right(scores):
    found = best_threshold(np.array(scores), np.zeros(len(scores), dtype=bool), gold=3)
    assert found == (np.inf, 0, 0.0, 0.0, 0.0)


def test_each_half_is_cut_at_the_threshold_of_the_other():
    scores = np.array([0.9, 0.8, 0.3, 0.7, 0.6, 0.2])
    right = np.array([True, False, True, True, True, False])
    halves = np.array([0, 0, 0, 1, 1, 1])
    # half 0 is best cut at 0.3 (F1 0.8), half 1 at 0.4 (F1 1): so all of half 1 but 0.2 is
    # taken, and of half 0 what is above 0.4
    kept = cross_validated(scores, right, halves, gold=(2, 2))
    assert kept.tolist() == [True, True, False, True, True, False]


def test_a_half_without_gold():
    scores, right, halves = np.array([0.9, 0.8]), np.array([True, False]), np.array([0, 1])
    # the second half says nothing, so nothing of the first is taken; the first says 0.9, which 0.8
    # does not reach
    assert cross_validated(scores, right, halves, gold=(1, 0)).tolist() == [False, False]
