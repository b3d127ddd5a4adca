"""Vectors by key in one file, so that a run that was stopped goes on with those it had."""

from __future__ import annotations

import fcntl
import os
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np
from jaxtyping import Bool, Float32, Int64
from numpy import ndarray

KEY_BYTES = 16
_HEADER = struct.Struct("<12sI")  # format, width of the vectors
_FORMAT = b"vectors-1"


class VectorStore:
    """An append-only file of keys, marks and vectors; in memory are 16 bytes and a row number for each.

    What an earlier process left in the file is there again, up to the last whole record.

    Args:
        path: made with its folders where it is missing; a temporary file if none, or while another process has it open.

    Attributes:
        rows: key -> its row.
        dim: width of the vectors; 0 before the first.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.rows: dict[bytes, int] = {}
        self.dim = 0
        self._marks = bytearray()
        file = None if path is None else _open_alone(path)
        self._path = None if file is None else path
        self._file: IO[bytes] = file or tempfile.TemporaryFile(prefix="interlingua-")  # noqa: SIM115 - see close
        self._read_back()

    def append(self, keys: Sequence[bytes], vectors: Float32[ndarray, "n d"], marks: Bool[ndarray, " n"]) -> None:
        """Adds vectors of the same width as those before, and whatever a mark means to the caller."""
        if not self.dim:
            self._start(vectors.shape[1])
        records = np.empty(len(keys), self._record())
        records["key"] = np.frombuffer(b"".join(keys), f"V{KEY_BYTES}")
        records["mark"], records["vector"] = marks, vectors
        self._file.seek(_HEADER.size + len(self.rows) * records.itemsize)
        self._file.write(records.data)
        self._file.flush()
        self.rows.update(zip(keys, range(len(self.rows), len(self.rows) + len(keys)), strict=True))
        self._marks += np.asarray(marks, dtype=np.uint8).tobytes()

    def vectors(self, rows: Sequence[int]) -> Float32[ndarray, "n d"]:
        """The vectors of some rows, copied."""
        if not rows:
            return np.zeros((0, self.dim), np.float32)
        found: Float32[ndarray, "n d"] = np.array(self._records(len(self.rows))["vector"][rows])
        return found

    def marked(self, rows: Int64[ndarray, " n"]) -> Bool[ndarray, " n"]:
        """The marks of some rows."""
        return np.asarray(np.frombuffer(self._marks, dtype=bool)[rows])

    def close(self, *, keep: bool = False) -> None:
        """Closes the file and removes it, unless it holds vectors and is to be kept."""
        if self._path is not None and not (keep and self.rows):
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
            keys = stored["key"].tobytes()
            self.rows = {keys[KEY_BYTES * row : KEY_BYTES * (row + 1)]: row for row in range(count)}
            self._marks += stored["mark"].astype(np.uint8).tobytes()


def _open_alone(path: Path) -> IO[bytes] | None:
    """The file for reading and writing, locked; None where another process holds the lock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file
