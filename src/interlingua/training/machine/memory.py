"""Settings of memory allocators: each training step needs the memory that the last step freed.

The C library's allocator is made to keep freed memory, and torch's on a GPU to reuse it for blocks
of other sizes too.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
M_MMAP_MAX = -4
"""Numbers of these parameters in malloc.h."""
USUAL = {M_MMAP_MAX: 65_536, M_MMAP_THRESHOLD: 32 << 20, M_TRIM_THRESHOLD: 64 << 20}
"""Values that glibc's thresholds reach after large blocks were freed; a threshold that was set does
not change by itself any more."""
TORCH_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
"""Variables by which a user configures torch's allocator; the second is the newer name of the
first."""


def use_expandable_segments() -> None:
    """Let segments of GPU memory grow, unless the user has configured torch's allocator.

    Without padding each step has another number of tokens, so its blocks do not fit into those of
    the last step. In segments of fixed size the memory between the blocks would be lost.

    Torch reads the variable when it first allocates on a GPU; processes started later inherit it.
    """
    if not any(name in os.environ for name in TORCH_VARIABLES):
        # The older name is set: torch 2.7 does not know the newer one, and torch 2.9 ignores this
        # setting under the newer name.
        os.environ[TORCH_VARIABLES[0]] = "expandable_segments:True"


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Keep freed memory in glibc during the block instead of returning it to the system.

    Each step frees all its activations, which take gigabytes. The next step would have to wait
    until the system has cleared as many new pages. Free memory is returned at the end of the block,
    also after an error. Without glibc nothing is done.
    """
    library = _glibc()
    if library is None:
        yield
        return
    # No block gets a mapping of its own, which would be unmapped when the block is freed, and the
    # top of the heap is never returned.
    library.mallopt(M_MMAP_MAX, 0)
    library.mallopt(M_TRIM_THRESHOLD, -1)
    try:
        yield
    finally:
        for threshold, value in USUAL.items():
            library.mallopt(threshold, value)
        library.malloc_trim(0)


def _glibc() -> Any:
    """Return the C library if it is glibc, otherwise None: musl has no ``mallopt``."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return None
    return library
