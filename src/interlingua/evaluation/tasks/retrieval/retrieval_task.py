"""The base class of retrieval tasks: metrics of the first 100 passages, BM25, fusion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from jaxtyping import Float32
from numpy import ndarray

from interlingua.config import refuse_unread
from interlingua.errors import ConfigError, DataError
from interlingua.evaluation.baselines.bm25 import DEFAULT_B, DEFAULT_K1, BM25Index, Tuned, tune
from interlingua.evaluation.data.retrieval import RetrievalSet
from interlingua.evaluation.metrics.language_fairness import (
    FAIRNESS,
    language_fairness,
    ranked_language_shares,
)
from interlingua.evaluation.metrics.ranking import (
    DEPTH,
    Run,
    ranking_metrics,
    reciprocal_rank_fusion,
)
from interlingua.evaluation.streams import STREAM_PORTION_TEXTS
from interlingua.evaluation.tasks.retrieval.missed_passages import misses
from interlingua.evaluation.tasks.retrieval.passage_ids import PassageIds
from interlingua.evaluation.tasks.retrieval.passage_search import (
    EmbeddedPassages,
    Questions,
    exact_nearest,
    search_pools,
)
from interlingua.evaluation.tasks.retrieval.passages import OF_ALL, PassageTask, ScoredQuestions
from interlingua.retrieval.topk.approximate import CodedVectors, rescored_topk
from interlingua.retrieval.topk.exact import Neighbors
from interlingua.runtime.portions import portions


@dataclass(frozen=True, kw_only=True)
class RetrievalTask(PassageTask):
    """MRR@100, Recall@100 and nDCG@10 of questions among passages, as trec_eval computes them.

    The candidates are the passages in the question's language. If the protocol also has a pool of
    all languages together, the metrics in this pool end in ``_all_languages``. A question without a
    ranking counts as 0 and is reported. In parallel sets, a question is answered in every language.
    For these, ``language_fairness_at_20`` measures whether the first 20 passages from the pool of
    all languages represent all languages; see ``metrics.language_fairness``.

    Attributes:
        precision: the format of passages in the search: float32, int8, or bits (``binary``);
            ``hamming`` converts the questions to bits too, as binary indexes do.
        rescore: number of candidates that are found in int8 or bits and ranked again in float32,
            100 or more; 0 for none.
        bm25: score BM25 too, and its fusion with the encoder (reciprocal ranks), in the question's
            language.
        bm25_k1: saturation of repeated words, at least 0; lower values saturate sooner.
        bm25_b: strength of the length normalization, 0 to 1.
        bm25_tuned_on: another split of the data set; its questions choose k1 and b for each
            language (``evaluation.baselines.bm25.tune``), by the best MRR@100.
    """

    pools_all: ClassVar[bool] = False

    precision: Literal["float32", "int8", "binary", "hamming"] = "float32"
    rescore: int = 0
    bm25: bool = field(default=False, metadata={"adds": True})
    bm25_k1: float = field(default=DEFAULT_K1, metadata={"adds": True})
    bm25_b: float = field(default=DEFAULT_B, metadata={"adds": True})
    bm25_tuned_on: str = field(default="", metadata={"adds": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        is_exact = self.precision == "float32"
        refuse_unread(self, "rescore", reason="precision = float32", when=is_exact)
        if self.rescore and self.rescore < DEPTH:
            raise ConfigError(
                f"rescore: expected 0 or at least {DEPTH}, the depth of the rankings, found"
                f" {self.rescore}; pass {DEPTH} or more"
            )
        of_bm25 = ("bm25_k1", "bm25_b", "bm25_tuned_on")
        refuse_unread(self, *of_bm25, reason="bm25 = false", when=not self.bm25)
        refuse_unread(
            self, "bm25_k1", "bm25_b", reason="bm25_tuned_on is set", when=bool(self.bm25_tuned_on)
        )
        if self.bm25_tuned_on and not hasattr(self, "split"):
            raise ConfigError(
                f"bm25_tuned_on requires several sets of questions, and {self.name} has one; set"
                " bm25_k1 and bm25_b"
            )
        if self.bm25_tuned_on and self.bm25_tuned_on == getattr(self, "split", ""):
            raise ConfigError(
                "bm25_tuned_on: expected another split than the measured one, found"
                f" {self.bm25_tuned_on!r}"
            )

    def _score(
        self,
        questions: Questions,
        sets: Mapping[str, RetrievalSet],
        pools: Mapping[str, EmbeddedPassages],
    ) -> ScoredQuestions:
        """Score one language among its own passages, with BM25 as a baseline if requested."""
        name = questions.name
        judged = questions.judged
        runs = {"": search_pools(questions, {"": pools[name]}, self._nearest)}
        notes: tuple[str, ...] = ()
        if self.bm25:
            tuned = self._tuned(questions, sets[name])
            if self.bm25_tuned_on:
                notes = (tuning_note(tuned, self.bm25_tuned_on),)
            runs["bm25_"] = self._bm25(questions, sets[name], pools[name].ids, tuned)
            runs["hybrid_"] = reciprocal_rank_fusion([runs[""], runs["bm25_"]])
        # the metrics of a system have its name as a prefix; the encoder's have no prefix
        values = {}
        for system, run in runs.items():
            for metric, of_query in ranking_metrics(judged, run).items():
                values[f"{system}{metric}"] = of_query
        if not self.pools_all:
            missed = misses(runs[""], judged, questions, limit=self.examples, of_all=False)
            return ScoredQuestions(values, runs, missed, notes=notes)
        run = search_pools(questions, pools, self._nearest)
        judged = self._judged_in_all(questions, sets)
        for metric, of_query in ranking_metrics(judged, run).items():
            values[f"{metric}{OF_ALL}"] = of_query
        # the examples are wrong passages from the larger pool
        missed = misses(run, judged, questions, limit=self.examples, of_all=True)
        found = ScoredQuestions(values, {**runs, OF_ALL: run}, missed, notes=notes)
        if not self.parallel or len(sets) < 2:
            return found
        shares = ranked_language_shares(judged, run, list(sets))
        fairness = {FAIRNESS: language_fairness(shares)}
        return found._replace(scores=fairness, tables=shares.tables(name))

    def _nearest(self, queries: Float32[ndarray, "n d"], passages: Any) -> Neighbors:
        """Return the nearest passages, as exactly as ``precision`` and ``rescore`` specify."""
        if self.precision == "float32":
            return exact_nearest(queries, passages)
        if self.precision == "int8":
            codes = CodedVectors.of(passages, "int8")
        else:
            codes = CodedVectors.of(passages, "ubinary")
        # "binary" compares float questions with the bits of passages, "hamming" bits with bits
        signs = self.precision == "hamming"
        return rescored_topk(queries, codes, passages, k=DEPTH, rescore=self.rescore, signs=signs)

    def _sets(self, folder: Path) -> tuple[dict[str, RetrievalSet], dict[str, str]]:
        """Return the chosen sets, each with the split that BM25 is tuned on."""
        sets, codes = super()._sets(folder)
        if not self.bm25_tuned_on:
            return sets, codes
        options: dict[str, Any] = {"split": self.bm25_tuned_on, "bm25_tuned_on": ""}
        other = replace(self, **options)
        names = other.files(folder)
        there = {name or code for name, code in other.codes(names, folder).items()}
        if missing := sorted(set(sets) - there):
            raise DataError(
                f"no questions in {self.bm25_tuned_on} to tune BM25 for {', '.join(missing)};"
                " exclude these languages with --languages",
                path=folder,
            )
        development, _ = other._sets(folder)
        with_development = {
            name: one._replace(development=development[name]) for name, one in sets.items()
        }
        return with_development, codes

    def _tuned(self, questions: Questions, one: RetrievalSet) -> Tuned:
        """Return the parameters of BM25: those of the options, or tuned on other questions."""
        other = one.development
        if other is None:
            return Tuned(self.bm25_k1, self.bm25_b, 0.0)
        ids = PassageIds(questions.language)
        for portion in portions(other.passages(), STREAM_PORTION_TEXTS):
            ids.extend([passage.id for passage in portion])
        ids.close()
        judged = [query for query in other.queries if query in other.qrels]
        relevant = []
        for query in judged:
            relevant.append({key for key, grade in other.qrels[query].items() if grade > 0})
        return tune(
            ids,
            passage_texts(other),
            [other.queries[query] for query in judged],
            relevant,
            language=questions.language,
            depth=DEPTH,
        )

    def _bm25(
        self, questions: Questions, one: RetrievalSet, ids: Sequence[str], tuned: Tuned
    ) -> Run:
        """Return BM25's rankings, over an index of only the queries' words."""
        of_queries = list(questions.texts.values())
        index = BM25Index.build(
            ids,
            passage_texts(one),
            language=questions.language,
            k1=tuned.k1,
            b=tuned.b,
            queries=of_queries,
        )
        found, scores = index.search(of_queries, DEPTH)
        run = {}
        for query, passages, of_query in zip(questions.texts, found, scores, strict=True):
            run[query] = dict(zip(passages, map(float, of_query), strict=True))
        return run


def passage_texts(one: RetrievalSet) -> Iterator[str]:
    """Yield each passage with its title; a collection of millions is never held in memory."""
    for passage in one.passages():
        yield f"{passage.title} {passage.text}".strip()


def tuning_note(tuned: Tuned, split: str) -> str:
    """Return a result's note on which parameters were chosen."""
    chosen = f"k1 = {tuned.k1:g}, b = {tuned.b:g}"
    return f"BM25 with {chosen}, chosen by MRR@100 on {split}, {tuned.mrr:.3f}"
