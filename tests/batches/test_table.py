import numpy as np
import pytest

from interlingua.batches.table import (
    LabeledPlan,
    LabeledRows,
    SentencePlan,
    ShuffledPlan,
    TokenColumn,
)
from interlingua.batches.tokens import TokenBatch
from interlingua.errors import ConfigError, DataError

from .conftest import assert_same

IDS = [[row] * (1 + row % 3) for row in range(1, 12)]


@pytest.fixture
def column():
    return TokenColumn(IDS, [f"l{row}" for row in range(11)])


def test_rows_come_back_in_the_order_asked(column):
    expected = TokenBatch.from_lists([IDS[7], IDS[0], IDS[7]], ["l7", "l0", "l7"])
    assert_same(column.read(np.asarray([7, 0, 7])), expected)
    assert (len(column), column.longest) == (11, 3)


def test_the_digest_knows_where_a_sequence_ends():
    one, other = (TokenColumn(ids, ["eng_Latn"] * 2) for ids in ([[1, 2], [3]], [[1], [2, 3]]))
    assert one.digest != other.digest


@pytest.mark.parametrize("ids", [[], [[1], []]])
def test_no_sequences_are_an_error(ids):
    with pytest.raises(DataError, match="an empty one"):
        TokenColumn(ids, ["eng_Latn"] * len(ids))


def test_every_pass_has_every_row_once_in_an_order_of_its_own():
    plan = ShuffledPlan(10, global_batch_size=4, seed=3, purpose="test")
    found, passes = np.concatenate([plan.rows_at(step) for step in range(5)], axis=1)
    assert sorted(found[:10]) == sorted(found[10:]) == list(range(10))
    assert list(found[:10]) != list(found[10:])
    assert passes.tolist() == [0] * 10 + [1] * 10
    other = ShuffledPlan(10, global_batch_size=4, seed=3, purpose="other")
    assert list(found[:4]) != list(other.rows_at(0)[0])


def test_ranks_share_a_step():
    plan = ShuffledPlan(100, global_batch_size=6, seed=0, purpose="test")
    parts = [plan.rows_at(8, rank=rank, world_size=3)[0] for rank in range(3)]
    assert np.concatenate(parts).tolist() == plan.rows_at(8)[0].tolist()
    with pytest.raises(ConfigError, match="evenly among 4"):
        plan.rows_at(0, world_size=4)


@pytest.mark.parametrize(("count", "size"), [(0, 4), (4, 0)])
def test_orders_of_nothing_are_errors(count, size):
    with pytest.raises(ConfigError, match="at least 1"):
        ShuffledPlan(count, global_batch_size=size, seed=0, purpose="test")


def test_labels_stay_with_their_pairs(column):
    other = TokenColumn([[ids[0], 99] for ids in IDS], ["x"] * 11)
    rows = LabeledRows(column, other, np.arange(1, 12, dtype=np.float32))
    plan = LabeledPlan(rows, global_batch_size=4, seed=1)
    for step in range(6):
        for rank in range(2):
            batch = plan.batch_at(step, rank=rank, world_size=2)
            for side in (batch.a, batch.b):
                first_ids = side.input_ids[side.cu_seqlens[:-1].long()]
                assert first_ids.tolist() == batch.labels.tolist()
            assert (batch.step, batch.first_row, batch.seed) == (step, 2 * rank, 1)
    assert (plan.epoch_size, len(rows), rows.longest, plan.seen(3)) == (11, 11, 3, {"labeled": 12})


def test_the_digest_of_labeled_rows_sees_a_label(column):
    one, other = (
        LabeledRows(column, column, np.full(11, value, dtype=np.float32)) for value in (0, 1)
    )
    assert one.digest != other.digest


def test_sentences(column):
    plan = SentencePlan(column, global_batch_size=11, seed=4)
    assert sorted(plan.batch_at(0).sentences.languages) == sorted(column.languages)
    assert (plan.epoch_size, plan.seen(2)) == (11, {"monolingual": 22})
