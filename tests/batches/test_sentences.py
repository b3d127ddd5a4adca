"""Joining batches and telling repeated sentences."""

from __future__ import annotations

import numpy as np
import torch

from interlingua.batches.sentences import join, sentence_keys
from interlingua.batches.tokens import TokenBatch


def batch_of(*sentences, language="eng_Latn"):
    return TokenBatch.from_lists(sentences, [language] * len(sentences))


def test_join_is_the_batch_of_all_sentences():
    joined = join(batch_of([5, 6], [7]), batch_of([8, 9, 5], language="deu_Latn"))
    expected = TokenBatch.from_lists([[5, 6], [7], [8, 9, 5]], ["eng_Latn", "eng_Latn", "deu_Latn"])
    assert torch.equal(joined.input_ids, expected.input_ids)
    assert torch.equal(joined.cu_seqlens, expected.cu_seqlens)
    assert joined.cu_seqlens.dtype == torch.int32
    assert joined[2:] == expected[2:]


def test_equal_sentences_have_equal_keys_wherever_they_stand():
    here, there = sentence_keys(batch_of([3], [4, 5, 6])), sentence_keys(batch_of([4, 5, 6], [9, 9], [3]))
    assert here.tolist() == [there[2], there[0]]


def test_order_length_and_tokens_matter():
    sentences = [[1, 2], [2, 1], [1], [1, 1], [1, 1, 1], [0, 3], [0], [0, 0]]
    assert len(set(sentence_keys(batch_of(*sentences)).tolist())) == len(sentences)


def test_a_hundred_thousand_short_sentences_do_not_collide():
    first, second = torch.meshgrid(torch.arange(320), torch.arange(320), indexing="ij")
    ids = torch.stack([first, second], dim=2).reshape(-1, 2)
    keys = sentence_keys(TokenBatch.from_flat(ids.flatten().numpy(), np.full(len(ids), 2), ["eng_Latn"] * len(ids)))
    assert len(keys.unique()) == len(ids)
