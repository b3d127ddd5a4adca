"""What xsim and its kin share: the best neighbour by margin among the sentences of the other language."""

from __future__ import annotations

import abc
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from interlingua.corpus.augmented_sets import MISALIGNED, Altered
from interlingua.corpus.evaluation_sets import (
    PairFile,
    aligned_files,
    one_each,
    read_aligned,
    read_pair_file,
)
from interlingua.errors import ConfigError, DataError
from interlingua.evaluation.examples import PER_SUBSET, wrong_neighbours
from interlingua.evaluation.metrics.retrieval import is_right
from interlingua.evaluation.metrics.xsim import kinds_of_errors, xsim_search
from interlingua.evaluation.task import Embeds, Example, Items, Progress, SubsetScores, TaskResult, options, silent
from interlingua.evaluation.tasks.folders import (
    choose_languages,
    content_sha256,
    find_folder,
    full_code,
    pair_files_by_key,
    recognise,
)
from interlingua.evaluation.tasks.groups import group_members, grouped

ENGLISH = "eng_Latn"


class TranslationPair(NamedTuple):
    """Where the sentences of a language and their translations are."""

    name: str
    source: str
    target: str
    file: PairFile | tuple[Path, Path]
    turned: bool = False
    """The file's second side is the source."""

    def read(self) -> tuple[list[str], list[str]]:
        """Sources and targets, line by line."""
        first, second = read_pair_file(self.file) if isinstance(self.file, PairFile) else read_aligned(self.file)
        return (second, first) if self.turned else (first, second)


@dataclass(frozen=True, kw_only=True, slots=True)
class MarginSearch(abc.ABC):
    """The share of sentences for which the best-scored neighbor is not their translation, LASER's ``xsim.py``.

    All three margins are computed from one search: ratio, which is the main metric, ``..._distance`` and
    ``..._absolute``. A group has the mean over its languages and, as ``..._pooled``, the share over all its sentences,
    LASER's average.

    Attributes:
        languages: languages, pairs or groups of them to score; all that have a file by default.
        compare: ``index`` counts only the sentence's own translation as right, ``text`` also a candidate of the
            same text (what LASER's ``eval.py`` does).
        k: neighbours scored, and averaged over in the margin.
        examples: wrong neighbors kept next to the result, per language pair; 0 for none.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    main_metric: ClassVar[str]
    folders: ClassVar[Sequence[str]]
    expected: ClassVar[str]
    dataset: ClassVar[str | None] = None
    paper_groups: ClassVar[Mapping[str, Sequence[str]]] = {}

    languages: Sequence[str] | None = None
    compare: Literal["index", "text"] = "index"
    k: int = 4
    examples: int = field(default=PER_SUBSET, metadata={"output": True})

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ConfigError(f"k must be 1 or more, got {self.k}")

    def evaluate(self, encoder: Embeds, data: Path, *, progress: Progress = silent) -> TaskResult:
        """See ``Task.evaluate``."""
        start = time.perf_counter()
        folder = find_folder(data, self.folders, self.files, self.expected)
        pairs = self.files(folder)
        chosen = self.chosen(pairs, folder)
        digests: dict[str, str] = {}
        pools: dict[str, list[Altered]] = {}
        subsets = []
        items = {}
        examples = {}
        for number, code in enumerate(chosen, 1):
            sources, targets = pairs[code].read()
            digests[code] = content_sha256([sources, targets])
            pool = content_sha256([[pairs[code].target], targets])
            if pool not in pools:
                pools[pool] = self.altered(folder, pairs[code].target, targets)
            name = pairs[code].name
            found = self._score(encoder, pairs[code], sources, targets, pools[pool])
            scores, items[name], examples[name] = found
            subsets.append(scores)
            progress(name, number * len(sources), len(chosen) * len(sources))
        revision = None if self.dataset is None else recognise(self.dataset, digests)
        added = [content_sha256(zip(*pool, strict=True)) for pool in pools.values() if pool]
        altered = [one for pool in pools.values() for one in pool]
        of_protocol = self.is_protocol(revision, subsets, altered)
        return TaskResult(
            task=self.name if of_protocol else f"{self.name}_{folder.resolve().name}",
            version=self.version,
            main_metric=self.main_metric,
            higher_is_better=False,
            dataset=folder.resolve().name,
            data_sha256=content_sha256([list(digests), list(digests.values()), *([added] if added else [])]),
            data_revision=None if altered else revision,
            subsets=tuple(subsets),
            seconds=time.perf_counter() - start,
            items=items,
            examples=examples,
            notes=self.notes(altered),
            **grouped(group_members(subsets, self.paper_groups if of_protocol else {}), pooled=self.margins()),
            **options(self),
        )

    def parts(self, data: Path) -> list[str]:
        """See ``Task.parts``."""
        folder = find_folder(data, self.folders, self.files, self.expected)
        return self.chosen(self.files(folder), folder)

    @abc.abstractmethod
    def files(self, folder: Path) -> dict[str, TranslationPair]:
        """Source language, as the files spell it -> where the pair is; nothing in a folder of another layout."""

    def chosen(self, pairs: Mapping[str, TranslationPair], folder: Path) -> list[str]:
        """The keys of the pairs to score.

        Raises:
            DataError: something wanted is not here.
        """
        languages = {key: pair.source for key, pair in pairs.items()}
        names = {key: pair.name for key, pair in pairs.items()}
        pivots = {pair.target for pair in pairs.values()}
        return choose_languages(self.languages, languages, self.paper_groups, folder, names=names, pivots=pivots)

    def altered(self, folder: Path, language: str, targets: Sequence[str]) -> list[Altered]:
        """Further candidates, all of them wrong; none by default."""
        return []

    def margins(self) -> tuple[str, str, str]:
        """The metrics of the ratio, distance and absolute margins."""
        return self.main_metric, f"{self.main_metric}_distance", f"{self.main_metric}_absolute"

    def kinds_in(self, altered: Sequence[Altered]) -> list[str]:
        """The kinds of further candidates that errors are counted by."""
        return sorted({one.kind for one in altered})

    def is_protocol(self, revision: str | None, subsets: Sequence[SubsetScores], altered: Sequence[Altered]) -> bool:
        """Whether these are the protocol's own data, which alone stand under its name."""
        return revision is not None

    def notes(self, altered: Sequence[Altered]) -> tuple[str, ...]:
        """What a reader of the numbers must know."""
        if not altered:
            return ()
        counts = Counter(one.kind for one in altered)
        return (
            f"altered sentences among the candidates: {', '.join(f'{n:,} {k}' for k, n in sorted(counts.items()))}",
        )

    def _score(
        self,
        encoder: Embeds,
        pair: TranslationPair,
        sources: list[str],
        targets: list[str],
        altered: Sequence[Altered],
    ) -> tuple[SubsetScores, Items, tuple[Example, ...]]:
        candidates = [*targets, *(one.text for one in altered)]
        y = encoder.encode(candidates, language=pair.target)
        x = encoder.encode(sources, language=pair.source)
        search = xsim_search(x, y, k=self.k)
        predictions = search.predictions
        texts = candidates if self.compare == "text" else None
        wrong = {margin: ~is_right(predicted, texts) for margin, predicted in predictions.items()}
        rates = (float(wrong[margin].mean()) for margin in ("ratio", "distance", "absolute"))
        scores = dict(zip(self.margins(), rates, strict=True))
        if altered:
            errors = Counter(kinds_of_errors(predictions["ratio"], wrong["ratio"], targets, altered))
            for kind in (*self.kinds_in(altered), MISALIGNED):
                scores[f"errors_{_slug(kind)}"] = errors[kind] / len(sources)
        subset = SubsetScores(name=pair.name, languages=(pair.source, pair.target), pairs=len(sources), scores=scores)
        neighbours = wrong_neighbours(
            ~wrong["ratio"],
            predictions["ratio"],
            sources,
            candidates,
            search.ratio,
            languages=(pair.source, pair.target),
            limit=self.examples,
            measure="margin (ratio)",
        )
        return subset, Items(wrong["ratio"].astype(np.float64)), neighbours


