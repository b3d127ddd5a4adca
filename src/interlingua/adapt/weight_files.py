"""The tensors of model directories, read one at a time.

Models of different origin name and split their tensors differently. ``WeightFiles`` lists them by
the names of stock models. For the list it reads only the headers of the files; it reads a tensor
when the caller requests it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from interlingua.encoder.directories.model_directory import read_backbone_config, read_json
from interlingua.encoder.modeling.backbone import Backbone, BackboneConfig
from interlingua.encoder.modeling.families import FAMILIES, family_of
from interlingua.encoder.modeling.meta_device import meta_device
from interlingua.encoder.modeling.weights import (
    TOKEN_TYPES,
    from_huggingface_names,
    huggingface_name,
)
from interlingua.errors import CheckpointError

HEADER_DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8,
    "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip
"""Dtypes by their names in a safetensors header."""


class StoredTensor(NamedTuple):
    """The location of a tensor."""

    file: Path
    key: str
    """Its name in the file."""
    shape: tuple[int, ...]
    dtype: str
    """Dtype in safetensors' spelling."""


class WeightFiles:
    """All tensors below a model directory.

    They belong to the backbone, to modules after it, and to a second tower. The name of a tensor
    consists of its file's folder and its name in stock models, without a prefix such as ``bert.``.
    Tensors that interlingua does not read (poolers, language-modeling heads) are left out.

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
                f"{folder}: model.safetensors not found; write the model in that format:"
                f" interlingua export {folder} -o DIR"
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
        """Close the files; reading opens them again."""
        self._exit.close()
        self._open.clear()

    def tensor(self, name: str) -> Tensor:
        """Return one tensor, on the CPU and in its own dtype."""
        from safetensors import safe_open

        stored = self.tensors[name]
        if stored.file not in self._open:
            file = safe_open(stored.file, framework="pt")
            self._open[stored.file] = self._exit.enter_context(file)
        tensor: Tensor = self._open[stored.file].get_tensor(stored.key)
        return tensor


def _stored_in(files: list[Path]) -> dict[str, StoredTensor]:
    """Return the tensors of some files by name; only the headers are read.

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
                f"{file}: is damaged or incomplete ({error}); download or export the model again"
            ) from error
    return found


def _used(stored: dict[str, StoredTensor], place: Path) -> dict[str, StoredTensor]:
    """Return a backbone's tensors under stock names, or all tensors of any other module."""
    raw = read_json(place / "config.json", missing={})
    family_name = family_of(raw)
    if not isinstance(family_name, str) or family_name not in FAMILIES:
        return stored
    # Every backbone of the family has the anchor tensor, whose name shows the prefix of all names.
    family = FAMILIES[family_name]
    anchors = [name for name in stored if name.endswith(family.anchor)]
    if not anchors:
        return stored
    prefix = anchors[0].removesuffix(family.anchor)
    config = read_backbone_config(place, raw)
    _check_backbone(stored, config, prefix, place)
    # Tensors on the device "meta" have shapes but no numbers; only their names are needed here.
    with meta_device():
        backbone = Backbone(config)
    names = [name for stack in family.stacks(backbone.state_dict()) for name in stack.theirs]
    return {name: stored[prefix + name] for name in names if prefix + name in stored}


def _check_backbone(
    stored: dict[str, StoredTensor], config: BackboneConfig, prefix: str, place: Path
) -> None:
    """Refuse tensors that are not those of the config, without reading them.

    Loading the model would refuse the same tensors.

    Raises:
        CheckpointError: some are missing, left over or of another shape.
    """
    # For the check, all dtypes that are not floats are equal, so int64 represents them.
    floats = {spelled: kind for spelled, kind in HEADER_DTYPES.items() if kind.is_floating_point}
    kinds = {name: floats.get(tensor.dtype, torch.int64) for name, tensor in stored.items()}
    blank = {
        name: torch.empty(tensor.shape, dtype=kinds[name], device="meta")
        for name, tensor in stored.items()
    }
    types = ""
    if FAMILIES[config.model_type].has_types:
        types = prefix + huggingface_name(TOKEN_TYPES, config.model_type)
    # A model without token types may store one row of zeros; the check does not read its values.
    if types in blank and len(blank[types]) == 1 and config.type_vocab_size < 2:
        del blank[types]
    from_huggingface_names(blank, config, place)


def files_besides_weights(folder: Path) -> Iterator[Path]:
    """Yield the setting and vocabulary files of a model directory and of folders in it.

    Weights, exported graphs and cards are left out.
    """
    for path in sorted(folder.rglob("*")):
        if (
            path.is_file()
            and path.suffix in (".json", ".model", ".txt")
            and not path.name.endswith(".index.json")
        ):
            yield Path(os.path.relpath(path, folder))
