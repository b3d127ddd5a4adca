"""The folder that every library reads, written from the packed one at the first use."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from safetensors.numpy import load_file, save_file

from interlingua_mini.packing import unpack

PACKED = Path(__file__).resolve().parent / "model"
"""The files of the package."""
PACKED_WEIGHTS = "packed.safetensors"
DIGEST = "packed.sha256"
"""Digest of all packed files; it distinguishes models in the cache folder."""
WEIGHTS = "model.safetensors"
AN_HOUR = 3600
"""Seconds after which what a killed process left is removed."""


def folder() -> Path:
    """Return the folder of the model, as transformers and sentence-transformers read it.

    It is written once, into ``$XDG_CACHE_HOME/interlingua`` (``~/.cache/interlingua``), 340 MB;
    where that can't be written, into the folder for temporary files.

    Raises:
        OSError: neither folder takes it.
    """
    name = f"mini-{(PACKED / DIGEST).read_text(encoding='ascii')[:16]}"
    refused = ""
    for parent in _parents():
        ready = parent / name
        try:
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_owner(parent)
            if not ready.is_dir():
                _write(ready)
        except OSError as error:
            refused = f"{parent}: {error.strerror or error}"
            continue
        return ready
    raise OSError(
        f"mini: no room to unpack the model, 340 MB ({refused}); set XDG_CACHE_HOME to a folder"
        " that has it"
    )


def write_stock(target: Path, packed: Path) -> None:
    """Write a packed model into an existing empty folder."""
    for path in packed.iterdir():
        if path.is_dir():
            shutil.copytree(path, target / path.name)
        elif path.name not in (PACKED_WEIGHTS, DIGEST):
            shutil.copy(path, target / path.name)
    tensors = unpack(load_file(packed / PACKED_WEIGHTS))
    save_file(tensors, target / WEIGHTS, metadata={"format": "pt"})


def _parents() -> Iterator[Path]:
    yield Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "interlingua"
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    yield Path(tempfile.gettempdir()) / f"interlingua-{user}"


def _write(ready: Path) -> None:
    """Write the folder under a temporary name and then rename it.

    Whoever is first has written it.
    """
    for left in ready.parent.glob(f".{ready.name}.*"):
        if time.time() - left.stat().st_mtime > AN_HOUR:
            shutil.rmtree(left, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=f".{ready.name}.", dir=ready.parent))
    try:
        write_stock(work, PACKED)
        (work / WEIGHTS).chmod(0o644)  # safetensors makes it readable by its owner only
        work.chmod(0o755)
        work.rename(ready)
    except OSError:
        if not ready.is_dir():
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _check_owner(parent: Path) -> None:
    """Refuse a folder of another user, who could replace the model.

    Raises:
        PermissionError: it is one.
    """
    if hasattr(os, "getuid") and parent.stat().st_uid != os.getuid():
        raise PermissionError("it belongs to another user")
