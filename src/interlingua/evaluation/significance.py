"""Paired bootstrap: whether one encoder is better than another beyond chance.

Both encoders were measured on the same items. A resample draws the same number of items, with
replacement, and scores both encoders on the drawn items. The differences in 2,000 such resamples
show how much the measured difference would vary if the test set were another sample of the same
kind. The seeds that the encoders were trained with are not resampled.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int, Int16, Int64
from numpy import ndarray

from interlingua.evaluation.metrics.correlation import (
    interval,
    resample_counts,
    resampled_spearman,
    spearman,
)
from interlingua.evaluation.metrics.precision import (
    pair_average_precision,
    resampled_average_precision,
)
from interlingua.evaluation.scores import Items

RESAMPLES = 2000
KEPT_SCORES = 2048
"""Maximum number of subsets whose resampled scores are kept: a table needs the scores of a subset
for the subset's row, its groups and the mean."""
KEPT_DRAWS = 20_000_000
"""Maximum number of draws (items in all resamples) that are kept for the next subset of the same
size; they take 40 MB."""
Kept = Mapping[str, Items]
"""Subset -> items of one result."""


class Difference(NamedTuple):
    """The second encoder's score minus the first's, with 95 % interval and two-sided p-value."""

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
    """Compare two encoders' means over subsets, on the same resampled items.

    Subsets with the same number of items are resampled together: item i is drawn from all of them
    or from none. Most such subsets are the same sentences in other languages, so their items are
    correlated. If they are not, nothing is lost. The p-value is
    2 * (m + 1) / (n + 1), at most 1, where n is the number of resamples and m is the number of
    those on the side of 0 that has fewer of them.

    Args:
        first: the items of an encoder, one mapping per training seed; a seed's scores are averaged
            within a resample.
        second: those of another.
        subsets: the score is the mean over these.
        resamples: number of draws.
        seed: of the draws.

    Returns:
        None if items were not kept, or are not the same on both sides.
    """
    if not _have_same_items([*first, *second], subsets):
        return None
    draws = np.zeros(resamples)
    by_size: dict[int, list[str]] = {}
    for subset in subsets:
        # subsets of one size are drawn together, see above
        by_size.setdefault(len(first[0][subset].values), []).append(subset)
    for size, same_size in by_size.items():
        first_items = [_items_of(kept, same_size) for kept in first]
        second_items = [_items_of(kept, same_size) for kept in second]
        gains = _differences(first_items, second_items, resamples=resamples, seed=[seed, size])
        # each subset counts the same in the mean over all
        draws += gains * len(same_size) / len(subsets)
    means = []
    for subset in subsets:
        of_first = mean_score([kept[subset] for kept in first])
        of_second = mean_score([kept[subset] for kept in second])
        means.append(of_second - of_first)
    below = int((draws <= 0).sum())
    above = int((draws >= 0).sum())
    low, high = interval(draws)
    # 1 is added so that p is never 0: no number of resamples can show that it is 0; ties count on
    # both sides
    p_value = min(1.0, 2 * (min(below, above) + 1) / (resamples + 1))
    return Difference(float(np.mean(means)), low, high, p_value)


def mean_score(items: Sequence[Items]) -> float:
    """Compute the mean over seeds of a subset's score."""
    return float(np.mean([_score(one) for one in items]))


def _score(one: Items) -> float:
    """Compute the score of a subset from its kept items; see ``Items``."""
    if one.weights is not None:
        # without any weight (no sentence of BUCC in a pair) the score is 0 / 0, taken as 0
        return float(one.values.sum() / max(one.weights.sum(), 1e-300))
    if one.gold is None:
        return float(one.values.mean())
    if one.gold.dtype == bool:
        return pair_average_precision(one.values, one.gold)
    return spearman(one.values, one.gold)


def _resampled(one: Items, counts: Int[ndarray, "r n"]) -> Float64[ndarray, " r"]:
    """Compute the score in each resample, in which item i occurs ``counts[:, i]`` times."""
    if one.weights is not None:
        return np.asarray((counts @ one.values) / np.maximum(counts @ one.weights, 1e-300))
    if one.gold is None:
        return np.asarray(counts @ one.values / counts.sum(axis=1))
    if one.gold.dtype == bool:
        return resampled_average_precision(one.values, one.gold, counts)
    return resampled_spearman(one.values, one.gold, counts)


def _items_of(kept: Kept, subsets: Sequence[str]) -> list[Items]:
    return [kept[subset] for subset in subsets]


def _have_same_items(kept: Sequence[Kept], subsets: Sequence[str]) -> bool:
    if not subsets or not all(subset in one for one in kept for subset in subsets):
        return False
    for subset in subsets:
        kinds = {_kind(one[subset]) for one in kept}
        if len(kinds) > 1:
            return False
    return True


def _kind(items: Items) -> tuple[int, bytes | None, bool]:
    """Return the key of items drawn together: number, gold, and whether weights are absent."""
    gold: bytes | None = None
    if items.gold is not None:
        gold = items.gold.tobytes()
    return len(items.values), gold, items.weights is None


