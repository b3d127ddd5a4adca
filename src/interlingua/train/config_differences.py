"""The differences of two configs, key by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.train.config import TrainConfig


def differences(
    a: TrainConfig, b: TrainConfig, *, ignore: frozenset[str] = frozenset()
) -> list[str]:
    """The keys in which two configs differ, with both values: ``"run.seed (0, 1)"``.

    Args:
        a: one config.
        b: the other.
        ignore: keys that may differ.
    """
    # As mappings, since two methods have options of different names, of which one side has none.
    flat_a = dict(_flat(a.to_mapping()))
    flat_b = dict(_flat(b.to_mapping()))
    keys = sorted((flat_a.keys() | flat_b.keys()) - ignore)
    return [
        f"{key} ({flat_a.get(key)}, {flat_b.get(key)})"
        for key in keys
        if flat_a.get(key) != flat_b.get(key)
    ]


def _flat(table: Mapping[str, Any], path: str = "") -> list[tuple[str, Any]]:
    """Nested tables as one list, by keys such as ``run.seed``."""
    pairs: list[tuple[str, Any]] = []
    for key, value in table.items():
        if isinstance(value, Mapping):
            pairs += _flat(value, f"{path}{key}.")
        else:
            pairs.append((f"{path}{key}", value))
    return pairs
