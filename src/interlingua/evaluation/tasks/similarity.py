"""What the similarity tasks share: cosines against people's judgements, correlations, intervals, groups."""

from __future__ import annotations

import abc
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float32, Float64
from numpy import ndarray

from interlingua.corpus.similarity_sets import ScoredPairs, SimilarityFile, read_scored_pairs
from interlingua.errors import ConfigError, DataError, LanguageAbsentError
from interlingua.evaluation.metrics.correlation import bootstrap_spearman, interval, pearson, spearman
from interlingua.evaluation.task import Embeds, Items, Progress, SubsetScores, TaskResult, mean_scores, options, silent
from interlingua.evaluation.tasks.folders import content_sha256, find_folder, full_code, language_pair, recognise

DECIMALS = 12
"""Cosines are rounded to so many, or equal pairs would be ranked by the last bit of a sum."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SimilarityTask(abc.ABC):
    """Spearman's and Pearson's correlations of cosines with judgments, fractions.

    ``spearman_low`` and ``spearman_high`` bound the 95 % bootstrap interval over the pairs; a group's interval is that
    of its mean, sets of one size being resampled together, as many repeat their pairs in other languages. If the size
    of a set is not the protocol's, the folder's name stands behind the task's, and there are no groups of papers.

    Attributes:
        languages: languages, or pairs of them (``en-ar``), to score; all sets of the protocol by default.
        resamples: bootstrap resamples; 0 leaves the intervals out.
        seed: of the bootstrap.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    main_metric: ClassVar[str] = "spearman"
    folders: ClassVar[Sequence[str]]
    expected: ClassVar[str]
    sizes: ClassVar[Mapping[str, int]] = {}
    paper_groups: ClassVar[Mapping[str, Sequence[str]]] = {}

    languages: Sequence[str] | None = None
    resamples: int = 1000
    seed: int = 1

    def __post_init__(self) -> None:
        if self.resamples < 0:
            raise ConfigError(f"resamples must be 0 or more, got {self.resamples}")

    def evaluate(self, encoder: Embeds, data: Path, *, progress: Progress = silent) -> TaskResult:
        """See ``Task.evaluate``."""
        start = time.perf_counter()
        folder = find_folder(data, self.folders, self.files, self.expected)
        chosen = self.chosen(self.files(folder), folder)
        sets = self.read(chosen, folder)
        for name, (_, pairs) in sets.items():
            if len(set(pairs.gold)) == 1:
                raise DataError(
                    f"{name}: all judgements are {pairs.gold[0]:g}, nothing can be ranked; is it the right column?",
                    path=folder,
                )
        total = sum(2 * len(pairs.gold) for _, pairs in sets.values())
        done = 0
        subsets = []
        items = {}
        draws = {}
        for name, (languages, pairs) in sets.items():
            similarities = cosines(
                encoder.encode(pairs.first, language=languages[0]), encoder.encode(pairs.second, language=languages[1])
            )
            items[name] = Items(similarities, np.array(pairs.gold))
            draws[name] = self._draws(items[name])
            subsets.append(_scores(name, languages, items[name], draws[name]))
            done += 2 * len(pairs.gold)
            progress(name, done, total)
        digests = {name: _digest(pairs) for name, (_, pairs) in sets.items()}
        of_protocol = all(len(pairs.gold) == self.size(name) for name, (_, pairs) in sets.items())
        members = self.members(subsets, of_protocol)
        return TaskResult(
            task=self.label() if of_protocol else f"{self.label()}_{folder.resolve().name}",
            version=self.version,
            main_metric=self.main_metric,
            higher_is_better=True,
            dataset=folder.resolve().name,
            data_sha256=content_sha256([list(digests), list(digests.values())]),
            data_revision=recognise(self.name, digests),
            subsets=tuple(subsets),
            groups={name: self.group(name, chosen, items, draws) for name, chosen in members.items()},
            members={name: tuple(subset.name for subset in chosen) for name, chosen in members.items()},
            notes=_notes(sets),
            items=items,
            seconds=time.perf_counter() - start,
            **options(self),
        )

    def parts(self, data: Path) -> list[str]:
        """See ``Task.parts``."""
        folder = find_folder(data, self.folders, self.files, self.expected)
        return list(self.chosen(self.files(folder), folder))

    def label(self) -> str:
        """What the result is called."""
        return self.name

    def size(self, name: str) -> int | None:
        """The protocol's number of pairs in a set; none where the set is not the protocol's."""
        return self.sizes.get(name)

    @abc.abstractmethod
    def files(self, folder: Path) -> dict[str, SimilarityFile]:
        """The sets in a folder by name."""

    def chosen(self, files: Mapping[str, SimilarityFile], folder: Path) -> dict[str, SimilarityFile]:
        """Those to score.

        Raises:
            LanguageAbsentError: something wanted is not here.
        """
        if self.languages is None:
            protocol = {name: file for name, file in files.items() if not self.sizes or name in self.sizes}
            return protocol or dict(files)
        names: set[str] = set()
        for item in self.languages:
            turned = "-".join(reversed(item.split("-")))
            found = [name for name in (item, turned) if name in files]
            found = found or [name for name, file in files.items() if name in self.sizes and _has(item, file)]
            if not found:
                raise LanguageAbsentError(
                    f"no set for {item!r} here; there are: {', '.join(files)}", item=item, path=folder
                )
            names |= set(found)
        return {name: file for name, file in files.items() if name in names}

    def read(self, files: Mapping[str, SimilarityFile], folder: Path) -> dict[str, tuple[tuple[str, str], ScoredPairs]]:
        """The sets' languages and contents."""
        return {
            name: ((full_code(file.languages[0]), full_code(file.languages[1])), read_scored_pairs(file))
            for name, file in files.items()
        }

    def members(self, subsets: Sequence[SubsetScores], of_protocol: bool) -> dict[str, list[SubsetScores]]:
        """The groups, under names that carry their counts."""
        by_name = {subset.name: subset for subset in subsets}
        found = {f"all_{len(subsets)}": list(subsets)}
        for group, names in self.paper_groups.items() if of_protocol else ():
            present = [by_name[name] for name in names if name in by_name]
            if present:
                found[f"{group}_{len(present)}of{len(names)}"] = present
        return found

    def group(
        self,
        name: str,
        subsets: Sequence[SubsetScores],
        items: Mapping[str, Items],
        draws: Mapping[str, Float64[ndarray, " r"]],
    ) -> dict[str, float]:
        """Means over a group's sets, with the interval of the mean."""
        means = mean_scores(subsets)
        if self.resamples:
            of_mean = np.mean([draws[subset.name] for subset in subsets], axis=0)
            means["spearman_low"], means["spearman_high"] = interval(of_mean)
        return means

    def _draws(self, items: Items) -> Float64[ndarray, " r"]:
        if not self.resamples or items.gold is None:
            return np.zeros(0)
        # by the size, so that rows that translate each other are drawn together and a set's interval is its own
        rng = np.random.default_rng([self.seed, len(items.gold)])
        return bootstrap_spearman(items.values, items.gold, resamples=self.resamples, rng=rng)


