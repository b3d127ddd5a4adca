"""What the retrieval tasks share: metrics of the first 100 passages, BM25, fusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from jaxtyping import Float32
from numpy import ndarray

from interlingua.config import refuse_unread
from interlingua.errors import ConfigError
from interlingua.evaluation.bm25 import DEFAULT_B, DEFAULT_K1, BM25Index
from interlingua.evaluation.data.retrieval import RetrievalSet
from interlingua.evaluation.metrics.language_fairness import (
    FAIRNESS,
    language_fairness,
    language_shares,
)
from interlingua.evaluation.metrics.ranking import (
    DEPTH,
    Run,
    ranking_metrics,
    reciprocal_rank_fusion,
)
from interlingua.evaluation.tasks.missed_passages import misses
from interlingua.evaluation.tasks.passage_search import (
    EmbeddedPassages,
    Questions,
    exact_nearest,
    search,
)
from interlingua.evaluation.tasks.passages import OF_ALL, PassageTask, ScoredQuestions
from interlingua.search.topk.approximate import CodedVectors, rescored_topk
from interlingua.search.topk.exact import Neighbors


@dataclass(frozen=True, kw_only=True)
class RetrievalTask(PassageTask):
    """MRR@100, Recall@100 and nDCG@10 of questions among passages, as trec_eval computes them.

    The candidates are the passages in the question's language and, where the protocol has that pool
    too, those of all languages together (metrics ending in ``_all_languages``). A question without
    a ranking counts as 0 and is reported. In parallel sets, where a question is answered in every
    language, ``language_fairness_at_20`` says whether the first 20 of the pool of all languages are
    of all languages; see ``metrics.language_fairness``.

    Attributes:
        precision: what passages are kept in for the search: float32, int8, or bits; hamming has the
            questions in bits too, as binary indexes do.
        rescore: candidates found in int8 or bits that are ranked anew by float32, 100 or more; 0
            for none.
        bm25: score BM25 too, and its fusion with the encoder (reciprocal ranks), in the question's
            language.
        bm25_k1: how soon more of the same word counts for nothing, at least 0.
        bm25_b: how much long passages pay for their length, 0 to 1; both tuned by
            ``interlingua.evaluation.bm25.tune``.
    """

    pools_all: ClassVar[bool] = False

    precision: Literal["float32", "int8", "binary", "hamming"] = "float32"
    rescore: int = 0
    bm25: bool = field(default=False, metadata={"adds": True})
    bm25_k1: float = field(default=DEFAULT_K1, metadata={"adds": True})
    bm25_b: float = field(default=DEFAULT_B, metadata={"adds": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        is_exact = self.precision == "float32"
        refuse_unread(self, "rescore", reason="precision = float32", when=is_exact)
        if self.rescore and self.rescore < DEPTH:
            raise ConfigError(
                f"rescore is {self.rescore}; rankings are {DEPTH} deep, so give {DEPTH} or more,"
                " or 0"
            )
        refuse_unread(self, "bm25_k1", "bm25_b", reason="bm25 = false", when=not self.bm25)

    def _score(
        self,
        questions: Questions,
        sets: Mapping[str, RetrievalSet],
        pools: Mapping[str, EmbeddedPassages],
    ) -> ScoredQuestions:
        """See ``PassageTask._score``."""
        name = questions.name
        judged = questions.judged
        runs = {"": search(questions, {"": pools[name]}, self._nearest)}
        if self.bm25:
            runs["bm25_"] = self._bm25(questions, sets[name], pools[name].ids)
            runs["hybrid_"] = reciprocal_rank_fusion([runs[""], runs["bm25_"]])
        # a system's name stands before its metrics, none for the encoder
        values = {}
        for system, run in runs.items():
            for metric, of_query in ranking_metrics(judged, run).items():
                values[f"{system}{metric}"] = of_query
        if not self.pools_all:
            missed = misses(runs[""], judged, questions, limit=self.examples, of_all=False)
            return ScoredQuestions(values, runs, missed)
        run = search(questions, pools, self._nearest)
        judged = self._judged_in_all(questions, sets)
        for metric, of_query in ranking_metrics(judged, run).items():
            values[f"{metric}{OF_ALL}"] = of_query
        # wrong passages are shown of the larger pool
        missed = misses(run, judged, questions, limit=self.examples, of_all=True)
        found = ScoredQuestions(values, {**runs, OF_ALL: run}, missed)
        if not self.parallel or len(sets) < 2:
            return found
        shares = language_shares(judged, run, list(sets))
        fairness = {FAIRNESS: language_fairness(shares)}
        return found._replace(scores=fairness, tables=shares.tables(name))

    def _nearest(self, queries: Float32[ndarray, "n d"], passages: Any) -> Neighbors:
        """The nearest passages, as exactly as ``precision`` and ``rescore`` say."""
        if self.precision == "float32":
            return exact_nearest(queries, passages)
        if self.precision == "int8":
            codes = CodedVectors.of(passages, "int8")
        else:
            codes = CodedVectors.of(passages, "ubinary")
        # "binary" compares float questions with the bits of passages, "hamming" bits with bits
        signs = self.precision == "hamming"
        return rescored_topk(queries, codes, passages, k=DEPTH, rescore=self.rescore, signs=signs)

    def _bm25(self, questions: Questions, one: RetrievalSet, ids: Sequence[str]) -> Run:
        """The rankings of BM25, over an index of the queries' words alone."""
        # a generator: a collection of millions is never held
        texts = (f"{passage.title} {passage.text}".strip() for passage in one.passages())
        of_queries = list(questions.texts.values())
        index = BM25Index.build(
            ids,
            texts,
            language=questions.language,
            k1=self.bm25_k1,
            b=self.bm25_b,
            queries=of_queries,
        )
        found, scores = index.search(of_queries, DEPTH)
        run = {}
        for query, passages, of_query in zip(questions.texts, found, scores, strict=True):
            run[query] = dict(zip(passages, map(float, of_query), strict=True))
        return run
