"""Vectors of any number of texts, embedded a portion at a time and read from a file on disk.

``stream_vectors`` writes a file of its own. ``keep_vectors`` is for an encoder that already stores
its vectors in a file: it keeps only the row of each text, 8 bytes, so that the vectors are on disk
only once.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float32, Int64
from numpy import ndarray

from interlingua.errors import DataError
from interlingua.runtime.portions import portions
from interlingua.storage.arrays import normalize_rows

T = TypeVar("T")
STREAM_PORTION_TEXTS = 8192
Read = Callable[[Int64[ndarray, " n"]], Float32[ndarray, "n d"]]
"""Rows -> their vectors."""


class KeptVectors:
    """A table of vectors that are read from their storage in portions.

    Args:
        read: see ``Read``; each call reads only the vectors of the rows passed to it.
        rows: row of each vector in its storage.
        normalize: scale each vector that is read to length 1.
    """

    dtype = np.dtype(np.float32)
    ndim = 2

    def __init__(self, read: Read, rows: Int64[ndarray, " n"], *, normalize: bool = False) -> None:
        self._read = read
        self._rows = rows
        self._normalize = normalize
        self.shape = (len(rows), read(rows[:1]).shape[1])

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        """Return vectors like an array: for a slice, an array of indices, or one index."""
        rows = self._rows[index]
        # read() takes an array of rows, so one row becomes an array of one
        vectors = self._read(np.atleast_1d(rows))
        if self._normalize:
            vectors = normalize_rows(vectors)
        # as with numpy, one index drops the dimension
        if np.ndim(rows) == 0:
            return vectors[0]
        return vectors

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        vectors = self[:]
        if dtype is None:
            return vectors
        return vectors.astype(dtype, copy=False)


def keep_vectors(
    keep: Callable[[Sequence[T]], Int64[ndarray, " n"]],
    read: Read,
    texts: Iterable[T],
    *,
    normalize: bool = False,
    portion: int = STREAM_PORTION_TEXTS,
) -> KeptVectors:
    """Embed texts with an encoder that stores the vectors itself.

    Args:
        keep: embeds a portion and returns the rows of its vectors.
        read: see ``Read``.
        texts: inputs of ``keep``; read once.
        normalize: scale each vector to length 1.
        portion: texts held at once.

    Raises:
        DataError: there are no texts.
    """
    # 8 bytes a row, where a list of integers takes 40
    rows = array("q")
    for chunk in portions(texts, portion):
        rows.frombytes(np.asarray(keep(chunk), dtype=np.int64).tobytes())
    if not rows:
        raise DataError("the file is empty; expected texts to embed")
    return KeptVectors(read, np.frombuffer(rows, dtype=np.int64), normalize=normalize)


def stream_vectors(
    encode: Callable[[Sequence[T]], Float32[ndarray, "n d"]],
    texts: Iterable[T],
    *,
    normalize: bool = False,
    portion: int = STREAM_PORTION_TEXTS,
) -> Float32[ndarray, "n d"]:
    """Embed texts; neither they nor their vectors need to fit into memory.

    Args:
        encode: returns the vectors of a portion.
        texts: inputs of ``encode``; read once.
        normalize: scale each vector to length 1.
        portion: texts held at once.

    Returns:
        A read-only memory map of a temporary file, which is deleted together with the map.

    Raises:
        DataError: there are no texts.
    """
    rows = 0
    dim = 0
    with tempfile.TemporaryFile(prefix="interlingua-") as file:
        for chunk in portions(texts, portion):
            vectors = np.asarray(encode(chunk), dtype=np.float32)
            dim = vectors.shape[1]
            if normalize:
                vectors = normalize_rows(vectors)
            file.write(np.ascontiguousarray(vectors).data)
            rows += len(chunk)
        if not rows:
            raise DataError("the file is empty; expected texts to embed")
        # the map keeps the file alive after it is closed, and sees only what was flushed
        file.flush()
        return np.memmap(file, dtype=np.float32, mode="r", shape=(rows, dim))
