"""Handling of Ctrl-C for the verbs that measure models."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from interlingua.storage.files import PathLike


@contextlib.contextmanager
def resumable(keeps: bool, output: Path, cache: PathLike | None = None) -> Iterator[None]:
    """Report Ctrl-C in one line if vectors are kept: in the cache, or else below the results.

    Args:
        keeps: whether they are kept.
        output: folder of the results.
        cache: folder of the cache.
    """
    from interlingua.errors import InterlinguaError

    try:
        yield
    except KeyboardInterrupt:
        if not keeps:  # a change of a function would go unnoticed
            raise
        raise InterlinguaError(
            f"stopped; the vectors computed so far are stored in {cache or output / 'results'};"
            " run the same command again to resume"
        ) from None