def _slug(kind: str) -> str:
    return re.sub(r"\W+", "_", kind.strip().lower())


def translation_pairs(folder: Path, target: str | None = None) -> dict[str, TranslationPair]:
    """The pairs of a folder by source language, as its files spell it.

    Args:
        folder: of line-aligned ``<lang>.txt`` files or of ``<a>-<b>.tsv`` pairs.
        target: the language to retrieve; by default English of aligned files, the second one of pairs.

    Raises:
        DataError: the folder has aligned files, but none in the target language, or two in one language; or two files
            are of one pair.
    """
    wanted = None if target is None else full_code(target)
    if files := aligned_files(folder):
        one_each((full_code(code), path) for code, path in files.items())
        codes = {full_code(code): code for code in files}
        wanted = wanted or ENGLISH
        if wanted not in codes:
            raise DataError(f"{wanted}.txt is missing, the language to retrieve", path=folder)
        last = files.pop(codes[wanted])
        return {
            code: TranslationPair(f"{code}-{codes[wanted]}", full_code(code), wanted, (path, last))
            for code, path in files.items()
        }
    found = {}
    for file in pair_files_by_key(folder).values():
        first = full_code(file.source_language)
        second = full_code(file.target_language)
        if wanted in (None, second):
            found[file.name.removesuffix("-eng")] = TranslationPair(file.name, first, second, file)
        elif wanted == first:
            name = f"{file.target_language}-{file.source_language}"
            found[name.removesuffix("-eng")] = TranslationPair(name, second, first, file, turned=True)
    return found
