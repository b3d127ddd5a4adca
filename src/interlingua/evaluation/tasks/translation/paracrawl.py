"""ParaCrawl retrieval, EMS (Mao et al. 2023), Table X: the translation among 200,000 candidates."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from interlingua.config import AtLeast
from interlingua.config.languages import find_code
from interlingua.corpus.formats.bitext import (
    FORMAT_OF_SUFFIX,
    languages_from_name,
    read_pairs,
    uncompressed_name,
)
from interlingua.corpus.samples.reservoir import reservoir
from interlingua.errors import ConfigError, DataError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import ENGLISH, full_code
from interlingua.evaluation.examples import PER_SUBSET, cosine_of, wrong_neighbors
from interlingua.evaluation.metrics.retrieval import is_right
from interlingua.evaluation.scores import Items, SubsetScores
from interlingua.evaluation.streams import stream_vectors
from interlingua.evaluation.task import Findings, Scored, StreamedTask, Unit
from interlingua.mining.candidates import best_both_ways
from interlingua.retrieval.topk.exact import exact_topk
from interlingua.storage.files import files_in

EnglishDirection = Literal["en-x", "x-en"]
LANGUAGES = "bg cs da de el es et fi fr hr hu it lt lv nl pl pt ro sk sl sv"
"""The 21 languages of the paper's table."""


class _Sample(NamedTuple):
    """Sentence pairs of a language with English; the first ones are the queries."""

    queries: list[str]
    candidates: list[str]
    repeated: int


