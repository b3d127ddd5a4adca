"""Weight files: Hugging Face's parameter names to ours and back, safetensors and old pickles.

The parameters read are compared with ``config.json`` one by one: none may be missing, none of
embeddings or layers may be left over, and every shape must fit. Each kind of damage is reported in
one line that names the file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from interlingua.encoder.modeling.architectures import Architecture
from interlingua.encoder.modeling.backbone import Backbone, BackboneConfig
from interlingua.encoder.modeling.families import FAMILIES
from interlingua.encoder.modeling.meta_device import meta_device
from interlingua.errors import CheckpointError, with_article
from interlingua.storage.json_text import parse_json, read_json_text
from interlingua.vocabulary.model_files import ShardsFile, read_file

TOKEN_TYPES = "token_type_embeddings.weight"
BUFFERS = (".position_ids", ".token_type_ids")
"""Endings of the names of index tensors that older versions of transformers stored."""
NAMED_LAYERS = 8
"""Number of layers that an error names."""


def huggingface_name(name: str, model_type: str = "bert") -> str:
    """Return the Hugging Face name of one of our parameters.

    For example ``layers.0.query.weight`` -> ``encoder.layer.0.attention.self.query.weight``. If one
    of theirs holds several of ours, or the reverse, the result is the first one of theirs.
    """
    module, kind = name.rsplit(".", 1)
    family = FAMILIES[model_type]
    if not module.startswith("layers."):
        return f"{family.embeddings[module]}.{kind}"
    _, number, part = module.split(".")
    stack = next(stack for stack in family.layer if part in stack.ours)
    return f"{family.layer_prefix}{number}.{stack.theirs[0]}.{kind}"


def to_huggingface_names(weights: dict[str, Tensor], config: BackboneConfig) -> dict[str, Tensor]:
    """Convert our state dict to a stock model's.

    A backbone without token types gets one row of zeros, which adds nothing.
    """
    family = FAMILIES[config.model_type]
    if family.has_types and not config.type_vocab_size:
        zeros = weights["word_embeddings.weight"].new_zeros(1, config.hidden_size)
        weights = {**weights, TOKEN_TYPES: zeros}
    stored = {}
    for stack in family.stacks(weights):
        theirs = stack.to_theirs([weights[name] for name in stack.ours])
        for name, tensor in zip(stack.theirs, theirs, strict=True):
            stored[name] = tensor.detach().cpu().contiguous()
    return stored


def from_huggingface_names(
    stored: dict[str, Tensor], config: BackboneConfig, folder: Path
) -> tuple[dict[str, Tensor], BackboneConfig]:
    """Return our state dict from a stock one, with any prefix (``bert.``, ``roberta.``) or heads.

    Returns:
        the weights, and the config without token types if their only row is zero.

    Raises:
        CheckpointError: a parameter is missing or has another shape than in ``config.json``, or
            there are several models.
    """
    family = FAMILIES[config.model_type]
    # The word embeddings are in every model: the text before their name is the prefix of all.
    anchors = [name for name in stored if name.endswith(family.anchor)]
    if not anchors:
        raise CheckpointError(
            f"{folder}: not a {config.model_type} model, because none of its {len(stored)}"
            f" parameters is called {family.anchor}; check model_type in config.json"
        )
    if len(anchors) > 1:
        raise CheckpointError(
            f"{folder}: the weight file contains {len(anchors)} models,"
            f" {' and '.join(sorted(anchors)[:2])}, and only one is supported; download a model"
            " with a single encoder"
        )
    prefix = anchors[0].removesuffix(family.anchor)
    types: Tensor | None = None
    if family.has_types:
        types = stored.get(prefix + huggingface_name(TOKEN_TYPES, config.model_type))
    found = 0 if types is None else len(types)
    # A single declared type may be absent: it would be the same vector for all tokens.
    if family.has_types and config.type_vocab_size not in (0, max(found, 1)):
        raise CheckpointError(
            f"{folder}: config.json declares {config.type_vocab_size} token types, but the"
            f" weight file has {found}; download the model again"
        )
    # A single row of zeros adds nothing; `to_huggingface_names` writes one.
    if types is None or (len(types) == 1 and not types.any()):
        config = dataclasses.replace(config, type_vocab_size=0)
    with meta_device():
        expected = Backbone(config).state_dict()
    _check_layers(stored, prefix + family.layer_prefix, config, folder)
    weights: dict[str, Tensor] = {}
    for stack in family.stacks(expected):
        # Tensors on "meta" have the required shapes, without any memory.
        blanks = stack.to_theirs([expected[name] for name in stack.ours])
        theirs = []
        for name, blank in zip(stack.theirs, blanks, strict=True):
            theirs.append(_parameter(stored, prefix + name, blank, folder))
        weights |= dict(zip(stack.ours, stack.to_ours(theirs), strict=True))
    _check_left_over(stored, prefix, family, expected, folder)
    return weights, config


def _parameter(stored: Mapping[str, Tensor], full: str, blank: Tensor, folder: Path) -> Tensor:
    """Return one parameter in float32.

    Raises:
        CheckpointError: it is missing, or of another shape than ``blank``, or holds no numbers.
    """
    # TensorFlow's names of a LayerNorm's weight and bias, which the oldest files have.
    old = full.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")
    tensor = stored.get(full, stored.get(old))
    if tensor is None:
        raise CheckpointError(
            f"{folder}: is damaged or incomplete (the parameter {full} is missing); download the"
            " model again"
        )
    if not tensor.is_floating_point():
        raise CheckpointError(
            f"{folder}: the parameter {full} is {tensor.dtype}, expected floating-point numbers;"
            " download the model again"
        )
    if tensor.shape != blank.shape:
        raise CheckpointError(
            f"{folder}: the parameter {full} has shape {tuple(tensor.shape)}, expected"
            f" {tuple(blank.shape)} from config.json; download the model again"
        )
    return tensor.float()


def _check_layers(
    stored: Mapping[str, Tensor], layer_prefix: str, config: BackboneConfig, folder: Path
) -> None:
    """Check that the weight file has as many layers as the config specifies.

    Raises:
        CheckpointError: some layers are missing or left over; the message names them.
    """
    # Six digits at most: a stranger's file may have a number of any length.
    pattern = re.compile(rf"{re.escape(layer_prefix)}(\d{{1,6}})\.")
    matches = map(pattern.match, stored)
    found = {int(match[1]) for match in matches if match}
    expected = set(range(config.num_hidden_layers))
    missing = (expected - found, "are missing from")
    left_over = (found - expected, "are unexpected in")
    for wrong, what in (missing, left_over):
        if wrong:
            names = ", ".join(map(str, sorted(wrong)[:NAMED_LAYERS]))
            if len(wrong) > NAMED_LAYERS:
                names += ", ..."
            raise CheckpointError(
                f"{folder}: config.json declares {config.num_hidden_layers} layers, but layers"
                f" {names} {what} the weight file; download the model again"
            )


def _check_left_over(
    stored: Mapping[str, Tensor],
    prefix: str,
    family: Architecture,
    expected: Iterable[str],
    folder: Path,
) -> None:
    """Refuse parameters of embeddings or layers that are not used here.

    Heads and poolers are allowed.

    Raises:
        CheckpointError: there is such a parameter.
    """
    names = set(expected)
    # The file has this parameter even if its only row is zero and is therefore dropped here.
    if family.has_types:
        names.add(TOKEN_TYPES)
    known = {prefix + name for stack in family.stacks(names) for name in stack.theirs}
    roots = tuple([prefix + root for root in family.roots])
    for full in stored:
        name = full.replace("Norm.gamma", "Norm.weight").replace("Norm.beta", "Norm.bias")
        if name.startswith(roots) and name not in known and not name.endswith(BUFFERS):
            raise CheckpointError(
                f"{folder}: unexpected parameter {full[:100]}; check that config.json declares"
                " the architecture of the weights"
            )


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read all tensors of model.safetensors (whole or sharded) or pytorch_model.bin, on the CPU.

    Raises:
        CheckpointError: there is no weight file, or one is truncated or damaged.
    """
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").exists():
        return _read_safetensors(folder / "model.safetensors")
    if index.exists():
        return {
            key: tensor
            for name in _shards(index)
            for key, tensor in _read_safetensors(folder / name).items()
        }
    if (folder / "pytorch_model.bin").exists():
        return _read_pickle(folder / "pytorch_model.bin")
    raise CheckpointError(
        f"{folder}: model.safetensors and pytorch_model.bin not found; check that the path is a"
        " model folder"
    )


