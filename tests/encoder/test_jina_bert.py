"""JinaBERT's models, by the names and options of the hub, against its equations in plain torch.

The code of these models is not part of transformers, and is not run here. What it computes is
written out in ``hub_states``, on padded batches as there.
"""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F

from interlingua.encoder.directories.model_directory import (
    EncodingSettings,
    read_directory,
    write_directory,
)
from interlingua.encoder.executors.layers import LAYER_EXECUTORS
from interlingua.encoder.modeling.attention_weights import first_token_attention, sentence_attention
from interlingua.errors import CheckpointError
from tests.encoder.naive import papers_slopes
from tests.encoder.shapes import loaded, states_of

CODE = "jinaai/jina-bert-implementation"
QK_CODE = "jinaai/jina-bert-v2-qk-post-norm"
LENGTHS = [1, 5, 40, 40, 7, 5, 2, 9, 10, 20]
WIDTH, INNER, HEADS, EPS = 48, 40, 6, 1e-12
KINDS = {
    "base-en": (CODE, "geglu"),
    "reglu": (CODE, "reglu"),
    "original": (CODE, "original"),
    "base-code": (QK_CODE, "geglu"),
    "base-code reglu": (QK_CODE, "reglu"),
}


def hub_config(code, feed_forward):
    """Return the config of jina-embeddings-v2-base-en with other sizes."""
    return {
        "_name_or_path": code,
        "model_max_length": 8192,
        "architectures": ["JinaBertForMaskedLM"],
        "attention_probs_dropout_prob": 0.0,
        "auto_map": {"AutoModel": f"{code}--modeling_bert.JinaBertModel"},
        "classifier_dropout": None,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "layer_norm_eps": EPS,
        "max_position_embeddings": 8192,
        "model_type": "bert",
        "num_attention_heads": HEADS,
        "num_hidden_layers": 2,
        "pad_token_id": 0,
        "position_embedding_type": "alibi",
        "torch_dtype": "float16",
        "type_vocab_size": 2,
        "vocab_size": 100,
        "feed_forward_type": feed_forward,
        "emb_pooler": "mean",
    }


