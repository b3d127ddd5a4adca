"""What the C library does with freed memory: a training step asks for the same again right away."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""Of malloc.h."""
DEFAULT_TRIM_THRESHOLD, DEFAULT_MMAP_MAX = 128 << 10, 65_536


def keep_freed_memory() -> None:
    """Lets glibc keep what is freed, in place of giving it back to the system page by page and asking for it again.

    Each step frees all its activations, gigabytes, and the next one would wait for as many fresh pages, cleared by the
    system: up to a tenth of the time of a step. The peak stays what it is. Where there is no glibc nothing is done.
    """
    library = _glibc()
    if library is not None:
        library.mallopt(M_MMAP_MAX, 0)
        library.mallopt(M_TRIM_THRESHOLD, -1)


def give_back_memory() -> None:
    """Gives back what is free, and goes back to glibc's own ways."""
    library = _glibc()
    if library is not None:
        library.mallopt(M_MMAP_MAX, DEFAULT_MMAP_MAX)
        library.mallopt(M_TRIM_THRESHOLD, DEFAULT_TRIM_THRESHOLD)
        library.malloc_trim(0)


def _glibc() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None
