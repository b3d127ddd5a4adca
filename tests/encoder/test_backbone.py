from __future__ import annotations

import dataclasses
from itertools import pairwise

import pytest
import torch
from torch.nn import functional as F
from transformers.activations import ACT2FN

from interlingua.encoder.backbone import ACTIVATIONS, PRESETS, Backbone, BackboneConfig
from interlingua.encoder.directory import read_directory
from interlingua.encoder.inference import FrozenBackbone
from interlingua.errors import ConfigError

LENGTHS = [1, 5, 38, 38, 7, 5, 1, 20, *range(1, 39)]


def huggingface_model(kind, **changes):
    transformers = pytest.importorskip("transformers")
    shape = {
        "vocab_size": 100,
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 38 if kind == "bert" else 40,
        "pad_token_id": 0 if kind == "bert" else 1,
        "initializer_range": 0.3,  # BERT's own 0.02 would leave every state near its embedding
    }
    names = {"bert": "Bert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta"}
    config = getattr(transformers, f"{names[kind]}Config")(**{**shape, **changes})
    torch.manual_seed(3)
    model = getattr(transformers, f"{names[kind]}Model")(config).eval()
    for parameter in model.parameters():  # biases and norms away from 0 and 1
        parameter.data += 0.05 * torch.randn_like(parameter)
    return model


def loaded(model, folder):
    model.save_pretrained(folder)
    config, weights, _ = read_directory(folder)
    backbone = Backbone(config)
    backbone.load_state_dict(weights)
    return backbone.eval()


def padded_states(model, batch):
    ids, mask = batch.padded(model.config.pad_token_id)
    return model(input_ids=ids, attention_mask=mask.long()).last_hidden_state[mask]


@pytest.fixture(params=["bert", "roberta", "xlm-roberta"])
def pair(request, tmp_path):
    model = huggingface_model(request.param)
    return model, loaded(model, tmp_path / "model")


def test_packed_states_are_the_padded_ones_of_hugging_face(pair, random_batch):
    model, backbone = pair
    batch = random_batch(LENGTHS)
    expected = padded_states(model, batch)
    assert (backbone(batch.input_ids, batch.cu_seqlens) - expected).abs().max() < 1e-5
    with torch.inference_mode():
        assert (backbone(batch.input_ids, batch.cu_seqlens) - expected).abs().max() < 1e-5
    frozen = FrozenBackbone(backbone, torch.float32)
    assert (frozen(batch.input_ids, batch.cu_seqlens) - expected).abs().max() < 1e-5


