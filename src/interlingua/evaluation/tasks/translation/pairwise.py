"""The base class of cosine retrieval between many languages, in both directions of a pair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, NamedTuple

from jaxtyping import Bool, Float32, Int64
from numpy import ndarray

from interlingua.corpus.formats.evaluation_sets import read_aligned, read_evaluation_lines
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import content_sha256, full_code
from interlingua.evaluation.examples import PER_SUBSET, cosine_of, wrong_neighbors
from interlingua.evaluation.metrics.retrieval import is_right, nearest_both_ways
from interlingua.evaluation.scores import Example, Items
from interlingua.evaluation.task import Findings, LanguageTask, Scored
from interlingua.runtime.progress import Progress


class Embedded(NamedTuple):
    """The sentences of one language with their vectors."""

    language: str
    texts: Sequence[str]
    vectors: Float32[ndarray, "n d"]

    @classmethod
    def by(cls, encoder: CachedEncoder, language: str, texts: Sequence[str]) -> Embedded:
        """Embed the sentences of a language."""
        return cls(language, texts, encoder.encode(texts, language=language))


class SearchDirection(NamedTuple):
    """The results of a search from one language to another.

    Attributes:
        languages: of the queries and of the candidates.
        nearest: the row of each query's nearest candidate.
        right: whether it is the query's translation.
        examples: a sample of the wrong ones.
    """

    languages: tuple[str, str]
    nearest: Int64[ndarray, " n"]
    right: Bool[ndarray, " n"]
    examples: tuple[Example, ...]


def both_directions(
    first: Embedded, second: Embedded, *, limit: int, compare: str = "index"
) -> tuple[SearchDirection, SearchDirection]:
    """Search for the translations of each side in the other side, by cosine.

    Args:
        first: sentences.
        second: their translations, row by row.
        limit: wrong neighbors to keep per direction.
        compare: with ``text`` a candidate of the same text as the translation is right too.
    """
    # one matrix of similarities serves both directions
    to_second, to_first = nearest_both_ways(first.vectors, second.vectors)

    def direction(
        source: Embedded, target: Embedded, nearest: Int64[ndarray, " n"]
    ) -> SearchDirection:
        languages = (source.language, target.language)
        right = is_right(nearest, target.texts if compare == "text" else None)
        examples = wrong_neighbors(
            right,
            nearest,
            source.texts,
            target.texts,
            cosine_of(source.vectors, target.vectors),
            languages=languages,
            limit=limit,
        )
        return SearchDirection(languages, nearest, right, examples)

    return direction(first, second, to_second), direction(second, first, to_first)


@dataclass(frozen=True, kw_only=True)
class PairwiseSearch(LanguageTask):
    """Cosine retrieval between line-aligned languages; each is embedded once.

    ``files`` gives the file of each language.

    Attributes:
        languages: which to score; see the task.
        examples: wrong neighbors kept next to the result, per language pair; 0 for none.
    """

    main_metric: ClassVar[str] = "accuracy"

    examples: int = field(default=PER_SUBSET, metadata={"output": True})

    def run(self, encoder: CachedEncoder, folder: Path, progress: Progress) -> Findings:
        """Read and embed all languages, and search each pair in both directions."""
        files = self.files(folder)
        pairs = self.pairs(files, folder)
        present = _languages_of(pairs)
        texts = {code: read_evaluation_lines(files[code]) for code in present}
        # raises an error if lengths are unequal
        for code in present[1:]:
            read_aligned([files[code], files[present[0]]])
        found = Findings(folder=folder)
        found.digests = {code: content_sha256([lines]) for code, lines in texts.items()}
        sentences = len(texts[present[0]])
        progress.start(len(pairs) * sentences, "sentences", self.name)
        for first, second in pairs:
            progress.note(f"{first}-{second}")
            x = Embedded.by(encoder, full_code(first), texts[first])
            y = Embedded.by(encoder, full_code(second), texts[second])
            forward, backward = both_directions(x, y, limit=self.examples)
            for name, direction in (
                (f"{first}-{second}", forward),
                (f"{second}-{first}", backward),
            ):
                scores, items = self.scores_of(direction.nearest)
                scored = Scored(scores, items, direction.examples)
                found.add_scores(name, direction.languages, sentences, scored)
            progress.advance(sentences)
        return found

    def embed(self, encoder: CachedEncoder, data: Path) -> None:
        """Embed the texts of all languages that occur in a pair."""
        folder = self.find(data)
        files = self.files(folder)
        for code in self.embedded(files, folder):
            encoder.encode(read_evaluation_lines(files[code]), language=full_code(code))

    def embedded(self, files: Mapping[str, Path], folder: Path) -> list[str]:
        """Return the languages to embed."""
        return _languages_of(self.pairs(files, folder))

    def pairs(self, files: Mapping[str, Path], folder: Path) -> list[tuple[str, str]]:
        """Return unordered pairs of languages, to be scored in both directions.

        Raises:
            DataError: a requested language is missing, or there is no pair.
        """
        raise NotImplementedError

    def scores_of(self, nearest: Int64[ndarray, " n"]) -> tuple[dict[str, float], Items]:
        """Compute the scores of one direction, and the items that the main score averages."""
        right = is_right(nearest)
        return {"accuracy": float(right.mean())}, Items(right.astype(float))

    def fingerprint(self, found: Findings) -> str:
        """Return the SHA-256 of the pairs and of the languages' texts."""
        # the pairs too: the same languages may be paired in other ways
        names = [subset.name for subset in found.subsets]
        return content_sha256([names, list(found.digests), list(found.digests.values())])


def _languages_of(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return sorted({code for pair in pairs for code in pair})
