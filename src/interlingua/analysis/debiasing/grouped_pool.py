"""Retrieval from one pool of many languages, for texts that are translations in groups of any size.

Each sentence has a language and a group: sentences of one group mean the same. Line-aligned files
make groups of L sentences, a bitext makes groups of two. Let q be a sentence, and t a sentence of
its group in another language. Then t is found in its own pool if no other sentence of t's language
is nearer to q, and in the mixed pool if no sentence of any language is nearer; the rest of the
group is ignored. ``evaluation`` has the same measures for line-aligned files; this module has them
for pairs, and for a sample that fits in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int64
from numpy import ndarray

_BLOCK = 1024
"""Number of queries whose similarities are in memory at a time."""


class PoolMeasures(NamedTuple):
    """Shares from 0 to 1.

    The first two are means over the ordered pairs of languages that share a group.

    Attributes:
        own_pool: translations found among the sentences of their own language; NaN without
            translations.
        mixed_pool: translations found among the sentences of all languages; also NaN without
            translations.
        same_language: sentences whose nearest other sentence is in their own language.
    """

    own_pool: float
    mixed_pool: float
    same_language: float

    @property
    def drop(self) -> float:
        """Loss of accuracy from mixing the languages."""
        return self.own_pool - self.mixed_pool


def measure_pool(
    vectors: Float32[ndarray, "n d"], languages: Int64[ndarray, " n"], groups: Int64[ndarray, " n"]
) -> PoolMeasures:
    """Search for the translations of all sentences in the pool of all sentences.

    Args:
        vectors: of length 1.
        languages: number of each sentence's language, from 0.
        groups: sentences of equal numbers are translations of one another.
    """
    # Sort by language, so that the sentences of each language are one slice of a row of
    # similarities, from its start to the start of the next language.
    order = np.argsort(languages, kind="stable")
    vectors = vectors[order]
    languages = languages[order]
    groups = groups[order]
    count = int(languages[-1]) + 1
    starts = np.searchsorted(languages, np.arange(count))
    members = _members(groups)
    # (languages of queries, languages of translations).
    found_own = np.zeros((count, count))
    found_mixed = np.zeros((count, count))
    counts = np.zeros((count, count))
    same = 0
    for start in range(0, len(vectors), _BLOCK):
        similarities = vectors[start : start + _BLOCK] @ vectors.T
        for row, scores in enumerate(similarities):
            query = start + row
            own_language = languages[query]
            translations = members[groups[query]]
            of_translations = scores[translations]
            # Exclude the group of the query, and the query itself. The remaining sentences compete
            # with each translation in turn.
            scores[translations] = -np.inf
            nearest_by_language = np.maximum.reduceat(scores, starts)
            nearest = nearest_by_language.max()
            # The highest similarity with a sentence of another language. The translations, which
            # are excluded here, are taken into account again below.
            nearest_abroad = np.delete(nearest_by_language, own_language).max(initial=-np.inf)
            for target, score in zip(translations, of_translations, strict=True):
                language = languages[target]
                if target == query or language == own_language:
                    continue
                counts[own_language, language] += 1
                # A translation in a tie does not count as found.
                found_own[own_language, language] += score > nearest_by_language[language]
                found_mixed[own_language, language] += score > nearest
                nearest_abroad = max(nearest_abroad, score)
            same += nearest_by_language[own_language] > nearest_abroad
    pairs = counts > 0
    own_pool = float("nan")
    mixed_pool = float("nan")
    if pairs.any():
        own_pool = float((found_own[pairs] / counts[pairs]).mean())
        mixed_pool = float((found_mixed[pairs] / counts[pairs]).mean())
    return PoolMeasures(own_pool, mixed_pool, same / len(vectors))


def _members(groups: Int64[ndarray, " n"]) -> dict[int, Int64[ndarray, " m"]]:
    """Return the indices of each group's sentences."""
    order = np.argsort(groups, kind="stable")
    numbers, starts = np.unique(groups[order], return_index=True)
    return dict(zip(numbers.tolist(), np.split(order, starts[1:]), strict=True))


def join_groups(pairs: Sequence[tuple[int, int]], count: int) -> Int64[ndarray, " n"]:
    """Assign numbers to groups of translations: the connected parts of the graph of pairs.

    Args:
        pairs: places of translations.
        count: sentences in all.
    """
    # Union-find: every sentence points at another of its group, the root at itself.
    parents = list(range(count))

    def root(place: int) -> int:
        while parents[place] != place:
            # Halves the path, so that later look-ups are short.
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    for first, second in pairs:
        parents[root(first)] = root(second)
    return np.unique([root(place) for place in range(count)], return_inverse=True)[1]
