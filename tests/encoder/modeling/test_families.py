from __future__ import annotations

import dataclasses
import json

import pytest
import torch
from torch.nn import functional as F

from interlingua.encoder.directories.model_directory import (
    EncodingSettings,
    read_directory,
    write_directory,
)
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.executors.inference import FrozenBackbone
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.encoder.modeling.weights import to_huggingface_names
from interlingua.errors import CheckpointError
from tests.encoder.shapes import (
    JINA_BERT,
    JINA_BERT_QK_NORM,
    MODERNBERT,
    THEIRS,
    padded_states,
    saved_and_loaded,
    states_of,
    transformers_model,
)

pytest.importorskip("transformers", minversion="5")
LENGTHS = [1, 5, 40, 40, 7, 5, 2, 9, 10, 20]
"""Shorter and longer than ModernBERT's window here, 4 tokens on either side, and of its edges; up
to the last position of BERT's table."""
FULL = [1, 130, 64, 65, 66, 128, 300]
"""The same of the window that its models have, 64 tokens."""


def check_states(model, backbone, batch):
    expected = padded_states(model, batch)
    assert (states_of(backbone, batch) - expected).abs().max() < 1e-5
    with torch.inference_mode():
        assert (states_of(backbone, batch) - expected).abs().max() < 1e-5
    frozen = FrozenBackbone(backbone, torch.float32)
    assert (states_of(frozen, batch) - expected).abs().max() < 1e-5


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("name", list(THEIRS))
def test_states_are_those_of_transformers(name, attention, tmp_path, random_batch):
    model = transformers_model(name, attention=attention)
    check_states(model, saved_and_loaded(model, tmp_path), random_batch(LENGTHS))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ModernBert", {"norm_bias": True, "mlp_bias": True, "attention_bias": True}),
        (
            "ModernBert",
            {
                "layer_types": [
                    f"{kind}_attention" for kind in ("sliding", "full", "full", "sliding")
                ]
            },
        ),
        (
            "ModernBert",
            {
                "global_attn_every_n_layers": 2,
                "global_rope_theta": 80_000.0,
                "local_rope_theta": 500.0,
            },
        ),
        ("ModernBert", {"hidden_activation": "silu", "norm_eps": 1e-3}),
        *(
            ("Bert", {"hidden_act": activation})
            for activation in ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu")
        ),
    ],
)
def test_options_are_those_of_transformers(name, options, tmp_path, random_batch):
    model = transformers_model(name, **options)
    check_states(model, saved_and_loaded(model, tmp_path), random_batch(LENGTHS))


def test_modernbert_window_of_its_own_size(tmp_path, random_batch, monkeypatch):
    monkeypatch.setitem(THEIRS["ModernBert"], "local_attention", 128)
    model = transformers_model("ModernBert")
    backbone = saved_and_loaded(model, tmp_path)
    assert backbone.config.local_window == 64
    check_states(model, backbone, random_batch(FULL))


