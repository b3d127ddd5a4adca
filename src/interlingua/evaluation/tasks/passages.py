"""What tasks of questions and passages share: passages embedded to disk, judgements, exact search 100 deep."""

from __future__ import annotations

import abc
import functools
import hashlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.corpus.retrieval_sets import Passage, RetrievalSet, Sets
from interlingua.errors import DataError
from interlingua.evaluation.examples import PER_SUBSET
from interlingua.evaluation.metrics.ranking import (
    Qrels,
    Run,
    write_trec_run,
)
from interlingua.evaluation.metrics.retrieval import normalized
from interlingua.evaluation.streams import PORTION_TEXTS, keep_vectors, stream_vectors
from interlingua.evaluation.task import (
    Embeds,
    Items,
    KeepsVectors,
    Progress,
    SubsetScores,
    TaskResult,
    check_choice,
    options,
    silent,
)
from interlingua.evaluation.tasks.folders import (
    check_enough,
    choose_languages,
    content_sha256,
    find_folder,
    full_code,
    recognise,
)
from interlingua.evaluation.tasks.groups import grouped
from interlingua.evaluation.tasks.missed_passages import Miss, with_texts
from interlingua.evaluation.tasks.passage_ids import PassageIds
from interlingua.evaluation.tasks.passage_search import EmbeddedPassages

T = TypeVar("T")
OF_ALL = "_all_languages"
"""The suffix of metrics and runs with the passages of all languages together as candidates."""