def test_gradients_are_those_of_hugging_face(pair, random_batch):
    model, backbone = pair
    batch = random_batch([3, 9, 9, 1, 30])
    weight = torch.randn(52, 32, generator=torch.Generator().manual_seed(5))
    (padded_states(model, batch) * weight).sum().backward()
    (backbone(batch.input_ids, batch.cu_seqlens) * weight).sum().backward()
    layer, theirs = backbone.layers[0], model.encoder.layer[0]
    for ours, expected in [
        (backbone.word_embeddings, model.embeddings.word_embeddings),
        (backbone.position_embeddings, model.embeddings.position_embeddings),
        (layer.query, theirs.attention.self.query),
        (layer.value, theirs.attention.self.value),
        (layer.output, theirs.output.dense),
    ]:
        assert torch.allclose(ours.weight.grad, expected.weight.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_activations_are_those_of_hugging_face(activation):
    x = torch.linspace(-6, 6, 1001)
    assert torch.allclose(ACTIVATIONS[activation](x), ACT2FN[activation](x), atol=1e-6)


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu"])
def test_activations_are_called_as_in_hugging_face(activation, tmp_path, random_batch):
    model = huggingface_model("bert", hidden_act=activation)
    batch = random_batch([4, 11])
    states = loaded(model, tmp_path / "m")(batch.input_ids, batch.cu_seqlens)
    assert (states - padded_states(model, batch)).abs().max() < 1e-5


def test_a_sentence_does_not_see_its_neighbors(encoder, random_batch):
    backbone = encoder.backbone
    batch = random_batch([6, 2, 6, 31, 1])
    together = backbone(batch.input_ids, batch.cu_seqlens)
    bounds = batch.cu_seqlens.tolist()
    for start, end in pairwise(bounds):
        alone = backbone(
            batch.input_ids[start:end], torch.tensor([0, end - start], dtype=torch.int32)
        )
        assert torch.allclose(together[start:end], alone, atol=1e-5)


def test_given_word_embeddings_take_the_place_of_the_table(encoder, random_batch):
    backbone, batch = encoder.backbone, random_batch([3, 8, 5])
    rows = backbone.word_embeddings(batch.input_ids).detach().requires_grad_()
    states = backbone(batch.input_ids, batch.cu_seqlens, word_embeddings=rows)
    assert torch.equal(states, backbone(batch.input_ids, batch.cu_seqlens))
    states[3:11].square().sum().backward()  # the second sentence
    touched = rows.grad.abs().sum(1) > 0
    assert touched.tolist() == [False] * 3 + [True] * 8 + [False] * 5


def test_dropout_acts_in_training_only(encoder, random_batch):
    backbone, batch = encoder.backbone, random_batch([5, 9])
    still = backbone(batch.input_ids, batch.cu_seqlens)
    assert torch.equal(still, backbone(batch.input_ids, batch.cu_seqlens))
    backbone.train()
    noisy = backbone(batch.input_ids, batch.cu_seqlens)
    assert not torch.equal(noisy, backbone(batch.input_ids, batch.cu_seqlens))
    assert F.cosine_similarity(noisy.flatten(), still.flatten(), dim=0) > 0.5


def test_bfloat16_autocast_stays_close(encoder, random_batch):
    backbone, batch = encoder.backbone, random_batch([5, 9, 30])
    exact = backbone(batch.input_ids, batch.cu_seqlens)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = backbone(batch.input_ids, batch.cu_seqlens)
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
    with pytest.raises(ConfigError, match="hidden_act 'gelou' is unknown"):
        dataclasses.replace(config, hidden_act="gelou")
    with pytest.raises(ConfigError, match=r"no such preset 'ems-smal'.*ems-small"):
        BackboneConfig.preset("ems-smal", vocab_size=10)
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
    with pytest.raises(ConfigError, match=r"attention dropout is 1\.0"):
        backbone.set_attention_dropout(1.0)


@torch.no_grad()
def test_given_positions_take_the_place_of_those_in_the_sequence(encoder, random_batch):
    batch = random_batch([3, 5, 2])
    own = torch.tensor([0, 1, 2, 0, 1, 2, 3, 4, 0, 1])
    expected = encoder.backbone(batch.input_ids, batch.cu_seqlens)
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
    whole = encoder.backbone(batch.input_ids, batch.cu_seqlens)
    assert torch.equal(encoder.backbone(batch.input_ids, batch.cu_seqlens, num_layers=2), whole)
    del encoder.backbone.layers[1:]
    assert torch.equal(encoder.backbone(batch.input_ids, batch.cu_seqlens), first)


@pytest.mark.parametrize("autocast", [False, True])
def test_recomputed_activations_give_the_same_gradients_and_are_not_kept(random_batch, autocast):
    config = BackboneConfig(
        vocab_size=100,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=64,
        hidden_dropout_prob=0.2,
    )
    torch.manual_seed(0)
    backbone, batch = Backbone(config).train(), random_batch([7, 3, 12])
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
                states = backbone(batch.input_ids, batch.cu_seqlens)
            kept.append(sum(sizes))
            backbone.zero_grad()
            states.float().square().mean().backward()
        found.append([states.detach(), *(weight.grad for weight in backbone.parameters())])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
    assert kept[1] < kept[0] / 4
