"""Language gap: whether languages occupy separate regions, and whether some are served worse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32, Float64
from numpy import ndarray

from interlingua.analysis.record import ANALYSIS_RESAMPLES, Measure
from interlingua.evaluation.metrics.correlation import interval
from interlingua.evaluation.metrics.pool import Pool

_CHUNK = 100
"""Resamples drawn at once."""


def language_gap(vectors: Float32[ndarray, "l n d"], languages: Sequence[str]) -> list[Measure]:
    """Measure the distances between the languages' means.

    In line-aligned texts, only the language can move these means apart.

    - ``language_variance_share``: variance of the languages' means over that of all vectors (eta
      squared): the share of a vector's position that depends on its language.
    - ``language_mean_distance``: Euclidean distance of two languages' means of unit vectors, 0 to
      2, mean over pairs; the value of a language is its mean distance to the others. This is the
      gap of Liang et al. (2022), "Mind the gap", with languages in place of modalities.

    Args:
        vectors: unit vectors of line-aligned sentences, in memory or mapped; at least two
            languages.
        languages: their codes.
    """
    means = np.stack([np.asarray(rows, np.float64).mean(axis=0) for rows in vectors])
    center = means.mean(axis=0)
    between = ((means - center) ** 2).sum(axis=1).mean()
    # A language at a time, as the vectors may be a mapped file larger than memory.
    spreads = [
        ((np.asarray(rows, np.float64) - center) ** 2).sum(axis=1).mean() for rows in vectors
    ]
    total = np.mean(spreads)
    # Vectors that are all equal vary only by rounding.
    variance_share = 0.0
    if total > 1e-12:
        variance_share = float(between / total)
    # (languages, languages), 0 on the diagonal.
    distances = np.linalg.norm(means[:, None] - means[None], axis=2)
    of_each = distances.sum(axis=1) / (len(means) - 1)
    return [
        Measure(
            name="language_variance_share",
            value=variance_share,
            unit="share",
            better="lower",
            ideal=0.0,
            definition="share of the vectors' variance that lies between languages",
        ),
        Measure(
            name="language_mean_distance",
            value=float(of_each.mean()),
            unit="",
            better="lower",
            ideal=0.0,
            by_language=dict(zip(languages, of_each.tolist(), strict=True)),
            definition="distance of two languages' mean unit vectors, 0 to 2, mean over pairs",
        ),
    ]


def accuracy_gap(pool: Pool, languages: Sequence[str]) -> Measure:
    """Compute P@1 of the best language minus that of the worst; by language, P@1 itself.

    A language's P@1 is the mean over both directions with every other language, each within the
    target's own lines.

    Args:
        pool: from ``search_pool``.
        languages: the codes of its languages.
    """
    found = pool.found_alone.astype(np.float64)
    others = len(languages) - 1
    # (languages, lines): from a language to all others, and from all others to it.
    by_line = (found.sum(axis=2) + found.sum(axis=0).T) / (2 * others)
    accuracy = by_line.mean(axis=1)
    low, high = interval(_resampled_gaps(by_line))
    return Measure(
        name="accuracy_gap",
        value=float(np.ptp(accuracy)),
        unit="share",
        better="lower",
        ideal=0.0,
        low=low,
        high=high,
        by_language=dict(zip(languages, accuracy.tolist(), strict=True)),
        definition="P@1 of the best language minus that of the worst, mean of both directions with"
        " all others",
    )


def _resampled_gaps(by_line: Float64[ndarray, "l n"]) -> Float64[ndarray, " r"]:
    """Compute the gap in each of ``ANALYSIS_RESAMPLES`` draws of lines, with replacement."""
    # A mean needs only the number of times that each line is drawn; one product gives all means.
    n = by_line.shape[1]
    rng = np.random.default_rng(1)
    draws = [
        rng.multinomial(n, np.full(n, 1 / n), size=_CHUNK) @ by_line.T / n
        for _ in range(ANALYSIS_RESAMPLES // _CHUNK)
    ]
    return np.asarray(np.ptp(np.concatenate(draws), axis=1))
