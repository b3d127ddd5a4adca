"""Near-duplicate texts by MinHash and locality-sensitive hashing.

The index is on disk, and every pair that the hashes propose is verified exactly; ``minhash``
explains the hashes. The only data in memory that grow with the number of texts are a mask and a
partner, five bytes per text. With several processes, up to four partitions of candidates per
process wait in memory as well, about 34 MB each.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

import numpy as np
from jaxtyping import Bool, Int64, UInt16, UInt32, UInt64
from numpy import ndarray

from interlingua.corpus.cleaning.codepoints import SEPARATOR
from interlingua.corpus.cleaning.minhash import (
    band_keys,
    banding,
    jaccard,
    shingle_codes,
    shingle_hashes,
)
from interlingua.runtime.portions import ceil_div, portions
from interlingua.runtime.workers import Workers

SHINGLE_CHARACTERS = 5
PERMUTATIONS = 64
"""Number of MinHash values of a text; more values find pairs at the threshold with
fewer candidates."""
PARTITION_ROWS = 1 << 21
"""Texts that a process sorts in memory at a time."""
_BATCH = 1_000  # texts hashed at a time: their shingles stay in the processor's cache
_VERIFIED = 2_000  # candidate pairs compared at a time


class HashedTexts(NamedTuple):
    """Texts as the index stores them."""

    codes: UInt16[ndarray, " c"]
    """Codes of all texts, as ``shingle_codes`` makes them."""
    starts: Int64[ndarray, " n"]
    """The first code of each text."""
    bands: list[UInt32[ndarray, " n"]]
    """For each band, a key per text."""


def hash_texts(texts: Sequence[str], threshold: float) -> list[HashedTexts]:
    """Hash texts for an index, in parts that fit into the processor's cache.

    The result can be computed in another process than that of the index.

    Args:
        texts: any number.
        threshold: minimum Jaccard index of near duplicates, the same as in the index.
    """
    bands, rows = banding(threshold, PERMUTATIONS)
    found = []
    for batch in portions(texts, _BATCH):
        codes, starts = shingle_codes(batch, SHINGLE_CHARACTERS)
        hashes = shingle_hashes(codes, starts, SHINGLE_CHARACTERS)
        keys = list(band_keys(hashes, starts, bands=bands, rows=rows))
        found.append(HashedTexts(codes, starts, keys))
    return found


class NearDuplicates:
    """Search for texts that nearly repeat an earlier one.

    One text nearly repeats another if the Jaccard index of their character shingles is at least
    ``threshold``. `append` adds texts, in any number of parts; case, punctuation and white space do
    not count. The index takes 2 bytes of disk per character, 8 per text, and 4 per text and band.
    `duplicates` sorts texts with equal keys together, band by band, and compares each, exactly,
    with the first and with the previous text of its key. So every reported text is a near
    duplicate, and a pair at the threshold is missed about once in a hundred times. The result does
    not depend on the chunks. Used in a ``with`` block, it leaves no file behind.

    Args:
        folder: of the index; made if it is missing, its files are written anew.
        threshold: Jaccard index, above 0 and at most 1.
    """

    def __init__(self, folder: str | os.PathLike[str], *, threshold: float = 0.8) -> None:
        self.threshold = threshold
        self.bands, _ = banding(threshold, PERMUTATIONS)
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._codes = (folder / "codes.u16").open("w+b")
        # The place where each text ends, after a 0 for the start of the first text.
        self._ends = (folder / "ends.i64").open("w+b")
        self._ends.write(bytes(8))
        self._keys = [(folder / f"band-{band:02d}.u32").open("w+b") for band in range(self.bands)]
        self._count = 0
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for file in (self._codes, self._ends, *self._keys):
            file.close()
            Path(file.name).unlink(missing_ok=True)

    def append(self, hashed: Iterable[HashedTexts]) -> None:
        """Add texts that ``hash_texts`` hashed with the same threshold.

        Row numbers continue from those before.
        """
        for codes, starts, bands in hashed:
            for file, keys in zip(self._keys, bands, strict=True):
                keys.tofile(file)
            codes.tofile(self._codes)
            # Where each text ends in the file of codes, in codes of two bytes.
            (np.append(starts[1:], len(codes)) + self._end).tofile(self._ends)
            self._end += len(codes)
            self._count += len(starts)

    def duplicates(self, workers: Workers | None = None) -> Bool[ndarray, " n"]:
        """Mark the texts that nearly repeat an earlier one.

        Texts without letters or digits are never marked.

        Args:
            workers: the processes that sort and compare, on this machine; default: this one.
        """
        for file in (self._codes, self._ends, *self._keys):
            file.flush()
        workers = workers or Workers()
        found = np.zeros(self._count, dtype=bool)
        # For each row, the last partner that was not near: two texts that share a band often share
        # other bands as well. The initial value is the row itself, which is never a partner.
        rejected = np.arange(self._count, dtype=np.uint32)
        # Rows are split by key, so that each partition can be sorted in memory separately.
        partitions = ceil_div(self._count, PARTITION_ROWS)
        tasks = (
            (keys.name, self._count, partition, partitions)
            for keys in self._keys
            for partition in range(partitions)
        )
        for candidates in workers.run(candidate_rows, tasks):
            for later_rows, earlier_rows in candidates:
                is_open = ~found[later_rows] & (rejected[later_rows] != earlier_rows)
                later_rows = later_rows[is_open]
                earlier_rows = earlier_rows[is_open]
                batches = [
                    (later_rows[first : first + _VERIFIED], earlier_rows[first : first + _VERIFIED])
                    for first in range(0, len(later_rows), _VERIFIED)
                ]
                files = (self._codes.name, self._ends.name, self.threshold)
                compared = workers.run(are_near, ((*files, *batch) for batch in batches))
                for (rows, partners), is_near in zip(batches, compared, strict=True):
                    found[rows[is_near]] = True
                    rejected[rows[~is_near]] = partners[~is_near]
        return found


def candidate_rows(
    keys: str, count: int, partition: int, partitions: int
) -> list[tuple[UInt32[ndarray, " k"], UInt32[ndarray, " k"]]]:
    """Return pairs (later row, earlier row) that share a key of a band.

    Each later row occurs at most once in one array.

    Args:
        keys: file with the band's key of every row.
        count: number of rows.
        partition: remainder of the keys to process.
        partitions: number of partitions; a key belongs to partition ``key % partitions``.
    """
    order = np.sort(_rows_by_key(keys, count, partition, partitions))  # by key, then by row
    if not len(order):
        return []
    rows = order.astype(np.uint32)
    ordered = (order >> np.uint64(32)).astype(np.uint32)
    # True for rows with the same key as the row before: all but the first row of a key.
    follows = np.append(False, ordered[1:] == ordered[:-1])
    del order, ordered  # free memory for the next arrays, which have the same length
    # The first row of each row's key: a running maximum of the positions of first rows.
    leaders = np.where(follows, 0, np.arange(len(rows), dtype=np.uint32))
    leaders = np.maximum.accumulate(leaders)[follows]
    places = np.flatnonzero(follows)
    # Each row is paired with the first row of its key, and with the previous one if that is not
    # the first.
    is_apart = leaders != places - 1
    return [
        (rows[places], rows[leaders]),
        (rows[places[is_apart]], rows[places[is_apart] - 1]),
    ]


def _rows_by_key(keys: str, count: int, partition: int, partitions: int) -> UInt64[ndarray, " k"]:
    """Return key (high half) and row number (low half) of rows with keys in the partition."""
    parts = [np.zeros(0, np.uint64)]
    for first in range(0, count, PARTITION_ROWS):
        part = np.fromfile(keys, np.uint32, min(PARTITION_ROWS, count - first), offset=4 * first)
        rows = np.flatnonzero(part % np.uint32(partitions) == partition)
        high = part[rows].astype(np.uint64) << np.uint64(32)
        parts.append(high | (rows + first).astype(np.uint64))
    return np.concatenate(parts)


def are_near(
    codes: str,
    ends: str,
    threshold: float,
    rows: UInt32[ndarray, " k"],
    partners: UInt32[ndarray, " k"],
) -> Bool[ndarray, " k"]:
    """Compare texts of an index with others, exactly.

    Args:
        codes: file with the codes of all texts.
        ends: file with the offset at which each text ends, after a 0.
        threshold: minimum Jaccard index of near duplicates.
        rows: rows of the texts.
        partners: row of the text that each of them is compared with.
    """
    with open(codes, "rb") as codes_file, open(ends, "rb") as ends_file:
        sides = [_read(codes_file, ends_file, side) for side in (rows, partners)]
    hashed = [
        (shingle_hashes(texts, starts, SHINGLE_CHARACTERS), starts) for texts, starts in sides
    ]
    # All empty texts have the same shingles; the first code of one is a separator.
    texts, starts = sides[0]
    empty = texts[starts] == SEPARATOR
    return np.asarray((jaccard(hashed[0], hashed[1]) >= threshold) & ~empty)


def _read(
    codes: BinaryIO, ends: BinaryIO, rows: UInt32[ndarray, " k"]
) -> tuple[UInt16[ndarray, " c"], Int64[ndarray, " k"]]:
    """Read the codes of some texts, as `shingle_codes` made them.

    They are read, not mapped, so that no page stays in memory.
    """
    texts = []
    for row in rows.tolist():
        # A text starts where the one before it ends.
        packed = os.pread(ends.fileno(), 16, 8 * row)
        start, end = np.frombuffer(packed, np.int64).tolist()
        texts.append(os.pread(codes.fileno(), 2 * (end - start), 2 * start))
    lengths = np.fromiter(map(len, texts), np.int64, len(texts)) // 2
    return np.frombuffer(b"".join(texts), np.uint16), np.cumsum(lengths) - lengths
