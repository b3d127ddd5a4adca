"""Counts over all texts of one side of a file, in bounded memory."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int64, UInt64
from numpy import ndarray

from interlingua.corpus.cleaning.dedup import ExactDeduplicator
from interlingua.corpus.cleaning.keys import EMPTY_KEY, text_keys

_LONGEST = 10_000
"""Length in characters; texts of at least this length share one counter. The maximum is exact."""
_RATIO_STEPS = 20
"""Number of bins of the histogram for each doubling of the ratio of lengths."""
_MOST_DOUBLINGS = 6
LEAST_ORDERED = 100
"""Minimum number of values for an order to be recognized."""
_IN_ORDER = 0.98
"""Minimum share of neighbors in order for numbers to count as sorted."""
_TEXTS_IN_ORDER = 0.9
"""The same for texts, which every language sorts in its own way."""
_LEAST_STEPS = 5
"""Minimum number of steps between different values in a sorted file."""


class Quantiles(NamedTuple):
    """The distribution of a number over a file."""

    low: float
    """5 % are below."""
    median: float
    high: float
    """5 % are above."""
    most: float


class SideCounts:
    """Counts over the texts of one side.

    Args:
        folder: for the keys of duplicates; see ``ExactDeduplicator``.
    """

    def __init__(self, folder: Path) -> None:
        self.texts = 0
        self.empty = 0
        self.first_empty = 0
        """Number of the first empty text, from 1; 0 = none."""
        self.duplicates = 0
        self.longest = 0
        self._lengths = np.zeros(_LONGEST + 1, np.int64)
        self._seen = ExactDeduplicator(folder)
        self.by_length = Order(_IN_ORDER)
        self.by_alphabet = Order(_TEXTS_IN_ORDER)

    def add(self, texts: Sequence[str]) -> tuple[UInt64[ndarray, " n"], Int64[ndarray, " n"]]:
        """Count the next texts, at least one, and return their keys and lengths."""
        lengths: Int64[ndarray, " n"] = np.fromiter(map(len, texts), np.int64, len(texts))
        keys = text_keys(texts)
        # Only a text without letters and digits can be blank, so most texts need no closer look.
        maybe = np.flatnonzero(keys == EMPTY_KEY).tolist()
        blank = [place for place in maybe if not texts[place].strip()]
        if blank and not self.first_empty:
            self.first_empty = self.texts + blank[0] + 1
        self.empty += len(blank)
        # Texts without letters and digits share one key, but are not duplicates of each other.
        filled = keys[keys != EMPTY_KEY]
        self.duplicates += int(np.count_nonzero(~self._seen.first_seen(filled)))
        self._lengths += np.bincount(np.minimum(lengths, _LONGEST), minlength=_LONGEST + 1)
        self.longest = max(self.longest, int(lengths.max()))
        self.by_length.add(lengths)
        self.by_alphabet.add(texts)
        self.texts += len(texts)
        return keys, lengths

    def lengths(self) -> Quantiles | None:
        """Return the distribution of the texts' lengths in characters; None without a text."""
        if not self.texts:
            return None
        low, median, high = _places(self._lengths, (0.05, 0.5, 0.95))
        return Quantiles(low, median, high, self.longest)


class RatioCounts:
    """The distribution of the ratio of the lengths of target and source."""

    def __init__(self) -> None:
        self._counts = np.zeros(2 * _MOST_DOUBLINGS * _RATIO_STEPS + 1, np.int64)
        self._most = 0.0

    def add(self, source: Int64[ndarray, " n"], target: Int64[ndarray, " n"]) -> None:
        """Take the lengths of the next pairs; those with an empty side are left out."""
        filled = (source > 0) & (target > 0)
        if not filled.any():
            return
        ratios = target[filled] / source[filled]
        # On a logarithmic scale a ratio and its inverse are equally far from 1.
        doublings = np.clip(np.log2(ratios), -_MOST_DOUBLINGS, _MOST_DOUBLINGS)
        steps = np.rint((doublings + _MOST_DOUBLINGS) * _RATIO_STEPS).astype(np.int64)
        self._counts += np.bincount(steps, minlength=len(self._counts))
        self._most = max(self._most, float(ratios.max()))

    def ratios(self) -> Quantiles | None:
        """Return the distribution; None without a pair."""
        if not self._counts.any():
            return None
        steps = _places(self._counts, (0.05, 0.5, 0.95))
        low, median, high = (
            round(2 ** (step / _RATIO_STEPS - _MOST_DOUBLINGS), 2) for step in steps
        )
        return Quantiles(low, median, high, round(self._most, 2))


def _places(counts: Int64[ndarray, " n"], shares: Sequence[float]) -> list[int]:
    """Return the indices at which shares of a histogram are reached."""
    ends = np.cumsum(counts)
    return [int(np.searchsorted(ends, share * ends[-1])) for share in shares]


class Order:
    """A test of whether the values of a stream are sorted, apart from a few exceptions.

    Args:
        share: minimum share of neighbors that must be in order.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._last: list[Any] = []
        self._values = 0
        self._ups = 0
        self._downs = 0

    def add(self, values: Sequence[Any] | ndarray) -> None:
        """Take the next values."""
        if isinstance(values, np.ndarray):
            steps = np.diff(np.concatenate([np.asarray(self._last, values.dtype), values]))
            self._ups += int(np.count_nonzero(steps > 0))
            self._downs += int(np.count_nonzero(steps < 0))
        else:
            earlier = [*self._last, *values[:-1]]
            later = values[len(values) - len(earlier) :]
            self._ups += sum(map(operator.lt, earlier, later))
            self._downs += sum(map(operator.gt, earlier, later))
        self._values += len(values)
        self._last = list(values[-1:])

    def direction(self) -> str | None:
        """Return ``ascending`` or ``descending``; None if the values are in no order."""
        if self._values < LEAST_ORDERED:
            return None
        for name, along, against in (
            ("ascending", self._ups, self._downs),
            ("descending", self._downs, self._ups),
        ):
            # A few values out of order are tolerated: a file may have been joined or corrected.
            is_ordered = against <= (1 - self._share) * (self._values - 1)
            if is_ordered and along >= max(_LEAST_STEPS, 2 * against):
                return name
        return None


def copies_of(
    sources: Sequence[str],
    targets: Sequence[str],
    keys: tuple[UInt64[ndarray, " n"], UInt64[ndarray, " n"]],
) -> Bool[ndarray, " n"]:
    """Mark the pairs whose sides have the same text key, and contain letters."""
    equal = (keys[0] == keys[1]) & (keys[0] != EMPTY_KEY)
    for place in np.flatnonzero(equal).tolist():
        equal[place] = any(map(str.isalpha, sources[place]))
    return np.asarray(equal)
