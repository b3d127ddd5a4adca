from __future__ import annotations

import dataclasses

import pytest
import torch
from torch.nn import functional as F
from transformers.activations import ACT2FN

from interlingua.encoder.modeling.backbone import ACTIVATIONS, PRESETS, Backbone, BackboneConfig
from interlingua.errors import ConfigError
from tests.encoder.shapes import (
    JINA_BERT,
    JINA_BERT_QK_NORM,
    MODERNBERT,
    states_of,
    tiny_backbone,
)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_activations_are_those_of_hugging_face(activation):
    x = torch.linspace(-6, 6, 1001)
    assert torch.allclose(ACTIVATIONS[activation].function(x), ACT2FN[activation](x), atol=1e-6)


@pytest.mark.parametrize("shape", [{}, MODERNBERT, JINA_BERT, JINA_BERT_QK_NORM])
def test_a_sentence_does_not_see_its_neighbors(shape, random_batch):
    backbone = tiny_backbone(**shape)
    batch = random_batch([6, 2, 6, 31, 1])
    together = states_of(backbone, batch).split([6, 2, 6, 31, 1])
    for ids, states in zip(batch.input_ids.split([6, 2, 6, 31, 1]), together, strict=True):
        alone = backbone(ids, torch.tensor([0, len(ids)], dtype=torch.int32))
        torch.testing.assert_close(alone, states, atol=1e-5, rtol=1e-5)


def test_given_word_embeddings_take_the_place_of_the_table(encoder, random_batch):
    backbone, batch = encoder.backbone, random_batch([3, 8, 5])
    rows = backbone.word_embeddings(batch.input_ids).detach().requires_grad_()
    states = backbone(batch.input_ids, batch.cu_seqlens, word_embeddings=rows)
    assert torch.equal(states, states_of(backbone, batch))
    states[3:11].square().sum().backward()  # the second sentence
    touched = rows.grad.abs().sum(1) > 0
    assert touched.tolist() == [False] * 3 + [True] * 8 + [False] * 5


def test_dropout_acts_in_training_only(encoder, random_batch):
    backbone, batch = encoder.backbone, random_batch([5, 9])
    still = states_of(backbone, batch)
    assert torch.equal(still, states_of(backbone, batch))
    backbone.train()
    noisy = states_of(backbone, batch)
    assert not torch.equal(noisy, states_of(backbone, batch))
    assert F.cosine_similarity(noisy.flatten(), still.flatten(), dim=0) > 0.5


def test_bfloat16_autocast_stays_close(encoder, random_batch):
    backbone, batch = encoder.backbone, random_batch([5, 9, 30])
    exact = states_of(backbone, batch)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = states_of(backbone, batch)
    assert rounded.dtype == torch.bfloat16
    assert F.cosine_similarity(exact, rounded.float()).min() > 0.999


def test_ems_base_has_the_papers_number_of_parameters():
    with torch.device("meta"):
        backbone = Backbone(BackboneConfig.preset("ems-base", vocab_size=60_000))
    # one row less than the released code's 121 positions, of which row 0 belongs to padding
    assert sum(parameter.numel() for parameter in backbone.parameters()) + 1024 == 137_143_296
    assert backbone.config.hidden_act == "silu"
    assert backbone.config.max_tokens == 120


@pytest.mark.parametrize(("scheme", "std"), [("torch", 1.0), ("bert", 0.02)])
def test_initialization(scheme, std):
    torch.manual_seed(0)
    backbone = Backbone(BackboneConfig.preset("ems-tiny", vocab_size=500))
    backbone.initialize(scheme)
    words, query = backbone.requires_grad_(False).word_embeddings.weight, backbone.layers[0].query
    assert words[1:].std() == pytest.approx(std, rel=0.03)
    assert not words[0].any()
    assert (query.bias == 0).all() == (scheme == "bert")
    if scheme == "torch":  # uniform in +-1/sqrt(fan in)
        assert query.weight.abs().max() <= 32**-0.5
        assert query.weight.std() == pytest.approx(32**-0.5 / 3**0.5, rel=0.1)
    else:
        assert query.weight.std() == pytest.approx(0.02, rel=0.1)


