"""The base class of similarity tasks: cosines, correlations with judgments, intervals, groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from jaxtyping import Float32, Float64
from numpy import ndarray

from interlingua.config import AtLeast
from interlingua.errors import DataError, LanguageAbsentError, count_of
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import full_code, language_pair
from interlingua.evaluation.data.similarity import JudgedPairs, SimilarityFile, read_scored_pairs
from interlingua.evaluation.metrics.correlation import (
    bootstrap_spearman,
    interval,
    pearson,
    spearman,
)
from interlingua.evaluation.scores import Items, SubsetScores, mean_scores
from interlingua.evaluation.task import Findings, LanguageTask, Scored, Unit
from interlingua.evaluation.tasks.groups import present_members
from interlingua.storage.arrays import row_cosines

DECIMALS = 12
"""Decimals that cosines are rounded to; otherwise rounding errors would rank equal pairs."""


@dataclass(frozen=True, kw_only=True)
class SimilarityTask(LanguageTask):
    """Spearman's and Pearson's correlations of cosines with judgments, as fractions.

    ``spearman_low`` and ``spearman_high`` bound the 95 % bootstrap interval over the pairs. A
    group's interval is that of its mean. Sets of equal size are resampled together, because many of
    them have the same pairs in other languages. If the size of a set is not the protocol's, the
    folder's name is appended to the task's, and there are no groups of papers. ``files`` returns
    the sets by name.

    Attributes:
        languages: languages, or pairs of them (``en-ar``), to score; all sets of the protocol by
            default.
        resamples: bootstrap resamples; 0 leaves the intervals out.
        seed: of the bootstrap.
    """

    main_metric: ClassVar[str] = "spearman"
    sizes: ClassVar[Mapping[str, int]] = {}

    resamples: Annotated[int, AtLeast(0)] = field(default=1000, metadata={"adds": True})
    seed: int = field(default=1, metadata={"adds": True})

    def units(self, folder: Path) -> Iterable[Unit[JudgedPairs]]:
        """Yield the sets.

        Raises:
            DataError: all judgments of a set are the same.
        """
        files = self.wanted(self.files(folder), folder)
        for name, (languages, pairs) in self.read(files, folder).items():
            if len(set(pairs.gold)) == 1:
                raise DataError(
                    f"{name}: all judgments are {pairs.gold[0]:g}, so no ranking is possible;"
                    " check the column of the judgments",
                    path=folder,
                )
            yield Unit(
                name=name,
                languages=languages,
                pairs=len(pairs.gold),
                data=pairs,
                contents=(pairs.first, pairs.second, [f"{score:g}" for score in pairs.gold]),
                sentences=2 * len(pairs.gold),
            )

    def score(self, encoder: CachedEncoder, unit: Unit[JudgedPairs]) -> Scored:
        """Correlate the cosines of pairs with their judged similarities."""
        first = encoder.encode(unit.data.first, language=unit.languages[0])
        second = encoder.encode(unit.data.second, language=unit.languages[1])
        values = cosines(first, second)
        gold = np.array(unit.data.gold)
        scores = {"spearman": spearman(values, gold), "pearson": pearson(values, gold)}
        draws = None
        if self.resamples:
            # the seed depends on the size, so that rows that translate each other are drawn
            # together, and a set's interval does not depend on other sets
            rng = np.random.default_rng([self.seed, len(gold)])
            draws = bootstrap_spearman(values, gold, resamples=self.resamples, rng=rng)
            scores["spearman_low"], scores["spearman_high"] = interval(draws)
        notes = []
        if unit.data.unjudged:
            notes.append(f"skipped: {count_of(unit.data.unjudged, 'pairs')} without a judgment")
        return Scored(scores, Items(values, gold), notes=notes, repeats=draws)

    def is_protocol(self, found: Findings) -> bool:
        """Return whether the data are the protocol's, by the sizes of the sets."""
        return all(subset.pairs == self.size(subset.name) for subset in found.subsets)

    def size(self, name: str) -> int | None:
        """Return the protocol's number of pairs in a set; None for a set of other data."""
        return self.sizes.get(name)

    def chosen(self, files: Mapping[str, SimilarityFile], folder: Path) -> list[str]:
        """Return the names of the sets to score."""
        return list(self.wanted(files, folder))

    def wanted(
        self, files: Mapping[str, SimilarityFile], folder: Path
    ) -> dict[str, SimilarityFile]:
        """Return the sets to score.

        Raises:
            LanguageAbsentError: a requested set or language is missing.
        """
        if self.languages is None:
            protocol = {
                name: file for name, file in files.items() if not self.sizes or name in self.sizes
            }
            # other data than the protocol's are scored whole
            return protocol or dict(files)
        names: set[str] = set()
        for item in self.languages:
            # first look for a set with this name, with its languages in either order; if there is
            # none, the item is a language, and several sets may have it
            turned = "-".join(reversed(item.split("-")))
            found = [name for name in (item, turned) if name in files]
            if not found:
                of_protocol = {name: file for name, file in files.items() if name in self.sizes}
                found = [name for name, file in of_protocol.items() if _has(item, file)]
            if not found:
                raise LanguageAbsentError(
                    f"no set for {item!r}; use one of: {', '.join(files)}",
                    item=item,
                    path=folder,
                )
            names |= set(found)
        return {name: file for name, file in files.items() if name in names}

    def read(
        self, files: Mapping[str, SimilarityFile], folder: Path
    ) -> dict[str, tuple[tuple[str, str], JudgedPairs]]:
        """Read the sets' languages and contents."""
        sets = {}
        for name, file in files.items():
            first, second = map(full_code, file.languages)
            sets[name] = ((first, second), read_scored_pairs(file))
        return sets

    def paper_members(self, found: Findings) -> Mapping[str, Sequence[SubsetScores]]:
        """Return the sets that papers average over, if the data are the protocol's own."""
        if not self.is_protocol(found):
            return {}
        return present_members(found.subsets, self.paper_groups)

    def means(
        self, group: str, subsets: Sequence[SubsetScores], found: Findings
    ) -> dict[str, float]:
        """Compute means over a group's sets, with the interval of the mean."""
        means = mean_scores(subsets)
        if self.resamples:
            # the mean over sets within each resample, and then the interval: not the mean interval
            of_mean = np.mean([found.repeats[subset.name] for subset in subsets], axis=0)
            means["spearman_low"], means["spearman_high"] = interval(of_mean)
        return means


def cosines(x: Float32[ndarray, "n d"], y: Float32[ndarray, "n d"]) -> Float64[ndarray, " n"]:
    """Compute the cosine of each pair of rows, rounded to ``DECIMALS``."""
    return np.asarray(np.round(row_cosines(x, y), DECIMALS))


def _has(item: str, file: SimilarityFile) -> bool:
    """Return whether a set is of that pair of languages, or has that language on either side."""
    known = {full_code(code) for code in file.languages}
    codes = codes_of(item)
    if len(codes) == 2:
        return set(codes) == known
    return codes[0] in known


def codes_of(item: str) -> tuple[str, ...]:
    """Return ``de`` or ``de-fr`` as full codes; ``zh-Hans`` and ``pt-BR`` are one language."""
    return language_pair(item) or (full_code(item),)
