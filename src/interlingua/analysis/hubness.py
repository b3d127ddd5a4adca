"""Hubness: sentences that are neighbors of far too many others, or of no other sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int64
from numpy import ndarray

from interlingua.analysis.record import Measure, mean_measure
from interlingua.evaluation.metrics.pool import Pool


def hubness(pool: Pool, languages: Sequence[str]) -> list[Measure]:
    """Compute the skewness of the k-occurrences, and the share of sentences that have none.

    Radovanović, Nanopoulos and Ivanović (2010), "Hubs in space", section 2: N_k(x) counts how often
    x is among the k nearest of the other points; its skewness grows with hubness. Here the points
    are all sentences of all languages.

    Args:
        pool: from ``search_pool``.
        languages: the codes of its languages.
    """
    return [
        Measure(
            name="hubness_skewness",
            value=skewness(pool.occurrences),
            unit="",
            better="lower",
            ideal=0.0,
            definition=f"skewness of how often a sentence is among the {pool.k} nearest of another"
            " one",
        ),
        mean_measure(
            "antihubs",
            pool.occurrences == 0,
            languages,
            unit="share",
            better="lower",
            ideal=0.0,
            definition=f"share of sentences that are never among the {pool.k} nearest of another"
            " one",
        ),
    ]


def skewness(counts: Int64[ndarray, "*shape"]) -> float:
    """Compute the third standardized moment, E((N - mean)^3) / sd^3; 0 if all counts are equal."""
    # m3 / m2^1.5, of the central moments m.
    centered = np.asarray(counts, np.float64) - np.mean(counts)
    variance = np.mean(centered**2)
    if variance <= 0:
        return 0.0
    return float(np.mean(centered**3) / variance**1.5)
