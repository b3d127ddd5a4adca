"""Sides that are tables (CSV, XLSX): a column of each is laid down as a text file, which mining then reads."""

from __future__ import annotations

import hashlib
from pathlib import Path

from interlingua.corpus.sentence_table import is_table, read_column, refuse_column
from interlingua.errors import ConfigError
from interlingua.files import PathLike, atomic_write
from interlingua.mining.pipeline import TextFile
from interlingua.remote import name_of


def with_lines(file: TextFile, folder: Path) -> TextFile:
    """The side with text files in place of its tables; sentence i of one is row i of the other.

    Args:
        file: the side.
        folder: of all that mining makes on the way.

    Raises:
        ConfigError: a column is named of what is no table, or tables are to be read in another layout.
        DataError: a table can't be read, or its column is not known.
    """
    for part in file.files:
        refuse_column(file.column, part)
    tables = [part for part in file.files if is_table(part)]
    if not tables:
        return file
    if file.layout != "lines":
        raise ConfigError(f"{tables[0]}: a table is read as lines, not as {file.layout}; leave out --layout")
    return file._replace(parts=[_lines_of(part, file, folder) if is_table(part) else part for part in file.files])


def _lines_of(table: PathLike, file: TextFile, folder: Path) -> Path:
    called = f"{table}\0{file.column}\0{file.language}"
    path = folder / "tables" / f"{hashlib.sha256(called.encode()).hexdigest()[:8]}-{name_of(table)}.txt"
    with atomic_write(path) as lines:
        for text in read_column(table, column=file.column, language=file.language, bad=file.bad):
            lines.write(f"{text}\n")
    return path
