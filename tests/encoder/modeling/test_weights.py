from __future__ import annotations

import dataclasses
import hashlib
import pickle
import struct
import warnings

import pytest
import torch
from safetensors.torch import save_file

from interlingua.encoder.modeling.backbone import Backbone, BackboneConfig
from interlingua.encoder.modeling.weights import (
    from_huggingface_names,
    huggingface_name,
    read_weights,
    to_huggingface_names,
    weights_digest,
)
from interlingua.errors import CheckpointError

CONFIG = BackboneConfig(
    vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12
)


@pytest.fixture
def weights():
    torch.manual_seed(0)
    return Backbone(CONFIG).state_dict()


@pytest.fixture
def stored(weights):
    return to_huggingface_names(weights, CONFIG)


def test_names_are_hugging_faces():
    assert (
        huggingface_name("layers.3.query.weight") == "encoder.layer.3.attention.self.query.weight"
    )
    assert huggingface_name("embedding_norm.bias") == "embeddings.LayerNorm.bias"


def test_names_go_there_and_back(weights, stored, tmp_path):
    back, config = from_huggingface_names(stored, CONFIG, tmp_path)
    assert config == CONFIG
    assert back.keys() == weights.keys()
    assert all(torch.equal(back[name], weights[name]) for name in weights)


def test_missing_token_types_become_a_row_of_zeros(stored):
    row = stored["embeddings.token_type_embeddings.weight"]
    assert row.shape == (1, 8)
    assert not row.any()


@pytest.mark.parametrize(("declared", "stored_types"), [(2, 0), (2, 1), (2, 3), (1, 2)])
def test_another_number_of_token_types_than_declared_is_refused(
    stored, declared, stored_types, tmp_path
):
    name = "embeddings.token_type_embeddings.weight"
    stored.pop(name)
    if stored_types:
        stored[name] = torch.ones(stored_types, 8)
    config = dataclasses.replace(CONFIG, type_vocab_size=declared)
    with pytest.raises(CheckpointError, match=f"{declared} token types.*has {stored_types}"):
        from_huggingface_names(stored, config, tmp_path)


@pytest.mark.parametrize("declared", [0, 1])
def test_a_single_declared_token_type_may_be_absent(stored, declared, tmp_path):
    stored.pop("embeddings.token_type_embeddings.weight")
    config = dataclasses.replace(CONFIG, type_vocab_size=declared)
    assert from_huggingface_names(stored, config, tmp_path)[1].type_vocab_size == 0


def test_prefixes_old_names_and_other_heads_are_understood(weights, stored, tmp_path):
    old = {"cls.predictions.bias": torch.zeros(20)}
    for name, tensor in stored.items():
        older = name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")
        old[f"bert.{older}"] = tensor
    back, _ = from_huggingface_names(old, CONFIG, tmp_path)
    assert all(torch.equal(back[name], weights[name]) for name in weights)


def test_what_is_missing_or_misshapen_is_named(stored, tmp_path):
    short = dict(stored)
    del short["encoder.layer.1.output.dense.bias"]
    with pytest.raises(CheckpointError, match=r"encoder.layer.1.output.dense.bias is missing"):
        from_huggingface_names(short, CONFIG, tmp_path)
    wrong = {**stored, "encoder.layer.0.output.dense.bias": torch.zeros(3)}
    with pytest.raises(
        CheckpointError, match=r"output.dense.bias has shape \(3,\), expected \(8,\)"
    ):
        from_huggingface_names(wrong, CONFIG, tmp_path)
    with pytest.raises(CheckpointError, match="a bert model"):
        from_huggingface_names({"wte.weight": torch.zeros(2)}, CONFIG, tmp_path)


@pytest.mark.parametrize("kind", ["whole", "sharded", "pickle"])
def test_every_kind_of_file_is_read(kind, stored, tmp_path):
    if kind == "whole":
        save_file(stored, tmp_path / "model.safetensors")
    elif kind == "pickle":
        torch.save(stored, tmp_path / "pytorch_model.bin")
    else:
        names = sorted(stored)
        shards = {
            "model-00001-of-00002.safetensors": names[:9],
            "model-00002-of-00002.safetensors": names[9:],
        }
        for file, part in shards.items():
            save_file({name: stored[name] for name in part}, tmp_path / file)
        lines = ",".join(f'"{name}": "{file}"' for file, part in shards.items() for name in part)
        (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {' + lines + "}}")
    found = read_weights(tmp_path)
    assert found.keys() == stored.keys()
    assert all(torch.equal(found[name], stored[name]) for name in stored)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("keep", [0, 5, 400, -1])
def test_a_file_cut_short_is_one_line(name, keep, stored, tmp_path):
    save = save_file if name.endswith("safetensors") else torch.save
    save(stored, tmp_path / name)
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[:keep])
    with pytest.raises(CheckpointError, match=r"(?s)is damaged.*download") as caught:
        read_weights(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["{", '{"metadata": {}}'])
def test_a_damaged_index_is_one_line(text, tmp_path):
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"index.json: (is damaged|weight_map)"):
        read_weights(tmp_path)


def test_a_pickle_with_code_is_refused(tmp_path):
    class Surprise:
        def __reduce__(self):
            return print, ("executed",)

    with (tmp_path / "pytorch_model.bin").open("wb") as file:
        pickle.dump(Surprise(), file)
    with pytest.raises(CheckpointError, match="plain tensors"):
        read_weights(tmp_path)


def nested(_):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


def quantized(tensor):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(tensor, 0.1, 0, torch.quint8)


@pytest.mark.parametrize(
    "change", [nested, quantized, torch.Tensor.to_sparse, lambda tensor: tensor.to("meta")]
)
def test_tensors_of_other_kinds_in_a_pickle_are_refused(change, stored, tmp_path):
    name = "encoder.layer.0.output.dense.weight"
    torch.save({**stored, name: change(stored[name])}, tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=f"{name} is not a plain tensor"):
        read_weights(tmp_path)


@pytest.mark.parametrize(
    ("layers", "message"),
    [(1, "layers 1 are unexpected"), (4, r"layers 2, 3 are missing"), (12, r"7, 8, 9, \.\.\. are")],
)
def test_another_number_of_layers_is_named(layers, message, stored, tmp_path):
    with pytest.raises(CheckpointError, match=message):
        config = dataclasses.replace(CONFIG, num_hidden_layers=layers)
        from_huggingface_names(stored, config, tmp_path)


def test_two_models_in_one_file_are_refused(stored, tmp_path):
    both = {}
    for prefix in ("question", "passage"):
        both |= {f"{prefix}.{name}": tensor for name, tensor in stored.items()}
    with pytest.raises(CheckpointError, match=r"2 models, passage\..*question\."):
        from_huggingface_names(both, CONFIG, tmp_path)


def test_a_folder_without_weights(tmp_path):
    with pytest.raises(CheckpointError, match=r"model.safetensors and pytorch_model.bin not found"):
        read_weights(tmp_path)


def test_digest_is_that_of_names_shapes_and_bytes():
    weights = {"b": torch.tensor([[1.0, 2.0]]).T, "a": torch.tensor(3, dtype=torch.int16)}
    expected = hashlib.sha256(b"begin" + b"a\0torch.int16\0()\n" + struct.pack("<h", 3))
    expected.update(b"b\0torch.float32\0(2, 1)\n" + struct.pack("<2f", 1.0, 2.0))
    assert weights_digest(weights, begin="begin") == expected.hexdigest()
    assert weights_digest(dict(reversed(weights.items())), begin="begin") == expected.hexdigest()
