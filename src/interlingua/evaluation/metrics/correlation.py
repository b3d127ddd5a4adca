"""Correlation of similarities with people's judgments: Pearson, Spearman, bootstrap intervals.

A resample of n items is held as counts: how often each item was drawn. Ranks within a resample
follow from the ranks of all items by a cumulative sum of counts, so items are sorted once and not
once for each resample.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Float64, Int, Int64
from numpy import ndarray

_CHUNK = 1_000_000
"""Resampled items held at once."""
_LEVEL = 0.95
"""Share of the resampled values inside an interval."""


def pearson(x: Float[ndarray, " n"], y: Float[ndarray, " n"]) -> float:
    """Compute Pearson's r; 0 if a side is constant, because r is undefined then."""
    # as one resample, in which every item has the weight 1
    x_row = np.asarray(x, np.float64)[None]
    y_row = np.asarray(y, np.float64)[None]
    return float(_weighted_pearson(x_row, y_row)[0])


def spearman(x: Float[ndarray, " n"], y: Float[ndarray, " n"]) -> float:
    """Compute Spearman's rho: Pearson's r of the ranks, equal values sharing their mean rank.

    It is 0 if a side is constant.
    """
    return pearson(average_ranks(x), average_ranks(y))


def average_ranks(values: Float[ndarray, " n"]) -> Float64[ndarray, " n"]:
    """Compute the ranks from 1, equal values sharing the mean of their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    # c equal values, of which the last has rank r, have the mean rank r - (c - 1) / 2
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[group], dtype=np.float64)


def resampled_spearman(
    x: Float[ndarray, " n"], y: Float[ndarray, " n"], counts: Int[ndarray, "r n"]
) -> Float64[ndarray, " r"]:
    """Compute Spearman's rho of resamples of the items, without sorting again.

    Args:
        x: a value per item.
        y: another value per item.
        counts: how often each item was drawn in each resample.
    """
    return _weighted_pearson(_resampled_ranks(x, counts), _resampled_ranks(y, counts), counts)


def resample_counts(
    counts: Int64[ndarray, " n"], *, resamples: int, rng: np.random.Generator
) -> Iterator[Int64[ndarray, "r n"]]:
    """Yield how often each kind of item is drawn in each resample, a chunk of resamples at a time.

    Args:
        counts: items of each kind; all 1 if each item is its own kind.
        resamples: number of draws, each of as many items as there are, with replacement.
        rng: of the draws.
    """
    total = int(counts.sum())
    # number of resamples held at once, so that their counts (size, n) are at most _CHUNK numbers
    size = max(1, _CHUNK // len(counts))
    for start in range(0, resamples, size):
        yield rng.multinomial(total, counts / total, size=min(size, resamples - start))


def bootstrap_spearman(
    x: Float[ndarray, " n"], y: Float[ndarray, " n"], *, resamples: int, rng: np.random.Generator
) -> Float64[ndarray, " resamples"]:
    """Compute Spearman's rho of ``resamples`` resamples of the items."""
    draws = resample_counts(np.ones(len(x), np.int64), resamples=resamples, rng=rng)
    return np.concatenate([resampled_spearman(x, y, counts) for counts in draws])


def interval(values: Float64[ndarray, " r"]) -> tuple[float, float]:
    """Compute the percentile interval of resampled values."""
    low, high = np.quantile(values, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high)


def _resampled_ranks(
    values: Float[ndarray, " n"], counts: Int[ndarray, "r n"]
) -> Float64[ndarray, "r n"]:
    """Compute the rank of each item within each resample, as ``average_ranks`` does."""
    order = np.argsort(values, kind="stable")
    ordered = np.asarray(values)[order]
    # the first index of each distinct value
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    # (r, distinct values): items drawn of each, and their mean rank
    drawn = np.add.reduceat(counts[:, order], first, axis=1)
    ranks = np.cumsum(drawn, axis=1) - (drawn - 1) / 2
    # back to the items: which distinct value each of them has
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(order)]))
    return np.asarray(ranks[:, group], dtype=np.float64)


def _weighted_pearson(
    x: Float64[ndarray, "r n"],
    y: Float64[ndarray, "r n"],
    weights: Int[ndarray, "r n"] | None = None,
) -> Float64[ndarray, " r"]:
    """Compute the weighted Pearson's r of each row; 0 if undefined.

    r = cov(x, y) / sqrt(var(x) var(y)).
    """
    w = np.ones_like(x)
    if weights is not None:
        w = weights.astype(np.float64)
    total = w.sum(axis=1, keepdims=True)
    scale = np.abs(x).max(axis=1) * np.abs(y).max(axis=1)
    x = x - (w * x).sum(axis=1, keepdims=True) / total
    y = y - (w * y).sum(axis=1, keepdims=True) / total
    spread = np.sqrt((w * x * x).sum(axis=1) * (w * y * y).sum(axis=1))
    # a smaller spread is a rounding error: a constant side is not exactly 0 after its mean is
    # subtracted
    is_defined = spread > 1e-12 * scale * total[:, 0]
    covariance = (w * x * y).sum(axis=1)
    return np.where(is_defined, covariance / np.where(is_defined, spread, 1.0), 0.0)
