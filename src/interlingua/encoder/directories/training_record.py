"""The cost and the configuration of the training run that made a model directory.

They are read from the parent folder of the model directory.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any

from interlingua.storage.files import PathLike
from interlingua.storage.json_text import parse_json

NOT_OF_THE_ARM = {
    "seed",
    "output",
    "device",
    "devices",
    "threads",
    "logging_steps",
    "save_steps",
    "save_total_limit",
    "tensorboard",
}
"""Keys of [run] that do not belong to an arm: the seed, and settings that affect no number."""


def training_record(model: PathLike) -> dict[str, Any] | None:
    """Return the facts that results state about the training of ``RUN/model`` or ``RUN/best``.

    Args:
        model: a model directory.

    Returns:
        ``method``, ``seed``, ``arm`` (a digest of the config without the seed and settings that
        affect no number) and, once the run has ended, its cost: ``step``, ``pairs``, ``tokens`` of
        both sides, wall ``seconds``, ``cpu_seconds`` where they were measured, ``peak_rss_bytes``.
        None for a model that is not in a run's folder.
    """
    run = Path(model).expanduser().resolve().parent
    try:
        config = tomllib.loads((run / "config.toml").read_text(encoding="utf-8"))
        record = {
            "method": config["method"]["name"],
            "seed": config["run"].get("seed"),
            "arm": _arm(config),
        }
        lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        # The last line is the summary once a run has ended; until then it is the line of a step.
        cost: dict[str, Any] = {}
        if lines:
            last = parse_json(lines[-1])
            if last.get("kind") == "final":
                cost = _cost(last)
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ):
        # Other programs' folders may contain files of these names with any content.
        return None
    return record | cost


def _arm(config: dict[str, Any]) -> str:
    """Return 12 digits that are equal for runs that differ only by seed."""
    run = {key: value for key, value in config["run"].items() if key not in NOT_OF_THE_ARM}
    content = json.dumps({**config, "run": run}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def _cost(final: dict[str, Any]) -> dict[str, Any]:
    pairs = final.get("pairs") or sum(final.get("exposure", {}).values())
    rate = final.get("pairs_per_second")
    tokens = final.get("tokens")
    # If tokens were not counted, their number is computed from the rates.
    if not tokens and rate:
        tokens = round(pairs * final["tokens_per_second"] / rate)
    found = {name: final.get(name) for name in ("step", "seconds", "cpu_seconds", "peak_rss_bytes")}
    found["pairs"] = pairs
    found["tokens"] = tokens
    return {name: value for name, value in found.items() if value}
