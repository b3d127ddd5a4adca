"""Checks that find pairs which translate a text differently from an earlier pair.

Two sets of 64-bit keys find them in one pass: the pair is new, but its text is not. The keys are
those of duplicates: at most 64 MB per check are in memory, and the rest on disk. Case and
punctuation do not count, except for the signs of numbers: 1.5 is not 15. The first translation of
a text is never reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from numpy import ndarray

from interlingua.corpus.cleaning.dedup import ExactDeduplicator
from interlingua.corpus.cleaning.keys import EMPTY_KEY, combine_keys, text_keys
from interlingua.mining.checks import Check, Pairs


class _Consistency(Check):
    """Base of both directions."""

    default_limit = 1
    is_of_pair = False

    def __init__(
        self, languages: tuple[str, str], folder: Path | None, limit: float | None = None
    ) -> None:
        super().__init__(languages, folder, limit)
        texts = None if folder is None else folder / f"{self.name}-texts"
        pairs = None if folder is None else folder / f"{self.name}-pairs"
        self.texts = ExactDeduplicator(texts)
        self.pairs = ExactDeduplicator(pairs)

    def _translated_anew(
        self, texts: Sequence[str], translations: Sequence[str]
    ) -> Float64[ndarray, " n"]:
        """Mark the texts that an earlier pair translates differently."""
        keys = text_keys(texts)
        others = text_keys(translations)
        # An empty translation does not count; the next one is the first translation of its text.
        both = np.flatnonzero((keys != EMPTY_KEY) & (others != EMPTY_KEY))
        is_new_text = self.texts.first_seen(keys[both])
        is_new_pair = self.pairs.first_seen(
            combine_keys(keys[both], others[both], "text", "translation")
        )
        marks = np.zeros(len(keys), dtype=np.float64)
        marks[both] = is_new_pair & ~is_new_text
        return marks


class OneTranslation(_Consistency):
    """A source has one translation."""

    name = "translations"
    measures = "1 if an earlier pair translates the source differently"
    reason = "translated differently before"
    label = "another translation of the source"

    def score(self, pairs: Pairs) -> Float64[ndarray, " n"]:
        """Mark with 1 the pairs whose source has another translation in an earlier pair."""
        return self._translated_anew(pairs.sources, pairs.targets)


class OneSource(_Consistency):
    """A translation belongs to one source."""

    name = "sources"
    measures = "1 if an earlier pair has the same target for another source"
    reason = "same translation of another source"
    label = "another source of the translation"

    def score(self, pairs: Pairs) -> Float64[ndarray, " n"]:
        """Mark with 1 the pairs whose target translates another source in an earlier pair."""
        return self._translated_anew(pairs.targets, pairs.sources)
