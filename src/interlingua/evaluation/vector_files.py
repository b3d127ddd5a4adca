"""Vectors by key in files that runs share, so that an interrupted run can resume.

A file is a header and records of one size, each a key, a mark with a checksum, and a vector. It is
only ever appended to. A process that is killed leaves whole records and at most one broken record
at the end, which the next process overwrites. In a folder that processes share, each appends to a
file that it has locked, and reads those of the others as they were when it started. So none waits
for another and none can damage another's vectors.

The files are not a workspace, for two reasons: the lock of a workspace excludes other runs, but
many runs use one cache at the same time; and a workspace records finished steps, but these runs
have no steps that another run could skip.

Plain files and not SQLite: with 300,000 vectors of width 384, SQLite took 3.7 times the CPU time to
write and twice the time to read. And its mode for several writers does not work on a network disk,
but machines share such a disk when each embeds a part of one collection.
"""

from __future__ import annotations

import contextlib
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
from interlingua.storage.formats import VECTOR_FILE

_SUFFIX = ".vectors"
_HEADER = struct.Struct("<12sI")  # format, width of the vectors
_MARK = 1
"""The lowest bit of the number ``mark`` in a record is the mark; the other bits are from the
checksum of the vector."""
_READ_AT_ONCE = 2**18
"""Records of an existing file read at a time."""


class VectorFiles:
    """Vectors by key over one file to append to and any number of files to read.

    In memory are 25 bytes for each vector: key, row and mark.

    Args:
        own: the file to append to.
        others: files to read; their rows come first.
        stays: whether the own file stays when it is closed, if it holds vectors.
    """

    def __init__(
        self, own: VectorFile, others: Sequence[VectorFile] = (), *, stays: bool = False
    ) -> None:
        self._files = [*others, own]
        self._own = own
        self._stays = stays
        # rows are numbered through all files: row i of file f is _first[f] + i
        self._first = np.cumsum([0, *(file.count for file in others)])

    @classmethod
    def unfinished(cls, path: Path | None) -> VectorFiles:
        """Open a file for the duration of a run, with the vectors that an earlier process left.

        Args:
            path: created with its folders if missing; if it is None, or if another process
                has locked the file, a temporary file is used.
        """
        if path is not None and (file := _lock(path)) is not None:
            return cls(file)
        return cls(VectorFile(tempfile.TemporaryFile(prefix="interlingua-")))

    @classmethod
    def shared(cls, folder: Path) -> VectorFiles:
        """Open all files of a folder, which are kept, and lock one to append to.

        The number of files is the largest number of processes that ran at the same time.

        Args:
            folder: created if missing.
        """
        folder.mkdir(parents=True, exist_ok=True)
        last = max((int(path.stem) for path in folder.glob(f"[0-9]*{_SUFFIX}")), default=-1)
        own = None
        others = []
        number = 0
        # the first file that no process has locked becomes the own file; if all are locked, a new
        # file after the last one
        while own is None or number <= last:
            path = folder / f"{number}{_SUFFIX}"
            if own is None and (locked := _lock(path)) is not None:
                own = locked
            elif path.exists():
                others.append(VectorFile(path.open("rb"), path))
            number += 1
        return cls(own, others, stays=True)

    @property
    def count(self) -> int:
        """The number of rows of all files."""
        return int(self._first[-1]) + self._own.count

    @property
    def dim(self) -> int:
        """The width of the vectors; 0 before the first."""
        return max(file.dim for file in self._files)

    def append(
        self, keys: Sequence[bytes], vectors: Float32[ndarray, "n d"], marks: Bool[ndarray, " n"]
    ) -> None:
        """Append vectors of the same width as before, each with a mark chosen by the caller."""
        self._own.append(keys, vectors, marks)

    def find(self, keys: Sequence[bytes]) -> Int64[ndarray, " n"]:
        """Return the row of each key, or -1 if it is missing."""
        rows = np.full(len(keys), -1, dtype=np.int64)
        for file, first in zip(self._files, self._first.tolist(), strict=True):
            found = file.find(keys)
            rows = np.where(found >= 0, first + found, rows)
        return rows

    def vectors(self, rows: Int64[ndarray, " n"]) -> Float32[ndarray, "n d"]:
        """Return a copy of the vectors of some rows.

        Raises:
            DataError: the disk did not keep them as they were written.
        """
        if len(self._files) == 1:
            return self._own.vectors(rows)
        found = np.empty((len(rows), self.dim), dtype=np.float32)
        for file, indices, own_rows in self._by_file(rows):
            found[indices] = file.vectors(own_rows)
        return found

    def marked(self, rows: Int64[ndarray, " n"]) -> Bool[ndarray, " n"]:
        """Return the marks of some rows."""
        found = np.zeros(len(rows), dtype=bool)
        for file, indices, own_rows in self._by_file(rows):
            found[indices] = file.marked(own_rows)
        return found

    def close(self, *, keep: bool = False) -> None:
        """Close all files.

        Args:
            keep: keep the own file, if it holds vectors, even if ``stays`` is false.
        """
        if not ((keep or self._stays) and self._own.count):
            self._own.remove()
        for file in self._files:
            file.close()

    def _by_file(
        self, rows: Int64[ndarray, " n"]
    ) -> list[tuple[VectorFile, Int64[ndarray, " m"], Int64[ndarray, " m"]]]:
        """Return for each file where its rows are in ``rows``, and their numbers in the file."""
        # "right": the first row of a file belongs to it, and not to the one before
        owners = np.searchsorted(self._first, rows, side="right") - 1
        found = []
        for number, file in enumerate(self._files):
            indices = np.flatnonzero(owners == number)
            if len(indices):
                found.append((file, indices, rows[indices] - self._first[number]))
        return found


