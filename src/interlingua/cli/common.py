"""Handling of Ctrl-C for the verbs that measure models."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from interlingua.storage.files import PathLike


@contextlib.contextmanager
def resumable(keeps: bool, output: Path, cache: PathLike | None = None) -> Iterator[None]:
    """Convert Ctrl-C to an error of one line if the computed vectors are kept on disk.

    Args:
        keeps: True if the computed vectors are kept.
        output: folder of the results.
        cache: folder of the cache; None = the vectors are kept below the results.
    """
    from interlingua.errors import InterlinguaError

    try:
        yield
    except KeyboardInterrupt:
        # Vectors are not kept if the model is a function, because a later run could not notice that
        # the function has changed.
        if not keeps:
            raise
        raise InterlinguaError(
            f"stopped; the vectors computed so far are stored in {cache or output / 'results'};"
            " run the same command again to resume"
        ) from None
