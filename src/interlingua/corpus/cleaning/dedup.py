"""Detection of exact duplicates among any number of keys, in bounded memory."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
from jaxtyping import Bool, UInt64
from numpy import ndarray

LOOKED_UP_AT_ONCE = 1 << 19  # keys
RUN_KEYS = 1 << 22  # 32 MiB: keys that are sorted in memory at once


class ExactDeduplicator:
    """A store of 64-bit keys (see `interlingua.corpus.cleaning.keys`) in sorted runs on disk.

    New keys gather in a few sorted arrays in memory, each at least twice as long as the next. When
    these arrays together reach ``run_keys`` keys, they are written to ``folder`` as one run. A run
    is never changed, and is read page by page. Ten million keys take 80 MB of disk, and the memory
    of their pages is released after every chunk. Keys represent texts: two different pairs share a
    key with a probability of at most about 2^-58.

    Args:
        folder: folder of the runs, only for this object; made if it is missing. None = all keys
            stay in memory.
        run_keys: keys kept in memory.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, *, run_keys: int = RUN_KEYS) -> None:
        self._folder: Path | None = None
        if folder is not None:
            self._folder = Path(folder)
            self._folder.mkdir(parents=True, exist_ok=True)
        self._run_keys = run_keys
        self._runs: list[np.memmap[tuple[int], np.dtype[np.uint64]]] = []
        self._recent: list[UInt64[ndarray, " k"]] = []

    def first_seen(self, keys: UInt64[ndarray, " n"]) -> Bool[ndarray, " n"]:
        """Mark the keys that occur for the first time, and remember them.

        A key is new if it occurs neither earlier in this chunk nor in a previous chunk.
        """
        # Sorted, as is_in wants them; each with the first place where it occurs.
        fresh, places = np.unique(keys, return_index=True)
        new = np.ones(len(fresh), dtype=bool)
        for recent in self._recent:
            new &= ~is_in(recent, fresh)
        for run in self._runs:
            new &= ~is_in(run, fresh)
            # Else every page that was read counts as memory of this process.
            run._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]
        first = np.zeros(len(keys), dtype=bool)
        first[places[new]] = True
        self._remember(fresh[new])
        return first

    def _remember(self, fresh: UInt64[ndarray, " m"]) -> None:
        recent = self._recent
        recent.append(fresh)
        # Each array is at least twice as long as the next, so that there are few arrays to search,
        # and a key is sorted again only about log2(run_keys) times.
        while len(recent) > 1 and 2 * len(recent[-1]) > len(recent[-2]):
            recent[-2:] = [np.sort(np.concatenate(recent[-2:]))]
        if self._folder is not None and sum(map(len, recent)) >= self._run_keys:
            path = self._folder / f"keys-{len(self._runs):05d}.u64"
            np.sort(np.concatenate(recent)).tofile(path)
            self._runs.append(np.memmap(path, np.uint64, mode="r"))
            recent.clear()


def is_in(ordered: UInt64[ndarray, " m"], keys: UInt64[ndarray, " n"]) -> Bool[ndarray, " n"]:
    """Mark the ``keys`` that are among the sorted keys ``ordered``.

    The search is faster if ``keys`` are sorted too.
    """
    found = np.zeros(len(keys), dtype=bool)
    if len(ordered) == 0:
        return found
    for first in range(0, len(keys), LOOKED_UP_AT_ONCE):
        portion = slice(first, first + LOOKED_UP_AT_ONCE)
        # A key above all others would be placed behind the last one.
        places = np.minimum(np.searchsorted(ordered, keys[portion]), len(ordered) - 1)
        found[portion] = ordered[places] == keys[portion]
    return found
