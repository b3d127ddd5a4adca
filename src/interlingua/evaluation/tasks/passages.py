"""What the retrieval tasks share: passages embedded to disk, exact search 100 deep, BM25 and fusion beside it."""

from __future__ import annotations

import abc
import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.config import refuse_unread
from interlingua.corpus.retrieval_sets import Passage, RetrievalSet, Sets
from interlingua.errors import ConfigError, DataError
from interlingua.evaluation.examples import PER_SUBSET
from interlingua.evaluation.metrics.language_fairness import FAIRNESS, language_fairness, language_shares
from interlingua.evaluation.metrics.ranking import (
    DEPTH,
    Qrels,
    Run,
    ranking_metrics,
    reciprocal_rank_fusion,
    write_trec_run,
)
from interlingua.evaluation.metrics.retrieval import normalized
from interlingua.evaluation.streams import stream_vectors
from interlingua.evaluation.task import (
    Embeds,
    Items,
    Progress,
    SubsetScores,
    TaskResult,
    check_choice,
    options,
    silent,
)
from interlingua.evaluation.tasks.folders import choose_languages, content_sha256, find_folder, full_code, recognise
from interlingua.evaluation.tasks.groups import grouped
from interlingua.evaluation.tasks.missed_passages import Miss, misses, with_texts
from interlingua.evaluation.tasks.passage_search import EmbeddedPassages, exact_nearest, search
from interlingua.mining.knn import Neighbours
from interlingua.mining.rescored import CodedVectors, rescored_topk
from interlingua.search.bm25 import DEFAULT_B, DEFAULT_K1, BM25Index