@dataclass(frozen=True, kw_only=True)
class ParaCrawlRetrieval(StreamedTask):
    """P@1 of 2,000 sentences among 200,000 candidates, their translations among them.

    Only the k nearest candidates of a query are scored, by the ratio margin. A candidate's mean is
    taken over its k nearest queries. The paper specifies neither the direction nor the sentences.
    Here English is the query side by default, and queries and candidates are drawn at random from
    all pairs of the files, in one pass that holds only the sample in memory. Of pairs that share a
    text, only the first is kept. ``accuracy_cosine`` is the same without a margin.

    The folder contains bitexts of any format with both languages in their names, one of them
    English (``en-de.txt.gz``, ``de-en.tmx``, ``ParaCrawl.de-en.de`` next to
    ``ParaCrawl.de-en.en``). If the folder is not named after ParaCrawl, its name is appended to the
    task's.

    Attributes:
        languages: languages to score; all by default.
        queries: number of queries.
        candidates: sentences to choose from; fewer if the files have fewer pairs.
        direction: with en-x, queries are in English; with x-en, in the other language.
        k: number of neighbors that are scored, and over which the margin averages.
        seed: of the draw.
        examples: wrong neighbors kept next to the result, per language; 0 for none.
    """

    name: ClassVar[str] = "paracrawl_retrieval"
    main_metric: ClassVar[str] = "accuracy"
    folders: ClassVar[Sequence[str]] = ("paracrawl", "ParaCrawl")
    expected: ClassVar[str] = (
        "bitexts with English, named after their languages (en-de.txt.gz, de-en.tmx)"
    )

    queries: Annotated[int, AtLeast(1)] = 2_000
    candidates: int = 200_000
    direction: EnglishDirection = "en-x"
    k: Annotated[int, AtLeast(1)] = 4
    seed: int = 1
    examples: int = field(default=PER_SUBSET, metadata={"output": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.queries > self.candidates:
            raise ConfigError(
                f"queries: expected at most the number of candidates, {self.candidates}, found"
                f" {self.queries}"
            )

    def unit(self, key: str, file: Sequence[Path], folder: Path) -> Unit[_Sample]:
        """Read a language."""
        sample = self._sample(file, key)
        languages = (ENGLISH, key)
        if self.direction == "x-en":
            languages = (key, ENGLISH)
        return Unit(
            name="-".join(languages),
            languages=languages,
            pairs=len(sample.queries),
            data=sample,
            contents=(sample.queries, sample.candidates),
            sentences=len(sample.queries) + len(sample.candidates),
        )

    def files(self, folder: Path) -> dict[str, list[Path]]:
        """Return the bitexts with English in a folder, by the code of the other language."""
        found: dict[str, list[Path]] = {}
        for path in files_in(folder):
            languages = languages_from_name(path)
            if languages is None or ENGLISH not in languages or languages[0] == languages[1]:
                continue
            suffix = Path(uncompressed_name(path)).suffix
            first, second = languages
            other = second if first == ENGLISH else first
            # of Moses' two files, de-en.de and de-en.en, the one that is not English represents
            # both
            is_side = find_code(suffix.removeprefix(".")) == other
            if is_side or suffix.lower() in FORMAT_OF_SUFFIX:
                found.setdefault(other, []).append(path)
        return found

    def _sample(self, files: Sequence[Path], code: str) -> _Sample:
        drawn = reservoir(_english_first(files, code), self.candidates, seed=self.seed)
        if not drawn:
            raise DataError(
                "the file contains no pairs of two texts; check the file and its format",
                path=files[0],
            )
        # texts of pairs that were left out count as seen too
        seen_english: set[str] = set()
        seen_other: set[str] = set()
        pairs = []
        for english, other in drawn:
            if english not in seen_english and other not in seen_other:
                pairs.append((english, other))
            seen_english.add(english)
            seen_other.add(other)
        random.Random(self.seed).shuffle(pairs)
        # query i and candidate i are a pair
        queries = [english for english, _ in pairs]
        candidates = [other for _, other in pairs]
        if self.direction == "x-en":
            queries, candidates = candidates, queries
        return _Sample(queries[: self.queries], candidates, len(drawn) - len(pairs))

    def score(self, encoder: CachedEncoder, unit: Unit[_Sample]) -> Scored:
        """Search for the translation of each query by margin and by cosine."""
        sample = unit.data
        source, target = unit.languages
        # unit vectors on disk: 200,000 of width 1,024 take 0.8 GB
        encode_source = functools.partial(encoder.encode, language=source)
        encode_target = functools.partial(encoder.encode, language=target)
        x = stream_vectors(encode_source, sample.queries, normalize=True)
        y = stream_vectors(encode_target, sample.candidates, normalize=True)
        by_margin, _ = best_both_ways(x, y, k=self.k)
        right = is_right(by_margin.y)
        nearest = exact_topk(x, y, k=1)
        by_cosine = is_right(nearest.indices[:, 0].numpy())
        scores = {"accuracy": float(right.mean()), "accuracy_cosine": float(by_cosine.mean())}
        wrong = wrong_neighbors(
            right,
            by_margin.y,
            sample.queries,
            sample.candidates,
            cosine_of(x, y),
            languages=unit.languages,
            limit=self.examples,
        )
        return Scored(scores, Items(right.astype(np.float64)), wrong, self._notes(sample))

    def _notes(self, sample: _Sample) -> list[str]:
        found = len(sample.candidates)
        if found >= self.candidates:
            return []
        return [
            f"{found:,} candidates instead of {self.candidates:,}; {sample.repeated:,} pairs were"
            " skipped because they repeat a text"
        ]

    def is_protocol(self, found: Findings) -> bool:
        """Return whether the data are the protocol's, by the folder's name."""
        return "paracrawl" in found.folder.resolve().name.lower()

    def paper_members(self, found: Findings) -> Mapping[str, Sequence[SubsetScores]]:
        """Return the paper's languages, if the data are the paper's."""
        paper = {full_code(code) for code in LANGUAGES.split()}
        present = [subset for subset in found.subsets if paper.intersection(subset.languages)]
        if not present or not self.is_protocol(found):
            return {}
        return {f"paracrawl_{len(present)}of{len(paper)}": present}


def _english_first(files: Sequence[Path], code: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of English and the other language whose two texts are not empty."""
    for path in files:
        for pair in read_pairs(path):
            if pair.source_language != ENGLISH:
                pair = pair.swapped()
            english = pair.source.strip()
            other = pair.target.strip()
            # a TMX file may hold other languages too
            is_of_code = (pair.source_language, pair.target_language) == (ENGLISH, code)
            if english and other and is_of_code:
                yield english, other
