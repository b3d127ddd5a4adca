"""Weight files: Hugging Face's parameter names to ours and back, safetensors and old pickles, one line on damage."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from interlingua.encoder.backbone import Backbone, BackboneConfig
from interlingua.errors import CheckpointError

EMBEDDING_NAMES = {
    "word_embeddings": "embeddings.word_embeddings",
    "position_embeddings": "embeddings.position_embeddings",
    "token_type_embeddings": "embeddings.token_type_embeddings",
    "embedding_norm": "embeddings.LayerNorm",
}
LAYER_NAMES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "intermediate": "intermediate.dense",
    "output": "output.dense",
    "output_norm": "output.LayerNorm",
}
TOKEN_TYPES = "token_type_embeddings.weight"
ANCHOR = "embeddings.word_embeddings.weight"


def huggingface_name(name: str) -> str:
    """``layers.0.query.weight`` -> ``encoder.layer.0.attention.self.query.weight``."""
    module, kind = name.rsplit(".", 1)
    if not module.startswith("layers."):
        return f"{EMBEDDING_NAMES[module]}.{kind}"
    _, number, part = module.split(".")
    return f"encoder.layer.{number}.{LAYER_NAMES[part]}.{kind}"


def to_huggingface_names(weights: dict[str, Tensor], config: BackboneConfig) -> dict[str, Tensor]:
    """A stock model's state dict; a backbone without token types gets one row of zeros, which adds nothing."""
    if not config.type_vocab_size:
        weights = {**weights, TOKEN_TYPES: weights["word_embeddings.weight"].new_zeros(1, config.hidden_size)}
    return {huggingface_name(name): tensor.detach().cpu().contiguous() for name, tensor in weights.items()}


def from_huggingface_names(
    stored: dict[str, Tensor], config: BackboneConfig, folder: Path
) -> tuple[dict[str, Tensor], BackboneConfig]:
    """Our state dict from a stock one, whatever prefix (``bert.``, ``roberta.``) and heads it carries.

    Returns:
        the weights, and the config without token types if their only row is zero.

    Raises:
        CheckpointError: a parameter is missing or has another shape than ``config.json`` says.
    """
    anchors = [name for name in stored if name.endswith(ANCHOR)]
    if not anchors:
        raise CheckpointError(f"{folder}: not a BERT-shaped model, none of its {len(stored)} parameters is {ANCHOR}")
    prefix = anchors[0].removesuffix(ANCHOR)
    types = stored.get(prefix + huggingface_name(TOKEN_TYPES))
    if types is None or (len(types) == 1 and not types.any()):
        config = dataclasses.replace(config, type_vocab_size=0)
    with torch.device("meta"):
        expected = Backbone(config).state_dict()
    weights = {}
    for name, blank in expected.items():
        full = prefix + huggingface_name(name)
        old = full.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")
        tensor = stored.get(full, stored.get(old))
        if tensor is None:
            raise CheckpointError(f"{folder}: parameter {full} is missing; the model is incomplete, fetch it again")
        if tensor.shape != blank.shape:
            raise CheckpointError(
                f"{folder}: parameter {full} has shape {tuple(tensor.shape)}, config.json says {tuple(blank.shape)}"
            )
        weights[name] = tensor.float()
    return weights, config


def read_weights(folder: Path) -> dict[str, Tensor]:
    """All tensors of model.safetensors (whole or sharded) or else pytorch_model.bin, on the CPU.

    Raises:
        CheckpointError: there is no weight file, or one is cut short or damaged.
    """
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").exists():
        return _read_safetensors(folder / "model.safetensors")
    if index.exists():
        return {key: tensor for name in _shards(index) for key, tensor in _read_safetensors(folder / name).items()}
    if (folder / "pytorch_model.bin").exists():
        return _read_pickle(folder / "pytorch_model.bin")
    raise CheckpointError(f"{folder}: no model.safetensors and no pytorch_model.bin; is this a model directory?")


def _shards(index: Path) -> list[str]:
    try:
        return sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{index}: cut short or damaged ({error}); fetch the model again") from error


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors: dict[str, Tensor] = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cut short or damaged ({error}); fetch or export the model again") from error
    return tensors


def _read_pickle(path: Path) -> dict[str, Tensor]:
    try:
        tensors: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch.load raises whatever the unpickler or the zip reader meets
        reason = " ".join(str(error).split())[:150]
        raise CheckpointError(f"{path}: cut short, damaged or not plain tensors ({reason}); fetch it again") from error
    return tensors


def weights_digest(weights: Mapping[str, Tensor], *, begin: str = "") -> str:
    """Hex SHA-256 of names, dtypes, shapes and bytes.

    Args:
        weights: in any order.
        begin: hashed before them.
    """
    digest = hashlib.sha256(begin.encode())
    for name, tensor in sorted(weights.items()):
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
