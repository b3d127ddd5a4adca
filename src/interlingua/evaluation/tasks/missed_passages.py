"""Questions with a wrong first passage, kept for a reader.

Passages are not held in memory, so the texts of those that are shown are looked up in one more
pass over the collection.
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
    # a question without a ranking has no first passage to show
    first = {query: next(iter(ranked)) for query, ranked in run.items() if ranked}
    is_wrong = np.array(
        [query in first and qrels[query].get(first[query], 0) <= 0 for query in questions],
        dtype=bool,
    )
    found = []
    for item in sample(is_wrong, [queries.get(query, "") for query in questions], limit):
        query = questions[item]
        ranked = run[query]
        miss = Miss(
            item=item,
            query=queries[query],
            language=language,
            expected=place(expected[query]),
            retrieved=place(first[query]),
            # None for a passage that is not among the first 100
            expected_score=ranked.get(expected[query]),
            retrieved_score=ranked[first[query]],
        )
        found.append(miss)
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
    shown: set[Place] = set()
    for found in missed.values():
        for miss in found:
            shown |= {miss.expected, miss.retrieved}
    texts: dict[Place, str] = {}
    for name in {name for name, _ in shown}:
        for passage in sets[name].passages():
            if (name, passage.id) in shown:
                # cut at once: a passage may be long, and thousands are shown
                whole = ": ".join(filter(None, (passage.title, passage.text)))
                texts[name, passage.id] = cut(whole)

    def example_of(miss: Miss) -> Example:
        return Example(
            item=miss.item,
            query=cut(miss.query),
            # a judged passage need not be in the collection; a retrieved one is
            expected=texts.get(miss.expected, "(not among the passages)"),
            retrieved=texts[miss.retrieved],
            expected_score=miss.expected_score,
            retrieved_score=miss.retrieved_score,
            languages=(miss.language, codes[miss.retrieved[0]]),
            measure=measure,
        )

    return {subset: tuple(map(example_of, found)) for subset, found in missed.items()}
