"""LAReQA (Roy et al. 2020): answers in all languages, retrieved from one pool of all languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.errors import count_of
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import choose_languages
from interlingua.evaluation.data.retrieval import RetrievalSet, answer_sentence_sets
from interlingua.evaluation.metrics.average_precision import (
    padded_rows,
    question_average_precision,
    ranks_without,
    relevant_ranks,
)
from interlingua.evaluation.metrics.language_fairness import (
    FAIRNESS,
    FAIRNESS_DEPTH,
    language_fairness,
    ranked_language_shares,
)
from interlingua.evaluation.metrics.ranking import Qrels, Run, ranking_metrics, top
from interlingua.evaluation.tasks.retrieval.missed_passages import misses, set_and_id
from interlingua.evaluation.tasks.retrieval.passage_search import (
    EmbeddedPassages,
    Questions,
    search_pools,
)
from interlingua.evaluation.tasks.retrieval.passages import (
    OF_ALL,
    PassageTask,
    ScoredQuestions,
    keep_passages,
)

MAP = "map"
WITHOUT_OWN = "map_without_own_answer"
_OTHER_LANGUAGES = f"recall_at_{FAIRNESS_DEPTH}_other_languages"


class LAReQA(PassageTask):
    """Mean average precision on XQuAD-R, over one pool of all languages.

    Each question has a right sentence in every language.

    The candidates are the sentences of all paragraphs in all languages, embedded without context.
    The whole ranking counts.

    - ``map``: the answers in all languages are relevant, also that in the question's language;
    - ``map_without_own_answer``: the answer in the question's own language is taken out of the
      pool, so that the first right sentence is in another language; all other sentences of the
      question's language stay;
    - ``recall_at_20_other_languages``: share of the answers in other languages that are among the
      first 20 passages; the question's own answer stays in the pool;
    - ``mrr_at_100``: reciprocal rank of the first right sentence, the same number as
      ``mrr_at_100_all_languages`` of the task ``xquad_r``;
    - ``language_fairness_at_20``: see ``metrics.language_fairness``; its tables have a row per
      language of questions.

    The folder of the data may also be MLQA-R, which has the same form; there, a question has
    answers in only some languages.

    The task differs from the paper: the paper's encoders read an answer sentence together with its
    paragraph; here, only the sentence is embedded, because most encoders take one text.
    """

    name: ClassVar[str] = "lareqa"
    main_metric: ClassVar[str] = MAP
    shown: ClassVar[Sequence[str]] = (WITHOUT_OWN, _OTHER_LANGUAGES, FAIRNESS)
    folders: ClassVar[Sequence[str]] = ("xquad_r", "xquad-r")
    reader: ClassVar = answer_sentence_sets
    expected: ClassVar[str] = "XQuAD-R files (ar.json)"
    parallel: ClassVar[bool] = True
    published: ClassVar[str | None] = "xquad_r"
    paper_groups: ClassVar[Mapping[str, Sequence[str]]] = {
        "lareqa": ("ar", "de", "el", "en", "es", "hi", "ru", "th", "tr", "vi", "zh")
    }
    least_languages: ClassVar[int] = 2

    def embed(self, encoder: CachedEncoder, data: Path) -> None:
        """Embed the passages and questions of the chosen languages; one language is enough."""
        folder = self.find(data)
        files = self.files(folder)
        codes = self.codes(files, folder)
        for name in choose_languages(self.languages, codes, {}, folder):
            one = files[name]()
            keep_passages(encoder, list(one.passages()), codes[name])
            encoder.encode([*one.queries.values()], language=codes[name], role="query")

    def _score(
        self,
        questions: Questions,
        sets: Mapping[str, RetrievalSet],
        pools: Mapping[str, EmbeddedPassages],
    ) -> ScoredQuestions:
        """Score the questions of one language among the passages of all languages."""
        name = questions.name
        judged = self._judged_in_all(questions, sets)
        notes = []
        if count := len(judged) - len(_answered_elsewhere(name, judged)):
            notes.append(
                f"without an answer in another language, scored only in {MAP}:"
                f" {count_of(count, 'questions')}"
            )
        # average precision takes the whole ranking, all other metrics the first 100 passages
        run = search_pools(questions, pools)
        values = {
            **_average_precisions(questions, judged, pools),
            _OTHER_LANGUAGES: _recall_in_other_languages(name, judged, run),
            "mrr_at_100": ranking_metrics(judged, run)["mrr_at_100"],
        }
        shares = ranked_language_shares(judged, run, list(sets))
        return ScoredQuestions(
            values,
            {OF_ALL: run},
            misses(run, judged, questions, limit=self.examples, of_all=True),
            {FAIRNESS: language_fairness(shares)},
            shares.tables(name),
            notes,
        )


def _average_precisions(
    questions: Questions, judged: Qrels, pools: Mapping[str, EmbeddedPassages]
) -> dict[str, dict[str, float]]:
    """Compute ``map`` and ``map_without_own_answer`` of each judged question.

    The latter exists only for questions with an answer in another language. A question without a
    text counts as 0.
    """
    name = questions.name
    values = {
        MAP: dict.fromkeys(judged, 0.0),
        WITHOUT_OWN: dict.fromkeys(_answered_elsewhere(name, judged), 0.0),
    }
    if not questions.texts:
        return values
    ids, candidates = _whole_pool(pools)
    row_of = {passage: row for row, passage in enumerate(ids)}
    is_own = np.array([set_and_id(passage)[0] == name for passage in ids])
    rows = []
    for query in questions.texts:
        rows.append([row_of[passage] for passage in _right(judged[query]) if passage in row_of])
    relevant = padded_rows(rows)
    ranks = relevant_ranks(questions.vectors, candidates, relevant)
    # counted in the judgments and not in the pool: an answer that is not in the pool counts as
    # never found
    counts = np.array([len(_right(judged[query])) for query in questions.texts])
    others = np.array([len(_in_other_languages(name, judged[query])) for query in questions.texts])
    # padding reads the entry of passage 0; this has no effect, because padding has rank 0
    removed = is_own[np.maximum(relevant, 0)]
    found = {
        MAP: question_average_precision(ranks, counts),
        WITHOUT_OWN: question_average_precision(ranks_without(ranks, removed), others),
    }
    for metric, precisions in found.items():
        for query, precision in zip(questions.texts, precisions.tolist(), strict=True):
            if query in values[metric]:
                values[metric][query] = precision
    return values


def _whole_pool(pools: Mapping[str, EmbeddedPassages]) -> tuple[list[str], Float32[ndarray, "m d"]]:
    """Return the passages of all languages as ``language/id`` with their vectors, in memory.

    The last id comes first: of passages with equal similarity, trec_eval ranks the later id higher.
    """
    ids = [f"{name}/{passage}" for name, pool in pools.items() for passage in pool.ids]
    vectors = np.concatenate([np.asarray(pool.vectors) for pool in pools.values()])
    # of equals, relevant_ranks ranks the earlier row first, so the order of rows decides ties
    order = sorted(range(len(ids)), key=ids.__getitem__, reverse=True)
    return [ids[row] for row in order], vectors[order]


def _recall_in_other_languages(name: str, judged: Qrels, run: Run) -> dict[str, float]:
    """Compute the share of a question's answers in other languages among the first 20 passages.

    Questions without such answers are left out.
    """
    values = {}
    for query in _answered_elsewhere(name, judged):
        others = _in_other_languages(name, judged[query])
        first = top(run.get(query, {}), FAIRNESS_DEPTH)
        values[query] = sum(passage in first for passage in others) / len(others)
    return values


def _answered_elsewhere(name: str, judged: Qrels) -> list[str]:
    return [query for query, grades in judged.items() if _in_other_languages(name, grades)]


def _in_other_languages(name: str, grades: Mapping[str, int]) -> list[str]:
    return [passage for passage in _right(grades) if set_and_id(passage)[0] != name]


def _right(grades: Mapping[str, int]) -> list[str]:
    return [passage for passage, grade in grades.items() if grade > 0]
