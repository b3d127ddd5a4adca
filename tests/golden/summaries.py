"""Comparable content of files that verbs write: everything that does not depend on the day or the
machine."""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

VOLATILE = re.compile(
    r"second|version|date|time|memory|machine|processor|digest|commit|path|host|python|torch|cpu|device|_at$|command"
    r"|checksum|revision|library|packages|rate$|threads|sha|started|created|bytes|^files$|^inputs$|^arm$"
)
"""Keys of JSON with values that differ between two runs or two machines."""
MOST_LINES = 60
"""Lines of a text that are kept."""
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


def summary(path: Path, world: Path) -> Any:
    """Return a value that JSON can represent. Its floats are compared with a tolerance.

    Args:
        path: the file.
        world: the folder in which the verbs ran, of another name each time.
    """
    if path.suffix == ".npy":
        return _array(np.load(path, allow_pickle=False))
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return {name: _array(arrays[name]) for name in sorted(arrays.files)}
    if path.suffix == ".safetensors":
        return {name: _array(tensor) for name, tensor in sorted(load_file(path).items())}
    if path.name == "tokenizer.json" or path.suffix == ".bin":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    if path.suffix not in (".json", ".jsonl", ".tsv", ".txt", ".align", ".toml"):
        return "written"
    text = path.read_text(encoding="utf-8").replace(str(world), "WORLD")
    if path.suffix == ".json":
        return _steady(json.loads(text))
    lines = text.splitlines()[:MOST_LINES]
    return [_steady(json.loads(line)) for line in lines] if path.suffix == ".jsonl" else lines


def _array(values: np.ndarray) -> dict[str, Any]:
    """Summarize shape, type, and two sums that a changed element or a changed order moves."""
    found: dict[str, Any] = {"shape": list(values.shape), "dtype": str(values.dtype)}
    if values.dtype.kind in "fiu" and values.size:
        flat = values.astype(np.float64).ravel()
        found["norm"] = float(np.sqrt((flat**2).sum()))
        found["weighted"] = float((flat * np.cos(np.arange(flat.size))).sum())
    return found


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _steady(item) for key, item in sorted(value.items()) if not VOLATILE.search(key)
        }
    if isinstance(value, list):
        return [_steady(item) for item in value[:MOST_LINES]]
    return value


def same(found: Any, frozen: Any, tolerance: float) -> bool:
    """Return whether two summaries are equal, except for small differences of floats."""
    if isinstance(frozen, dict) and isinstance(found, dict):
        return found.keys() == frozen.keys() and all(
            same(found[key], frozen[key], tolerance) for key in frozen
        )
    if isinstance(frozen, list) and isinstance(found, list):
        if len(found) != len(frozen):
            return False
        return all(same(one, other, tolerance) for one, other in zip(found, frozen, strict=True))
    if isinstance(frozen, float) and isinstance(found, int | float):
        return math.isclose(found, frozen, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(frozen, str) and isinstance(found, str) and NUMBER.search(frozen):
        numbers = [[float(number) for number in NUMBER.findall(text)] for text in (found, frozen)]
        return NUMBER.sub("", found) == NUMBER.sub("", frozen) and same(*numbers, tolerance)
    return bool(found == frozen)


def differences(found: Any, frozen: Any, tolerance: float, where: str = "") -> list[str]:
    """Return the places of differences between two summaries, for a message."""
    if same(found, frozen, tolerance):
        return []
    if isinstance(frozen, dict) and isinstance(found, dict):
        keys = sorted(found.keys() | frozen.keys())
        parts = [
            differences(found.get(key), frozen.get(key), tolerance, f"{where}/{key}")
            for key in keys
        ]
        return [line for part in parts for line in part]
    if isinstance(frozen, list) and isinstance(found, list) and len(found) == len(frozen):
        pairs = enumerate(zip(found, frozen, strict=True))
        parts = [
            differences(one, other, tolerance, f"{where}/{place}") for place, (one, other) in pairs
        ]
        return [line for part in parts for line in part]
    return [f"{where}: {found!r} was {frozen!r}"]
