"""How often each language pair is drawn.

Temperature sampling draws a language pair of n_l sentence pairs in proportion to n_l^(1/T), so that
small ones are seen more often than they would be by their size. Caps bound the shares, and tables
show what they mean for a number of draws.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Generic, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float64
from numpy import ndarray

from interlingua.config import AtLeast, Between, CheckedSettings
from interlingua.errors import ConfigError

Name = TypeVar("Name")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Caps(CheckedSettings):
    """Limits on the share of a language pair in temperature sampling."""

    max_pairs: Annotated[int, AtLeast(1)] | None = None
    """Maximum number of sentence pairs of a language pair; if it has more, it is treated as if it
    had this many."""
    max_share: Annotated[float, Between(0, 1)] = 1.0
    """Maximum share (0 to 1) of all draws for a language pair."""
    min_share: Annotated[float, Between(0, 1)] = 0.0
    """Minimum share (0 to 1) of all draws for a language pair."""

    def __post_init__(self) -> None:
        if self.min_share > self.max_share:
            raise ConfigError(
                f"min_share = {self.min_share} is greater than max_share = {self.max_share};"
                " choose min_share <= max_share"
            )


class Exposure(NamedTuple, Generic[Name]):
    """The exposure of one language pair in a number of draws."""

    name: Name
    available: int
    """Number of sentence pairs that exist."""
    share: float
    """Share of all draws, 0 to 1."""
    draws: float
    """Sentence pairs drawn (expected)."""
    passes: float
    """Number of times that each of its sentence pairs is seen."""


def temperature_weights(
    counts: Mapping[Name, int], temperature: float = 1.0, caps: Caps | None = None
) -> dict[Name, float]:
    r"""Compute shares p_l proportional to n_l^(1/T), kept within the caps and summing to 1.

    The share that a cap removes goes to the uncapped pairs, in proportion to their weights (and the
    share that a floor adds is taken from them): p_l = min(max(c w_l, min_share), max_share), with
    w_l = n_l^(1/T) and the one c for which the sum is 1.

    Args:
        counts: name (of a language pair or a language) -> sentence pairs; names without sentence
            pairs get a share of 0.
        temperature: T > 0; 1 is proportional, 5 is common, infinity is uniform.
        caps: limits; none if missing.

    Raises:
        ConfigError: the temperature is not positive, there is nothing to draw from, or no shares
            satisfy the caps.
    """
    caps = caps or Caps()
    if not temperature > 0:
        raise ConfigError(
            "temperature: expected a positive number (1 = proportional, larger = flatter), found"
            f" {temperature}"
        )
    present = {name: n for name, n in counts.items() if n > 0}
    if not present:
        raise ConfigError("no language pair has any sentence pair, so nothing can be sampled")
    # The tolerance is for rounding errors: for example, 49 * (1/49) is not exactly 1.
    if len(present) * caps.max_share < 1 - 1e-9 or len(present) * caps.min_share > 1 + 1e-9:
        raise ConfigError(
            f"{len(present)} language pairs cannot share all draws with min_share ="
            f" {caps.min_share} and max_share = {caps.max_share}; 1/{len(present)} ="
            f" {1 / len(present):.4g} must be between them"
        )
    amounts = np.array([min(n, caps.max_pairs or n) for n in present.values()], np.float64)
    # Compute n^(1/T) / max n^(1/T) in logarithms, since n^(1/T) overflows at a low temperature.
    # The weights must be above 0, since they are divisors.
    logits = np.log(amounts) / temperature
    weights = np.maximum(np.exp(logits - logits.max()), 1e-300)
    shares = _within(weights, caps.min_share, caps.max_share)
    return dict.fromkeys(counts, 0.0) | dict(zip(present, shares.tolist(), strict=True))


def exposure_table(
    counts: Mapping[Name, int], shares: Mapping[Name, float], draws: float
) -> list[Exposure[Name]]:
    """Return the exposure of every language pair in ``draws`` draws, largest share first."""
    rows = []
    for name, available in counts.items():
        drawn = draws * shares[name]
        passes = 0.0
        if available:
            passes = drawn / available
        rows.append(Exposure(name, available, shares[name], drawn, passes))
    return sorted(rows, key=lambda row: (-row.share, str(row.name)))


def quotas(
    counts: Mapping[Name, int], total: int, temperature: float, *, held: Mapping[Name, int]
) -> dict[Name, int]:
    """Divide ``total`` draws among the names; if one has too few, the others supply the rest.

    Args:
        counts: the weights are computed from these.
        total: number of draws requested.
        temperature: of ``temperature_weights``.
        held: maximum number of draws of each.
    """
    weights = temperature_weights(counts, temperature)
    found = dict.fromkeys(counts, 0)
    remaining = float(total)
    weight_left = 1.0
    # In ascending order of supply per weight, each name takes its share of what remains.
    present = [name for name in counts if counts[name]]
    for name in sorted(present, key=lambda name: held[name] / weights[name]):
        found[name] = min(held[name], max(1, round(remaining * weights[name] / weight_left)))
        remaining = max(0.0, remaining - found[name])
        weight_left = max(weight_left - weights[name], 1e-12)
    return found


def _within(weights: Float64[ndarray, " n"], low: float, high: float) -> Float64[ndarray, " n"]:
    """Solve sum_l min(max(c w_l, low), high) = 1 for c; the sum is piecewise linear in c."""
    # The sum bends where a share reaches a bound; it is interpolated between the bends around 1.
    bends = np.unique(np.concatenate((low / weights, high / weights)))
    sums = np.array([np.clip(bend * weights, low, high).sum() for bend in bends])
    shares = np.clip(np.interp(1.0, sums, bends) * weights, low, high)
    return np.asarray(shares / shares.sum())  # against rounding