class Scored(NamedTuple):
    """What a task found for the questions of one language.

    Attributes:
        subset: the scores.
        items: what the main metric is the mean of, a value per question.
        notes: what a reader of the scores must know.
        missed: a sample of the questions with a wrong first passage.
        tables: see ``TaskResult``; joined over the languages.
    """

    subset: SubsetScores
    items: Items
    notes: list[str]
    missed: list[Miss]
    tables: Mapping[str, Mapping[str, float]] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class PassageTask(abc.ABC):
    """Questions among passages, one set of both per language.

    Questions and passages get the model's own prompts for them, if it has any. Passages are embedded into a file, so
    that there may be millions.

    Attributes:
        languages: languages to score, and to pool; all by default.
        similarity: cosine or dot, the inner product of the vectors as the model gives them; auto is dot for a model
            with two towers and cosine for all others.
        runs: a folder for TREC run files, one per language, pool and system.
        examples: questions with a wrong first passage kept next to the result, per language; 0 for none.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    main_metric: ClassVar[str] = "mrr_at_100"
    shown: ClassVar[Sequence[str]] = ()
    folders: ClassVar[Sequence[str]]
    expected: ClassVar[str]
    parallel: ClassVar[bool] = False
    published: ClassVar[bool] = True
    published_as: ClassVar[str] = ""
    paper_languages: ClassVar[Sequence[str]] = ()
    paper_groups: ClassVar[Mapping[str, Sequence[str]]] = {}
    least_languages: ClassVar[int] = 1

    languages: Sequence[str] | None = None
    similarity: Literal["auto", "cosine", "dot"] = "auto"
    runs: Path | None = field(default=None, metadata={"output": True})
    examples: int = field(default=PER_SUBSET, metadata={"output": True})

    def __post_init__(self) -> None:
        check_choice("similarity", self.similarity, ("auto", "cosine", "dot"))

    def evaluate(self, encoder: Embeds, data: Path, *, progress: Progress = silent) -> TaskResult:
        """See ``Task.evaluate``."""
        start = time.perf_counter()
        folder, sets, codes = self._sets(data)
        steps = _Steps(progress, sets)
        pools = {}
        for name, one in sets.items():
            steps.label = f"{name} passages"
            pools[name] = self._embed_passages(encoder, one, codes[name], steps)
        scored = {}
        for name in sets:
            scored[name] = self._score(encoder, name, sets, pools, codes[name])
            steps.label = f"{name} questions"
            steps.add(len(sets[name].queries))
        subsets = [found.subset for found in scored.values()]
        missed = {name: found.missed for name, found in scored.items()}
        digests = {name: _digest(one, pools[name].digest) for name, one in sets.items()}
        revision = recognise(self.published_as or self.name, digests) if self.published else None
        return TaskResult(
            task=self.label(folder, revision),
            version=self.version,
            main_metric=self.main_metric,
            higher_is_better=True,
            dataset=folder.resolve().name,
            data_sha256=content_sha256([list(digests), list(digests.values())]),
            data_revision=revision,
            subsets=tuple(subsets),
            notes=tuple(f"{name}: {note}" for name, found in scored.items() for note in found.notes),
            items={name: found.items for name, found in scored.items()},
            tables=_joined([found.tables for found in scored.values()]),
            shown=tuple(self.shown),
            examples=with_texts(missed, sets, codes, "cosine" if self._by_cosine(encoder) else "inner product"),
            seconds=time.perf_counter() - start,
            **grouped(self._members(subsets)),
            **options(self),
        )

    def embed_shard(self, encoder: Embeds, data: Path, shard: tuple[int, int], *, progress: Progress = silent) -> None:
        """Embeds each n-th portion of the passages, counted over all languages; see ``evaluation.shards``."""
        _, sets, codes = self._sets(data)
        steps = _Steps(progress, sets, has_questions=False)
        numbers = itertools.count(1)
        for name, one in sets.items():
            steps.label = f"{name} passages"
            passages = iter(one.passages())
            while portion := list(itertools.islice(passages, PORTION_TEXTS)):
                if (next(numbers) - shard[0]) % shard[1] == 0:
                    _encode(portion, encoder.encode, codes[name])
                steps.add(len(portion))

    def _sets(self, data: Path) -> tuple[Path, dict[str, RetrievalSet], dict[str, str]]:
        """The folder, the chosen sets by name, and the language of each."""
        folder = find_folder(data, self.folders, self.files, self.expected)
        files = self.files(folder)
        codes = self.codes(files, folder)
        chosen = self._chosen(codes, folder)
        sets = {name or codes[name]: files[name]() for name in chosen}  # a lone set is called by its language
        codes |= {code: code for name, code in codes.items() if not name}
        return folder, sets, codes

    def parts(self, data: Path) -> list[str]:
        """See ``Task.parts``."""
        folder = find_folder(data, self.folders, self.files, self.expected)
        codes = self.codes(self.files(folder), folder)
        return [name or codes[name] for name in self._chosen(codes, folder)]

    def _chosen(self, codes: Mapping[str, str], folder: Path) -> list[str]:
        chosen = choose_languages(self.languages, codes, {}, folder)
        check_enough(chosen, self.least_languages, self.languages, folder)
        return chosen

    @abc.abstractmethod
    def files(self, folder: Path) -> Sets:
        """The sets in a folder, by language as its files spell it."""

    def codes(self, files: Sets, folder: Path) -> dict[str, str]:
        """The full code of each set's language."""
        return {name: full_code(name) for name in files}

    def label(self, folder: Path, revision: str | None) -> str:
        """What the result is called."""
        return self.name if revision else f"{self.name}_{folder.resolve().name}"

    def _by_cosine(self, encoder: Embeds) -> bool:
        return self.similarity == "cosine" or (self.similarity == "auto" and not getattr(encoder, "two_towers", False))

    def _members(self, subsets: Sequence[SubsetScores]) -> dict[str, list[SubsetScores]]:
        members = {f"all_{len(subsets)}": list(subsets)}
        for name, codes in {self.name: self.paper_languages, **self.paper_groups}.items():
            group = {full_code(code) for code in codes}
            present = [subset for subset in subsets if subset.languages[0] in group]
            if present:
                members[f"{name}_{len(present)}of{len(group)}"] = present
        return members

    def _embed_passages(self, encoder: Embeds, one: RetrievalSet, language: str, steps: _Steps) -> EmbeddedPassages:
        """All passages of a language; see ``docs/how-to/evaluate.md`` for the memory and disk that they take."""
        ids = PassageIds(language)
        digest = hashlib.sha256()

        def read() -> Iterator[Passage]:
            for passage in one.passages():
                digest.update("\t".join(passage).encode() + b"\n")
                yield passage

        def embed(portion: Sequence[Passage], by: Callable[..., T]) -> T:
            ids.extend([passage.id for passage in portion])
            found = _encode(portion, by, language)
            steps.add(len(portion))
            return found

        passages = iter(read())
        first = next(passages, None)
        if first is None:
            raise DataError(f"there are no passages of {language}; the file is empty")
        passages = itertools.chain([first], passages)
        vectors: Any
        if isinstance(encoder, KeepsVectors):
            keep = functools.partial(embed, by=encoder.keep)
            vectors = keep_vectors(keep, encoder.kept, passages, normalize=self._by_cosine(encoder))
        else:
            encode = functools.partial(embed, by=encoder.encode)
            vectors = stream_vectors(encode, passages, normalize=self._by_cosine(encoder))
        ids.close()
        return EmbeddedPassages(ids, vectors, digest.hexdigest())

    @abc.abstractmethod
    def _score(
        self,
        encoder: Embeds,
        name: str,
        sets: Mapping[str, RetrievalSet],
        pools: Mapping[str, EmbeddedPassages],
        language: str,
    ) -> Scored:
        """One language: its questions among its own passages or those of all languages."""

    def _embed_questions(self, encoder: Embeds, questions: Mapping[str, str], language: str) -> Float32[ndarray, "n d"]:
        if not questions:
            return np.zeros((0, 1), np.float32)
        vectors = encoder.encode([*questions.values()], language=language, role="query")
        return normalized(vectors) if self._by_cosine(encoder) else vectors

    def _judged_in_all(self, name: str, judged: Qrels, sets: Mapping[str, RetrievalSet]) -> Qrels:
        """Which passages of the pool of all languages answer; in parallel sets a question's in every language."""
        languages = sets if self.parallel else {name: sets[name]}

        def in_all(query: str, passages: Mapping[str, int]) -> dict[str, int]:
            found = {}
            for other, one in languages.items():
                grades = passages if other == name else one.qrels.get(query, {})
                for passage, grade in grades.items():
                    found[f"{other}/{passage}"] = grade
            return found

        return {query: in_all(query, passages) for query, passages in judged.items()}

    def _write_runs(self, name: str, runs: Mapping[str, Run]) -> None:
        if self.runs is None:
            return
        for system, run in runs.items():
            kind = "dense-all-languages" if system == OF_ALL else system.rstrip("_") or "dense"
            write_trec_run(self.runs / f"{self.name}.{name}.{kind}.trec", run, tag=kind)


