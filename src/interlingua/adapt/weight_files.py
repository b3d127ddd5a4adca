"""The tensors of model directories, read in blocks of rows: no model is ever in memory whole.

Models of different origin name and split their tensors differently. ``WeightFiles`` gives all of
them by the names of stock models, from headers alone; ``blocks`` reads one of them row by row; and
``write_tensors`` writes a file of tensors that are made in the same way.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from interlingua.encoder.backbone import Backbone, BackboneConfig
from interlingua.encoder.directory import read_backbone_config, read_json
from interlingua.encoder.families import FAMILIES, family_of
from interlingua.encoder.meta_device import meta_device
from interlingua.encoder.weights import TOKEN_TYPES, from_huggingface_names, huggingface_name
from interlingua.errors import CheckpointError

DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8,
    "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip
"""By the names that safetensors writes in a file's header."""
ALIGNMENT = 8
"""Bytes; tensors begin at a multiple of it in a file."""
BLOCK_NUMBERS = 1 << 22
"""Numbers of a tensor that are in memory at once."""


class StoredTensor(NamedTuple):
    """Where a tensor is."""

    file: Path
    key: str
    """Its name in the file."""
    shape: tuple[int, ...]
    dtype: str
    """As safetensors spells it."""


class WeightFiles:
    """All tensors below a model directory.

    They are those of the backbone, of modules behind it, and of a second tower. Tensors are named
    by their file's folder and, without a prefix such as ``bert.``, as stock
    models call them. What interlingua does not read (poolers, language-modeling heads) is left out.

    Args:
        folder: the model directory.

    Raises:
        CheckpointError: there are no safetensors in it, or one is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tensors: dict[str, StoredTensor] = {}
        files = sorted(folder.rglob("*.safetensors"))
        is_whole = (folder / "model.safetensors").is_file()
        has_shards = any(file.parent == folder for file in files)
        is_sharded = has_shards and (folder / "model.safetensors.index.json").is_file()
        if not is_whole and not is_sharded:
            raise CheckpointError(
                f"{folder}: no model.safetensors; write the model anew first: interlingua export"
                f" {folder} -o DIR"
            )
        # Each folder is a module of its own, with tensors that may be split over several files.
        for place in sorted({file.parent for file in files}):
            stored = _stored_in([file for file in files if file.parent == place])
            path = ""
            if place != folder:
                path = f"{place.relative_to(folder).as_posix()}/"
            for name, tensor in _used(stored, place).items():
                self.tensors[f"{path}{name}"] = tensor
        self._open: dict[Path, Any] = {}
        self._exit = contextlib.ExitStack()

    def close(self) -> None:
        """Lets go of the files; reading opens them again."""
        self._exit.close()
        self._open.clear()

    def blocks(self, name: str) -> Iterator[Tensor]:
        """One tensor, on the CPU and in its own dtype, some consecutive rows at a time."""
        from safetensors import safe_open

        stored = self.tensors[name]
        if stored.file not in self._open:
            file = safe_open(stored.file, framework="pt")
            self._open[stored.file] = self._exit.enter_context(file)
        # A single number has no rows.
        if not stored.shape:
            yield self._open[stored.file].get_tensor(stored.key)
            return
        rows = max(1, BLOCK_NUMBERS // max(1, math.prod(stored.shape[1:])))
        content = self._open[stored.file].get_slice(stored.key)
        for first in range(0, stored.shape[0], rows):
            yield content[first : first + rows]


def _stored_in(files: list[Path]) -> dict[str, StoredTensor]:
    """The tensors of some files by their names in them; only the headers are read.

    Raises:
        CheckpointError: a file is damaged.
    """
    from safetensors import SafetensorError, safe_open

    found: dict[str, StoredTensor] = {}
    for file in files:
        try:
            with safe_open(file, framework="pt") as content:
                for key in content.keys():  # noqa: SIM118 - no mapping
                    part = content.get_slice(key)
                    found[key] = StoredTensor(file, key, tuple(part.get_shape()), part.get_dtype())
        except (SafetensorError, OSError) as error:
            raise CheckpointError(
                f"{file}: cut short or damaged ({error}); fetch or export the model again"
            ) from error
    return found


def _used(stored: dict[str, StoredTensor], place: Path) -> dict[str, StoredTensor]:
    """A backbone's tensors under stock names; all tensors of any other module."""
    raw = read_json(place / "config.json", missing={})
    family_name = family_of(raw)
    if not isinstance(family_name, str) or family_name not in FAMILIES:
        return stored
    # One tensor that every backbone of the family has tells what its names begin with.
    family = FAMILIES[family_name]
    anchors = [name for name in stored if name.endswith(family.anchor)]
    if not anchors:
        return stored
    prefix = anchors[0].removesuffix(family.anchor)
    config = read_backbone_config(place, raw)
    _check_backbone(stored, config, prefix, place)
    # On the device "meta" tensors have shapes and no numbers: the names are all that is needed.
    with meta_device():
        backbone = Backbone(config)
    names = [name for stack in family.stacks(backbone.state_dict()) for name in stack.theirs]
    return {name: stored[prefix + name] for name in names if prefix + name in stored}


def _check_backbone(
    stored: dict[str, StoredTensor], config: BackboneConfig, prefix: str, place: Path
) -> None:
    """Refuses tensors that are not those of the config, without reading them.

    Loading the model would refuse the same.

    Raises:
        CheckpointError: some are missing, left over or of another shape.
    """
    # Of tensors that hold no floats only that matters: int64 stands for all other dtypes.
    floats = {spelled: kind for spelled, kind in DTYPES.items() if kind.is_floating_point}
    kinds = {name: floats.get(tensor.dtype, torch.int64) for name, tensor in stored.items()}
    blank = {
        name: torch.empty(tensor.shape, dtype=kinds[name], device="meta")
        for name, tensor in stored.items()
    }
    types = ""
    if FAMILIES[config.model_type].has_types:
        types = prefix + huggingface_name(TOKEN_TYPES, config.model_type)
    # A model without token types may store one row of zeros, and only its values would show that.
    if types in blank and len(blank[types]) == 1 and config.type_vocab_size < 2:
        del blank[types]
    from_huggingface_names(blank, config, place)


def write_tensors(
    path: Path, tensors: Mapping[str, StoredTensor], make: Callable[[str], Iterator[Tensor]]
) -> None:
    """Writes a safetensors file without having more than a block of one tensor in memory.

    The format: eight bytes with the length of a JSON header, the header, then the tensors' bytes
    one after another.

    Args:
        path: of the file.
        tensors: name -> shape and dtype it will have.
        make: gives the tensor of a name, in that dtype, as blocks of consecutive rows.
    """
    # The header comes first, so that where each tensor will end is computed before it is made.
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in tensors.items():
        start = end
        end = start + math.prod(tensor.shape) * DTYPES[tensor.dtype].itemsize
        header[name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    # Spaces behind JSON mean nothing, and the tensors begin at a multiple of 8.
    text += b" " * (-len(text) % ALIGNMENT)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for name in tensors:
            for block in make(name):
                # As bytes, since numpy does not know bfloat16.
                file.write(block.contiguous().reshape(-1).view(torch.uint8).numpy().data)


def files_besides_weights(folder: Path) -> Iterator[Path]:
    """The files of a model directory, and of folders in it, that are settings or vocabularies.

    Weights, exported graphs and cards stay out.
    """
    for path in sorted(folder.rglob("*")):
        if (
            path.is_file()
            and path.suffix in (".json", ".model", ".txt")
            and not path.name.endswith(".index.json")
        ):
            yield Path(os.path.relpath(path, folder))
