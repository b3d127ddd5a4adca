"""Questions with a wrong first passage, kept as examples for people to read.

Passages are not held in memory, so the texts of those that are shown are looked up in one more
pass over the collection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from interlingua.evaluation.data.retrieval import RetrievalSet
from interlingua.evaluation.examples import choose_examples, cut
from interlingua.evaluation.metrics.ranking import Qrels, Run
from interlingua.evaluation.scores import Example
from interlingua.evaluation.tasks.retrieval.passage_search import Questions

PassageKey = tuple[str, str]
"""A set's name, and the id of a passage in it."""


def misses(
    run: Run, qrels: Qrels, questions: Questions, *, limit: int, of_all: bool
) -> list[Example]:
    """Return a bounded sample of the questions with a wrong first passage.

    In place of its text, a passage has the form ``sw/12``: the set's name and the passage's id. The
    expected passage is the first relevant one in the question's own language.

    Args:
        run: rankings, best first.
        qrels: judged questions, each with a relevant passage.
        questions: the same, with their texts.
        limit: maximum number to keep.
        of_all: whether ids of the run and of the qrels start with the set's name.
    """
    names = list(qrels)
    own = "" if of_all else f"{questions.name}/"
    # a question without a ranking has no first passage to show
    first = {query: next(iter(ranked)) for query, ranked in run.items() if ranked}
    is_wrong = np.array(
        [query in first and qrels[query].get(first[query], 0) <= 0 for query in names], dtype=bool
    )
    found = []
    for item in choose_examples(
        is_wrong, [questions.texts.get(query, "") for query in names], limit
    ):
        query = names[item]
        grades = questions.judged[query]
        expected = f"{questions.name}/{next(key for key, grade in grades.items() if grade > 0)}"
        example = Example(
            item=item,
            query=cut(questions.texts[query]),
            expected=expected,
            retrieved=own + first[query],
            # None for a passage that is not among the first 100
            expected_score=run[query].get(expected.removeprefix(own)),
            retrieved_score=run[query][first[query]],
            languages=(questions.language, questions.language),
        )
        found.append(example)
    return found


def with_texts(
    missed: Mapping[str, Sequence[Example]],
    sets: Mapping[str, RetrievalSet],
    codes: Mapping[str, str],
    measure: str,
) -> dict[str, tuple[Example, ...]]:
    """Return the examples with the passages' texts, from one pass over each set with such passages.

    Args:
        missed: subset -> results of ``misses``.
        sets: by name.
        codes: the language of each set.
        measure: name of the scores.
    """
    shown: set[PassageKey] = set()
    for found in missed.values():
        for example in found:
            shown |= {set_and_id(example.expected), set_and_id(example.retrieved)}
    texts: dict[PassageKey, str] = {}
    for name in {name for name, _ in shown}:
        for passage in sets[name].passages():
            if (name, passage.id) in shown:
                # cut at once: a passage may be long, and thousands are shown
                whole = ": ".join(filter(None, (passage.title, passage.text)))
                texts[name, passage.id] = cut(whole)

    def with_text(example: Example) -> Example:
        retrieved = set_and_id(example.retrieved)
        return example._replace(
            # a judged passage need not be in the collection; a retrieved one is
            expected=texts.get(set_and_id(example.expected), "(not among the passages)"),
            retrieved=texts[retrieved],
            languages=(example.languages[0], codes[retrieved[0]]),
            measure=measure,
        )

    return {subset: tuple(map(with_text, found)) for subset, found in missed.items()}


def set_and_id(passage: str) -> PassageKey:
    """Split ``sw/12`` into the set's name and the passage's id in it."""
    name, _, own = passage.partition("/")
    return name, own
