"""Shared passes: what is encoded, what is reused, and that rows, dropout and gradients stay what
they are."""

from __future__ import annotations

import pytest
import torch

from interlingua.batches.sentences import join
from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.shared_passes import SharedPasses
from tests.methods.conftest import tiny_encoder

A = TokenBatch.from_lists([[10, 11, 12], [13, 14]], ["eng_Latn"] * 2)
B = TokenBatch.from_lists([[15], [10, 11, 12], [16, 17]], ["deu_Latn"] * 3)


def numbered(calls):
    """Build an encoder of tokens to (id, number of the pass), which keeps each pass's sentences."""

    def encode(batch):
        calls.append([ids.tolist() for ids in batch.input_ids.split(batch.lengths.tolist())])
        return torch.stack(
            [batch.input_ids, torch.full_like(batch.input_ids, len(calls))], dim=1
        ).float()

    return encode


def test_a_later_term_encodes_what_is_new_alone():
    passes, calls = SharedPasses(), []
    passes.begin_term()
    passes.states(A, numbered(calls))
    passes.begin_term()
    found = passes.states(B, numbered(calls))
    assert calls == [[[10, 11, 12], [13, 14]], [[15], [16, 17]]]
    assert found.tolist() == [[15, 2], [10, 1], [11, 1], [12, 1], [16, 2], [17, 2]]
    assert (passes.encoded_sentences, passes.reused_sentences) == (4, 1)


def test_a_third_term_reads_both():
    passes, calls = SharedPasses(), []
    for batch in (A, B, join(A, B)):
        passes.begin_term()
        found = passes.states(batch, numbered(calls))
    assert calls[2] == [[10, 11, 12]]  # it comes twice, and was stored once
    assert found[:, 0].tolist() == join(A, B).input_ids.tolist()


def test_a_term_does_not_reuse_its_own_passes():
    passes, calls = SharedPasses(), []
    passes.begin_term()
    first, second = passes.states(A, numbered(calls)), passes.states(A, numbered(calls))
    assert len(calls) == 2
    assert not torch.equal(first, second)
    passes.begin_term()
    both = [passes.states(A, numbered(calls)) for _ in range(2)]
    assert torch.equal(both[0], first)
    assert torch.equal(both[1], second)


def test_repeated_sentences_stay_different_rows():
    passes, calls = SharedPasses(), []
    passes.begin_term()
    passes.states(A, numbered(calls))
    passes.begin_term()
    found = passes.states(join(A, A), numbered(calls))
    assert found[:, 1].tolist() == [1] * 5 + [2] * 5


def test_states_without_gradients_serve_no_term_that_needs_them():
    passes, calls = SharedPasses(), []
    passes.begin_term()
    with torch.no_grad():
        passes.states(A, numbered(calls))
    passes.begin_term()
    passes.states(A, numbered(calls))
    assert len(calls) == 2


@pytest.mark.parametrize("second", [A, B, join(B, A)])
def test_gradients_of_an_encoder_are_those_of_separate_passes(second):
    gradients = []
    for passes in (SharedPasses(), None):
        torch.manual_seed(0)
        encoder = tiny_encoder(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0).train()
        total = 0
        for batch in (A, second):
            if passes is not None:
                passes.begin_term()
            encoder.shared_passes = passes
            total = total + encoder(batch).square().sum() + encoder.tokens(B).states.sin().sum()
        total.backward()
        gradients.append(
            [weight.grad for weight in encoder.parameters() if weight.grad is not None]
        )
    for one, other in zip(*gradients, strict=True):
        assert (one - other).norm() <= 1e-6 * (1 + other.norm())
