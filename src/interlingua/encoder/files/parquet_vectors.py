"""A Parquet file of sentences and their vectors, for all programs that read Arrow.

Examples are pandas, polars and DuckDB. Each portion of rows becomes a row group on the disk before
the next one is made, so that memory does not grow with the file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np
from jaxtyping import Num
from numpy import ndarray

from interlingua.errors import DataError, import_extra
from interlingua.storage.files import PathLike, atomic_write, is_special

_SUFFIX = ".parquet"
COMPRESSION = {"text": "zstd", "vector.list.element": "none"}
"""The numbers of a vector are nearly random, so compressing them takes time and saves little."""


def require_pyarrow() -> None:
    """Check that Parquet can be written.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    import_extra("pyarrow.parquet", package="pyarrow", extra="parquet")


def is_parquet(path: PathLike) -> bool:
    """Return whether a name is that of a Parquet file."""
    return str(path).lower().endswith(_SUFFIX)


class ParquetVectors:
    """A file with the columns ``text`` and ``vector``, which appears when it is complete.

    Args:
        path: the final name.

    Attributes:
        rows: written so far.
        width: of a vector, once the first rows are written.
        dtype: of its numbers.

    Raises:
        DataError: the path is a pipe or a device, or can't be written.
        MissingExtraError: pyarrow is not installed.
    """

    def __init__(self, path: PathLike) -> None:
        require_pyarrow()
        if is_special(path):
            raise DataError("Parquet cannot be written to a pipe or device; name a file", path=path)
        self.path = path
        self.rows = 0
        self.width = 0
        self.dtype = "float32"
        self._writer: Any = None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> ParquetVectors:
        self._file = self._stack.enter_context(atomic_write(self.path, "wb"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._writer is not None:
                self._writer.close()
        except OSError as problem:
            # Of two errors the first one is raised; the temporary file is removed.
            if error is None:
                kind, error, trace = OSError, problem, problem.__traceback__
        self._stack.__exit__(kind, error, trace)

    def write(self, texts: Sequence[str], vectors: Num[ndarray, "n d"]) -> None:
        """Add a row group.

        Args:
            texts: the first column.
            vectors: one for each text, of the same width and type of numbers in all calls.
        """
        import pyarrow
        from pyarrow.parquet import ParquetWriter

        # The columns get the types of the first rows, so that the caller need not specify types.
        if self._writer is None:
            self.width = vectors.shape[1]
            self.dtype = str(vectors.dtype)
            numbers = pyarrow.from_numpy_dtype(vectors.dtype)
            fields = [("text", pyarrow.string()), ("vector", pyarrow.list_(numbers, self.width))]
            self._schema = pyarrow.schema(fields)
            self._writer = ParquetWriter(
                self._file,
                self._schema,
                compression=COMPRESSION,
                use_dictionary=["text"],
                store_schema=True,
            )
        # Lists of a fixed size over one flat array: no number is copied or boxed on the way.
        flat = pyarrow.array(np.ascontiguousarray(vectors).ravel())
        column = pyarrow.FixedSizeListArray.from_arrays(flat, self.width)
        table = pyarrow.table(
            {"text": pyarrow.array(texts, pyarrow.string()), "vector": column}, schema=self._schema
        )
        self._writer.write_table(table, row_group_size=max(1, len(texts)))
        self.rows += len(texts)
