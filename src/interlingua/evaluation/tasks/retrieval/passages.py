"""The base class of tasks with passages and questions: files on disk, judgments, exact search."""

from __future__ import annotations

import abc
import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float32, Int64
from numpy import ndarray

from interlingua.corpus.formats.questions import PoolPassage
from interlingua.errors import DataError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import check_enough, choose_languages, full_code
from interlingua.evaluation.data.retrieval import (
    RetrievalSet,
    judged_questions,
    set_sha256,
)
from interlingua.evaluation.examples import PER_SUBSET
from interlingua.evaluation.metrics.ranking import Qrels, Run, write_trec_run
from interlingua.evaluation.scores import Example, Items
from interlingua.evaluation.streams import STREAM_PORTION_TEXTS, keep_vectors
from interlingua.evaluation.task import Findings, LanguageTask, Scored
from interlingua.evaluation.tasks.retrieval.missed_passages import with_texts
from interlingua.evaluation.tasks.retrieval.passage_ids import PassageIds
from interlingua.evaluation.tasks.retrieval.passage_search import EmbeddedPassages, Questions
from interlingua.runtime.portions import portions
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.arrays import normalize_rows

T = TypeVar("T")
OF_ALL = "_all_languages"
"""The suffix of metrics and runs with the passages of all languages together as candidates."""


