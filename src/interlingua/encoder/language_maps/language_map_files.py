"""A language map on disk: ``language_map.safetensors``.

Its tensors are the map's matrices; its metadata hold the method, the rank and the languages.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from interlingua.encoder.language_maps.affine_maps import MAP_METHODS, LanguageMap
from interlingua.errors import CheckpointError
from interlingua.storage.files import PathLike, atomic_write
from interlingua.storage.json_text import parse_json

MAP_FILE = "language_map.safetensors"


def write_map(language_map: LanguageMap, path: PathLike) -> None:
    """Write a map as float32."""
    # Imported here, as below, since commands that use no map import this module too.
    from safetensors.numpy import save

    tensors = {"weight": language_map.weight, "bias": language_map.bias}
    if language_map.shifts is not None:
        tensors["shifts"] = language_map.shifts
    described = {
        "method": language_map.method,
        "rank": str(language_map.rank),
        "languages": json.dumps(language_map.languages),
    }
    content = {
        name: np.ascontiguousarray(tensor, dtype=np.float32) for name, tensor in tensors.items()
    }
    with atomic_write(path, "wb") as file:
        file.write(save(content, metadata=described))


def read_map(path: PathLike) -> LanguageMap:
    """Read a map from a file or from the folder that contains it.

    Raises:
        CheckpointError: there is none, or it is damaged.
    """
    from safetensors import SafetensorError, safe_open

    file_path = Path(path)
    if file_path.is_dir():
        file_path = file_path / MAP_FILE
    if not file_path.is_file():
        raise CheckpointError(f"{file_path}: file not found; create it with `interlingua debias`")
    try:
        with safe_open(file_path, framework="numpy") as file:
            described: dict[str, str] = file.metadata() or {}
            tensors: dict[str, Any] = {
                name: file.get_tensor(name).astype(np.float64)
                for name in file.keys()  # noqa: SIM118
            }
        method = described["method"]
        languages = parse_json(described["languages"])
        weight = tensors["weight"]
        bias = tensors["bias"]
        shifts = tensors.get("shifts")
        if bias.ndim != 1 or not isinstance(languages, list):
            raise ValueError("unexpected types")
        # The file may come from anywhere: a map that fits but has NaN would spoil all vectors.
        width = len(bias)
        shifts_fit = shifts is None or shifts.shape == (len(languages), width)
        fits = weight.shape == (width, width) and shifts_fit
        is_finite = all(np.isfinite(tensor).all() for tensor in tensors.values())
        if method not in MAP_METHODS or not fits or not is_finite:
            raise ValueError("unknown method, wrong shapes, NaN or infinity")
        return LanguageMap(
            method, int(described["rank"]), tuple(map(str, languages)), weight, bias, shifts
        )
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{file_path}: is damaged or incomplete ({error}); run `interlingua debias` again"
        ) from error
