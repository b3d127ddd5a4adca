from __future__ import annotations

import numpy as np

from interlingua.corpus.formats.questions import PoolPassage
from interlingua.evaluation.scores import Example
from interlingua.evaluation.tasks.retrieval.missed_passages import misses, with_texts
from interlingua.evaluation.tasks.retrieval.passage_search import Questions

QRELS = {"q1": {"p1": 1}, "q2": {"p2": 1, "p9": 0}, "q3": {"p3": 2}, "q4": {"p4": 1}}
RUN = {
    "q1": {"p1": 0.9, "p2": 0.1},
    "q2": {"p9": 0.8, "p2": 0.7},
    "q3": {"p1": 0.5},
    "q5": {"p1": 1.0},
}
QUERIES = {"q1": "first?", "q2": "second?", "q3": "third?"}
QUESTIONS = Questions("sw", "swh_Latn", QRELS, QUERIES, np.zeros((3, 1), np.float32))


class Set:
    """A retrieval set that counts how often its passages are read."""

    def __init__(self, **texts):
        self.texts, self.passes = texts, 0

    def passages(self):
        self.passes += 1
        return (
            PoolPassage(name, "Title" if name == "p9" else "", text)
            for name, text in self.texts.items()
        )


def found(limit=10):
    return misses(RUN, QRELS, QUESTIONS, limit=limit, of_all=False)


def test_questions_whose_first_passage_is_wrong():
    # q1 is right; q4 has no ranking, so there is nothing to show; a passage judged 0 is wrong
    languages = ("swh_Latn", "swh_Latn")
    assert {one.query: one for one in found()} == {
        "second?": Example(1, "second?", "sw/p2", "sw/p9", 0.7, 0.8, languages),
        "third?": Example(2, "third?", "sw/p3", "sw/p1", None, 0.5, languages),
    }
    assert len(found(1)) == 1
    assert found(0) == []


def test_texts_come_from_one_pass():
    one, other = Set(p1="eins", p2="zwei", p9="neun"), Set(p1="never read")
    examples = with_texts(
        {"sw": found()}, {"sw": one, "fi": other}, {"sw": "swh_Latn", "fi": "fin_Latn"}, "cosine"
    )
    by_query = {example.query: example for example in examples["sw"]}
    assert (by_query["second?"].expected, by_query["second?"].retrieved) == ("zwei", "Title: neun")
    assert by_query["third?"].expected == "(not among the passages)"
    assert by_query["third?"].retrieved == "eins"
    assert by_query["third?"].languages == ("swh_Latn", "swh_Latn")
    assert (one.passes, other.passes) == (1, 0)
