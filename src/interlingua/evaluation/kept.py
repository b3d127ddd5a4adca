"""Where vectors are kept: until a stopped suite is run again, or for all further runs of the same model."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from interlingua.encoder.model_info import ModelInfo
from interlingua.encoder.protocol import TextEncoder
from interlingua.errors import ConfigError
from interlingua.evaluation.results import model_folder
from interlingua.files import PathLike, atomic_write

UNREAD = ("matryoshka_dims", "truncate_dim", "int8_ranges")
"""Settings that change no vector, or only its width."""


def vector_places(
    model: ModelInfo, encoder: TextEncoder, prompt: str, output: PathLike | None, cache: PathLike | None
) -> dict[str, Path | None]:
    """``unfinished`` and ``kept`` for a ``CachedEncoder``: the cache where there is one, else next to the results.

    Raises:
        ConfigError: there is a cache, and a change of the model would go unnoticed.
    """
    kept = None if cache is None else kept_folder(model, encoder, prompt, Path(cache))
    unfinished = None if output is None or kept else unfinished_file(model, encoder, prompt, Path(output))
    return {"kept": kept, "unfinished": unfinished}


def unfinished_file(model: ModelInfo, encoder: TextEncoder, prompt: str, folder: Path) -> Path | None:
    """Where a suite that is stopped leaves its vectors, to go on with them when it is run again.

    Args:
        model: what is known of the encoder; without a digest a change would go unnoticed.
        encoder: its settings count too.
        prompt: the text before every input.
        folder: of the results.

    Returns:
        A file next to the model's results, named by a digest of all that vectors depend on.

        None if a change of the model would go unnoticed.
    """
    if model.identity is None:
        return None
    return model_folder(model.name, folder) / f"unfinished-{_digest(vectors_depend_on(model, encoder, prompt))}.vectors"


def kept_folder(model: ModelInfo, encoder: TextEncoder, prompt: str, cache: Path) -> Path:
    """Where a cache keeps vectors of a model with certain settings; ``about.json`` in it says which.

    Raises:
        ConfigError: a change of the model would go unnoticed.
    """
    if model.identity is None:
        raise ConfigError(
            f"vectors of {model.name} can't be kept, since a change of it would go unnoticed; drop the cache, or name a"
            " version: --set function.version=1"
        )
    about = vectors_depend_on(model, encoder, prompt)
    folder = cache.expanduser() / f"{model_folder(model.name, Path()).name}-{_digest(about)}"
    if not (folder / "about.json").exists():
        with atomic_write(folder / "about.json") as file:
            file.write(json.dumps(about, ensure_ascii=False, indent=2) + "\n")
    return folder


def vectors_depend_on(model: ModelInfo, encoder: TextEncoder, prompt: str) -> dict[str, Any]:
    """All that decides a vector besides its text and language, and its role with the prompt of that."""
    settings = getattr(encoder, "settings", None)
    kind = (model.device or "").partition(":")[0]
    facts = {name: getattr(model, name) for name in ("identity", "library", "dim", "pooling", "dtype", "max_tokens")}
    facts["dim"] = getattr(encoder, "whole_dim", model.dim)  # vectors are kept whole and cut when they are read
    own = dataclasses.asdict(settings) if dataclasses.is_dataclass(settings) else None  # type: ignore[arg-type]
    if own is not None:
        own = {name: value for name, value in own.items() if name not in UNREAD}
    overrides = [
        override for override in model.overrides if not override.partition("=")[0].endswith(("prompt", "dim"))
    ]  # distinguished below
    return {**facts, "overrides": overrides, "device": kind, "settings": own, "prompt": prompt}


def _digest(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]