class ScoredQuestions(NamedTuple):
    """The results for the questions of one language.

    Attributes:
        values: metric -> question -> its value, of which the score is the mean.
        runs: rankings by system and pool, see ``PassageTask.runs``.
        missed: a sample of the questions with a wrong first passage.
        scores: of all questions together.
        tables: see ``TaskResult``; joined over the languages.
        notes: remarks for a reader of the scores.
    """

    values: Mapping[str, Mapping[str, float]]
    runs: Mapping[str, Run]
    missed: list[Example]
    scores: Mapping[str, float] = {}
    tables: Mapping[str, Mapping[str, float]] = {}
    notes: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class PassageTask(LanguageTask):
    """Questions among passages, one set of both per language.

    Questions and passages get the model's own prompts for them, if it has any. Passages are
    embedded into a file, so that there may be millions. ``files`` gives the ``Sets`` of a folder.

    Attributes:
        languages: languages to score, and to pool; all by default.
        similarity: cosine or dot, the inner product of the vectors as the model gives them; auto is
            dot for a model with two towers and cosine for all others.
        runs: a folder for TREC run files, one per language, pool and system.
        examples: questions with a wrong first passage kept next to the result, per language; 0 for
            none.
    """

    main_metric: ClassVar[str] = "mrr_at_100"
    parallel: ClassVar[bool] = False
    least_languages: ClassVar[int] = 1

    similarity: Literal["auto", "cosine", "dot"] = "auto"
    runs: Path | None = field(default=None, metadata={"output": True})
    examples: int = field(default=PER_SUBSET, metadata={"output": True})

    def run(self, encoder: CachedEncoder, folder: Path, progress: Progress) -> Findings:
        """Embed the passages of all sets, then embed and score the questions of each set."""
        sets, codes = self._sets(folder)
        # passages are counted without being parsed, only for the progress
        texts = sum(one.passage_count() + len(one.queries) for one in sets.values())
        progress.start(texts, "texts", self.name)
        found = Findings(folder=folder)
        pools = {}
        for name, one in sets.items():
            progress.note(f"{name} passages")
            pools[name] = self._embed_passages(encoder, one, codes[name], progress)
            found.digests[name] = set_sha256(one, pools[name].digest)
        missed = {}
        for name, one in sets.items():
            judged, notes = judged_questions(one, pools[name].ids)
            # a question that is judged and has no text counts as 0, so it stays in ``judged``
            with_text = {query: one.queries[query] for query in judged if query in one.queries}
            vectors = self._embed_questions(encoder, with_text, codes[name])
            questions = Questions(name, codes[name], judged, with_text, vectors)
            scored = self._score(questions, sets, pools)
            self._write_runs(name, scored.runs)
            means = {metric: _mean(values) for metric, values in scored.values.items()}
            items = Items(np.array([*scored.values[self.main_metric].values()]))
            notes += scored.notes
            summary = Scored({**means, **scored.scores}, items, notes=notes)
            found.add_scores(name, (codes[name], codes[name]), len(judged), summary)
            # each language adds its rows to the tables of all
            for table, cells in scored.tables.items():
                found.tables[table] = {**found.tables.get(table, {}), **cells}
            missed[name] = scored.missed
            progress.note(f"{name} questions")
            progress.advance(len(one.queries))
        measure = "cosine" if self._is_by_cosine(encoder) else "inner product"
        found.examples = with_texts(missed, sets, codes, measure)
        return found

    def embed_shard(
        self,
        encoder: CachedEncoder,
        data: Path,
        shard: tuple[int, int],
        *,
        progress: Progress = SILENT,
    ) -> None:
        """Embed each n-th portion of the passages, counted over all languages.

        See ``evaluation.suite``.
        """
        sets, codes = self._sets(self.find(data))
        progress.start(sum(one.passage_count() for one in sets.values()), "passages", self.name)
        numbers = itertools.count(1)
        for name, one in sets.items():
            for portion in portions(one.passages(), STREAM_PORTION_TEXTS):
                # round robin over all languages, so that parts have equal sizes although languages
                # have different sizes
                if (next(numbers) - shard[0]) % shard[1] == 0:
                    keep_passages(encoder, portion, codes[name])
                progress.note(f"{name} passages")
                progress.advance(len(portion))

    def _sets(self, folder: Path) -> tuple[dict[str, RetrievalSet], dict[str, str]]:
        """Return the chosen sets by name, and the language of each."""
        files = self.files(folder)
        codes = self.codes(files, folder)
        chosen = self.chosen(files, folder)
        # a set in the folder itself has no name and is called by its language
        sets = {name or codes[name]: files[name]() for name in chosen}
        codes |= {code: code for name, code in codes.items() if not name}
        return sets, codes

    def parts(self, data: Path) -> list[str]:
        """Return the names of the chosen sets; a set without a name is called by its language."""
        folder = self.find(data)
        files = self.files(folder)
        codes = self.codes(files, folder)
        return [name or codes[name] for name in self.chosen(files, folder)]

    def chosen(self, files: Mapping[str, Any], folder: Path) -> list[str]:
        """Return the sets of the requested languages, and check that they are enough."""
        chosen = choose_languages(self.languages, self.codes(files, folder), {}, folder)
        check_enough(chosen, self.least_languages, self.languages, folder)
        return chosen

    def codes(self, files: Mapping[str, Any], folder: Path) -> dict[str, str]:
        """Return the full code of each set's language."""
        return {name: full_code(name) for name in files}

    def _is_by_cosine(self, encoder: CachedEncoder) -> bool:
        if self.similarity == "auto":
            return not getattr(encoder, "two_towers", False)
        return self.similarity == "cosine"

    def _embed_passages(
        self,
        encoder: CachedEncoder,
        one: RetrievalSet,
        language: str,
        progress: Progress,
    ) -> EmbeddedPassages:
        """Embed all passages of a language.

        See ``docs/how-to/evaluate.md`` for the memory and disk that they take.
        """
        ids = PassageIds(language)
        digest = hashlib.sha256()

        # a single pass reads the passages for the digest, keeps their ids and embeds them
        def read() -> Iterator[PoolPassage]:
            for passage in one.passages():
                digest.update("\t".join(passage).encode() + b"\n")
                yield passage

        def embed(portion: Sequence[PoolPassage]) -> Int64[ndarray, " n"]:
            ids.extend([passage.id for passage in portion])
            rows = keep_passages(encoder, portion, language)
            progress.advance(len(portion))
            return rows

        passages = iter(read())
        first = next(passages, None)
        # keep_vectors would refuse an empty file too, but could not name the language
        if first is None:
            raise DataError(f"the file of {language} contains no passages; check the file")
        passages = itertools.chain([first], passages)
        normalize = self._is_by_cosine(encoder)
        vectors = keep_vectors(embed, encoder.kept, passages, normalize=normalize)
        ids.close()
        return EmbeddedPassages(ids, vectors, digest.hexdigest())

    @abc.abstractmethod
    def _score(
        self,
        questions: Questions,
        sets: Mapping[str, RetrievalSet],
        pools: Mapping[str, EmbeddedPassages],
    ) -> ScoredQuestions:
        """Score one language: its questions among its own passages or those of all languages."""

    def _embed_questions(
        self, encoder: CachedEncoder, questions: Mapping[str, str], language: str
    ) -> Float32[ndarray, "n d"]:
        if not questions:
            return np.zeros((0, 1), np.float32)
        vectors = encoder.encode([*questions.values()], language=language, role="query")
        if self._is_by_cosine(encoder):
            return normalize_rows(vectors)
        return vectors

    def _judged_in_all(self, questions: Questions, sets: Mapping[str, RetrievalSet]) -> Qrels:
        """Return the relevant passages in the pool of all languages.

        In parallel sets these are a question's passages in every language.
        """
        name = questions.name
        languages: Mapping[str, RetrievalSet] = {name: sets[name]}
        if self.parallel:
            languages = sets

        def in_all(query: str, passages: Mapping[str, int]) -> dict[str, int]:
            found = {}
            for other, one in languages.items():
                grades = passages
                # the same question has the same id in every language
                if other != name:
                    grades = one.qrels.get(query, {})
                for passage, grade in grades.items():
                    found[f"{other}/{passage}"] = grade
            return found

        return {query: in_all(query, passages) for query, passages in questions.judged.items()}

    def _write_runs(self, name: str, runs: Mapping[str, Run]) -> None:
        if self.runs is None:
            return
        for system, run in runs.items():
            # the prefix of a system's metrics, such as bm25_, is the name of its run; the encoder
            # has no prefix
            kind = system.rstrip("_") or "dense"
            if system == OF_ALL:
                kind = "dense-all-languages"
            write_trec_run(self.runs / f"{self.name}.{name}.{kind}.trec", run, tag=kind)


def keep_passages(
    encoder: CachedEncoder, portion: Sequence[PoolPassage], language: str
) -> Int64[ndarray, " n"]:
    """Embed passages and return the row of each."""
    texts = [passage.text for passage in portion]
    titles = [passage.title for passage in portion]
    return encoder.keep(texts, titles=titles, language=language, role="passage")


def _mean(of_query: Mapping[str, float]) -> float:
    """Compute the mean over questions, 0 if there are none."""
    if not of_query:
        return 0.0
    return float(np.mean([*of_query.values()]))
