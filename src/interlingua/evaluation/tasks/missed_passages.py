"""Questions with a wrong first passage, kept for a reader: the texts are looked up in one more
pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from interlingua.evaluation.data.retrieval import RetrievalSet
from interlingua.evaluation.examples import cut, sample
from interlingua.evaluation.metrics.ranking import Qrels, Run
from interlingua.evaluation.scores import Example

Place = tuple[str, str]
"""A set's name, and the id of a passage in it."""


class Miss(NamedTuple):
    """A question with a first passage that does not answer it.

    Attributes:
        item: its place among the judged questions.
        query: its text.
        language: of the question.
        expected: the first of the relevant passages in the question's own language.
        retrieved: the passage that came first.
        expected_score: None where that passage was not ranked.
        retrieved_score: of the passage that came first.
    """

    item: int
    query: str
    language: str
    expected: Place
    retrieved: Place
    expected_score: float | None
    retrieved_score: float


def misses(
    run: Run,
    qrels: Qrels,
    queries: Mapping[str, str],
    expected: Mapping[str, str],
    *,
    language: str,
    place: Callable[[str], Place],
    limit: int,
) -> list[Miss]:
    """A bounded sample of the questions with a wrong first passage.

    Args:
        run: rankings, best first.
        qrels: judged questions, each with a relevant passage.
        queries: texts of the questions.
        expected: the passage to show as the right one, of each question.
        language: of the questions.
        place: the set and id that an id of the run stands for.
        limit: how many to keep.
    """
    questions = list(qrels)
    first = {query: next(iter(ranked)) for query, ranked in run.items() if ranked}
    wrong = np.array(
        [query in first and qrels[query].get(first[query], 0) <= 0 for query in questions],
        dtype=bool,
    )
    found = []
    for item in sample(wrong, [queries.get(query, "") for query in questions], limit):
        query = questions[item]
        ranked = run[questions[item]]
        places = place(expected[query]), place(first[query])
        scores = ranked.get(expected[query]), ranked[first[query]]
        found.append(Miss(item, queries[query], language, *places, *scores))
    return found


def with_texts(
    missed: Mapping[str, Sequence[Miss]],
    sets: Mapping[str, RetrievalSet],
    codes: Mapping[str, str],
    measure: str,
) -> dict[str, tuple[Example, ...]]:
    """The examples, with the passages' texts from one pass over those sets that hold any of them.

    Args:
        missed: subset -> its misses.
        sets: by name.
        codes: the language of each set.
        measure: what the scores are.
    """
    wanted = {
        place
        for found in missed.values()
        for miss in found
        for place in (miss.expected, miss.retrieved)
    }
    texts: dict[Place, str] = {}
    for name in dict.fromkeys(name for name, _ in wanted):
        for passage in sets[name].passages():
            if (name, passage.id) in wanted:
                texts[name, passage.id] = cut(
                    ": ".join(filter(None, (passage.title, passage.text)))
                )
    return {
        subset: tuple(
            Example(
                item=miss.item,
                query=cut(miss.query),
                expected=texts.get(miss.expected, "(not among the passages)"),
                retrieved=texts[miss.retrieved],
                expected_score=miss.expected_score,
                retrieved_score=miss.retrieved_score,
                languages=(miss.language, codes[miss.retrieved[0]]),
                measure=measure,
            )
            for miss in found
        )
        for subset, found in missed.items()
    }
