"""Large batches in parts: values and gradients as without, memory less."""

from __future__ import annotations

import pytest
import torch

from interlingua.batches.sentences import split_batch
from interlingua.batches.tokens import TokenBatch
from tests.encoder.conftest import tiny_vocabulary
from tests.encoder.shapes import tiny_encoder


def encoder_of(*, dropout=0.0, dtype=torch.float64, pooling="mean"):
    shape = {
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 128,
        "max_position_embeddings": 32,
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": dropout,
    }
    return tiny_encoder(tiny_vocabulary(frame=True), pooling, **shape).to(dtype).train()


def sentences(count):
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(2, 20, (count,), generator=generator).tolist()
    ids = [torch.randint(5, 100, (length,), generator=generator).tolist() for length in lengths]
    return TokenBatch.from_lists(ids, ["eng_Latn"] * count)


def contrast(embeddings):
    """Contrast every sentence with every other, so that no gradient depends on one part only."""
    x, y = torch.nn.functional.normalize(embeddings, dim=1).chunk(2)
    return torch.nn.functional.cross_entropy(x @ y.T / 0.1, torch.arange(len(x)))


def gradients(encoder, loss):
    encoder.zero_grad()
    loss.backward()
    return {
        name: weight.grad.clone()
        for name, weight in encoder.named_parameters()
        if weight.grad is not None
    }


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("size", [1, 5, 12, 50])
def test_value_and_gradients_are_the_plain_ones(size, pooling):
    encoder, batch = encoder_of(pooling=pooling), sentences(12)
    plain = contrast(encoder(batch))
    expected = gradients(encoder, plain)
    encoder.gradcache_sentences = size
    loss = contrast(encoder(batch))
    torch.testing.assert_close(loss, plain, rtol=1e-12, atol=0)
    found = gradients(encoder, loss)
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-10, atol=1e-12)


def test_token_states_and_their_gradients_are_the_plain_ones():
    encoder, batch = encoder_of(), sentences(12)
    plain = encoder.tokens(batch)
    weights = torch.randn_like(plain.states)
    expected = gradients(encoder, (plain.states * weights).sum())
    encoder.gradcache_sentences = 5
    hidden = encoder.tokens(batch)
    torch.testing.assert_close(hidden.states, plain.states, rtol=1e-12, atol=1e-12)
    assert torch.equal(hidden.cu_seqlens, plain.cu_seqlens)
    assert torch.equal(hidden.special, plain.special)
    for name, gradient in gradients(encoder, (hidden.states * weights).sum()).items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("dropout", "autocast"), [(0.3, False), (0.0, True)])
def test_it_is_bit_for_bit_the_same_parts_held_at_once(dropout, autocast):
    """Use dropout and autocast, which is stored for the second pass."""
    encoder, batch = encoder_of(dropout=dropout, dtype=torch.float32), sentences(12)

    def computed(embed):
        torch.manual_seed(5)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = contrast(embed())
        # Outside of autocast, as in the loop.
        return loss, torch.rand(3), gradients(encoder, loss)

    plain, after, expected = computed(
        lambda: torch.cat([encoder(p) for p in split_batch(batch, 5)])
    )
    encoder.gradcache_sentences = 5
    loss, drawn, found = computed(lambda: encoder(batch))
    assert torch.equal(loss, plain)
    assert torch.equal(drawn, after)
    # But for the rows of word embeddings, which are looked up once here and for each part there.
    table = "backbone.word_embeddings.weight"
    assert all(torch.equal(found[name], expected[name]) for name in expected.keys() - {table})
    torch.testing.assert_close(found[table], expected[table])


def test_the_second_pass_leaves_the_random_numbers_where_they_were():
    encoder, batch = encoder_of(dropout=0.3), sentences(12)
    encoder.gradcache_sentences = 5
    loss = contrast(encoder(batch))
    state = torch.get_rng_state()
    loss.backward()
    assert torch.equal(torch.get_rng_state(), state)


@torch.no_grad()
def test_without_gradients_parts_are_only_computed_once():
    encoder, batch = encoder_of(), sentences(12)
    plain, calls = encoder(batch), []
    encoder.gradcache_sentences = 5
    encoder.backbone.register_forward_hook(lambda *_: calls.append(1))
    torch.testing.assert_close(encoder(batch), plain, rtol=1e-12, atol=1e-12)
    assert len(calls) == 3


def peak_bytes(run):
    """Return the peak of allocated memory."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        run()
    events = [
        event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"
    ]
    now = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return most


def test_a_batch_costs_the_memory_of_one_part():
    encoder, batch = encoder_of(dtype=torch.float32), sentences(128)

    def run():
        contrast(encoder(batch)).backward()

    run()  # the gradients are there from now on
    plain = peak_bytes(run)
    encoder.gradcache_sentences = 8
    parts = peak_bytes(run)
    assert parts < plain / 4
