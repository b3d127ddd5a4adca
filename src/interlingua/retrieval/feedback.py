"""Finding a question's answers in other languages by its best passage.

This is pseudo-relevance feedback (Rocchio 1971).

A question is short, and its vector is often far from passages that answer it in other languages.
The best passage is mostly right and in the question's own language, and passages that say the same
in other languages are nearer to it than to the question. So the other languages are searched with
both, q' = (q + p) / |q + p|, where q is the question and p the best passage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from jaxtyping import Float32
from numpy import ndarray

from interlingua.retrieval.ranking import Hit
from interlingua.storage.arrays import normalize_rows


class Searchable(Protocol):
    """Passages with their vectors, on disk (``PassageIndex``) or in memory."""

    def languages(self) -> dict[str, int]:
        """Return the number of passages by language, largest first."""
        ...

    def vectors(self, ids: Sequence[str]) -> Float32[ndarray, "n d"]:
        """Return the vectors of passages, in the order of their ids."""
        ...

    def nearest(
        self,
        vector: Float32[ndarray, " d"],
        top: int,
        *,
        languages: Sequence[str] = (),
        where: str | None = None,
        exact: bool = False,
    ) -> list[Hit]:
        """Return the passages of largest cosine; see ``PassageIndex.nearest``."""
        ...

    def matching(
        self, text: str, top: int, *, languages: Sequence[str] = (), where: str | None = None
    ) -> list[Hit]:
        """Return the passages with the words of a text; see ``PassageIndex.matching``."""
        ...

    def matching_with_cosines(
        self,
        text: str,
        vector: Float32[ndarray, " d"],
        top: int,
        *,
        languages: Sequence[str] = (),
        where: str | None = None,
    ) -> tuple[list[Hit], dict[str, float]]:
        """Return the hits of ``matching``, and the cosine of each hit, by its id."""
        ...


def rankings_with_feedback(
    index: Searchable,
    vector: Float32[ndarray, " d"],
    most: int,
    languages: Sequence[str],
    *,
    where: str | None = None,
    exact: bool = False,
) -> list[list[Hit]]:
    """Return a ranking for every language, found by the question and its best passage.

    Passages in the language of the best passage are ranked only by the question, so that this
    language loses nothing.
    Scores are cosines with q', and can be compared between languages.

    Args:
        index: of the passages.
        vector: q, of length 1.
        most: hits of each language.
        languages: codes of the languages to search in.
        where: see ``PassageIndex.nearest``.
        exact: see ``PassageIndex.nearest``.
    """

    def nearest(query: Float32[ndarray, " d"], top: int, codes: Sequence[str]) -> list[Hit]:
        return index.nearest(query, top, languages=codes, where=where, exact=exact)

    first = nearest(vector, 1, languages)
    if not first:
        return []
    best = first[0]
    # q' = (q + p) / |q + p|
    joined = normalize_rows((vector + index.vectors([best.id])[0])[None])[0]
    # Ranked by q, scored by q': only scores by the same vector can be compared between languages.
    own = nearest(vector, most, [best.language])
    rankings = [_rescored(own, index.vectors([hit.id for hit in own]) @ joined)]
    rankings += [nearest(joined, most, [code]) for code in languages if code != best.language]
    return rankings


def _rescored(hits: Sequence[Hit], cosines: Float32[ndarray, " n"]) -> list[Hit]:
    """Return hits with other scores in the same order, each score below the one before it."""
    rescored: list[Hit] = []
    highest = math.inf
    for hit, cosine in zip(hits, cosines.tolist(), strict=True):
        # A score that is not below the previous one becomes the largest number below that one.
        score = min(cosine, math.nextafter(highest, -math.inf))
        rescored.append(hit._replace(score=score))
        highest = score
    return rescored
