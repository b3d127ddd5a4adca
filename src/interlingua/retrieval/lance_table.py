"""The rows of an index as LanceDB stores them, and readable messages for its errors."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.errors import CheckpointError, ConfigError, DataError
from interlingua.retrieval.passage_files import Passage
from interlingua.retrieval.word_forms import word_forms
from interlingua.storage.json_text import canonical_json

QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`")
"""A quoted string or a quoted name in SQL."""
TEXT_COLUMNS = ("id", "text", "title", "language", "file", "document", "heading")
CHECKED_COLUMNS = (*TEXT_COLUMNS, "offset", "metadata", "vector")
"""Columns that the checksum of a row covers."""


def table_schema(width: int) -> Any:
    """Return the Arrow schema of the table.

    Args:
        width: of the vectors.
    """
    import pyarrow

    fields = [(name, pyarrow.string()) for name in TEXT_COLUMNS]
    fields += [("metadata", pyarrow.json_())]
    fields += [("words", pyarrow.string())]
    numbers = ("offset", "content", "checksum")
    fields += [(name, pyarrow.int64()) for name in numbers]
    return pyarrow.schema([*fields, ("vector", pyarrow.list_(pyarrow.float32(), width))])


def table_rows(passages: Sequence[Passage], vectors: Float32[ndarray, "n d"]) -> Any:
    """Return passages with their vectors as an Arrow table."""
    import pyarrow

    columns: dict[str, Any] = {}
    for name in TEXT_COLUMNS:
        columns[name] = [getattr(passage, name) for passage in passages]
    columns["metadata"] = pyarrow.array([passage.metadata for passage in passages], pyarrow.json_())
    columns["offset"] = [passage.offset for passage in passages]
    columns["words"] = [word_forms(passage.embedded_text) for passage in passages]
    columns["content"] = [content_key(passage) for passage in passages]
    # From one flat array: lists of Python floats would take several times the memory.
    flat = pyarrow.array(np.ascontiguousarray(vectors, dtype=np.float32).ravel())
    columns["vector"] = pyarrow.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    columns["checksum"] = row_checksums(columns)
    return pyarrow.table(columns, schema=table_schema(vectors.shape[1]))


def row_checksums(columns: Mapping[str, Any]) -> list[int]:
    """Compute the checksum of each row over its texts, metadata and vector.

    LanceDB stores no checksums, and reads a changed byte without an error.

    Args:
        columns: those of ``CHECKED_COLUMNS``; texts as lists or as Arrow's arrays.
    """
    texts = [_as_list(columns[name]) for name in TEXT_COLUMNS]
    metadata = map(_plain_json, _as_list(columns["metadata"]))
    offsets = map(str, _as_list(columns["offset"]))
    vectors = np.asarray(columns["vector"].flatten(), dtype="<f4")
    rows = list(zip(*texts, offsets, metadata, strict=True))
    if not rows:
        return []
    checksums = []
    for row, vector in zip(rows, vectors.reshape(len(rows), -1), strict=True):
        # A zero byte separates the texts. A text contains a zero byte only on purpose, so two rows
        # do not give the same bytes by accident.
        content = "\0".join(row).encode(errors="surrogatepass") + vector.tobytes()
        checksums.append(_digest(content))
    return checksums


def rows_are_whole(rows: Any) -> list[bool]:
    """Compare the checksums of rows with the stored ones.

    Args:
        rows: Arrow's table or batch with the columns of ``CHECKED_COLUMNS`` and ``checksum``.
    """
    batches = rows.to_batches() if hasattr(rows, "to_batches") else [rows]
    found: list[bool] = []
    for batch in batches:
        columns = {name: batch.column(name) for name in CHECKED_COLUMNS}
        written = batch.column("checksum").to_pylist()
        pairs = zip(row_checksums(columns), written, strict=True)
        found += [one == other for one, other in pairs]
    return found


def _as_list(column: Any) -> list[Any]:
    return column if isinstance(column, list) else column.to_pylist()


def _plain_json(text: str) -> str:
    """Write JSON in one form: LanceDB changes its spaces and the form of its numbers."""
    if text == "{}":
        return text
    return canonical_json(text)


@contextlib.contextmanager
def lance_writes(folder: Path) -> Iterator[None]:
    """Convert LanceDB's errors on writing to one error that names the folder and a remedy.

    LanceDB reports a full disk or a damaged file as a RuntimeError or OSError with a message from
    its Rust code.

    Raises:
        DataError: LanceDB can't write.
    """
    try:
        yield
    except (RuntimeError, OSError) as error:
        first = str(error).splitlines()[0][:200]
        raise DataError(
            f"cannot be written ({first}); check the disk, then run the same command again",
            path=folder,
        ) from error


@contextlib.contextmanager
def lance_reads(folder: Path, where: str | None = None) -> Iterator[None]:
    """Convert LanceDB's errors on reading to errors about a damaged file or an invalid condition.

    LanceDB reports both with messages from its Rust code.

    Args:
        folder: of the index.
        where: a user's condition that is being applied; None = none.

    Raises:
        ConfigError: the condition is not valid.
        CheckpointError: a file of the index is missing or damaged.
    """
    try:
        yield
    except (RuntimeError, ValueError, OSError) as error:
        first = str(error).splitlines()[0][:200]
        # LanceDB reports a missing or truncated file as an OSError, or as a RuntimeError with a
        # message that says so.
        is_damage = isinstance(error, OSError) or "LanceError(IO)" in first or "Not found" in first
        if where is not None and not is_damage:
            raise ConfigError(f"--where {where!r}: not a valid condition: {first}") from error
        raise CheckpointError(
            f"{folder}: is damaged or incomplete ({first}); build the index again"
        ) from error


def refuse_fragment(where: str) -> None:
    """Refuse a condition if LanceDB would read only a part of it.

    For example, if the condition is ``1 = 1); id = 'a'``, LanceDB reads only ``1 = 1``, which is
    true for every passage.

    Args:
        where: a user's condition.

    Raises:
        ConfigError: a bracket is not opened or not closed, or there is a semicolon or a comment.
    """
    bare = QUOTED.sub("", where)
    depths = list(accumulate((character == "(") - (character == ")") for character in bare))
    is_whole = not depths or (min(depths) >= 0 and depths[-1] == 0)
    if not is_whole or any(mark in bare for mark in (";", "--", "/*")):
        raise ConfigError(
            f"--where {where!r}: not a complete condition; close each bracket, and remove"
            " semicolons and comments"
        )


def sql_strings(values: Iterable[str]) -> str:
    """Return strings as SQL literals, separated by commas."""
    # A quote inside of a string is written twice.
    escaped = (value.replace("'", "''") for value in values)
    return ", ".join(f"'{value}'" for value in escaped)


def text_digest(text: str) -> int:
    """Compute a digest of 8 bytes as a signed integer, for Arrow's int64."""
    # JSON can contain half of a surrogate pair, which UTF-8 cannot encode; such a text needs a
    # digest too.
    return _digest(text.encode(errors="surrogatepass"))


def _digest(content: bytes) -> int:
    digest = hashlib.blake2b(content, digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def content_key(passage: Passage) -> int:
    """Compute a digest of all fields of a passage except its id."""
    return text_digest(json.dumps(passage[1:], ensure_ascii=False))
