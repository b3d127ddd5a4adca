"""Is one encoder better than another, or were these items kind to it? Paired bootstrap over the items."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray

from interlingua.evaluation.metrics.correlation import interval, resample_counts, resampled_spearman, spearman
from interlingua.evaluation.metrics.precision import average_precision, resampled_average_precision
from interlingua.evaluation.task import Items

RESAMPLES = 2000
Kept = Mapping[str, Items]
"""Subset -> items of one result."""


class Difference(NamedTuple):
    """How much higher the second encoder scores: its value, the 95 % interval and the two-sided p-value."""

    mean: float
    low: float
    high: float
    p_value: float


def paired_bootstrap(
    first: Sequence[Kept],
    second: Sequence[Kept],
    subsets: Sequence[str],
    *,
    resamples: int = RESAMPLES,
    seed: int = 1,
) -> Difference | None:
    """Compares the means over subsets of two encoders on the same resampled items.

    The items of each subset are drawn anew on their own. The p-value is twice the smaller share of resamples on either
    side of 0, with one added to both counts.

    Args:
        first: the items of an encoder, one mapping per training seed; a seed's scores are averaged within a resample.
        second: those of another.
        subsets: what the score is the mean of.
        resamples: number of draws.
        seed: of the draws.

    Returns:
        None where items were not kept, or are not the same on both sides.
    """
    if not _alike([*first, *second], subsets):
        return None
    draws = np.zeros(resamples)
    means = np.zeros(len(subsets))
    for number, subset in enumerate(subsets):
        rng = np.random.default_rng([seed, zlib.crc32(subset.encode())])
        sides = [kept[subset] for kept in first], [kept[subset] for kept in second]
        draws += _differences(*sides, resamples=resamples, rng=rng) / len(subsets)
        means[number] = mean_score(sides[1]) - mean_score(sides[0])
    below, above = int((draws <= 0).sum()), int((draws >= 0).sum())
    return Difference(
        float(means.mean()), *interval(draws), p_value=min(1.0, 2 * (min(below, above) + 1) / (resamples + 1))
    )


def mean_score(items: Sequence[Items]) -> float:
    """The mean over seeds of a subset's score."""
    return float(np.mean([one.values.mean() if one.gold is None else _score(one) for one in items]))


def _score(one: Items) -> float:
    assert one.gold is not None
    return average_precision(one.values, one.gold) if one.gold.dtype == bool else spearman(one.values, one.gold)


def _resampled(one: Items, counts: Int64[ndarray, "r n"]) -> Float64[ndarray, " r"]:
    assert one.gold is not None
    score = resampled_average_precision if one.gold.dtype == bool else resampled_spearman
    return score(one.values, one.gold, counts)


def _alike(kept: Sequence[Kept], subsets: Sequence[str]) -> bool:
    if not subsets or not all(subset in one for one in kept for subset in subsets):
        return False
    for subset in subsets:
        shapes = {len(one[subset].values) for one in kept}
        golds = {None if (gold := one[subset].gold) is None else gold.tobytes() for one in kept}
        if len(shapes) > 1 or len(golds) > 1:
            return False
    return True


def _differences(
    first: Sequence[Items], second: Sequence[Items], *, resamples: int, rng: np.random.Generator
) -> Float64[ndarray, " r"]:
    """Score of the second minus score of the first in every resample of one subset's items."""
    gold = first[0].gold
    if gold is not None:
        return np.concatenate(
            [
                np.mean([_resampled(one, counts) for one in second], axis=0)
                - np.mean([_resampled(one, counts) for one in first], axis=0)
                for counts in resample_counts(len(gold), resamples=resamples, rng=rng)
            ]
        )
    per_item = np.mean([one.values for one in second], axis=0) - np.mean([one.values for one in first], axis=0)
    values, counts = np.unique(per_item, return_counts=True)  # few distinct ones: drawing these is drawing items
    drawn = rng.multinomial(len(per_item), counts / len(per_item), size=resamples)
    return np.asarray(drawn @ values / len(per_item))
