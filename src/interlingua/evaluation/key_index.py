"""An index from digests to rows, in arrays of 24 bytes a key; a dictionary takes some 200.

Keys are sorted in 256 buckets, by their first byte, which spreads digests evenly. A lookup is a
binary search in one bucket. New keys wait in a dictionary of bounded size. When it is full, its
keys are merged into the buckets, one bucket at a time, so that a merge copies a 256th of the keys
at once and needs no second copy of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Int64
from numpy import ndarray

KEY_BYTES = 16
WAITING = 2**18
"""Maximum number of keys in the dictionary, which then takes about 40 MB."""
_KEY = np.dtype(f"S{KEY_BYTES}")
_BUCKETS = 256


class KeyIndex:
    """Key -> row, for any number of keys of ``KEY_BYTES`` bytes.

    The keys must be spread evenly over all bytes, as digests are.
    """

    def __init__(self) -> None:
        self._keys = [np.zeros(0, _KEY) for _ in range(_BUCKETS)]
        self._rows = [np.zeros(0, np.int64) for _ in range(_BUCKETS)]
        self._waiting: dict[bytes, int] = {}

    def add(self, keys: Sequence[bytes], rows: Sequence[int]) -> None:
        """Add keys with their rows; an existing key gets the new row."""
        self._waiting.update(zip(keys, rows, strict=True))
        if len(self._waiting) >= WAITING:
            self.merge()

    def add_packed(self, keys: bytes, first_row: int) -> None:
        """Add keys that are concatenated, with their rows in the same order."""
        self.merge()
        found = np.frombuffer(keys, _KEY)
        self._merge(found, np.arange(first_row, first_row + len(found), dtype=np.int64))

    def find(self, keys: Sequence[bytes]) -> Int64[ndarray, " n"]:
        """Return the row of each key, or -1 if it is missing."""
        rows = np.full(len(keys), -1, dtype=np.int64)
        requested = np.frombuffer(b"".join(keys), _KEY)
        order = np.argsort(requested, kind="stable")
        for bucket, indices in _by_bucket(requested, order):
            positions, is_held = _positions(self._keys[bucket], requested[indices])
            rows[indices[is_held]] = self._rows[bucket][positions[is_held]]
        # a key that waits is newer than one in the arrays, so its row counts
        if self._waiting:
            for index, key in enumerate(keys):
                rows[index] = self._waiting.get(key, rows[index])
        return rows

    def merge(self) -> None:
        """Move the keys of the dictionary into the arrays."""
        if self._waiting:
            keys = np.frombuffer(b"".join(self._waiting), _KEY)
            rows = np.fromiter(self._waiting.values(), np.int64, len(self._waiting))
            self._waiting = {}
            self._merge(keys, rows)

    def _merge(
        self, keys: np.ndarray[tuple[int], np.dtype[np.bytes_]], rows: Int64[ndarray, " n"]
    ) -> None:
        # stable, so equal keys stay in the order in which they were added; the last one counts
        order = np.argsort(keys, kind="stable")
        is_last = np.ones(len(order), dtype=bool)
        is_last[:-1] = keys[order[1:]] != keys[order[:-1]]
        for bucket, indices in _by_bucket(keys, order[is_last]):
            positions, is_held = _positions(self._keys[bucket], keys[indices])
            self._rows[bucket][positions[is_held]] = rows[indices[is_held]]
            # np.insert takes positions in the old array, so the bucket stays sorted
            new = indices[~is_held]
            at = positions[~is_held]
            self._keys[bucket] = np.insert(self._keys[bucket], at, keys[new])
            self._rows[bucket] = np.insert(self._rows[bucket], at, rows[new])


def _by_bucket(
    keys: np.ndarray[tuple[int], np.dtype[np.bytes_]], order: Int64[ndarray, " n"]
) -> Iterator[tuple[int, Int64[ndarray, " m"]]]:
    """Yield each bucket that some keys belong to, and the indices of these keys, sorted by key."""
    first_bytes = keys.view(np.uint8).reshape(-1, KEY_BYTES)[order, 0]
    # in sorted order the keys of a bucket are consecutive, between two edges
    edges = np.searchsorted(first_bytes, np.arange(_BUCKETS + 1))
    for bucket in np.flatnonzero(np.diff(edges)).tolist():
        yield bucket, order[edges[bucket] : edges[bucket + 1]]


def _positions(
    held: np.ndarray[tuple[int], np.dtype[np.bytes_]],
    keys: np.ndarray[tuple[int], np.dtype[np.bytes_]],
) -> tuple[Int64[ndarray, " n"], np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return the (insertion) positions of keys in a bucket, and whether each key is in it."""
    positions = np.searchsorted(held, keys)
    # a key that sorts after all others has no key at its position to compare with
    is_held = positions < len(held)
    is_held[is_held] = held[positions[is_held]] == keys[is_held]
    return positions, is_held
