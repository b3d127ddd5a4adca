"""Vectors by key in one file, so that a run that was stopped goes on with those it had."""

from __future__ import annotations

import fcntl
import os
import struct
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np
from jaxtyping import Bool, Float32, Int64
from numpy import ndarray

from interlingua.errors import DataError
from interlingua.evaluation.key_index import KEY_BYTES, KeyIndex

_HEADER = struct.Struct("<12sI")  # format, width of the vectors
_FORMAT = b"vectors-2"
_MARK = 1
"""The lowest bit of a record's number is its mark, the others are those of its vector's checksum."""
_READ_AT_ONCE = 2**18
"""Records of an existing file read at a time."""


class VectorStore:
    """An append-only file of keys, marks and vectors; in memory are 25 bytes for each: key, row and mark.

    What an earlier process left in the file is there again, up to the last whole record.

    Args:
        path: made with its folders where it is missing; a temporary file if none, or while another process has it open.
        alone: whether to have the file alone, to write; else what is whole in it now can be read.

    Attributes:
        count: rows.
        dim: width of the vectors; 0 before the first.
        is_alone: whether it has the file alone.
    """

    def __init__(self, path: Path | None = None, *, alone: bool = True) -> None:
        self.count = 0
        self.dim = 0
        self._index = KeyIndex()
        self._marks = bytearray()
        file = None if path is None else _open_alone(path) if alone else path.open("rb")
        self._path = path if alone and file is not None else None
        self.is_alone = self._path is not None
        self._place = path
        self._file: IO[bytes] = file or tempfile.TemporaryFile(prefix="interlingua-")  # noqa: SIM115 - see close
        self._read_back()

    def append(self, keys: Sequence[bytes], vectors: Float32[ndarray, "n d"], marks: Bool[ndarray, " n"]) -> None:
        """Adds vectors of the same width as those before, and whatever a mark means to the caller."""
        if not self.dim:
            self._start(vectors.shape[1])
        records = np.empty(len(keys), self._record())
        records["key"] = np.frombuffer(b"".join(keys), f"V{KEY_BYTES}")
        records["vector"] = vectors
        records["mark"] = [sum_ & ~_MARK for sum_ in map(_checksum, records["vector"])]
        records["mark"] |= np.asarray(marks, dtype=np.uint32)
        self._file.seek(_HEADER.size + self.count * records.itemsize)
        self._file.write(records.data)
        self._file.flush()
        self._index.add(keys, range(self.count, self.count + len(keys)))
        self.count += len(keys)
        self._marks += np.asarray(marks, dtype=np.uint8).tobytes()

    def find(self, keys: Sequence[bytes]) -> Int64[ndarray, " n"]:
        """The row of each key; -1 where there is none."""
        return self._index.find(keys)

    def vectors(self, rows: Int64[ndarray, " n"]) -> Float32[ndarray, "n d"]:
        """The vectors of some rows, copied.

        Raises:
            DataError: the disk did not keep them as they were written.
        """
        if not len(rows):
            return np.zeros((0, self.dim), np.float32)
        # rows that stand one after the other, as a collection's do, need no copy to be picked
        is_run = bool(np.all(np.diff(rows) == 1))
        records = self._records(self.count)[slice(rows[0], rows[-1] + 1) if is_run else rows]
        found: Float32[ndarray, "n d"] = np.ascontiguousarray(records["vector"])
        if any(
            (mark ^ _checksum(vector)) & ~_MARK for mark, vector in zip(records["mark"].tolist(), found, strict=True)
        ):
            raise DataError("vectors kept here are damaged; remove the file, they are computed again", path=self._place)
        return found

    def marked(self, rows: Int64[ndarray, " n"]) -> Bool[ndarray, " n"]:
        """The marks of some rows."""
        return np.asarray(np.frombuffer(self._marks, dtype=bool)[rows])

    def close(self, *, keep: bool = False) -> None:
        """Closes the file and removes it, unless it holds vectors and is to be kept."""
        if self._path is not None and not (keep and self.count):
            self._path.unlink(missing_ok=True)
        self._file.close()

    def _record(self) -> np.dtype[np.void]:
        return np.dtype([("key", f"V{KEY_BYTES}"), ("mark", "<u4"), ("vector", "<f4", (self.dim,))])

    def _records(self, count: int) -> np.ndarray[tuple[int], np.dtype[np.void]]:
        return np.memmap(self._file, self._record(), mode="r", offset=_HEADER.size, shape=(count,))

    def _start(self, dim: int) -> None:
        self.dim = dim
        self._file.seek(0)
        self._file.truncate()
        self._file.write(_HEADER.pack(_FORMAT, dim))

    def _read_back(self) -> None:
        header = self._file.read(_HEADER.size)
        if len(header) < _HEADER.size or not header.startswith(_FORMAT):
            return
        self.dim = _HEADER.unpack(header)[1]
        count = (os.fstat(self._file.fileno()).st_size - _HEADER.size) // self._record().itemsize
        if count:
            stored = self._records(count)
        for first in range(0, count, _READ_AT_ONCE):
            part = stored[first : first + _READ_AT_ONCE]
            self._index.add_packed(part["key"].tobytes(), first)
            self._marks += (part["mark"] & _MARK).astype(np.uint8).tobytes()
        self.count = count


def _open_alone(path: Path) -> IO[bytes] | None:
    """The file for reading and writing, locked; None where another process holds the lock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):  # not one that was removed meanwhile
            return file
    except OSError:
        pass
    file.close()
    return None


def _checksum(vector: Float32[ndarray, " d"]) -> int:
    return zlib.crc32(vector.data)
