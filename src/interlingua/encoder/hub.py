"""Models of the Hugging Face hub: downloaded only where a user writes ``hf:owner/name``."""

from __future__ import annotations

import os
import re
from pathlib import Path

from interlingua.config import HUB_PREFIX
from interlingua.errors import CheckpointError
from interlingua.files import PathLike


def hub_name(path_or_id: PathLike) -> str | None:
    """``owner/name`` of ``hf:owner/name``; None for a path."""
    text = os.fspath(path_or_id)
    return text.removeprefix(HUB_PREFIX) if text.startswith(HUB_PREFIX) else None


def hub_hint(path_or_id: PathLike) -> str:
    """What to write for a model of the hub, if a path that is not there may be meant for one."""
    text = os.fspath(path_or_id)
    may_be_hub = re.fullmatch(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", text)
    return (
        f"; for the model of that name on the Hugging Face hub write {HUB_PREFIX}{text}"
        if may_be_hub
        else ""
    )


def hub_snapshot(name: str, patterns: list[str]) -> Path:
    """The local folder with these files of a model of the hub; one request, without retries.

    Raises:
        CheckpointError: the hub has no such model or can't be reached.
    """
    from huggingface_hub import snapshot_download

    if re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name) is None:
        raise CheckpointError(
            f"{HUB_PREFIX}{name[:100]} names no model of the hub; write {HUB_PREFIX}owner/name"
        )
    try:
        return Path(snapshot_download(name, allow_patterns=patterns))
    except Exception as error:  # the hub's client raises many kinds
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [
            "no reason given"
        ]
        reason = " ".join(lines) if len(str(error)) < 160 else lines[0].rstrip(".")
        raise CheckpointError(
            f"{HUB_PREFIX}{name}: the hub gave no such model ({type(error).__name__}: {reason})"
        ) from error
