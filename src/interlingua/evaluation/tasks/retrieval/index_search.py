"""Evaluation of an existing index: do its searches find the passages that answer questions?

Other retrieval tasks embed passages of their own and compare vectors. This one searches an existing
index with the index's own model, prompts, language map and approximate search, in each mode that a
user can choose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.config import AtLeast
from interlingua.config.registry import check_choice
from interlingua.errors import ConfigError, DataError, count_of
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import choose_languages, content_sha256, full_code
from interlingua.evaluation.data.retrieval import JudgedQuestions, questions_by_language
from interlingua.evaluation.metrics.ranking import DEPTH, Run, ranking_metrics, write_trec_run
from interlingua.evaluation.scores import Items
from interlingua.evaluation.task import Findings, LanguageTask, Scored
from interlingua.retrieval.passage_index import PassageIndex
from interlingua.retrieval.ranking import Hit
from interlingua.retrieval.searcher import MODES, MOST_HITS, Searcher, SearchMode, model_for
from interlingua.runtime.progress import Progress

VECTOR: SearchMode = "vector"


@dataclass(frozen=True, kw_only=True)
class IndexSearch(LanguageTask):
    """MRR@100, Recall@100 and nDCG@10 of judged questions to an index.

    The questions are ``queries.jsonl`` and ``qrels/test.tsv`` in BEIR's layout, in any number of
    languages: each line may have a ``language``. The judgments name passages by their ids in the
    index, or documents: the ``document`` of several passages, such as a record that was cut into
    chunks, or a file of sections. If some name documents, the ranking is one of documents, each at
    the place of its first chunk. A passage that is hidden as a copy of a hit counts as that hit.

    Attributes:
        folder: of the index.
        modes: searches to measure besides that by vectors; their names are prefixed to the metrics.
        pool: ``all`` passages, or only those in the question's ``own`` language. For ``own``, only
            judgments of passages of the index in that language count, and questions without a
            relevant passage among them are left out.
        where: a condition in SQL; only passages that fulfill it are searched.
        per_language: number of passages of each language at the start of a ranking; 0 for a
            ranking by score only.
        exact: compare with all vectors, even if the index is approximate.
        split: the file of ``qrels/`` to use.
        runs: a folder for TREC run files, one per language and mode.
    """

    name: ClassVar[str] = "index"
    main_metric: ClassVar[str] = "ndcg_at_10"
    folders: ClassVar[Sequence[str]] = ("questions",)
    expected: ClassVar[str] = "judged questions (queries.jsonl, qrels/test.tsv)"

    folder: Path | None = field(default=None, metadata={"output": True})
    modes: tuple[str, ...] = field(default=("text", "hybrid"), metadata={"adds": True})
    pool: Literal["all", "own"] = "all"
    where: str = ""
    per_language: Annotated[int, AtLeast(0)] = 0
    exact: bool = False
    split: str = "test"
    runs: Path | None = field(default=None, metadata={"output": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        for mode in self.modes:
            check_choice("modes", mode, MODES)

    def files(self, folder: Path) -> dict[str, JudgedQuestions]:
        """Return the questions of each language, by its full code."""
        language = None
        if self.languages is not None and len(self.languages) == 1:
            language = full_code(self.languages[0])
        return questions_by_language(folder, self.split, language)

    def result_name(self, found: Findings) -> str:
        """Return the result's name, with the pool and the split unless they are the default."""
        name = super().result_name(found)
        if self.pool != "all":
            name = f"{name}_{self.pool}"
        return name if self.split == "test" else f"{name}_{self.split}"

    def run(self, encoder: CachedEncoder, folder: Path, progress: Progress) -> Findings:
        """Search the index with the questions of each chosen language, and score the ranks."""
        questions = self.files(folder)
        chosen = choose_languages(self.languages, {code: code for code in questions}, {}, folder)
        searcher = self._searcher(encoder)
        total = sum(len(questions[code].queries) for code in chosen)
        progress.start(total, "questions", self.name)
        found = Findings(folder=folder)
        found.added.append(searcher.index.digest())
        for code in chosen:
            progress.note(code)
            one, document_of, notes = self._judged(searcher.index, questions[code], code)
            vectors = self._embed(encoder, searcher, one, code)
            values: dict[str, dict[str, float]] = {}
            for mode in dict.fromkeys((VECTOR, *self.modes)):
                run = self._run(searcher, one, vectors, code, mode, document_of)
                prefix = "" if mode == VECTOR else f"{mode}_"
                for metric, of_query in ranking_metrics(one.qrels, run).items():
                    values[f"{prefix}{metric}"] = of_query
                if self.runs is not None:
                    path = self.runs / f"{self.name}.{code}.{mode}.trec"
                    write_trec_run(path, run, tag=mode)
            means = {metric: float(np.mean([*values[metric].values()])) for metric in values}
            items = Items(np.array([*values[self.main_metric].values()]))
            scored = Scored(means, items, notes=notes)
            found.add_scores(code, (code, code), len(one.queries), scored)
            found.digests[code] = _digest(questions[code])
            progress.advance(len(questions[code].queries))
        return found

    def _searcher(self, encoder: CachedEncoder) -> Searcher:
        """Return the index with its model.

        Raises:
            ConfigError: no index is named, or it was built with another model.
        """
        if self.folder is None:
            raise ConfigError(
                "the task index requires an index; run: interlingua evaluate INDEX --data"
                " QUESTIONS, or add --set index.folder=INDEX"
            )
        own = encoder.own_encoder
        if own is None:
            raise ConfigError(
                "the task index requires the model of the index; pass the index instead of the"
                " model"
            )
        index = PassageIndex(self.folder)
        return Searcher(index, model_for(self.folder, own, index.settings.model))

    def _judged(
        self, index: PassageIndex, one: JudgedQuestions, code: str
    ) -> tuple[JudgedQuestions, dict[str, str], list[str]]:
        """Return the questions with the judgments in the pool.

        Returns:
            The questions; the judged document of each chunk, by the id of the chunk; notes on the
            judgments that are left out.

        Raises:
            DataError: no question has a relevant passage in the pool.
        """
        members = index.members_of(_relevant(one))
        notes = []
        if absent := len(_relevant(one)) - len(members):
            notes.append(f"missing from the index: {count_of(absent, 'relevant passages')}")
        if self.pool == "own":
            members = {name: of for name, of in members.items() if code in of.values()}
        document_of = {
            passage: name for name, of in members.items() if name not in of for passage in of
        }
        if self.pool == "all":
            return one, document_of, notes
        qrels = {}
        for name, grades in one.qrels.items():
            judged = {passage: grade for passage, grade in grades.items() if passage in members}
            if judged:
                qrels[name] = judged
        if not qrels:
            raise DataError(
                f"no question in {code} has a relevant passage in its own language; exclude the"
                " language with --languages, or remove index.pool=own",
                path=self.folder,
            )
        if left_out := len(one.qrels) - len(qrels):
            notes.append(
                f"{count_of(left_out, 'questions')} skipped, without a relevant passage in their"
                " own language"
            )
        queries = {name: one.queries[name] for name in qrels}
        return JudgedQuestions(queries, qrels), document_of, notes

    def _embed(
        self, encoder: CachedEncoder, searcher: Searcher, one: JudgedQuestions, code: str
    ) -> Float32[ndarray, "n d"]:
        """Return the vectors of questions as ``interlingua search`` makes them."""
        vectors = encoder.encode([*one.queries.values()], language=code, role="query")
        settings = searcher.index.settings
        prompt = encoder.used_prompts.get("query", "")
        if prompt != settings.question_prompt or vectors.shape[1] != settings.dim:
            raise ConfigError(
                f"{self.folder}: expected the prompt {settings.question_prompt!r} for questions"
                f" and {settings.dim} dimensions, found {prompt!r} and {vectors.shape[1]}; remove"
                f" --dim, and pass --query-prompt {settings.question_prompt!r}"
            )
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return searcher.model.map_vectors(vectors / np.maximum(norms, 1e-12), code)

    def _run(
        self,
        searcher: Searcher,
        one: JudgedQuestions,
        vectors: Float32[ndarray, "n d"],
        code: str,
        mode: str,
        document_of: Mapping[str, str],
    ) -> Run:
        """Return the ranking of each question's passages, or documents, in one mode."""
        options: dict[str, Any] = {"mode": mode, "exact": self.exact}
        options["where"] = self.where or None
        options["per_language"] = self.per_language or None
        if self.pool == "own":
            options["languages"] = [code]
        run: dict[str, dict[str, float]] = {}
        for (name, text), vector in zip(one.queries.items(), vectors, strict=True):
            # Further chunks of a document take no ranks, so a ranking of documents needs more hits.
            top = 2 * DEPTH if document_of else DEPTH
            ranked: list[str] = []
            while len(ranked) < DEPTH and top <= MOST_HITS:
                hits = searcher.rank(text, vector, top=top, **options).hits
                ranked = _ranked_names(hits, one.qrels[name], document_of)
                if len(hits) < top:
                    break
                top *= 4
            # Scores decrease with the rank; with equal scores, the order would be by id.
            run[name] = {found: float(DEPTH - rank) for rank, found in enumerate(ranked[:DEPTH])}
        return run


