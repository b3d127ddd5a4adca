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
    """Return (question, passages: answer, then hard negatives) of each row of a step."""
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


def blocked(block, *, size=4, seed=3):
    """Build ten questions: six German ones (even numbers, and 9), three French, one Thai."""
    codes = ["deu_Latn", "fra_Latn"] * 3 + ["deu_Latn", "tha_Thai", "deu_Latn", "deu_Latn"]
    questions = TokenColumn([[100 + row] for row in range(QUESTIONS)], codes)
    return codes, QuestionPlan(
        rows(questions=questions), global_batch_size=size, seed=seed, language_block=block
    )


def test_blocks_are_of_one_language():
    codes, found = blocked(2, size=4)
    # Three blocks of German, one of French; the Thai question has no block.
    assert found.epoch_size == 8
    seen = Counter()
    for step in range(40):
        asked = [question for question, *_ in read(found, step)]
        seen.update(asked)
        assert [codes[row] for row in asked[::2]] == [codes[row] for row in asked[1::2]]
        assert len(set(asked)) == 4
    # A pass leaves out one of the three French questions, another one each time.
    assert set(seen) == set(range(QUESTIONS)) - {7}
    assert all(seen[row] == 20 for row in range(QUESTIONS) if codes[row] == "deu_Latn")
    assert len({tuple(read(found, step)) for step in range(40)}) == 40


def test_blocks_are_shared_by_ranks_and_never_longer_than_a_pass():
    _, found = blocked(2)
    whole = read(found, 5)
    shares = [read(found, 5, rank=rank, world_size=2) for rank in range(2)]
    assert [*shares[0], *shares[1]] == whole
    with pytest.raises(ConfigError, match=r"10 questions, .*8"):
        blocked(2, size=10)


def test_a_block_of_one_is_the_plain_order():
    _, found = blocked(1)
    plain = plan()
    assert [question for question, *_ in read(found, 2)] == [
        question for question, *_ in read(plain, 2)
    ]