def test_mistakes_in_the_shape_are_named():
    config = BackboneConfig.preset("ems-tiny", vocab_size=10)
    with pytest.raises(ConfigError, match=r"32 .* 5 attention heads"):
        dataclasses.replace(config, num_attention_heads=5)
    with pytest.raises(ConfigError, match="unknown hidden_act 'gelou'"):
        dataclasses.replace(config, hidden_act="gelou")
    with pytest.raises(ConfigError, match=r"unknown preset 'ems-smal'.*ems-small"):
        BackboneConfig.preset("ems-smal", vocab_size=10)
    with pytest.raises(ConfigError) as caught:
        BackboneConfig.preset("nothing-like-it", vocab_size=10)
    assert str(caught.value).count("ems-tiny") == 1
    assert set(PRESETS) == {"ems-base", "ems-small", "ems-tiny"}


def test_attention_dropout_can_be_set_and_is_not_saved_with_the_model():
    config = BackboneConfig(
        vocab_size=9, hidden_size=8, num_attention_heads=2, attention_probs_dropout_prob=0.3
    )
    backbone = Backbone(config).train()
    assert {layer.dropout_rates()[1] for layer in backbone.layers} == {0.3}
    backbone.set_attention_dropout(0.05)
    assert {layer.dropout_rates()[1] for layer in backbone.layers} == {0.05}
    assert backbone.config == config
    assert {layer.dropout_rates() for layer in backbone.eval().layers} == {(0.0, 0.0)}
    with pytest.raises(ConfigError, match=r"attention dropout: .*found 1\.0"):
        backbone.set_attention_dropout(1.0)


@torch.no_grad()
def test_given_positions_take_the_place_of_those_in_the_sequence(encoder, random_batch):
    batch = random_batch([3, 5, 2])
    own = torch.tensor([0, 1, 2, 0, 1, 2, 3, 4, 0, 1])
    expected = states_of(encoder.backbone, batch)
    torch.testing.assert_close(
        encoder.backbone(batch.input_ids, batch.cu_seqlens, positions=own), expected
    )
    shifted = encoder.backbone(batch.input_ids, batch.cu_seqlens, positions=own + (own == 4))
    changed = (shifted != expected).any(dim=1)
    assert changed.tolist() == [False] * 3 + [True] * 5 + [False] * 2


@torch.no_grad()
def test_states_of_a_lower_layer(encoder, random_batch):
    batch = random_batch([3, 5, 2])
    first = encoder.backbone(batch.input_ids, batch.cu_seqlens, num_layers=1)
    whole = states_of(encoder.backbone, batch)
    assert torch.equal(encoder.backbone(batch.input_ids, batch.cu_seqlens, num_layers=2), whole)
    del encoder.backbone.layers[1:]
    assert torch.equal(states_of(encoder.backbone, batch), first)


@pytest.mark.parametrize(("shape", "autocast"), [({}, False), ({}, True), (MODERNBERT, False)])
def test_recomputed_activations_give_the_same_gradients_and_are_not_kept(
    random_batch, shape, autocast
):
    backbone = tiny_backbone(hidden_dropout_prob=0.2, **shape).train()
    batch = random_batch([7, 3, 12])
    found, kept = [], []
    for recomputes in (False, True):
        for layer in backbone.layers:
            layer.recomputes = recomputes
        sizes = []
        torch.manual_seed(1)
        with torch.autograd.graph.saved_tensors_hooks(
            lambda x, s=sizes: s.append(x.nbytes) or x, lambda x: x
        ):
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                states = states_of(backbone, batch)
            kept.append(sum(sizes))
            backbone.zero_grad()
            states.float().square().mean().backward()
        found.append([states.detach(), *(weight.grad for weight in backbone.parameters())])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
    assert kept[1] < kept[0] / 4
