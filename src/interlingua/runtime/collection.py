"""Python's garbage collector while modules are imported and models are read."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Turn the garbage collector off for the block, or for the call of a function.

    Importing torch and parsing a vocabulary create a million objects that stay, and the collector
    would check them again and again. This would take a fifth of the time to the first vector.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