class _Steps:
    """Counts the passages, and questions where these are embedded too, out of all."""

    def __init__(self, progress: Progress, sets: Mapping[str, RetrievalSet], *, has_questions: bool = True) -> None:
        self._progress = progress
        self._done = 0
        self.label = ""
        self._total = sum(one.passage_count() for one in sets.values())
        if has_questions:
            self._total += sum(len(one.queries) for one in sets.values())

    def add(self, texts: int) -> None:
        self._done += texts
        self._progress(self.label, self._done, self._total)


def _encode(portion: Sequence[Passage], by: Callable[..., T], language: str) -> T:
    """What an encoder gives for passages."""
    texts = [passage.text for passage in portion]
    titles = [passage.title for passage in portion]
    return by(texts, titles=titles, language=language, role="passage")


def judged_questions(one: RetrievalSet, passages: Sequence[str]) -> tuple[Qrels, list[str]]:
    """The questions that count, and notes about the others."""
    judged = {query: grades for query, grades in one.qrels.items() if max(grades.values(), default=0) > 0}
    if not judged:
        raise DataError("no question has a relevant passage; check that questions and judgements belong together")
    relevant = {passage for grades in judged.values() for passage, grade in grades.items() if grade > 0}
    counts = {
        "questions have judgements and no text, and count as 0": sum(query not in one.queries for query in judged),
        "questions have no relevant passage and were left out": len(one.qrels) - len(judged),
        "questions have no judgement and were left out": sum(query not in one.qrels for query in one.queries),
        "relevant passages are not among the passages": len(relevant.difference(passages)),
    }
    return judged, [f"{count:,} {what}" for what, count in counts.items() if count]


def set_and_id(passage: str) -> tuple[str, str]:
    """``sw/12`` -> the set's name and the passage's id in it."""
    name, _, own = passage.partition("/")
    return name, own


def _joined(tables: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """The tables of all languages, each with the rows of all."""
    joined: dict[str, dict[str, float]] = {}
    for of_language in tables:
        for name, cells in of_language.items():
            joined.setdefault(name, {}).update(cells)
    return joined


def _digest(one: RetrievalSet, passages: str) -> str:
    judgements = [
        f"{query} {passage} {grade}" for query, found in one.qrels.items() for passage, grade in found.items()
    ]
    return content_sha256([list(one.queries), list(one.queries.values()), judgements, [passages]])
