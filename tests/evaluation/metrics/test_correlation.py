from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from interlingua.evaluation.metrics.correlation import (
    average_ranks,
    bootstrap_spearman,
    interval,
    pearson,
    resample_counts,
    resampled_spearman,
    spearman,
)

GOLD = [0.0, 1.2, 2.5, 2.5, 4.0, 5.0]
COSINE = [0.11, 0.05, 0.4, 0.62, 0.62, 0.93]


def test_ties_share_the_mean_of_their_ranks():
    assert average_ranks(np.array(GOLD)).tolist() == [1, 2, 3.5, 3.5, 5, 6]
    assert average_ranks(np.array([3.0, 1, 3, 3])).tolist() == [3, 1, 3, 3]


def test_a_case_worked_by_hand():
    # ranks 1 2 3.5 3.5 5 6 and 2 1 3 4.5 4.5 6: sum of products of deviations 15.25, squares 17 and
    # 17
    assert spearman(np.array(GOLD), np.array(COSINE)) == pytest.approx(15.25 / 17, abs=1e-12)
    assert spearman(np.array(GOLD), np.array(COSINE)) == pytest.approx(0.8970588235, abs=1e-10)
    assert pearson(np.array([0.0, 1, 2]), np.array([1.0, 1, 4])) == pytest.approx(
        3 / np.sqrt(2 * 6)
    )


@pytest.mark.parametrize("seed", range(5))
def test_scipy_agrees_with_many_ties(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 9, 200) / 2, rng.standard_normal(200).round(1)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
    assert np.array_equal(average_ranks(y), stats.rankdata(y))


def test_the_order_alone_counts_and_its_direction():
    x = np.array([0.1, 0.2, 0.9, 0.3])
    assert spearman(x, np.exp(5 * x)) == pytest.approx(1.0)
    assert spearman(x, -x) == pytest.approx(-1.0)


@pytest.mark.parametrize("constant", [0.0, 0.7, 1e9, 1e-9])
def test_a_constant_side_has_no_correlation(constant):
    assert spearman(np.full(7, constant), np.arange(7.0)) == 0.0
    assert pearson(np.full(7, constant), np.arange(7.0)) == 0.0


def test_tiny_spreads_are_no_constants():
    assert pearson(1e-9 * np.arange(5.0), np.arange(5.0)) == pytest.approx(1.0)


def test_resamples_equal_drawing_and_ranking_again():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 6, 40).astype(float), rng.standard_normal(40)
    (counts,) = resample_counts(np.ones(40, np.int64), resamples=20, rng=rng)
    assert counts.shape == (20, 40)
    assert (counts.sum(axis=1) == 40).all()
    drawn = [np.repeat(np.arange(40), row) for row in counts]
    expected = [stats.spearmanr(x[rows], y[rows]).statistic for rows in drawn]
    assert resampled_spearman(x, y, counts) == pytest.approx(expected, abs=1e-12)


def test_the_interval_is_seeded_and_as_wide_as_theory_says():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(1600)
    y = x + rng.standard_normal(1600)
    first, again = (
        bootstrap_spearman(x, y, resamples=500, rng=np.random.default_rng(3)) for _ in range(2)
    )
    assert np.array_equal(first, again)
    rho = spearman(x, y)
    low, high = interval(first)
    assert low < rho < high
    error = (1 - rho**2) * np.sqrt(
        (1 + rho**2 / 2) / 1597
    )  # Bonett and Wright's, by Fisher's transformation
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.12)


def test_chunks_hold_a_bounded_number_of_items():
    draws = resample_counts(np.ones(400_000), resamples=5, rng=np.random.default_rng(0))
    shapes = [counts.shape for counts in draws]
    assert shapes == [(2, 400_000), (2, 400_000), (1, 400_000)]


def test_an_interval_leaves_out_as_much_on_either_side():
    assert interval(np.arange(1001.0)) == pytest.approx((25, 975))
