from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.mining.candidates import Candidates, OneToOneMatcher, best_both_ways, retrieve
from tests.mining.unit_vectors import MARGINS, unit


def oracle(x, y, k, margin):
    """Find the best of the k nearest y of every x, pair by pair in double precision."""
    cosines = x.astype(np.float64) @ y.astype(np.float64).T
    mean_x = [np.mean(sorted(row)[-k:]) for row in cosines]
    mean_y = [np.mean(sorted(row)[-k:]) for row in cosines.T]
    best = []
    for i, row in enumerate(cosines):
        nearest = sorted(range(len(y)), key=lambda j: -row[j])[:k]
        best.append(max((MARGINS[margin](row[j], (mean_x[i] + mean_y[j]) / 2), j) for j in nearest))
    return best


def pairs(candidates):
    return list(zip(candidates.x.tolist(), candidates.y.tolist(), strict=True))


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize(("n", "m", "k"), [(30, 50, 4), (6, 3, 4), (1, 9, 2), (40, 40, 1)])
def test_both_directions_are_the_oracle(margin, n, m, k):
    rng = np.random.default_rng(n + m)
    x, y = unit(rng, n), unit(rng, m)
    forward, backward = best_both_ways(x, y, k=k, margin=margin)
    for found, expected, turned in (
        (forward, oracle(x, y, k, margin), False),
        (backward, oracle(y, x, k, margin), True),
    ):
        own, other = (found.y, found.x) if turned else (found.x, found.y)
        assert own.tolist() == list(range(len(expected)))
        assert other.tolist() == [j for _, j in expected]
        scores = [score for score, _ in expected]
        np.testing.assert_allclose(found.scores, scores, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("seed", range(5))
def test_retrieval_is_the_oracle(seed):
    rng = np.random.default_rng(seed)
    forward, backward = best_both_ways(unit(rng, 25), unit(rng, 35))
    assert pairs(retrieve(forward, backward, "forward")) == pairs(forward)
    assert pairs(retrieve(forward, backward, "backward")) == pairs(backward)
    both = set(pairs(forward)) & set(pairs(backward))
    assert set(pairs(retrieve(forward, backward, "intersection"))) == both
    scored = [
        *zip(forward.scores, pairs(forward), strict=True),
        *zip(backward.scores, pairs(backward), strict=True),
    ]
    taken, expected = set(), []
    for _, (i, j) in sorted(scored, key=lambda one: -one[0]):
        if not taken & {("x", i), ("y", j)}:
            taken |= {("x", i), ("y", j)}
            expected.append((i, j))
    found = retrieve(forward, backward)
    assert pairs(found) == expected
    assert (np.diff(found.scores) <= 0).all()


def test_worked_by_hand():
    # the best pair (0, 0) shuts out (1, 0) and (0, 1); (1, 1) is what is left for both
    matcher = OneToOneMatcher(2, 2)
    assert matcher.accept(np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])) == [0, 3]


def test_a_refused_pair_takes_no_row():
    """Refuse x0's copy y0: it is kept once, and x0 remains free for y1, and y0 for x1."""
    forward = Candidates(np.array([1.5, 1.1]), np.array([0, 1]), np.array([0, 0]))
    backward = Candidates(np.array([1.5, 1.3]), np.array([0, 0]), np.array([0, 1]))
    assert pairs(retrieve(forward, backward)) == [(0, 0)]
    asked = []

    def refuses(x, y):
        asked.extend(zip(x.tolist(), y.tolist(), strict=True))
        return (x == 0) & (y == 0)

    found = retrieve(forward, backward, refuses=refuses)
    assert pairs(found) == [(0, 0), (0, 1), (1, 0)]
    assert found.scores.tolist() == [1.5, 1.3, 1.1]
    assert asked == [(0, 0), (0, 1), (1, 0)]


def test_of_equal_scores_the_earlier_pair_goes_first():
    forward = Candidates(np.array([0.5, 0.5]), np.array([0, 1]), np.array([0, 0]))
    backward = Candidates(np.array([0.5]), np.array([0]), np.array([0]))
    assert pairs(retrieve(forward, backward)) == [(0, 0)]
    nothing = Candidates(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert pairs(retrieve(nothing, nothing)) == []


def test_a_part_of_the_candidates():
    some = Candidates(np.array([3.0, 2.0, 1.0]), np.array([0, 1, 2]), np.array([5, 6, 7]))
    assert pairs(some.take(some.scores > 1.5)) == [(0, 5), (1, 6)]
    assert pairs(some.take(np.array([2, 0]))) == [(2, 7), (0, 5)]


def test_broken_vectors_are_one_line():
    x = np.ones((3, 2), np.float32)
    x[1, 0] = np.nan
    with pytest.raises(DataError, match=r"vector 1 .* NaN"):
        best_both_ways(x, np.ones((2, 2), np.float32))
    with pytest.raises(DataError, match="0 vectors against 2"):
        best_both_ways(x[:0], np.ones((2, 2), np.float32))
