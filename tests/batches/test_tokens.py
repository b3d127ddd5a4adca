from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.batches.tokens import TokenBatch
from interlingua.errors import DataError

LISTS = [[5, 6, 7], [8], [9, 10]]
LANGUAGES = ["deu_Latn", "eng_Latn", "fra_Latn"]


@pytest.fixture
def batch():
    return TokenBatch.from_lists(LISTS, LANGUAGES)


def test_sequences_stand_behind_one_another(batch):
    assert batch.input_ids.tolist() == [5, 6, 7, 8, 9, 10]
    assert batch.input_ids.dtype == torch.int64
    assert batch.cu_seqlens.tolist() == [0, 3, 4, 6]
    assert batch.cu_seqlens.dtype == torch.int32
    assert (batch.max_seqlen, batch.batch_size, batch.languages) == (3, 3, tuple(LANGUAGES))
    assert batch.lengths.tolist() == [3, 1, 2]


def test_arrays_and_flat_input_pack_like_lists(batch):
    arrays = TokenBatch.from_lists([np.asarray(ids, dtype=np.uint16) for ids in LISTS], LANGUAGES)
    flat = TokenBatch.from_flat(np.arange(5, 11), np.asarray([3, 1, 2]), LANGUAGES)
    for other in (arrays, flat):
        assert torch.equal(other.input_ids, batch.input_ids)
        assert torch.equal(other.cu_seqlens, batch.cu_seqlens)


def test_every_token_knows_its_sequence_and_position(batch):
    assert batch.sequence_ids().tolist() == [0, 0, 0, 1, 2, 2]
    assert batch.positions().tolist() == [0, 1, 2, 0, 0, 1]


def test_padding_is_a_view_on_demand(batch):
    ids, mask = batch.padded(0)
    assert ids.tolist() == [[5, 6, 7], [8, 0, 0], [9, 10, 0]]
    assert mask.tolist() == [[True, True, True], [True, False, False], [True, True, False]]
    assert torch.equal(ids[mask], batch.input_ids)


@pytest.mark.parametrize(
    ("lists", "languages", "message"),
    [
        ([], [], "at least one sequence"),
        ([[1], []], ["eng_Latn"] * 2, "sequence 1 .*no tokens"),
        ([[1], [2]], ["eng_Latn"], "2 sequences with 1 languages"),
    ],
)
def test_what_can_not_be_a_batch_is_refused(lists, languages, message):
    with pytest.raises(DataError, match=message):
        TokenBatch.from_lists(lists, languages)


def test_lengths_must_sum_to_the_tokens():
    with pytest.raises(DataError, match=r"3 tokens, .* 4"):
        TokenBatch.from_flat(np.arange(4), np.asarray([1, 2]), ["eng_Latn"] * 2)