def _shards(index: Path) -> list[str]:
    try:
        content = parse_json(read_json_text(index))
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{index}: is damaged or incomplete ({error}); download the model again"
        ) from error
    return sorted(set(read_file(ShardsFile, content, index).weight_map.values()))


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors: dict[str, Tensor] = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(
            f"{path}: is damaged or incomplete ({error}); download or export the model again"
        ) from error
    return tensors


def _read_pickle(path: Path) -> dict[str, Tensor]:
    try:
        with warnings.catch_warnings():
            # torch warns of kinds of tensors that are refused below.
            warnings.simplefilter("ignore")
            tensors: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
        _check_tensors(tensors)
    except Exception as error:  # torch.load passes on any error of unpickler or zip reader
        reason = " ".join(str(error).split())[:150]
        raise CheckpointError(
            f"{path}: is damaged, incomplete or contains more than plain tensors ({reason});"
            " download the model again"
        ) from error
    return tensors


def _check_tensors(tensors: object) -> None:
    """Refuse tensors that are not plain, or larger than the bytes that they are made of.

    A pickle may contain such tensors.

    Raises:
        ValueError: ``tensors`` is not a dictionary of plain tensors.
    """
    if not isinstance(tensors, dict):
        raise ValueError(f"the content is {with_article(type(tensors).__name__)}")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor) or not _is_plain(tensor):
            raise ValueError(f"{str(name)[:60]} is not a plain tensor")
        # Strides of 0 make a huge tensor of a single number.
        if tensor.untyped_storage().nbytes() < tensor.numel() * tensor.element_size():
            raise ValueError(
                f"{name[:60]} has {tensor.numel():,} numbers, more than the file stores"
            )


def _is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor consists of plain numbers in memory.

    It is not sparse, nested, quantized, or only a shape (``meta``).
    """
    special = tensor.is_nested or tensor.is_quantized or tensor.device.type != "cpu"
    return tensor.layout == torch.strided and not special


def weights_digest(weights: Mapping[str, Tensor], *, begin: str = "") -> str:
    """Compute the hex SHA-256 of names, dtypes, shapes and bytes.

    Args:
        weights: in any order.
        begin: text that is hashed before the weights.
    """
    digest = hashlib.sha256(begin.encode())
    # Sorted by name, and each with dtype and shape: equal bytes of other shapes are other weights.
    for name, tensor in sorted(weights.items()):
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