def _scores(name: str, languages: tuple[str, str], items: Items, draws: Float64[ndarray, " r"]) -> SubsetScores:
    assert items.gold is not None
    scores = {"spearman": spearman(items.values, items.gold), "pearson": pearson(items.values, items.gold)}
    if len(draws):
        scores["spearman_low"], scores["spearman_high"] = interval(draws)
    return SubsetScores(name=name, languages=languages, pairs=len(items.gold), scores=scores)


def cosines(x: Float32[ndarray, "n d"], y: Float32[ndarray, "n d"]) -> Float64[ndarray, " n"]:
    """The cosine of each pair of rows, rounded to ``DECIMALS``."""
    x = x.astype(np.float64)
    y = y.astype(np.float64)
    lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    return np.asarray(np.round((x * y).sum(axis=1) / np.maximum(lengths, 1e-24), DECIMALS))


def _has(item: str, file: SimilarityFile) -> bool:
    known = {full_code(code) for code in file.languages}
    codes = codes_of(item)
    return set(codes) == known if len(codes) == 2 else codes[0] in known


def codes_of(item: str) -> tuple[str, ...]:
    """``de`` or ``de-fr`` as full codes; ``zh-Hans`` and ``pt-BR`` are one language."""
    return language_pair(item) or (full_code(item),)


def _digest(pairs: ScoredPairs) -> str:
    return content_sha256([pairs.first, pairs.second, [f"{score:g}" for score in pairs.gold]])


def _notes(sets: Mapping[str, tuple[Any, ScoredPairs]]) -> tuple[str, ...]:
    return tuple(
        f"{name}: {pairs.unjudged} pairs without a judgement were left out"
        for name, (_, pairs) in sets.items()
        if pairs.unjudged
    )
