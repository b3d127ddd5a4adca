"""Vectors that outlive a run, in a folder that any number of processes may use at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32, Int64
from numpy import ndarray

from interlingua.evaluation.store import VectorStore

SUFFIX = ".vectors"


class SharedStore:
    """A folder of ``VectorStore`` files: all are read, and one that no other process has open is written to.

    Each process appends to a file of its own, so that none waits for another and none can spoil another's; what others
    add meanwhile is seen by the next run. There are as many files as processes ever ran at a time.

    Args:
        folder: made where it is missing.

    Attributes:
        dim: width of the vectors; 0 before the first.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        last = max((int(path.stem) for path in folder.glob(f"[0-9]*{SUFFIX}")), default=-1)
        own = None
        self._others = []
        number = 0
        while own is None or number <= last:
            path = folder / f"{number}{SUFFIX}"
            store = _open(path, alone=own is None)
            if store is not None and store.is_alone:
                own = store
            elif store is not None:
                self._others.append(store)
            number += 1
        self._own = own
        self._first = np.cumsum([0, *(store.count for store in self._others)])
        self.dim = max(store.dim for store in [*self._others, own])

    def append(self, keys: Sequence[bytes], vectors: Float32[ndarray, "n d"], marks: Bool[ndarray, " n"]) -> None:
        """See ``VectorStore.append``."""
        self._own.append(keys, vectors, marks)
        self.dim = self._own.dim

    @property
    def count(self) -> int:
        """Rows of all files."""
        return int(self._first[-1]) + self._own.count

    def find(self, keys: Sequence[bytes]) -> Int64[ndarray, " n"]:
        """The row of each key over all files; -1 where there is none."""
        rows = np.full(len(keys), -1, dtype=np.int64)
        for store, first in zip([*self._others, self._own], self._first.tolist(), strict=True):
            found = store.find(keys)
            rows = np.where(found >= 0, first + found, rows)
        return rows

    def vectors(self, rows: Int64[ndarray, " n"]) -> Float32[ndarray, "n d"]:
        """See ``VectorStore.vectors``."""
        found = np.empty((len(rows), self.dim), dtype=np.float32)
        for store, places, own_rows in self._by_file(rows):
            found[places] = store.vectors(own_rows)
        return found

    def marked(self, rows: Int64[ndarray, " n"]) -> Bool[ndarray, " n"]:
        """See ``VectorStore.marked``."""
        found = np.zeros(len(rows), dtype=bool)
        for store, places, own_rows in self._by_file(rows):
            found[places] = store.marked(own_rows)
        return found

    def close(self, *, keep: bool = True) -> None:
        """Closes all files; vectors stay whether or not a run was stopped."""
        for store in [*self._others, self._own]:
            store.close(keep=True)

    def _by_file(
        self, rows: Int64[ndarray, " n"]
    ) -> list[tuple[VectorStore, Int64[ndarray, " m"], Int64[ndarray, " m"]]]:
        """For each file the places in ``rows`` that are its own, and its rows there."""
        owners = np.searchsorted(self._first, rows, side="right") - 1
        found = []
        for number, store in enumerate([*self._others, self._own]):
            places = np.flatnonzero(owners == number)
            if len(places):
                found.append((store, places, rows[places] - self._first[number]))
        return found


def _open(path: Path, *, alone: bool) -> VectorStore | None:
    """The file to write to, if it is to be had alone; else to read, if anything is in it."""
    if alone:
        store = VectorStore(path)
        if store.is_alone:
            return store
        store.close()
    if not path.exists():
        return None
    store = VectorStore(path, alone=False)
    if store.count:
        return store
    store.close()
    return None
