"""ParaCrawl retrieval: the translation among up to 200,000 candidates by margin, EMS (Mao et al.
2023), Table X.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np

from interlingua.corpus.formats import (
    FORMAT_OF_SUFFIX,
    languages_from_name,
    read_pairs,
    uncompressed_name,
)
from interlingua.corpus.reservoir import reservoir
from interlingua.errors import ConfigError, DataError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import full_code
from interlingua.evaluation.examples import PER_SUBSET, cosine_of, wrong_neighbors
from interlingua.evaluation.metrics.retrieval import is_right
from interlingua.evaluation.scores import Items, SubsetScores
from interlingua.evaluation.streams import stream_vectors
from interlingua.evaluation.task import Findings, Scored, StreamedTask, Unit
from interlingua.mining.candidates import best_both_ways
from interlingua.registry import check_choice
from interlingua.search.topk.exact import exact_topk, search_device

ENGLISH = "eng_Latn"
Direction = Literal["en-x", "x-en"]
LANGUAGES = "bg cs da de el es et fi fr hr hu it lt lv nl pl pt ro sk sl sv"
"""The 21 of the paper's table."""


class _Sample(NamedTuple):
    """Sentence pairs of a language with English; the first ones are the queries."""

    queries: list[str]
    candidates: list[str]
    repeated: int


@dataclass(frozen=True, kw_only=True)
class ParaCrawlRetrieval(StreamedTask):
    """P@1 of 2,000 sentences among 200,000 candidates, their translations among them.

    Only the k nearest candidates of a query are scored, by the ratio margin; a candidate's mean is
    taken over its k nearest queries. The paper does not say in which direction it asks, nor which
    sentences: here English asks, and both are drawn at random from all pairs of the files, in one
    pass that holds no more than the sample. Of pairs with a text that an earlier one has too only
    the first is kept. ``accuracy_cosine`` is the same without a margin.

    The folder holds bitexts of any format with both languages in their names, of which one is
    English (``en-de.txt.gz``, ``de-en.tmx``, ``ParaCrawl.de-en.de`` next to
    ``ParaCrawl.de-en.en``). A folder that is not called after ParaCrawl puts its name behind the
    task's.

    Attributes:
        languages: languages to score; all by default.
        queries: number of queries.
        candidates: sentences to choose from; fewer where the files have fewer pairs.
        direction: en-x asks in English, x-en in the other language.
        k: neighbors scored, and averaged over in the margin.
        seed: of the draw.
        examples: wrong neighbors kept next to the result, per language; 0 for none.
    """

    name: ClassVar[str] = "paracrawl_retrieval"
    main_metric: ClassVar[str] = "accuracy"
    folders: ClassVar[Sequence[str]] = ("paracrawl", "ParaCrawl")
    expected: ClassVar[str] = (
        "bitexts with English named after their languages (en-de.txt.gz, de-en.tmx)"
    )

    queries: int = 2_000
    candidates: int = 200_000
    direction: Direction = "en-x"
    k: int = 4
    seed: int = 1
    examples: int = field(default=PER_SUBSET, metadata={"output": True})

    def __post_init__(self) -> None:
        check_choice("direction", self.direction, get_args(Direction))
        if not 1 <= self.queries <= self.candidates or self.k < 1:
            got = f"queries={self.queries}, candidates={self.candidates}, k={self.k}"
            raise ConfigError(
                f"expected 1 or more queries, no fewer candidates, and k of 1 or more; got {got}"
            )

    def units(self, folder: Path) -> Iterator[Unit[_Sample]]:
        """The languages."""
        files = self.files(folder)
        for code in self.chosen(files, folder):
            sample = self._sample(files[code], code)
            source, target = (ENGLISH, code) if self.direction == "en-x" else (code, ENGLISH)
            yield Unit(
                name=f"{source}-{target}",
                languages=(source, target),
                pairs=len(sample.queries),
                data=sample,
                contents=(sample.queries, sample.candidates),
                sentences=len(sample.queries) + len(sample.candidates),
            )

    def files(self, folder: Path) -> dict[str, list[Path]]:
        """The bitexts with English in a folder, by the code of the other language."""
        found: dict[str, list[Path]] = {}
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            languages = languages_from_name(path) if path.is_file() else None
            if languages is None or ENGLISH not in languages or languages[0] == languages[1]:
                continue
            suffix = Path(uncompressed_name(path)).suffix
            other = languages[languages[0] == ENGLISH]
            if suffix.lower() in FORMAT_OF_SUFFIX or _is_side(
                suffix, other
            ):  # of Moses' two files one stands for both
                found.setdefault(other, []).append(path)
        return found

    def _sample(self, files: Sequence[Path], code: str) -> _Sample:
        drawn = reservoir(_english_first(files, code), self.candidates, seed=self.seed)
        if not drawn:
            raise DataError(
                "no pair of two texts; the file is empty or of another form", path=files[0]
            )
        seen: tuple[set[str], set[str]] = set(), set()
        pairs = []
        for pair in drawn:
            if pair[0] not in seen[0] and pair[1] not in seen[1]:
                pairs.append(pair)
            for text, texts in zip(pair, seen, strict=True):
                texts.add(text)
        random.Random(self.seed).shuffle(pairs)
        query_side, found = (0, 1) if self.direction == "en-x" else (1, 0)
        queries = [pair[query_side] for pair in itertools.islice(pairs, self.queries)]
        return _Sample(queries, [pair[found] for pair in pairs], len(drawn) - len(pairs))

    def score(self, encoder: CachedEncoder, unit: Unit[_Sample]) -> Scored:
        """See ``Task.score``."""
        sample = unit.data
        source, target = unit.languages
        x, y = (
            stream_vectors(
                functools.partial(encoder.encode, language=language), texts, normalize=True
            )
            for texts, language in ((sample.queries, source), (sample.candidates, target))
        )
        by_margin, _ = best_both_ways(x, y, k=self.k)
        right = is_right(by_margin.y)
        by_cosine = is_right(
            exact_topk(x, y, k=1, device=search_device(len(x), len(y))).indices[:, 0].numpy()
        )
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
            f"{found:,} candidates instead of {self.candidates:,}, {sample.repeated:,} repeated a"
            " text"
        ]

    def is_protocol(self, found: Findings) -> bool:
        """By the name of the folder."""
        return "paracrawl" in found.folder.resolve().name.lower()

    def members(self, found: Findings) -> dict[str, Sequence[SubsetScores]]:
        """All languages, and those of the paper."""
        groups: dict[str, Sequence[SubsetScores]] = {f"all_{len(found.subsets)}": found.subsets}
        paper = {full_code(code) for code in LANGUAGES.split()}
        present = [subset for subset in found.subsets if paper.intersection(subset.languages)]
        if present and self.is_protocol(found):
            groups[f"paracrawl_{len(present)}of{len(paper)}"] = present
        return groups


def _english_first(files: Sequence[Path], code: str) -> Iterator[tuple[str, str]]:
    """The pairs of all files that are in these languages and have two texts."""
    for path in files:
        for pair in read_pairs(path):
            if pair.source_language != ENGLISH:
                pair = pair.swapped()
            english = pair.source.strip()
            other = pair.target.strip()
            if (
                english
                and other
                and (pair.source_language, pair.target_language) == (ENGLISH, code)
            ):
                yield english, other


def _is_side(suffix: str, code: str) -> bool:
    """Whether the suffix of a file is that language."""
    with contextlib.suppress(DataError):
        return full_code(suffix.removeprefix(".")) == code
    return False
