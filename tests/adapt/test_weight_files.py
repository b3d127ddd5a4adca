"""Tensors of model directories: what is read, what is left out, and files written a tensor at a
time."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from interlingua.adapt.weight_files import (
    StoredTensor,
    WeightFiles,
    files_besides_weights,
    write_tensors,
)
from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.encoder import Encoder
from interlingua.errors import CheckpointError
from tests.methods.conftest import tiny_encoder


def test_every_tensor_of_the_backbone_is_found(tmp_path):
    encoder = tiny_encoder()
    encoder.save(tmp_path / "model")
    files = WeightFiles(tmp_path / "model")
    stored = load_file(tmp_path / "model" / "model.safetensors")
    assert files.tensors.keys() == stored.keys()
    assert all(
        torch.equal(torch.cat(list(files.blocks(name))), stored[name]) for name in files.tensors
    )
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
        next(stock.blocks("embeddings.LayerNorm.weight")), stored["embeddings.LayerNorm.weight"]
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


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64]
)
def test_a_file_written_tensor_by_tensor_reads_back(tmp_path, dtype):
    tensors = {
        "a": torch.arange(6).reshape(2, 3).to(dtype),
        "b": torch.ones(1, dtype=dtype),
        "c": torch.ones(0, 4, dtype=dtype),
    }
    spelled = {
        torch.float32: "F32",
        torch.float64: "F64",
        torch.bfloat16: "BF16",
        torch.float16: "F16",
        torch.int64: "I64",
    }[dtype]
    plan = {
        name: StoredTensor(tmp_path, name, tuple(tensor.shape), spelled)
        for name, tensor in tensors.items()
    }
    write_tensors(tmp_path / "x.safetensors", plan, lambda name: iter([tensors[name]]))
    found = load_file(tmp_path / "x.safetensors")
    assert all(
        torch.equal(found[name], tensor) and found[name].dtype == dtype
        for name, tensor in tensors.items()
    )


def test_the_file_is_the_one_that_safetensors_writes(tmp_path):
    tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(5)}
    plan = {
        name: StoredTensor(tmp_path, name, tuple(tensor.shape), "F32")
        for name, tensor in tensors.items()
    }
    write_tensors(tmp_path / "own.safetensors", plan, lambda name: iter([tensors[name]]))
    save_file(tensors, tmp_path / "theirs.safetensors", metadata={"format": "pt"})
    assert (tmp_path / "own.safetensors").read_bytes() == (
        tmp_path / "theirs.safetensors"
    ).read_bytes()


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


def test_what_was_written_loads_as_a_model(tmp_path):
    encoder = tiny_encoder()
    encoder.save(tmp_path / "model")
    files = WeightFiles(tmp_path / "model")
    write_tensors(tmp_path / "copy.safetensors", files.tensors, files.blocks)
    files.close()
    (tmp_path / "copy.safetensors").replace(tmp_path / "model" / "model.safetensors")
    assert Encoder.load(tmp_path / "model").digest() == encoder.digest()
    assert isinstance(encoder.backbone.config, BackboneConfig)


def test_blocks_are_consecutive_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("interlingua.adapt.weight_files.BLOCK_NUMBERS", 7)
    tensors = {
        "table": torch.arange(15.0).reshape(5, 3),
        "bias": torch.arange(9.0),
        "scale": torch.tensor(2.0),
    }
    save_file(tensors, tmp_path / "model.safetensors")
    files = WeightFiles(tmp_path)
    assert [block.tolist() for block in files.blocks("bias")] == [[0, 1, 2, 3, 4, 5, 6], [7, 8]]
    assert [len(block) for block in files.blocks("table")] == [2, 2, 1]
    assert torch.equal(torch.cat(list(files.blocks("table"))), tensors["table"])
    assert next(files.blocks("scale")) == 2
    write_tensors(tmp_path / "copy.safetensors", files.tensors, files.blocks)
    assert load_file(tmp_path / "copy.safetensors").keys() == tensors.keys()