OF_ALL = "_all_languages"
"""Ends the names of metrics whose candidates are the passages of all languages together."""


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
        examples: questions with a wrong first passage kept beside the result, per language; 0 for none.
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

    languages: Sequence[str] | None = None
    similarity: Literal["auto", "cosine", "dot"] = "auto"
    runs: Path | None = field(default=None, metadata={"output": True})
    examples: int = field(default=PER_SUBSET, metadata={"output": True})

    def __post_init__(self) -> None:
        check_choice("similarity", self.similarity, ("auto", "cosine", "dot"))

    def evaluate(self, encoder: Embeds, data: Path, *, progress: Progress = silent) -> TaskResult:
        """See ``Task.evaluate``."""
        start = time.perf_counter()
        folder = find_folder(data, self.folders, self.files, self.expected)
        files = self.files(folder)
        codes = self.codes(files, folder)
        chosen = choose_languages(self.languages, codes, {}, folder)
        sets = {name or codes[name]: files[name]() for name in chosen}  # a lone set is called by its language
        codes |= {code: code for name, code in codes.items() if not name}
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

    def parts(self, data: Path) -> list[str]:
        """See ``Task.parts``."""
        folder = find_folder(data, self.folders, self.files, self.expected)
        codes = self.codes(self.files(folder), folder)
        return [name or codes[name] for name in choose_languages(self.languages, codes, {}, folder)]

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
        paper = {full_code(code) for code in self.paper_languages}
        present = [subset for subset in subsets if subset.languages[0] in paper]
        if present:
            members[f"{self.name}_{len(present)}of{len(paper)}"] = present
        return members

    def _embed_passages(self, encoder: Embeds, one: RetrievalSet, language: str, steps: _Steps) -> EmbeddedPassages:
        ids: dict[str, None] = {}
        digest = hashlib.sha256()

        def read() -> Iterator[Passage]:
            for passage in one.passages():
                if passage.id in ids:
                    twice = f"the passage id {passage.id!r} stands in the passages of {language} twice"
                    raise DataError(f"{twice}; ids must differ")
                ids[passage.id] = None
                digest.update("\t".join(passage).encode() + b"\n")
                yield passage
            if not ids:
                raise DataError(f"there are no passages of {language}; the file is empty")

        def encode(portion: Sequence[Passage]) -> Float32[ndarray, "n d"]:
            texts, titles = [passage.text for passage in portion], [passage.title for passage in portion]
            vectors = encoder.encode(texts, titles=titles, language=language, role="passage")
            steps.add(len(portion))
            return vectors

        vectors = stream_vectors(encode, read(), normalize=self._by_cosine(encoder))
        return EmbeddedPassages([*ids], vectors, digest.hexdigest())

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
        return {
            query: {
                f"{other}/{passage}": grade
                for other, one in languages.items()
                for passage, grade in (passages if other == name else one.qrels.get(query, {})).items()
            }
            for query, passages in judged.items()
        }

    def _write_runs(self, name: str, runs: Mapping[str, Run]) -> None:
        if self.runs is None:
            return
        for system, run in runs.items():
            kind = "dense-all-languages" if system == OF_ALL else system.rstrip("_") or "dense"
            write_trec_run(self.runs / f"{self.name}.{name}.{kind}.trec", run, tag=kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievalTask(PassageTask):
    """MRR@100, Recall@100 and nDCG@10 of questions among passages, as trec_eval computes them.

    The candidates are the passages in the question's language and, where the protocol has that pool too, those of all
    languages together (metrics ending in ``_all_languages``). A question without a ranking counts as 0 and is reported.
    In parallel sets, where a question is answered in every language, ``language_fairness_at_20`` says whether the first
    20 of the pool of all languages are of all languages; see ``metrics.language_fairness``.

    Attributes:
        precision: what passages are kept in for the search: float32, int8, or bits; hamming has the questions in bits
            too, as binary indexes do.
        rescore: candidates found in int8 or bits that are ranked anew by float32, 100 or more; 0 for none.
        bm25: score BM25 and its fusion with the encoder (reciprocal ranks) beside it, in the question's language.
        bm25_k1: how soon more of the same word counts for nothing, at least 0.
        bm25_b: how much long passages pay for their length, 0 to 1; both tuned by ``interlingua.search.bm25.tune``.
    """

    pools_all: ClassVar[bool] = False

    precision: Literal["float32", "int8", "binary", "hamming"] = "float32"
    rescore: int = 0
    bm25: bool = False
    bm25_k1: float = DEFAULT_K1
    bm25_b: float = DEFAULT_B

    def __post_init__(self) -> None:
        PassageTask.__post_init__(self)  # by name, as super() does not know the class that slots make anew
        check_choice("precision", self.precision, ("float32", "int8", "binary", "hamming"))
        refuse_unread(self, "rescore", reason="precision = float32", when=self.precision == "float32")
        if self.rescore and self.rescore < DEPTH:
            raise ConfigError(f"rescore is {self.rescore}; rankings are {DEPTH} deep, so give {DEPTH} or more, or 0")
        refuse_unread(self, "bm25_k1", "bm25_b", reason="bm25 = false", when=not self.bm25)

    def _score(
        self,
        encoder: Embeds,
        name: str,
        sets: Mapping[str, RetrievalSet],
        pools: Mapping[str, EmbeddedPassages],
        language: str,
    ) -> Scored:
        """See ``PassageTask._score``."""
        one = sets[name]
        judged, notes = judged_questions(one, pools[name].ids)
        asked = {query: one.queries[query] for query in judged if query in one.queries}
        vectors = self._embed_questions(encoder, asked, language)
        runs = {"": search([*asked], vectors, {"": pools[name]}, self._nearest)}
        if self.bm25:
            runs["bm25_"] = self._bm25(asked, one, language)
            runs["hybrid_"] = reciprocal_rank_fusion([runs[""], runs["bm25_"]])
        values = {f"{system}{m}": v for system, run in runs.items() for m, v in ranking_metrics(judged, run).items()}
        expected = {query: next(p for p, grade in grades.items() if grade > 0) for query, grades in judged.items()}
        kept: Any = {"language": language, "limit": self.examples}
        fairness: dict[str, float] = {}
        tables: Mapping[str, Mapping[str, float]] = {}
        if self.pools_all:
            runs[OF_ALL] = search([*asked], vectors, pools, self._nearest)
            judged_in_all = self._judged_in_all(name, judged, sets)
            found = ranking_metrics(judged_in_all, runs[OF_ALL])
            values |= {f"{metric}{OF_ALL}": of_query for metric, of_query in found.items()}
            expected = {query: f"{name}/{passage}" for query, passage in expected.items()}
            missed = misses(runs[OF_ALL], judged_in_all, one.queries, expected, place=set_and_id, **kept)
            if self.parallel and len(sets) > 1:
                shares = language_shares(judged_in_all, runs[OF_ALL], list(sets))
                fairness = {FAIRNESS: language_fairness(shares)}
                tables = shares.tables(name)
        else:
            missed = misses(runs[""], judged, one.queries, expected, place=lambda passage: (name, passage), **kept)
        self._write_runs(name, runs)
        scores = {metric: float(np.mean([*of_query.values()])) for metric, of_query in values.items()} | fairness
        subset = SubsetScores(name=name, languages=(language, language), pairs=len(judged), scores=scores)
        return Scored(subset, Items(np.array([*values[self.main_metric].values()])), notes, missed, tables)

    def _nearest(self, queries: Float32[ndarray, "n d"], passages: Float32[ndarray, "m d"]) -> Neighbours:
        """The nearest passages, as exactly as ``precision`` and ``rescore`` say."""
        if self.precision == "float32":
            return exact_nearest(queries, passages)
        codes = CodedVectors.of(passages, "int8" if self.precision == "int8" else "ubinary")
        return rescored_topk(queries, codes, passages, k=DEPTH, rescore=self.rescore, signs=self.precision == "hamming")

    def _bm25(self, queries: Mapping[str, str], one: RetrievalSet, language: str) -> Run:
        ids, titles, bodies = zip(*one.passages(), strict=True)
        texts = [f"{title} {text}".strip() for title, text in zip(titles, bodies, strict=True)]
        index = BM25Index.build(ids, texts, language=language, k1=self.bm25_k1, b=self.bm25_b)
        found, scores = index.search(list(queries.values()), DEPTH)
        return {
            query: dict(zip(passages, map(float, of_query), strict=True))
            for query, passages, of_query in zip(queries, found, scores, strict=True)
        }


class _Steps:
    """Counts the passages and questions embedded so far, out of all."""

    def __init__(self, progress: Progress, sets: Mapping[str, RetrievalSet]) -> None:
        self._progress, self._done, self.label = progress, 0, ""
        self._total = sum(len(one.queries) + sum(1 for _ in one.passages()) for one in sets.values())

    def add(self, texts: int) -> None:
        self._done += texts
        self._progress(self.label, self._done, self._total)


def judged_questions(one: RetrievalSet, passages: Sequence[str]) -> tuple[Qrels, list[str]]:
    """The questions that count, and what is to be said about the others."""
    judged = {query: grades for query, grades in one.qrels.items() if any(grade > 0 for grade in grades.values())}
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
