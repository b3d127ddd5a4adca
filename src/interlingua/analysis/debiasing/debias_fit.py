"""Choice of a language map: estimated on one part of the vectors, measured on the other.

The panel shows how much of the language is left, before and after, on sentences that the map was
not estimated on. If these include translations, the rank is chosen by retrieval from the mixed
pool. Otherwise all directions between the languages' means are removed, since nothing here could
show that fewer are better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64
from numpy import ndarray

from interlingua.analysis.debiasing.grouped_pool import PoolMeasures, measure_pool
from interlingua.encoder.language_maps.affine_maps import (
    LanguageMap,
    MapMethod,
    fit_language_map,
    language_statistics,
)
from interlingua.errors import DataError, count_of
from interlingua.storage.arrays import normalize_rows

MOST_RANKS = 24
"""Maximum number of ranks to try; if more are possible, an even selection is tried."""
TIMES_CHANCE = 10
"""Lines count as translations if retrieval finds this many times more of them than chance."""
MOST_MEASURED = 20_000
"""Maximum number of held-out sentences in the panel, plus at most one of each language; the panel
compares every sentence with every other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LabeledVectors:
    """Vectors with their languages.

    Attributes:
        vectors: (N, D); of length 1, or as the model makes them if it does not normalize.
        languages: code of each.
        groups: sentences of equal numbers are translations.
    """

    vectors: Float32[ndarray, "n d"]
    languages: Sequence[str]
    groups: Int64[ndarray, " n"]

    def where(self, kept: Bool[ndarray, " n"]) -> LabeledVectors:
        """Return the marked vectors with their languages and groups."""
        rows = np.flatnonzero(kept)
        languages = [self.languages[int(row)] for row in rows]
        return LabeledVectors(
            vectors=self.vectors[rows], languages=languages, groups=self.groups[rows]
        )

    @property
    def numbers(self) -> Int64[ndarray, " n"]:
        """The number of each sentence's language, in the order of the codes."""
        return np.unique(np.asarray(self.languages), return_inverse=True)[1]

    def pool(self) -> PoolMeasures:
        """Measure retrieval among these vectors."""
        return measure_pool(normalize_rows(self.vectors), self.numbers, self.groups)

    @property
    def has_translations(self) -> bool:
        """True if any group has two sentences."""
        return len(np.unique(self.groups)) < len(self.groups)


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """The amount of language information in vectors; shares from 0 to 1.

    Attributes:
        pool: retrieval of translations, own and mixed pool, and nearest sentences of the same
            language.
        variance_share: variance between the languages' means over the whole variance.
        recognized: sentences that are nearest to the mean of their own language.
    """

    pool: PoolMeasures
    variance_share: float
    recognized: float


@dataclass(frozen=True, kw_only=True, slots=True)
class FittedMap:
    """A map and its effect on held-out sentences.

    Attributes:
        language_map: the map.
        before: the panel of the original vectors.
        after: the panel of the mapped vectors.
        fitted: number of sentences that the map was estimated on.
        held_out: number of sentences of the panel.
        ranks: own and mixed pool of each rank that was tried; empty if the rank was not chosen by
            them.
    """

    language_map: LanguageMap
    before: Panel
    after: Panel
    fitted: int
    held_out: int
    ranks: dict[int, PoolMeasures]


def fit_and_measure(
    data: LabeledVectors,
    *,
    also: Sequence[LabeledVectors] = (),
    method: MapMethod = "project",
    rank: int | None = None,
    held_out_share: float = 0.25,
    seed: int = 0,
) -> FittedMap:
    """Estimate a map on a part of the vectors and measure it on the rest.

    Args:
        data: the vectors.
        also: vectors of the same sentences under other prompts; the map is estimated on these too.
        method: of the map.
        rank: directions to remove; default: chosen by the mixed pool of held-out translations, or
            all if there are no translations.
        held_out_share: of the groups, from 0 to 1.
        seed: of the draw of held-out groups.

    Raises:
        DataError: a language has too few sentences to leave some in both parts.
    """
    held = _held_out(data.groups, held_out_share, seed)
    fit = data.where(~held)
    rest = data.where(held)
    _require_both_parts(data, fit, rest)
    # The panel's work grows with the square of its sentences.
    rest = rest.where(_sample(rest.languages, MOST_MEASURED, seed))
    estimated_on = [fit, *(one.where(~held) for one in also)]
    # A generator: the blocks are copies, and one at a time is enough.
    blocks = (
        (language, one.vectors[_rows(one.languages, language)])
        for one in estimated_on
        for language in sorted(set(fit.languages))
    )
    statistics = language_statistics(blocks, need_covariance=method == "erase")
    # Files with equal numbers of lines may not be translations; then each sentence is a group.
    if rest.has_translations and not _are_translations(rest):
        rest = replace(rest, groups=np.arange(len(rest.groups)))
    ranks: dict[int, PoolMeasures] = {}
    if rank is None and method in ("project", "erase") and rest.has_translations:
        for candidate in ranks_to_try(len(statistics.languages)):
            candidate_map = fit_language_map(statistics, method, candidate)
            ranks[candidate] = replace(rest, vectors=candidate_map.apply(rest.vectors)).pool()
        # Of equal scores choose the smallest rank, which removes the least from the vectors.
        rank = max(ranks, key=lambda r: (ranks[r].mixed_pool, ranks[r].own_pool, -r))
    # Both panels compare with the language means of the estimation part, mapped in the same way.
    language_map = fit_language_map(statistics, method, rank)
    fit_mapped = language_map.apply(fit.vectors, fit.languages)
    rest_mapped = replace(rest, vectors=language_map.apply(rest.vectors, rest.languages))
    return FittedMap(
        language_map=language_map,
        before=panel(rest, language_means(fit.vectors, fit.languages)),
        after=panel(rest_mapped, language_means(fit_mapped, fit.languages)),
        fitted=len(fit.languages),
        held_out=len(rest.languages),
        ranks=ranks,
    )