def hub_weights(code, feed_forward):
    """Return random parameters by the hub's names, with the unused pooling layer."""
    shapes = {
        "embeddings.word_embeddings.weight": (100, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm": (WIDTH,),
        "pooler.dense": (WIDTH, WIDTH),
    }
    for number in range(2):
        at = f"encoder.layer.{number}."
        for name in ("query", "key", "value"):
            shapes[f"{at}attention.self.{name}"] = (WIDTH, WIDTH)
        shapes[f"{at}attention.output.dense"] = (WIDTH, WIDTH)
        shapes[f"{at}attention.output.LayerNorm"] = (WIDTH,)
        if code == QK_CODE:
            for name in ("attention.self.layer_norm_q", "attention.self.layer_norm_k"):
                shapes[at + name] = (WIDTH,)
            shapes[f"{at}layer_norm_1"] = shapes[f"{at}layer_norm_2"] = (WIDTH,)
            shapes[f"{at}mlp.up_gated_layer.weight"] = (2 * INNER, WIDTH)
            shapes[f"{at}mlp.down_layer"] = (WIDTH, INNER)
        elif feed_forward == "original":
            shapes[f"{at}intermediate.dense"] = (INNER, WIDTH)
            shapes[f"{at}output.dense"] = (WIDTH, INNER)
            shapes[f"{at}output.LayerNorm"] = (WIDTH,)
        else:
            shapes[f"{at}mlp.gated_layers.weight"] = (2 * INNER, WIDTH)
            shapes[f"{at}mlp.wo"] = (WIDTH, INNER)
            shapes[f"{at}mlp.layernorm"] = (WIDTH,)
    draw = torch.Generator().manual_seed(3)
    weights = {}
    for name, shape in shapes.items():
        if name.endswith(".weight"):
            weights[name] = 0.3 * torch.randn(shape, generator=draw)
            continue
        # Norms near 1 and 0, so that each of them shows.
        center = float(len(shape) == 1)
        weights[f"{name}.weight"] = center + 0.2 * torch.randn(shape, generator=draw)
        weights[f"{name}.bias"] = 0.2 * torch.randn(shape[:1], generator=draw)
    return weights


def hub_states(weights, feed_forward, ids, mask, attention=None):
    """Compute states of padded sentences (B, L) by the equations of the hub's code.

    Attention weights of each layer are added to ``attention``.
    """

    def linear(x, name):
        return F.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))

    def norm(x, name):
        return F.layer_norm(x, (WIDTH,), weights[f"{name}.weight"], weights[f"{name}.bias"], EPS)

    words = weights["embeddings.word_embeddings.weight"][ids]
    x = norm(words + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    places = torch.arange(ids.shape[1])
    distance = (places[:, None] - places[None]).abs()
    slopes = torch.tensor(papers_slopes(HEADS))[:, None, None]
    bias = -slopes * distance + torch.where(mask, 0.0, -torch.inf)[:, None, None, :]
    activation = F.relu if feed_forward == "reglu" else F.gelu
    for number in range(2):
        at = f"encoder.layer.{number}."
        q, k, v = (linear(x, f"{at}attention.self.{name}") for name in ("query", "key", "value"))
        has_norms = f"{at}layer_norm_1.weight" in weights
        if has_norms:
            q = norm(q, f"{at}attention.self.layer_norm_q")
            k = norm(k, f"{at}attention.self.layer_norm_k")
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in (q, k, v))
        scores = q @ k.transpose(-1, -2) / (WIDTH / HEADS) ** 0.5 + bias
        if attention is not None:
            attention.append(scores.softmax(-1))
        context = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        attended = linear(context, f"{at}attention.output.dense")
        attended = norm(attended + x, f"{at}attention.output.LayerNorm")
        if has_norms:
            attended = norm(x + attended, f"{at}layer_norm_1")
            up, gated = linear(attended, f"{at}mlp.up_gated_layer").chunk(2, -1)
            inner = linear(up * activation(gated), f"{at}mlp.down_layer")
            x = norm(attended + inner, f"{at}layer_norm_2")
        elif feed_forward == "original":
            inner = activation(linear(attended, f"{at}intermediate.dense"))
            x = norm(linear(inner, f"{at}output.dense") + attended, f"{at}output.LayerNorm")
        else:
            gated, other = linear(attended, f"{at}mlp.gated_layers").chunk(2, -1)
            inner = linear(activation(gated) * other, f"{at}mlp.wo")
            x = norm(inner + attended, f"{at}mlp.layernorm")
    return x[mask]


def hub_folder(folder, kind, *, prefix="", config=(), dtype=torch.float32):
    """Write a folder in the hub's layout, and return the weights."""
    code, feed_forward = KINDS[kind]
    weights = hub_weights(code, feed_forward)
    raw = {**hub_config(code, feed_forward), **dict(config)}
    (folder / "config.json").write_text(json.dumps(raw))
    stored = {prefix + name: tensor.to(dtype) for name, tensor in weights.items()}
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
    return weights


@pytest.mark.parametrize("kind", KINDS)
def test_states_are_those_of_the_hubs_equations(kind, tmp_path, random_batch):
    weights = hub_folder(tmp_path, kind)
    backbone = loaded(tmp_path)
    batch = random_batch(LENGTHS)
    expected = hub_states(weights, KINDS[kind][1], *batch.padded(0))
    assert (states_of(backbone, batch) - expected).abs().max() < 1e-5
    with torch.inference_mode():
        assert (states_of(backbone, batch) - expected).abs().max() < 1e-5
    made = []
    for name, executor in LAYER_EXECUTORS.items():
        if executor.refusal(backbone, torch.float32) is None:
            states = states_of(executor(backbone, torch.float32), batch)
            assert (states - expected).abs().max() < 1e-5
            made.append(name)
    assert made[-1] == "torch"
    assert "kernel" not in made


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_the_hubs_equations(kind, tmp_path, random_batch):
    weights = hub_folder(tmp_path, kind)
    backbone = loaded(tmp_path)
    batch = random_batch([3, 9, 9, 1, 30])
    factors = torch.randn(52, WIDTH, generator=torch.Generator().manual_seed(5))
    for tensor in weights.values():
        tensor.requires_grad_()
    (hub_states(weights, KINDS[kind][1], *batch.padded(0)) * factors).sum().backward()
    (states_of(backbone, batch) * factors).sum().backward()
    words = weights["embeddings.word_embeddings.weight"].grad
    torch.testing.assert_close(backbone.word_embeddings.weight.grad, words, atol=1e-4, rtol=1e-4)
    assert all(parameter.grad is not None for parameter in backbone.parameters())
    ours = sum(parameter.grad.square().sum() for parameter in backbone.parameters())
    theirs = sum(
        tensor.grad.square().sum() for tensor in weights.values() if tensor.grad is not None
    )
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_saved_has_the_hubs_names_and_keys(kind, tmp_path):
    weights = hub_folder(tmp_path, kind)
    backbone = loaded(tmp_path)
    folder = tmp_path / "ours"
    folder.mkdir()
    settings = EncodingSettings(max_tokens=8192)
    special = {"pad_token": "<pad>"}
    write_directory(folder, backbone.config, backbone.state_dict(), settings, special)
    stored = load_file(folder / "model.safetensors")
    expected = {name: tensor for name, tensor in weights.items() if "pooler" not in name}
    assert stored.keys() == expected.keys()
    assert all(tensor.equal(expected[name]) for name, tensor in stored.items())
    raw = json.loads((folder / "config.json").read_text())
    code, feed_forward = KINDS[kind]
    theirs = hub_config(code, feed_forward)
    for key in ("model_type", "position_embedding_type", "feed_forward_type", "_name_or_path"):
        assert raw[key] == theirs[key]
    assert raw["auto_map"]["AutoModel"] == theirs["auto_map"]["AutoModel"]
    assert loaded(folder).config == backbone.config


