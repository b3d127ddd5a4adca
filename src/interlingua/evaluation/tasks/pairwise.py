"""What tasks of cosine retrieval between many languages share, in both directions of a pair."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from jaxtyping import Int64
from numpy import ndarray

from interlingua.corpus.evaluation_sets import read_aligned, read_lines
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import content_sha256, full_code
from interlingua.evaluation.examples import PER_SUBSET, cosine_of, wrong_neighbors
from interlingua.evaluation.metrics.retrieval import is_right, nearest_both_ways
from interlingua.evaluation.scores import Items, SubsetScores
from interlingua.evaluation.task import Findings, LanguageTask, TextCounter
from interlingua.runtime import Progress


@dataclass(frozen=True, kw_only=True)
class PairwiseSearch(LanguageTask):
    """Cosine retrieval between line-aligned languages; each is embedded once.

    Attributes:
        languages: which to score; see the task.
        examples: wrong neighbors kept next to the result, per language pair; 0 for none.
    """

    main_metric: ClassVar[str] = "accuracy"

    examples: int = field(default=PER_SUBSET, metadata={"output": True})

    def run(self, encoder: CachedEncoder, folder: Path, progress: Progress) -> Findings:
        """See ``Task.run``."""
        files = self.files(folder)
        pairs = self.pairs(files, folder)
        present = _languages_of(pairs)
        texts = {code: read_lines(files[code]) for code in present}
        # complains of unequal lengths
        for code in present[1:]:
            read_aligned([files[code], files[present[0]]])
        found = Findings(folder=folder)
        found.digests = {code: content_sha256([lines]) for code, lines in texts.items()}
        sentences = len(texts[present[0]])
        counter = TextCounter(progress, len(pairs) * sentences)
        for first, second in pairs:
            x = encoder.encode(texts[first], language=full_code(first))
            y = encoder.encode(texts[second], language=full_code(second))
            # one matrix of similarities serves both directions
            to_second, to_first = nearest_both_ways(x, y)
            for source, target, nearest, score in (
                (first, second, to_second, cosine_of(x, y)),
                (second, first, to_first, cosine_of(y, x)),
            ):
                name = f"{source}-{target}"
                languages = (full_code(source), full_code(target))
                scores, found.items[name] = self.scores_of(nearest)
                subset = SubsetScores(
                    name=name, languages=languages, pairs=len(nearest), scores=scores
                )
                found.subsets.append(subset)
                found.examples[name] = wrong_neighbors(
                    is_right(nearest),
                    nearest,
                    texts[source],
                    texts[target],
                    score,
                    languages=languages,
                    limit=self.examples,
                )
            counter(f"{first}-{second}", sentences)
        return found

    def embed(self, encoder: CachedEncoder, data: Path) -> None:
        """See ``LanguageTask.embed``."""
        folder = self.find(data)
        files = self.files(folder)
        for code in self.embedded(files, folder):
            encoder.encode(read_lines(files[code]), language=full_code(code))

    def embedded(self, files: Mapping[str, Path], folder: Path) -> list[str]:
        """The languages to embed."""
        return _languages_of(self.pairs(files, folder))

    @abc.abstractmethod
    def files(self, folder: Path) -> dict[str, Path]:
        """The files by language; nothing in a folder of another layout."""

    @abc.abstractmethod
    def pairs(self, files: Mapping[str, Path], folder: Path) -> list[tuple[str, str]]:
        """Unordered pairs of languages, to be scored in both directions.

        Raises:
            DataError: something wanted is not here, or there is no pair.
        """

    def scores_of(self, nearest: Int64[ndarray, " n"]) -> tuple[dict[str, float], Items]:
        """The scores of one direction, and what the main one is the mean of."""
        right = is_right(nearest)
        return {"accuracy": float(right.mean())}, Items(right.astype(float))

    def fingerprint(self, found: Findings) -> str:
        """SHA-256 of the pairs and of the languages' texts."""
        # the pairs too: the same languages may be paired in other ways
        names = [subset.name for subset in found.subsets]
        return content_sha256([names, list(found.digests), list(found.digests.values())])


def _languages_of(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return sorted({code for pair in pairs for code in pair})
