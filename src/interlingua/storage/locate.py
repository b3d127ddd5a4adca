"""Resolution of a model's name: a path, the best model of a run, an installed package, the hub.

Models are downloaded from the Hugging Face hub only if a user writes ``hf:owner/name``.
"""

from __future__ import annotations

import functools
import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path

from interlingua.config import HUB_PREFIX
from interlingua.config.registry import OWN_MODELS, installed_model_entry
from interlingua.errors import CheckpointError
from interlingua.storage.files import PathLike

log = logging.getLogger("interlingua")
RUN_CONFIG = "config.toml"
"""File that identifies the folder of a training run."""
# First the best model by evaluation, then the last one.
RUN_MODELS = ("best", "model")
# Not all files: some models hold the same weights in a dozen other formats.
_HUB_FILES = [
    "*.json",
    "*.model",
    "*.txt",
    "model.safetensors",
    "model-*.safetensors",
    "*_Dense/*",
    "onnx/weights.*",
]


def locate(
    path_or_id: PathLike, *, patterns: Sequence[str] = (*_HUB_FILES, "pytorch_model.bin")
) -> Path:
    """Return the folder of a model.

    The model may be a path, a training run, an installed model's name or ``hf:owner/name``. A
    folder takes precedence over an installed model of the same name, and a warning reports this. A
    missing path is never looked up on the hub; otherwise the owner of that name on the hub would
    decide what is loaded.

    Args:
        path_or_id: path or name of the model.
        patterns: patterns of the files to download from a hub model.

    Raises:
        CheckpointError: there is no such folder, or the hub has no such model or can't be reached.
    """
    name = hub_name(path_or_id)
    if name is not None:
        return hub_snapshot(name, list(patterns))
    text = os.fspath(path_or_id)
    folder = Path(text).expanduser()
    if folder.is_dir():
        package = _package_of(text)
        if package is not None:
            _warn_of_shadow(text, folder.resolve(), package)
        return Path(best_of_run(folder))
    installed = installed_model(text)
    if installed is not None:
        return installed
    # This project publishes models of these names, so the message can name the pip command.
    if text in OWN_MODELS:
        raise CheckpointError(
            f"{text}: the package interlingua-{text}, which contains this model, is not"
            f" installed; in a clone of interlingua, run: pip install ./models/{text}"
        )
    raise CheckpointError(f"{text}: model folder not found; check the path{hub_hint(path_or_id)}")


# Cached, so that it warns once, however many parts of a command look for the model.
@functools.cache
def _warn_of_shadow(name: str, folder: Path, package: str) -> None:
    log.warning(
        "%s: the folder %s is used instead of the model of that name in the package %s; rename"
        " the folder to use the package",
        name,
        folder,
        package,
    )


def installed_model(name: str) -> Path | None:
    """Return the folder of a model that an installed package provides by name, such as ``mini``.

    The result is None if no package provides it.

    Raises:
        CheckpointError: the package's folder is missing, or the package can't unpack the model
            because the folder is not writable.
    """
    entry = installed_model_entry(name)
    if entry is None:
        return None
    # The entry point is a function that returns the folder, and unpacks the model if necessary.
    try:
        folder = Path(entry.load()())
    except OSError as error:
        raise CheckpointError(str(error)) from error
    if not folder.is_dir():
        package = _package_of(name)
        raise CheckpointError(
            f"{name}: the package {package} has no folder {folder}; install it again"
        )
    return folder


def _package_of(name: str) -> str | None:
    """Return the package that provides a model of that name, without importing it."""
    entry = installed_model_entry(name)
    if entry is None:
        return None
    package, _, _ = entry.value.partition(":")
    return package


def best_of_run(path_or_id: PathLike) -> PathLike:
    """Return the best model of a training run's folder; any other path is unchanged.

    Raises:
        CheckpointError: the run has no model yet.
    """
    folder = Path(path_or_id).expanduser()
    if not (folder / RUN_CONFIG).is_file():
        return path_or_id
    return model_of_run(folder)


def model_of_run(run: Path) -> Path:
    """Return the best model of a training run's folder, or its last one if none was evaluated.

    Raises:
        CheckpointError: there is no model yet.
    """
    for part in RUN_MODELS:
        if (run / part / "config.json").exists():
            return run / part
    raise CheckpointError(
        f"{run}: the run has no model yet; continue the training to its first evaluation or its end"
    )


def hub_name(path_or_id: PathLike) -> str | None:
    """Return ``owner/name`` of ``hf:owner/name``, or None for a path."""
    text = os.fspath(path_or_id)
    if not text.startswith(HUB_PREFIX):
        return None
    return text.removeprefix(HUB_PREFIX)


def hub_hint(path_or_id: PathLike) -> str:
    """Return a hint on hub models if a missing path may be the name of one."""
    text = os.fspath(path_or_id)
    # A hub model has a name, or an owner and a name. A path that starts with / or ., or has three
    # parts, is no hub model.
    may_be_hub = re.fullmatch(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", text)
    if not may_be_hub:
        return ""
    # Models of the hub have an owner; sentence-transformers leaves its own name out.
    name = text if "/" in text else f"owner/{text}"
    return f"; for the model of that name on the Hugging Face hub, use {HUB_PREFIX}{name}"


def hub_snapshot(name: str, patterns: list[str]) -> Path:
    """Return the local folder with these files of a hub model; one request, without retries.

    Raises:
        CheckpointError: the hub has no such model or can't be reached.
    """
    # Imported here: nothing else of the library needs the hub's client.
    from huggingface_hub import snapshot_download

    if re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name) is None:
        raise CheckpointError(
            f"invalid model {HUB_PREFIX}{name[:100]}: expected {HUB_PREFIX}owner/name"
        )
    try:
        return Path(snapshot_download(name, allow_patterns=patterns))
    except Exception as error:  # the hub's client raises many kinds
        lines = [line.strip() for line in str(error).splitlines()]
        lines = [line for line in lines if line] or ["no reason"]
        # Show short reasons completely, but only the first line of long ones, which continue with
        # advice.
        reason = lines[0].rstrip(".")
        if len(str(error)) < 160:
            reason = " ".join(lines)
        raise CheckpointError(
            f"{HUB_PREFIX}{name}: cannot be downloaded from the hub ({type(error).__name__}:"
            f" {reason}); check the name and the network"
        ) from error
