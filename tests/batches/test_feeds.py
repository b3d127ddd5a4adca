import torch

from interlingua.batches.feeds import (
    LabeledBatch,
    PreparedBatch,
    SentenceBatch,
    rows,
    token_batches,
)
from interlingua.batches.tokens import BatchPosition, ParallelBatch, TokenBatch

SHORT = TokenBatch.from_lists([[1, 2], [3]], ["eng_Latn"] * 2)
LONG = TokenBatch.from_lists([[1, 2, 3, 4], [5], [6, 7]], ["deu_Latn"] * 3)
PAIRS = ParallelBatch(SHORT, SHORT, step=4, first_row=2, seed=9)
LABELED = LabeledBatch(LONG, LONG, torch.tensor([0.0, 1.0, 2.0]), step=4, first_row=3, seed=9)


def test_token_batches_of_any_kind_in_order():
    assert list(token_batches(SHORT)) == [SHORT]
    assert list(token_batches(PAIRS)) == [SHORT, SHORT]
    mixed = {"labeled": LABELED, "monolingual": SentenceBatch(SHORT, step=4)}
    assert [len(batch.input_ids) for batch in token_batches([mixed])] == [7, 7, 3]


def test_rows_are_counted_once_a_feed():
    assert rows(PAIRS) == 2
    assert rows({"labeled": LABELED, "parallel": PAIRS}) == 5


def test_what_is_prepared_of_a_batch_is_not_counted():
    prepared = PreparedBatch(PAIRS, inputs=[LONG, LONG])
    assert rows(prepared) == 2
    assert list(token_batches([prepared])) == [SHORT, SHORT]


def test_places():
    assert PAIRS.place("b") == BatchPosition(seed=9, step=4, side="b", first_row=2)
    assert LABELED.place("a") == BatchPosition(seed=9, step=4, side="a", first_row=3)
    assert SentenceBatch(SHORT, step=1, first_row=5, seed=2).place() == BatchPosition(
        seed=2, step=1, side="a", first_row=5
    )