def panel(data: LabeledVectors, means: Float64[ndarray, "l d"]) -> Panel:
    """Measure held-out vectors.

    Args:
        data: the vectors.
        means: mean of each language, sorted by code, over other sentences mapped in the same way.
    """
    numbers = data.numbers
    # |x - m|^2 without |x|^2, which is the same for all means of a row.
    distances = (means**2).sum(axis=1) - 2 * data.vectors @ means.T
    # Every language weighs the same, however many sentences it has.
    own_means = language_means(data.vectors, data.languages)
    center = own_means.mean(axis=0)
    between = ((own_means - center) ** 2).sum(axis=1).mean()
    spread = ((data.vectors - center) ** 2).sum(axis=1)
    total = np.mean([spread[numbers == number].mean() for number in range(len(own_means))])
    variance_share = 0.0
    if total > 0:
        variance_share = float(between / total)
    return Panel(
        pool=data.pool(),
        variance_share=variance_share,
        recognized=float((distances.argmin(axis=1) == numbers).mean()),
    )


def language_means(
    vectors: Float32[ndarray, "n d"], languages: Sequence[str]
) -> Float64[ndarray, "l d"]:
    """Compute the mean vector of each language, sorted by code."""
    means = [
        vectors[_rows(languages, code)].mean(axis=0, dtype=np.float64)
        for code in sorted(set(languages))
    ]
    return np.stack(means)


def ranks_to_try(languages: int) -> list[int]:
    """Return ranks from 0 (only centering) to the number of languages less one.

    There are at most ``MOST_RANKS``. The centered means of L languages span no more than L - 1
    directions.
    """
    highest = languages - 1
    spaced = np.linspace(0, highest, min(MOST_RANKS, highest + 1))
    return sorted({round(place) for place in spaced})


def _are_translations(data: LabeledVectors) -> bool:
    """Return whether groups really are translations.

    They are if retrieval finds far more of them than chance would.
    """
    # In a pool of N sentences chance finds one in N, so its share is largest in the smallest pool.
    smallest_pool = int(np.bincount(data.numbers).min())
    return data.pool().own_pool > min(0.5, TIMES_CHANCE / smallest_pool)


def _require_both_parts(data: LabeledVectors, fit: LabeledVectors, rest: LabeledVectors) -> None:
    for language in sorted(set(data.languages)):
        if language not in fit.languages or language not in rest.languages:
            count = list(data.languages).count(language)
            raise DataError(
                f"{language} has only {count_of(count, 'sentences')}, too few to estimate and"
                " check a map; add sentences or leave the language out"
            )


def _held_out(groups: Int64[ndarray, " n"], share: float, seed: int) -> Bool[ndarray, " n"]:
    """Draw whole groups to hold out.

    Therefore no held-out sentence has a translation among the sentences of the estimate.
    """
    chosen = np.random.default_rng(seed).random(int(groups.max()) + 1) < share
    return np.asarray(chosen[groups])


def _sample(languages: Sequence[str], most: int, seed: int) -> Bool[ndarray, " n"]:
    """Draw ``most`` sentences, and one of each language.

    The panel needs all languages of the estimate.
    """
    kept = np.zeros(len(languages), dtype=bool)
    order = np.random.default_rng(seed).permutation(len(languages))
    kept[order[:most]] = True
    # The first of each language in the drawn order.
    _, first = np.unique(np.asarray(languages)[order], return_index=True)
    kept[order[first]] = True
    return kept


def _rows(languages: Sequence[str], language: str) -> Int64[ndarray, " m"]:
    return np.flatnonzero(np.asarray(languages) == language)
