"""Which files and folders are made in a block, by Python's audit events."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

MAKING = ("os.mkdir", "os.link", "os.rename", "os.symlink", "tempfile.mkdtemp", "tempfile.mkstemp")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_lists: list[list[str]] = []
"""One for each block that is open."""
_is_hooked: list[bool] = []


@contextlib.contextmanager
def written_files() -> Iterator[list[str]]:
    """Yield a list that gets the paths of all files and folders that are written or made."""
    # A hook can't be removed: it is added once, and does nothing outside of such blocks.
    if not _is_hooked:
        sys.addaudithook(_note)
        _is_hooked.append(True)
    found: list[str] = []
    _lists.append(found)
    try:
        yield found
    finally:
        _lists.remove(found)


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if not _lists:
        return
    is_made = event in MAKING
    if event == "open":
        path, mode, flags = arguments
        is_made = bool(set(mode or "") & set("wax+")) or bool((flags or 0) & WRITING)
        is_made = is_made and path != os.devnull
    if is_made:
        for found in _lists:
            found.append(f"{event} {arguments[0]}")
