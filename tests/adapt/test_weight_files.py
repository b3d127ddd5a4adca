"""Tensors of model directories: what is read, and what is left out."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from interlingua.adapt.weight_files import WeightFiles, files_besides_weights
from interlingua.errors import CheckpointError
from tests.methods.conftest import tiny_encoder


def test_every_tensor_of_the_backbone_is_found(tmp_path):
    encoder = tiny_encoder()
    encoder.save(tmp_path / "model")
    files = WeightFiles(tmp_path / "model")
    stored = load_file(tmp_path / "model" / "model.safetensors")
    assert files.tensors.keys() == stored.keys()
    assert all(torch.equal(files.tensor(name), stored[name]) for name in files.tensors)
    files.close()


def test_prefixes_and_heads_of_stock_models_are_left_out(tmp_path):
    tiny_encoder().save(tmp_path / "own")
    stored = load_file(tmp_path / "own" / "model.safetensors")
    (tmp_path / "stock").mkdir()
    (tmp_path / "stock" / "config.json").write_text((tmp_path / "own" / "config.json").read_text())
    more = {
        "pooler.dense.weight": torch.ones(2, 2),
        "bert.embeddings.position_ids": torch.arange(3),
    }
    save_file(
        {**{f"bert.{name}": tensor for name, tensor in stored.items()}, **more},
        tmp_path / "stock" / "model.safetensors",
    )
    own, stock = WeightFiles(tmp_path / "own"), WeightFiles(tmp_path / "stock")
    assert own.tensors.keys() == stock.tensors.keys()
    assert torch.equal(
        stock.tensor("embeddings.LayerNorm.weight"), stored["embeddings.LayerNorm.weight"]
    )


def test_modules_behind_the_backbone_are_found(tmp_path):
    tiny_encoder().save(tmp_path / "model")
    (tmp_path / "model" / "2_Dense").mkdir()
    save_file(
        {"linear.weight": torch.ones(2, 3)}, tmp_path / "model" / "2_Dense" / "model.safetensors"
    )
    assert WeightFiles(tmp_path / "model").tensors["2_Dense/linear.weight"].shape == (2, 3)


def test_a_sharded_model_is_read_like_a_whole_one(tmp_path):
    tiny_encoder().save(tmp_path / "model")
    whole = tmp_path / "model" / "model.safetensors"
    names = WeightFiles(tmp_path / "model").tensors.keys()
    stored = load_file(whole)
    whole.unlink()
    parts = {
        "model-1.safetensors": sorted(stored)[::2],
        "model-2.safetensors": sorted(stored)[1::2],
    }
    for part, own in parts.items():
        save_file({name: stored[name] for name in own}, tmp_path / "model" / part)
    places = {name: part for part, own in parts.items() for name in own}
    (tmp_path / "model" / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": places})
    )
    assert WeightFiles(tmp_path / "model").tensors.keys() == names


def test_files_that_are_no_weights_are_listed(tmp_path):
    for name in (
        "config.json",
        "tokenizer.json",
        "README.md",
        "model.safetensors",
        "onnx/model.onnx",
        "1_Pooling/config.json",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert [str(path) for path in files_besides_weights(tmp_path)] == [
        "1_Pooling/config.json",
        "config.json",
        "tokenizer.json",
    ]


def test_a_folder_without_safetensors_is_an_error(tmp_path):
    with pytest.raises(CheckpointError, match="interlingua export"):
        WeightFiles(tmp_path)


def test_a_damaged_file_is_an_error(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        WeightFiles(tmp_path)


def test_tensors_of_every_shape_are_read(tmp_path):
    tensors = {
        "table": torch.arange(15.0).reshape(5, 3),
        "bias": torch.arange(9.0).bfloat16(),
        "scale": torch.tensor(2.0),
    }
    save_file(tensors, tmp_path / "model.safetensors")
    files = WeightFiles(tmp_path)
    for name, tensor in tensors.items():
        assert torch.equal(files.tensor(name), tensor)
        assert files.tensor(name).dtype == tensor.dtype
    files.close()