class VectorFile:
    """One file of vectors; records up to the last complete one are available when it is reopened.

    Args:
        file: open for reading, and for writing if it is to be appended to.
        path: of the file; None for a temporary one.

    Attributes:
        count: rows.
        dim: width of the vectors; 0 before the first.
    """

    def __init__(self, file: IO[bytes], path: Path | None = None) -> None:
        self.count = 0
        self.dim = 0
        self._index = KeyIndex()
        self._marks = bytearray()
        self._file = file
        self._path = path
        self._read_back()

    def append(
        self, keys: Sequence[bytes], vectors: Float32[ndarray, "n d"], marks: Bool[ndarray, " n"]
    ) -> None:
        """Append vectors of the same width as before, each with a mark chosen by the caller."""
        if not self.dim:
            self._start(vectors.shape[1])
        records = np.empty(len(keys), self._record())
        records["key"] = np.frombuffer(b"".join(keys), f"V{KEY_BYTES}")
        records["vector"] = vectors
        records["mark"] = [sum_ & ~_MARK for sum_ in map(_checksum, records["vector"])]
        records["mark"] |= np.asarray(marks, dtype=np.uint32)
        # not at the end of the file, to overwrite a broken record of an earlier process
        self._file.seek(_HEADER.size + self.count * records.itemsize)
        self._file.write(records.data)
        self._file.flush()
        self._index.add(keys, range(self.count, self.count + len(keys)))
        self.count += len(keys)
        self._marks += np.asarray(marks, dtype=np.uint8).tobytes()

    def find(self, keys: Sequence[bytes]) -> Int64[ndarray, " n"]:
        """Return the row of each key, or -1 if it is missing."""
        return self._index.find(keys)

    def vectors(self, rows: Int64[ndarray, " n"]) -> Float32[ndarray, "n d"]:
        """Return the vectors of rows, and check their checksums."""
        if not len(rows):
            return np.zeros((0, self.dim), np.float32)
        # consecutive rows, such as a collection's, can be selected without a copy
        is_run = bool(np.all(np.diff(rows) == 1))
        chosen = slice(rows[0], rows[-1] + 1) if is_run else rows
        records = self._records(self.count)[chosen]
        found: Float32[ndarray, "n d"] = np.ascontiguousarray(records["vector"])
        for mark, vector in zip(records["mark"].tolist(), found, strict=True):
            if (mark ^ _checksum(vector)) & ~_MARK:
                raise DataError(
                    "the cached vectors are damaged; delete the file, and they are computed again",
                    path=self._path,
                )
        return found

    def marked(self, rows: Int64[ndarray, " n"]) -> Bool[ndarray, " n"]:
        """Return the mark of each row."""
        return np.asarray(np.frombuffer(self._marks, dtype=bool)[rows])

    def remove(self) -> None:
        """Remove the file; a temporary one is removed when it is closed."""
        if self._path is None:
            return
        self._path.unlink(missing_ok=True)
        folder = self._path.parent
        if folder.parent.name == "results":
            # results/MODEL and results are removed too, unless they hold something.
            with contextlib.suppress(OSError):
                folder.rmdir()
                folder.parent.rmdir()

    def close(self) -> None:
        """Close the file and release its lock."""
        self._file.close()

    def _record(self) -> np.dtype[np.void]:
        return np.dtype([("key", f"V{KEY_BYTES}"), ("mark", "<u4"), ("vector", "<f4", (self.dim,))])

    def _records(self, count: int) -> np.ndarray[tuple[int], np.dtype[np.void]]:
        return np.memmap(self._file, self._record(), mode="r", offset=_HEADER.size, shape=(count,))

    def _start(self, dim: int) -> None:
        """Empty the file and write its header."""
        self.dim = dim
        self._file.seek(0)
        self._file.truncate()
        self._file.write(_HEADER.pack(VECTOR_FILE, dim))

    def _read_back(self) -> None:
        """Read back the keys and marks in the file; vectors are read when needed."""
        header = self._file.read(_HEADER.size)
        # the file is empty or has an earlier format: the first append overwrites it
        if len(header) < _HEADER.size or not header.startswith(VECTOR_FILE):
            return
        self.dim = _HEADER.unpack(header)[1]
        # rounded down: a record that a killed process left unfinished does not count
        count = (os.fstat(self._file.fileno()).st_size - _HEADER.size) // self._record().itemsize
        if count:
            stored = self._records(count)
        for first in range(0, count, _READ_AT_ONCE):
            part = stored[first : first + _READ_AT_ONCE]
            self._index.add_packed(part["key"].tobytes(), first)
            self._marks += (part["mark"] & _MARK).astype(np.uint8).tobytes()
        self.count = count


def _lock(path: Path) -> VectorFile | None:
    """Open and lock the file for reading and writing; None if another process has locked it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
    is_ours = False
    with contextlib.suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # another process may have removed the file between open and lock; the lock of a file that
        # has no name any more does not exclude other processes
        is_ours = os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    if is_ours:
        return VectorFile(file, path)
    file.close()
    return None


def _checksum(vector: Float32[ndarray, " d"]) -> int:
    return zlib.crc32(vector.data)