def _ranked_names(
    hits: Sequence[Hit], judged: Mapping[str, int], document_of: Mapping[str, str]
) -> list[str]:
    """Return the names of hits as the judgments name them, best first, each once.

    A hit that is judged by several names, such as those of copies, has the one with the highest
    grade.

    Args:
        hits: best first.
        judged: grades of a question's passages and documents.
        document_of: judged documents by the ids of their chunks; if there are some, hits that are
            not judged are named by their documents too.
    """
    names: dict[str, None] = {}
    for hit in hits:
        passages = (hit.id, *hit.places)
        documents = (document_of[passage] for passage in passages if passage in document_of)
        known = [name for name in (*passages, *documents) if name in judged]
        unjudged = (hit.document or hit.id) if document_of else hit.id
        names[max(known, key=lambda name: judged[name], default=unjudged)] = None
    return list(names)


def _relevant(one: JudgedQuestions) -> set[str]:
    """Return the ids of all passages that are relevant to a question."""
    return {
        passage for grades in one.qrels.values() for passage, grade in grades.items() if grade > 0
    }


def _digest(one: JudgedQuestions) -> str:
    """Return the SHA-256 of questions and judgments."""
    rows: list[list[str]] = [[*item] for item in sorted(one.queries.items())]
    for name, grades in sorted(one.qrels.items()):
        rows += [[name, passage, str(grade)] for passage, grade in sorted(grades.items())]
    return content_sha256(rows)