@pytest.mark.parametrize("kind", ["base-en", "base-code"])
def test_prefix_and_half_precision_of_the_file_change_little(kind, tmp_path):
    weights = hub_folder(tmp_path, kind, prefix="bert.", dtype=torch.float16)
    backbone = loaded(tmp_path)
    assert backbone.config.max_tokens == 8192
    words = backbone.word_embeddings.weight
    torch.testing.assert_close(words, weights["embeddings.word_embeddings.weight"].half().float())


@pytest.mark.parametrize("kind", ["base-en", "base-code"])
def test_what_the_first_token_looks_at(kind, tmp_path, random_batch):
    weights = hub_folder(tmp_path, kind)
    batch = random_batch([5, 1, 9, 30])
    looks = []
    hub_states(weights, "geglu", *batch.padded(0), attention=looks)
    mask = batch.padded(0)[1]
    expected = looks[-1][:, :, 0].transpose(1, 2)[mask]
    found = first_token_attention(loaded(tmp_path), batch)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-4)


def test_what_every_token_looks_at(tmp_path, random_batch):
    weights = hub_folder(tmp_path, "base-en")
    batch = random_batch([30])
    looks = []
    hub_states(weights, "geglu", *batch.padded(0), attention=looks)
    found = sentence_attention(loaded(tmp_path), batch)
    torch.testing.assert_close(found, looks[-1][0], atol=1e-6, rtol=1e-4)


def test_the_map_to_the_code_alone_tells_the_form(tmp_path):
    hub_folder(tmp_path, "base-code", config={"_name_or_path": "/home/me/tuned"}.items())
    assert loaded(tmp_path).config.model_type == "jina_bert_qk_norm"


@pytest.mark.parametrize(
    ("kind", "change", "match"),
    [
        ("base-en", {"feed_forward_type": "swiglu"}, "feed_forward_type"),
        ("base-code", {"feed_forward_type": "original"}, "geglu or reglu"),
        ("base-en", {"feed_forward_type": "original"}, r"intermediate\.dense\.weight is missing"),
        ("base-en", {"auto_map": {"AutoModel": QK_CODE}}, r"layer_norm_q\.weight is missing"),
        ("base-code", {"auto_map": None, "_name_or_path": ""}, "gated_layers.weight is missing"),
        ("base-en", {"position_embedding_type": "absolute"}, r"position_embeddings\.weight"),
        ("base-en", {"position_embedding_type": "relative_key"}, "alibi"),
        ("base-en", {"model_type": "xlm-roberta"}, "alibi"),
        ("base-en", {"is_decoder": True}, "encoders"),
        ("base-en", {"num_hidden_layers": 3}, "3 layers"),
    ],
)
def test_configs_that_do_not_fit_are_refused(kind, change, match, tmp_path):
    hub_folder(tmp_path, kind, config=change.items())
    with pytest.raises(CheckpointError, match=match) as caught:
        read_directory(tmp_path)
    assert "\n" not in str(caught.value)