def _differences(
    first: Sequence[Sequence[Items]],
    second: Sequence[Sequence[Items]],
    *,
    resamples: int,
    seed: Sequence[int],
) -> Float64[ndarray, " r"]:
    """Compute the mean score of the second minus that of the first in every resample.

    Scores that require sorting are cached, because the draws depend only on seed and size.

    Args:
        first: one list per training seed with the items of each subset; all subsets have equally
            many items.
        second: the same of another encoder.
        resamples: number of draws.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    items = list(itertools.chain(*first, *second))
    # items that are equal in everything are drawn as one kind: most scores are 0 or 1, and most
    # texts of BUCC are in no pair
    if all(one.gold is None and one.weights is None for one in items):
        # a mean of differences is the difference of means, so one number per item is enough
        gain = _mean_values(second) - _mean_values(first)
        kinds, counts = np.unique(gain, return_counts=True)
        gains = [
            drawn @ kinds / len(gain)
            for drawn in resample_counts(counts, resamples=resamples, rng=rng)
        ]
        return np.concatenate(gains)
    if all(one.gold is None for one in items):
        first, second, counts = _merged(first, second)
        gains = []
        for drawn in resample_counts(counts, resamples=resamples, rng=rng):
            gains.append(_mean_of(second, drawn) - _mean_of(first, drawn))
        return np.concatenate(gains)

    def mean_scores(side: Sequence[Sequence[Items]]) -> Float64[ndarray, " r"]:
        kept = [
            _kept_scores(_Key(one), resamples, tuple(seed)) for of_seed in side for one in of_seed
        ]
        return np.asarray(np.mean(kept, axis=0))

    return np.asarray(mean_scores(second) - mean_scores(first))


def _merged(
    first: Sequence[Sequence[Items]], second: Sequence[Sequence[Items]]
) -> tuple[list[list[Items]], list[list[Items]], Int64[ndarray, " kinds"]]:
    """Merge items with equal values and weights on both sides, and count the items merged."""
    # two rows for each subset of each seed, one column per item: equal columns are equal items
    table = []
    for one in itertools.chain(*first, *second):
        table += [one.values, _weights(one)]
    kinds, counts = np.unique(np.stack(table), axis=1, return_counts=True)
    rows = zip(kinds[::2], kinds[1::2], strict=True)

    # taken from the iterator in the order in which the table was filled
    def with_next_rows(side: Sequence[Sequence[Items]]) -> list[list[Items]]:
        merged = []
        for of_seed in side:
            taken = itertools.islice(rows, len(of_seed))
            merged.append([Items(values, None, weights) for values, weights in taken])
        return merged

    return with_next_rows(first), with_next_rows(second), counts


def _mean_values(of_seeds: Sequence[Sequence[Items]]) -> Float64[ndarray, " n"]:
    """Compute the mean value of each item over seeds and subsets."""
    values = [one.values for of_seed in of_seeds for one in of_seed]
    return np.asarray(np.mean(values, axis=0))


class _Key:
    """A cache key for items.

    A key is equal only to itself, so no array is compared. It holds the items, so no other array
    can get their address while the key lives.
    """

    def __init__(self, items: Items) -> None:
        self.items = items

    def __hash__(self) -> int:
        return id(self.items.values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Key):
            return False
        return all(a is b for a, b in zip(self.items, other.items, strict=True))


@functools.lru_cache(maxsize=KEPT_SCORES)
def _kept_scores(one: _Key, resamples: int, seed: Sequence[int]) -> Float64[ndarray, " r"]:
    """Return the score of a subset in every resample; ``seed`` is a tuple."""
    size = len(one.items.values)
    draws: Iterable[Int[ndarray, "r n"]]
    if size * resamples <= KEPT_DRAWS:
        draws = _kept_draws(size, resamples, seed)
    else:
        draws = _drawn(size, resamples, seed)
    return np.concatenate([_resampled(one.items, drawn) for drawn in draws])


@functools.lru_cache(maxsize=1)
def _kept_draws(size: int, resamples: int, seed: Sequence[int]) -> list[Int16[ndarray, "r n"]]:
    # an item is drawn far fewer than 32,768 times, and int16 takes a quarter of the memory
    return [drawn.astype(np.int16) for drawn in _drawn(size, resamples, seed)]


def _drawn(size: int, resamples: int, seed: Sequence[int]) -> Iterator[Int64[ndarray, "r n"]]:
    rng = np.random.default_rng(seed)
    return resample_counts(np.ones(size, np.int64), resamples=resamples, rng=rng)


def _mean_of(
    side: Sequence[Sequence[Items]], counts: Int64[ndarray, "r n"]
) -> Float64[ndarray, " r"]:
    """Compute the mean score over seeds and subsets in every resample."""
    scores = [_resampled(one, counts) for of_seed in side for one in of_seed]
    return np.asarray(np.mean(scores, axis=0))


def _weights(one: Items) -> Float64[ndarray, " n"]:
    if one.weights is None:
        return np.ones(len(one.values))
    return one.weights
