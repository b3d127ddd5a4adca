"""What the tasks share that retrieve by cosine between many languages, in both directions of every pair."""

from __future__ import annotations

import abc
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from jaxtyping import Int64
from numpy import ndarray

from interlingua.corpus.evaluation_sets import read_aligned, read_lines
from interlingua.evaluation.examples import PER_SUBSET, cosine_of, wrong_neighbours
from interlingua.evaluation.metrics.retrieval import is_right, nearest_both_ways
from interlingua.evaluation.task import Embeds, Items, Progress, SubsetScores, TaskResult, options, silent
from interlingua.evaluation.tasks.folders import content_sha256, find_folder, full_code, recognise
from interlingua.evaluation.tasks.groups import grouped


@dataclass(frozen=True, kw_only=True, slots=True)
class PairwiseSearch(abc.ABC):
    """Cosine retrieval between line-aligned languages; each is embedded once.

    Attributes:
        languages: which to score; see the task.
        examples: wrong neighbors kept next to the result, per language pair; 0 for none.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    main_metric: ClassVar[str] = "accuracy"
    folders: ClassVar[Sequence[str]]
    expected: ClassVar[str]
    dataset: ClassVar[str | None] = None

    languages: Sequence[str] | None = None
    examples: int = field(default=PER_SUBSET, metadata={"output": True})

    def evaluate(self, encoder: Embeds, data: Path, *, progress: Progress = silent) -> TaskResult:
        """See ``Task.evaluate``."""
        start = time.perf_counter()
        folder = find_folder(data, self.folders, self.files, self.expected)
        files = self.files(folder)
        pairs = self.pairs(files, folder)
        present = PairwiseSearch.spoken(self, files, folder)
        texts = {code: read_lines(files[code]) for code in present}
        for code in present[1:]:
            read_aligned([files[code], files[present[0]]])  # complains of unequal lengths
        digests = {code: content_sha256([lines]) for code, lines in texts.items()}
        subsets = {}
        items = {}
        examples = {}
        for done, (first, second) in enumerate(pairs, 1):
            x, y = (encoder.encode(texts[code], language=full_code(code)) for code in (first, second))
            to_second, to_first = nearest_both_ways(x, y)
            for source, target, nearest, score in (
                (first, second, to_second, cosine_of(x, y)),
                (second, first, to_first, cosine_of(y, x)),
            ):
                name = f"{source}-{target}"
                languages = (full_code(source), full_code(target))
                scores, items[name] = self.score(nearest)
                subsets[name] = SubsetScores(name=name, languages=languages, pairs=len(nearest), scores=scores)
                how = (is_right(nearest), nearest, texts[source], texts[target], score)
                examples[name] = wrong_neighbours(*how, languages=languages, limit=self.examples)
            progress(f"{first}-{second}", done * len(x), len(pairs) * len(x))
        revision = None if self.dataset is None else recognise(self.dataset, digests)
        of_protocol = self.is_protocol(revision, subsets)
        return TaskResult(
            task=self.name if of_protocol else f"{self.name}_{folder.resolve().name}",
            version=self.version,
            main_metric=self.main_metric,
            higher_is_better=True,
            dataset=folder.resolve().name,
            data_sha256=content_sha256([list(subsets), list(digests), list(digests.values())]),
            data_revision=revision,
            subsets=tuple(subsets.values()),
            items=items,
            examples=examples,
            seconds=time.perf_counter() - start,
            **grouped(self.members(subsets, of_protocol)),
            **options(self),
        )

    def embed(self, encoder: Embeds, data: Path) -> None:
        """See ``evaluation.parts``."""
        folder = find_folder(data, self.folders, self.files, self.expected)
        files = self.files(folder)
        for code in self.spoken(files, folder):
            encoder.encode(read_lines(files[code]), language=full_code(code))

    def spoken(self, files: Mapping[str, Path], folder: Path) -> list[str]:
        """The languages to embed."""
        return sorted({code for pair in self.pairs(files, folder) for code in pair})

    @abc.abstractmethod
    def parts(self, data: Path) -> list[str]:
        """See ``Task``."""

    @abc.abstractmethod
    def files(self, folder: Path) -> dict[str, Path]:
        """The files by language; nothing in a folder of another layout."""

    @abc.abstractmethod
    def pairs(self, files: Mapping[str, Path], folder: Path) -> list[tuple[str, str]]:
        """Unordered pairs of languages, to be scored in both directions.

        Raises:
            DataError: something wanted is not here, or there is no pair.
        """

    def score(self, nearest: Int64[ndarray, " n"]) -> tuple[dict[str, float], Items]:
        """The scores of one direction, and what the main one is the mean of."""
        right = is_right(nearest)
        return {"accuracy": float(right.mean())}, Items(right.astype(float))

    def is_protocol(self, revision: str | None, subsets: Mapping[str, SubsetScores]) -> bool:
        """Whether these are the protocol's own data, which alone stand under its name."""
        return revision is not None

    def members(self, subsets: Mapping[str, SubsetScores], of_protocol: bool) -> dict[str, list[SubsetScores]]:
        """The groups, under names that carry their counts in pairs."""
        return {f"all_{len(subsets)}": list(subsets.values())}


def present_members(
    subsets: Mapping[str, SubsetScores], groups: Mapping[str, Sequence[str]]
) -> dict[str, list[SubsetScores]]:
    """Of each group of pairs, by name, those that were scored: ``muse_182of182``."""
    found = {}
    for name, pairs in groups.items():
        present = [subsets[pair] for pair in pairs if pair in subsets]
        if present:
            found[f"{name}_{len(present)}of{len(pairs)}"] = present
    return found