@pytest.mark.parametrize("name", list(THEIRS))
def test_gradients_are_those_of_transformers(name, tmp_path, random_batch):
    model = transformers_model(name)
    backbone = saved_and_loaded(model, tmp_path)
    batch = random_batch([3, 9, 9, 1, 30])
    weight = torch.randn(52, 32, generator=torch.Generator().manual_seed(5))
    (padded_states(model, batch) * weight).sum().backward()
    (states_of(backbone, batch) * weight).sum().backward()
    gradients = {key: parameter.grad for key, parameter in backbone.named_parameters()}
    ours = to_huggingface_names(gradients, backbone.config)
    theirs = {
        key: parameter.grad
        for key, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    # In memory some families of transformers have other names than in their files.
    shared = ours.keys() & theirs.keys()
    assert any("word" in key or "tok" in key for key in shared)
    for key in shared:
        torch.testing.assert_close(ours[key], theirs[key], rtol=1e-4, atol=1e-4)
    totals = [sum(grad.square().sum().item() for grad in side.values()) for side in (ours, theirs)]
    assert totals[0] == pytest.approx(totals[1], rel=1e-4)


@pytest.mark.parametrize("name", list(THEIRS))
def test_what_is_saved_is_read_by_transformers(name, tmp_path, random_batch):
    import transformers

    model = transformers_model(name)
    backbone = saved_and_loaded(model, tmp_path / "theirs")
    folder = tmp_path / "ours"
    folder.mkdir()
    write_directory(
        folder, backbone.config, backbone.state_dict(), EncodingSettings(), {"pad_token": "<pad>"}
    )
    config, weights, _ = read_directory(folder)
    assert config == backbone.config
    assert all(torch.equal(tensor, backbone.state_dict()[key]) for key, tensor in weights.items())
    limits = json.loads((folder / "sentence_bert_config.json").read_text())
    options = limits.get("model_args", {})  # what sentence-transformers gives it
    again, report = transformers.AutoModel.from_pretrained(
        folder, output_loading_info=True, **options
    )
    assert type(again) is type(model)
    assert (set(report["missing_keys"]), set(report["unexpected_keys"])) == (set(), set())
    batch = random_batch(LENGTHS)
    assert (padded_states(again.eval(), batch) - padded_states(model, batch)).abs().max() < 1e-5


@pytest.fixture
def changed_config(tmp_path):
    """A function that reads a folder of transformers with a changed config."""

    def read(name, change, *, without=()):
        transformers_model(name).save_pretrained(tmp_path)
        path = tmp_path / "config.json"
        before = read_directory(tmp_path)[0]
        raw = {**json.loads(path.read_text()), **change}
        path.write_text(json.dumps({key: raw[key] for key in raw if key not in without}))
        return before, read_directory(tmp_path)[0]

    return read


def test_modernbert_of_older_versions_is_the_same_shape(changed_config):
    old = {
        "global_attn_every_n_layers": 3,
        "global_rope_theta": 160_000.0,
        "local_rope_theta": 10_000.0,
        "position_embedding_type": "absolute",
    }
    new, found = changed_config("ModernBert", old, without=("layer_types", "rope_parameters"))
    assert found == new


@pytest.mark.parametrize(
    ("name", "change", "match"),
    [
        ("ModernBert", {"layer_types": ["linear_attention"] * 4}, "layer_types"),
        ("ModernBert", {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "rope_type"),
        ("ModernBert", {"local_attention": "128"}, "local_attention"),
        ("ModernBert", {"norm_bias": True}, "norm.bias is missing"),
        ("ModernBert", {"num_hidden_layers": 5}, "5 layers"),
        ("ModernBert", {"hidden_size": 40}, "has shape"),
        ("ModernBert", {"num_attention_heads": 32}, "rotary"),
        ("NomicBert", {"rope_scaling": {"factor": 2.0}}, "rope_scaling"),
        ("DistilBert", {"n_heads": 0}, "n_heads"),
        ("Electra", {"embedding_size": 16}, "embedding_size"),
    ],
)
def test_configs_that_do_not_fit_are_refused(name, change, match, changed_config):
    with pytest.raises(CheckpointError, match=match):
        changed_config(name, change)


def test_keys_of_another_family_change_nothing(changed_config):
    before, after = changed_config("Bert", {"gated": True, "norm_first": True, "n_heads": 0})
    assert after == before


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
@pytest.mark.parametrize("shape", [MODERNBERT, JINA_BERT, JINA_BERT_QK_NORM])
def test_an_encoder_is_saved_loaded_and_pooled(
    shape, pooling, framed_vocabulary, sentences, tmp_path
):
    sizes = {
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 48,
    }
    config = BackboneConfig(
        vocab_size=framed_vocabulary.size, max_position_embeddings=64, **sizes, **shape
    )
    torch.manual_seed(0)
    encoder = Encoder.from_scratch(config, framed_vocabulary, pooling).eval()
    encoder.save(tmp_path / "model")
    again = Encoder.load(tmp_path / "model")
    assert (again.pooling, again.max_tokens) == (pooling, 64)
    assert dataclasses.replace(again.backbone.config) == encoder.backbone.config
    assert (again.encode(sentences) == encoder.encode(sentences)).all()
    for dtype in ("bfloat16", "int8"):
        close = torch.from_numpy(again.encode(sentences, dtype=dtype))
        assert F.cosine_similarity(close, torch.from_numpy(encoder.encode(sentences))).min() > 0.99
