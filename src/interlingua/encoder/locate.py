"""Where a model is: the path given, the best model of a training run, or a snapshot of the Hugging Face hub."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from interlingua.encoder.hub import hub_hint, hub_name, hub_snapshot
from interlingua.errors import CheckpointError
from interlingua.files import PathLike

RUN_CONFIG = "config.toml"
"""Tells the folder of a training run from that of a model."""
RUN_MODELS = ("best", "model")
HUB_FILES = ["*.json", "*.model", "*.txt", "model.safetensors", "model-*.safetensors", "*_Dense/*"]


def locate(path_or_id: PathLike, *, patterns: Sequence[str] = (*HUB_FILES, "pytorch_model.bin")) -> Path:
    """The folder of a model: the path, the best model of a run, or the hub's snapshot of ``hf:owner/name``.

    A path that is not there is never looked up on the hub: whoever took the name there would decide what is loaded.

    Args:
        path_or_id: of the model.
        patterns: files to fetch of a hub's model.

    Raises:
        CheckpointError: there is no such folder, or the hub has no such model or can't be reached.
    """
    name = hub_name(path_or_id)
    if name is not None:
        return hub_snapshot(name, list(patterns))
    folder = Path(path_or_id).expanduser()
    if folder.is_dir():
        return Path(best_of_run(folder))
    raise CheckpointError(f"{os.fspath(path_or_id)}: no such model directory{hub_hint(path_or_id)}")


def best_of_run(path_or_id: PathLike) -> PathLike:
    """The best model of a training run, for the folder of one; everything else as it is.

    Raises:
        CheckpointError: the run has no model yet.
    """
    folder = Path(path_or_id).expanduser()
    return model_of_run(folder) if (folder / RUN_CONFIG).is_file() else path_or_id


def model_of_run(run: Path) -> Path:
    """The best model of a training run's folder, or its last one where none was evaluated.

    Raises:
        CheckpointError: there is no model yet.
    """
    for part in RUN_MODELS:
        if (run / part / "config.json").exists():
            return run / part
    raise CheckpointError(f"{run}: this run has no model yet; train it to its end or first evaluation")
