from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pytest

from interlingua.batches.questions import QuestionPlan, QuestionRows
from interlingua.batches.table import TokenColumn
from interlingua.errors import ConfigError

QUESTIONS, PASSAGES = 10, 25
NEGATIVES = [[20, 21, 22, 23], [], [20], [21, 22], [1, 2], [], [24, 0, 1], [3], [4, 5, 6, 7], []]


def column(count, offset):
    return TokenColumn(
        [[offset + row] * (1 + row % 4) for row in range(count)], ["eng_Latn"] * count
    )


def rows(hard_negatives=2, **changes):
    values = {
        "questions": column(QUESTIONS, 100),
        "passages": column(PASSAGES, 200),
        "positives": np.asarray([0, 1, 2, 3, 4, 5, 6, 7, 8, 8]),
        "negatives": np.asarray([row for listed in NEGATIVES for row in listed]),
        "negative_counts": np.asarray(list(map(len, NEGATIVES))),
        "hard_negatives": hard_negatives,
        **changes,
    }
    return QuestionRows(**values)


def plan(hard_negatives=2, *, seed=3, size=4):
    return QuestionPlan(rows(hard_negatives), global_batch_size=size, seed=seed)


def numbers(batch, offset):
    return (batch.input_ids[batch.cu_seqlens[:-1].long()] - offset).tolist()


def read(found, step, **share):
    """(question, passages: the answer, then the hard negatives) of each row of a step."""
    batch = found.batch_at(step, **share)
    asked, answers = numbers(batch.questions, 100), numbers(batch.passages, 200)
    rest = np.asarray(answers[len(asked) :], dtype=int).reshape(len(asked), -1)
    return [(question, answers[row], *rest[row]) for row, question in enumerate(asked)]


def test_a_batch_larger_than_a_pass_is_refused():
    assert sorted(question for question, *_ in read(plan(size=10), 0)) == list(range(10))
    with pytest.raises(ConfigError, match=r"11 questions, .*10"):
        plan(size=11)


def test_answers_come_first_and_hard_negatives_behind():
    found = [row for step in range(5) for row in read(plan(), step)]
    for question, answer, *negatives in found:
        assert answer == rows().positives[question]
        assert len(negatives) == 2
        own = NEGATIVES[question]
        assert set(negatives[: len(own)]) <= set(own)
        assert len(set(negatives[: len(own)])) == min(2, len(own))  # without repetition
        assert answer not in negatives
    assert Counter(question for question, *_ in found) == dict.fromkeys(range(QUESTIONS), 2)


def test_without_hard_negatives_there_are_the_answers_alone():
    batch = plan(0).batch_at(1)
    assert batch.passages.batch_size == batch.questions.batch_size == 4
    assert (batch.step, batch.first_row, batch.seed) == (1, 0, 3)


def test_hard_negatives_are_drawn_by_seed_pass_and_question_alone():
    steps = 200
    found, again = (
        [read(plan(), step) for step in order] for order in (range(steps), range(steps))
    )
    assert found == again
    assert read(plan(), 33) == found[33]
    # the same draws whatever the batch size
    flat = [row for step in found for row in step]
    assert [row for step in range(100) for row in read(plan(size=8), step)] == flat
    assert [row for step in range(50) for row in read(plan(seed=4), step)] != flat[:200]


def test_every_hard_negative_has_its_turn():
    passes = np.arange(400)
    drawn = plan(1).negatives_at(np.zeros(400, dtype=np.int64), passes)[:, 0]
    counts = Counter(drawn.tolist())
    assert set(counts) == set(NEGATIVES[0])
    assert min(counts.values()) > 60  # of 100 expected


def test_questions_without_any_get_passages_of_others():
    found = plan(2).negatives_at(np.full(500, 5, dtype=np.int64), np.arange(500))
    assert set(found.reshape(-1).tolist()) == set(range(PASSAGES)) - {5}
    assert len({tuple(row) for row in found.tolist()}) > 200


def test_ranks_and_micro_batches_share_a_step():
    found = plan()
    parts = [read(found, 7, rank=rank, world_size=2) for rank in range(2)]
    assert parts[0] + parts[1] == read(found, 7)
    assert found.batch_at(7, rank=1, world_size=2).first_row == 2


def test_what_is_said_about_a_plan():
    found = plan()
    assert found.epoch_size == QUESTIONS
    assert found.seen(5) == {"questions": 20}
    assert (len(rows()), rows().longest) == (QUESTIONS, 4)


@pytest.mark.parametrize(
    "changes",
    [
        {"questions": column(QUESTIONS, 101)},
        {"passages": column(PASSAGES, 201)},
        {"positives": np.arange(10)},
        {"negatives": np.arange(len(rows().negatives))},
        {"negative_counts": rows().negative_counts[::-1].copy()},
        {"hard_negatives": 1},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_the_digest_sees_everything(changes):
    assert rows().digest == rows().digest
    assert dataclasses.replace(rows(), **changes).digest != rows().digest
