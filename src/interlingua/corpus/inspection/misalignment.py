"""Pairs of which one side has slipped: target i + k is the translation of source i.

The lengths of a sentence and its translation correlate: mostly by 0.8 or more, while the
correlation is near 0 for unrelated sentences. In blocks of pairs, the correlation of the
logarithms of both lengths is compared with that of source i and target i + k, for small k. If
lengths are no evidence, as in a file that is sorted by length, the numbers in both texts decide.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray

_BLOCK = 256
"""Pairs of a block."""
MOST_SHIFT = 5
"""Largest k that is tried."""
_FAR = 8
"""A shift at which the lengths of both sides are unrelated."""
LEAST_PAIRS = 48
"""Minimum number of pairs for a correlation."""
_MANY = 8
"""Number of blocks; in a file with at least as many, a single shifted block is no evidence."""
_CLEAR = 0.5
"""Minimum correlation, at any k, for lengths to count as evidence."""
_ABOVE = 0.3
"""Minimum excess over the correlation of pairs without a shift."""
_LEAST_NUMBERS = 16
"""Minimum number of texts with different numbers in a block."""
_NUMBER = re.compile(r"\d+")


class Slip(NamedTuple):
    """Start and size of a shift of pairs."""

    first: int
    """Number of the first shifted pair, from 1."""
    last: int
    """Number of the last pair in the blocks that show the shift."""
    shift: int
    """The translation of source i is next to source i + shift."""


class _Block(NamedTuple):
    start: int
    x: Float64[ndarray, " n"]
    y: Float64[ndarray, " n"]


class SlipFinder:
    """Search for slips in a stream of pairs, with two blocks in memory at a time."""

    def __init__(self) -> None:
        self.slips: list[Slip] = []
        self._read = 0
        self._before: _Block | None = None
        self._texts: list[tuple[str, str]] = []

    def add(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        """Take the next pairs."""
        self._texts += zip(sources, targets, strict=True)
        while len(self._texts) >= _BLOCK:
            self._examine(self._texts[:_BLOCK])
            del self._texts[:_BLOCK]

    def end(self) -> list[Slip]:
        """Examine the rest, and return all slips in order."""
        if len(self._texts) >= LEAST_PAIRS:
            self._examine(self._texts)
        self._texts = []
        # In a long file a single block may look shifted by chance.
        if self._read >= _MANY * _BLOCK:
            self.slips = [slip for slip in self.slips if slip.last - slip.first >= _BLOCK]
        return self.slips

    def _examine(self, pairs: list[tuple[str, str]]) -> None:
        x, y = (_log_lengths([pair[side] for pair in pairs]) for side in (0, 1))
        block = _Block(self._read, x, y)
        shift = shift_of_lengths(x, y)
        if shift is None:
            shift = shift_of_numbers(pairs)
        if shift:
            self._note(block, shift)
        self._read += len(pairs)
        self._before = block

    def _note(self, block: _Block, shift: int) -> None:
        """Start a slip, or continue the one before."""
        last = block.start + len(block.x)
        if self.slips and self.slips[-1].shift == shift:
            # Blocks without evidence between two blocks of one slip belong to the slip, too.
            self.slips[-1] = self.slips[-1]._replace(last=last)
            return
        both = block
        if self._before is not None:
            x = np.concatenate([self._before.x, block.x])
            y = np.concatenate([self._before.y, block.y])
            both = _Block(self._before.start, x, y)
        self.slips.append(Slip(both.start + _change(both, shift) + 1, last, shift))


def shift_of_lengths(x: Float64[ndarray, " n"], y: Float64[ndarray, " n"]) -> int | None:
    """Return by how much ``y`` is shifted against ``x``; 0 for not at all, None if unclear.

    Args:
        x: logarithms of the lengths of sources.
        y: of targets.
    """
    own = _correlation(x, y)
    # In a file that is sorted by length, neighbors are as long as the translation itself.
    if _correlation(*_shifted(x, y, _FAR)) > _CLEAR:
        return None
    if own > 1 - _ABOVE:  # no other shift can exceed this by _ABOVE
        return 0
    correlations = {k: _correlation(*_shifted(x, y, k)) for k in _shifts()}
    best = max(correlations, key=lambda k: correlations[k])
    if correlations[best] < _CLEAR:
        return None
    if best == 0 or correlations[best] >= own + _ABOVE:
        return best
    if own >= _CLEAR:
        return 0
    return None


def shift_of_numbers(pairs: Sequence[tuple[str, str]]) -> int | None:
    """Return the shift at which most texts contain equal numbers; None if unknown."""
    sources = [sorted(_NUMBER.findall(source)) for source, _ in pairs]
    targets = [sorted(_NUMBER.findall(target)) for _, target in pairs]
    # If there are only a few different numbers, such as years, they may be equal by chance.
    if len(set(map(tuple, filter(None, sources)))) < _LEAST_NUMBERS:
        return None
    shares = {}
    for k in _shifts():
        places = [i for i in range(len(pairs)) if sources[i] and 0 <= i + k < len(pairs)]
        equal = sum(sources[i] == targets[i + k] for i in places)
        shares[k] = equal / max(len(places), 1)
    best = max(shares, key=lambda k: shares[k])
    if shares[best] < _CLEAR or (best != 0 and shares[best] < shares[0] + _ABOVE):
        return None
    return best


def _shifts() -> list[int]:
    """Return the shifts to try, the smallest first, because the first of equally good ones wins."""
    return sorted(range(-MOST_SHIFT, MOST_SHIFT + 1), key=abs)


def _log_lengths(texts: Sequence[str]) -> Float64[ndarray, " n"]:
    lengths: Int64[ndarray, " n"] = np.fromiter(map(len, texts), np.int64, len(texts))
    return np.asarray(np.log1p(lengths))


def _shifted(x: ndarray, y: ndarray, shift: int) -> tuple[ndarray, ndarray]:
    """Return the values that are next to each other if ``y`` moves by the shift."""
    if shift >= 0:
        return x[: len(x) - shift], y[shift:]
    return x[-shift:], y[:shift]


def _correlation(x: Float64[ndarray, " n"], y: Float64[ndarray, " n"]) -> float:
    """Return Pearson's correlation; 0 if a side is constant."""
    x = x - x.mean()
    y = y - y.mean()
    spread = float(np.sqrt((x @ x) * (y @ y)))
    if spread < 1e-9:
        return 0.0
    return float(x @ y) / spread


def _change(block: _Block, shift: int) -> int:
    """Return the index of the first pair that fits better when it is shifted.

    This pair minimizes the sum of differences: unshifted before it, shifted from it on.
    """
    x = block.x - np.median(block.x - block.y)
    as_is = np.abs(x - block.y)
    own, other = _shifted(x, block.y, shift)
    moved = np.full(len(x), float(np.mean(as_is)))
    start = max(-shift, 0)
    moved[start : start + len(own)] = np.abs(own - other)
    costs = np.concatenate([[0.0], np.cumsum(as_is)]) + np.concatenate(
        [np.cumsum(moved[::-1])[::-1], [0.0]]
    )
    return int(np.argmin(costs))
