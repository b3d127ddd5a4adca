"""Estimate which share of a list of pairs is right from the scores of the list itself.

The scores of a list are a mixture of those of right pairs and of several kinds of wrong pairs. A
sample of scores is known for each. ``fit_mixture`` finds the shares under which the list is most
likely, by expectation maximization over histograms.

Trusted pairs are often of another kind than the list (shorter, of another domain), and their
scores are then higher or lower than those of the right pairs in it. So the sample of right pairs
may also be moved and stretched, if this makes the list much more likely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy import ndarray

_BINS = 160
SHIFTS = np.linspace(-3.0, 3.0, 31)
"""Tried moves of the right pairs' scores, in their standard deviations."""
SCALES = (0.7, 0.8, 0.9, 1.0, 1.1, 1.25)
"""Tried factors that stretch these scores about their median."""
_LEAST_GAIN = 0.01
"""Minimum gain in the list's log likelihood from moved scores, in nats per pair. Between samples of
one kind, the gain is a third of that, between samples of different domains ten times as much."""
NEAR = 0.005
"""Largest difference to the best move, in nats per pair, of a move that counts as equally good."""
_ROUNDS = 300
_EVERYWHERE = 0.01
"""Share of each density that is even over all bins, so that no score is impossible."""


class Mixture(NamedTuple):
    """The shares of a list's pairs.

    Attributes:
        right: share of right pairs.
        wrong: share of each kind of wrong pairs.
        shift: added to the scores of known right pairs, so that they are like the list's.
        scale: factor by which these scores are stretched about their median.
        gain: nats per pair by which the list is likelier with ``shift`` and ``scale`` than without.
        near: other moves, with which the list is nearly as likely.
    """

    right: float
    wrong: tuple[float, ...]
    shift: float = 0.0
    scale: float = 1.0
    gain: float = 0.0
    near: tuple[tuple[float, float], ...] = ((0.0, 1.0),)

    @property
    def is_moved(self) -> bool:
        """True if the list's right pairs score differently from the known ones."""
        return self.shift != 0.0 or self.scale != 1.0


def move_scores(
    scores: Float64[ndarray, " n"], shift: float, scale: float
) -> Float64[ndarray, " n"]:
    """Add ``shift`` to scores, and stretch them by ``scale`` about their median."""
    middle = np.median(scores)
    return np.asarray(middle + shift + scale * (scores - middle))


def fit_mixture(
    scores: Float64[ndarray, " n"],
    right: Float64[ndarray, " r"],
    wrong: Sequence[Float64[ndarray, " w"]],
    *,
    measured: Mapping[int, float] | None = None,
) -> Mixture:
    """Find the shares under which a list of scores is most likely.

    Args:
        scores: of the list.
        right: of known right pairs.
        wrong: of known wrong pairs, by kind.
        measured: index of a kind in ``wrong`` -> its share of the list, for each kind whose share
            is known from other evidence than scores.
    """
    fixed = np.full(1 + len(wrong), np.nan)
    for place, share in (measured or {}).items():
        fixed[1 + place] = share
    low, high = np.quantile(scores, [0.001, 0.999])
    room = 0.15 * (high - low) + 1e-6
    edges = np.linspace(low - room, high + room, _BINS + 1)
    counts = _histogram(scores, edges)
    others = [_density(sample, edges) for sample in wrong]

    def likelihood(shift: float, scale: float) -> tuple[float, Float64[ndarray, " k"]]:
        moved = move_scores(right, shift, scale)
        return _fit_shares(counts, np.stack([_density(moved, edges), *others]), fixed)

    at_rest = likelihood(0.0, 1.0)
    spread = float(right.std())
    tried = {
        (float(shift) * spread, scale): likelihood(float(shift) * spread, scale)
        for shift in SHIFTS
        for scale in SCALES
    }
    best = max(tried, key=lambda move: tried[move][0])
    gain = (tried[best][0] - at_rest[0]) / len(scores)
    # Small differences arise by chance, and a move that corrects them does more harm than good.
    if gain < _LEAST_GAIN:
        shares = at_rest[1].tolist()
        return Mixture(shares[0], tuple(shares[1:]), gain=gain)
    least = tried[best][0] - NEAR * len(scores)
    near = tuple(move for move, (value, _) in tried.items() if value >= least)
    shares = tried[best][1].tolist()
    return Mixture(shares[0], tuple(shares[1:]), *best, gain, near)


def draw_like(
    samples: Sequence[Float64[ndarray, " n"]], shares: Sequence[float], *, seed: int = 0
) -> Float64[ndarray, " m"]:
    """Draw from several samples in proportion to their shares, each element at most once.

    Args:
        samples: at least one is not empty.
        shares: not negative; of rare kinds few are drawn.
        seed: of the draw.
    """
    total = sum(shares) or 1.0
    weights = [share / total for share in shares]
    # The kind with too few elements for its share limits the size of the draw. Rare kinds do not
    # limit it; otherwise a kind that hardly exists would exclude many elements of the others.
    sizes = [
        len(sample) / weight
        for sample, weight in zip(samples, weights, strict=True)
        if weight > 0.05
    ]
    size = min(sizes, default=sum(map(len, samples)))
    rng = np.random.default_rng(seed)
    drawn = []
    for sample, weight in zip(samples, weights, strict=True):
        count = min(len(sample), round(size * weight))
        drawn.append(rng.choice(sample, count, replace=False))
    return np.concatenate(drawn)


def _fit_shares(
    counts: Float64[ndarray, " b"],
    densities: Float64[ndarray, "k b"],
    fixed: Float64[ndarray, " k"],
) -> tuple[float, Float64[ndarray, " k"]]:
    """Find the shares of densities by expectation maximization; return log likelihood and shares.

    Args:
        counts: of the list's scores in bins.
        densities: over these bins.
        fixed: shares that are known, NaN for the others.
    """
    is_free = np.isnan(fixed)
    left = 1.0 - float(fixed[~is_free].sum())
    shares = np.where(is_free, left / is_free.sum(), fixed)
    for _ in range(_ROUNDS):
        new = shares * (densities @ (counts / (shares @ densities))) / counts.sum()
        new = np.where(is_free, new * left / new[is_free].sum(), fixed)
        change = np.abs(new - shares).max()
        shares = new
        if change < 1e-6:
            break
    return float(counts @ np.log(shares @ densities)), shares


def _histogram(scores: Float64[ndarray, " n"], edges: Float64[ndarray, " e"]) -> ndarray:
    """Count scores in bins; those outside count in the first and the last one."""
    clipped = np.clip(scores, edges[0], edges[-1])
    return np.histogram(clipped, edges)[0].astype(np.float64)


def _density(sample: Float64[ndarray, " n"], edges: Float64[ndarray, " e"]) -> ndarray:
    """Smooth a sample to a density over bins, by a Gaussian of Silverman's width."""
    quarters = np.quantile(sample, [0.25, 0.75])
    spread = min(float(sample.std()), float(quarters[1] - quarters[0]) / 1.34)
    width = max(0.9 * spread * len(sample) ** -0.2, (edges[1] - edges[0]) / 2)
    middles = (edges[1:] + edges[:-1]) / 2
    kernel = np.exp(-0.5 * ((middles[:, None] - middles[None]) / width) ** 2)
    kernel /= kernel.sum(axis=0, keepdims=True)
    density = kernel @ _histogram(sample, edges)
    return np.asarray((1 - _EVERYWHERE) * density / density.sum() + _EVERYWHERE / len(middles))
