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
    if not text.startswith(HUB_PREFIX):
        return None
    return text.removeprefix(HUB_PREFIX)


def hub_hint(path_or_id: PathLike) -> str:
    """What to write for a model of the hub, if a path that is not there may be meant for one."""
    text = os.fspath(path_or_id)
    # A name, or an owner and a name: no path that begins with / or ., and none of three parts.
    may_be_hub = re.fullmatch(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", text)
    if not may_be_hub:
        return ""
    return f"; for the model of that name on the Hugging Face hub write {HUB_PREFIX}{text}"


def hub_snapshot(name: str, patterns: list[str]) -> Path:
    """The local folder with these files of a model of the hub; one request, without retries.

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
        lines = [line for line in lines if line] or ["no reason given"]
        # Short reasons whole; of long ones, which go on with advice, the first line.
        reason = lines[0].rstrip(".")
        if len(str(error)) < 160:
            reason = " ".join(lines)
        raise CheckpointError(
            f"{HUB_PREFIX}{name}: the hub gave no such model ({type(error).__name__}: {reason})"
        ) from error
