"""Rows of evaluation sets with the numbers of their lines, out of tables and of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from interlingua.errors import DataError
from interlingua.files import tab_rows
from interlingua.json_text import json_lines


def numbered_rows(path: Path, columns: int) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table with tabs, with the numbers of their lines.

    Raises:
        DataError: a row has another number of columns.
    """
    for number, row in tab_rows(path):
        if len(row) != columns:
            raise DataError(
                f"{len(row)} columns, tabs between them; expected {columns}",
                path=path,
                line=number,
            )
        yield number, row


def json_fields(path: Path, *keys: str) -> Iterator[tuple[int, list[str]]]:
    """What each object of a file has under these keys, with the numbers of their lines.

    Raises:
        DataError: an object lacks one of them.
    """
    for number, record in json_lines(path):
        if absent := [key for key in keys if key not in record]:
            raise DataError(
                f"no {absent[0]} here; expected an object with {', '.join(keys)}",
                path=path,
                line=number,
            )
        yield number, [str(record[key]) for key in keys]
