"""The files of an index: their names in the index, and a check that all passages can be added.

The id of a passage without an id of its own is the file's name and the line number. This name
includes the file's path, so that files with equal names in two folders do not share ids. The
passages of a file get the same ids from any working directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from interlingua.encoder.texts import check_text
from interlingua.errors import ConfigError, DataError
from interlingua.retrieval.lance_table import text_digest
from interlingua.retrieval.passage_files import (
    USUAL_COLUMNS,
    Passage,
    PassageColumns,
    read_passages,
)
from interlingua.storage.files import PathLike, is_special


class IndexFile(NamedTuple):
    """A file of passages."""

    path: PathLike
    """Path as the user wrote it."""
    name: str
    """Name of the file in an index; see ``file_name``."""


def file_name(path: PathLike, folder: PathLike) -> str:
    """Return the name of a file in an index: its path, with slashes.

    The path is relative to the folder that contains the index if the file is below that folder, so
    that a folder can be moved with its texts and its index. The name of a file elsewhere is its
    absolute path. Links to folders are followed; a file that is a link keeps its own name.

    Args:
        path: of the file.
        folder: of the index.

    Raises:
        DataError: the path cannot be written in UTF-8.
    """
    # The name that a link points to may lack the language or the suffix, so only the links in the
    # folder's path are followed.
    place = Path(os.path.realpath(Path(path).parent)) / Path(path).name
    base = Path(os.path.realpath(folder)).parent
    name = place
    if place.is_relative_to(base):
        name = place.relative_to(base)
    return check_text(name.as_posix(), 0, "paths")


def list_index_files(paths: Sequence[PathLike], folder: PathLike) -> list[IndexFile]:
    """Return the files to read, without opening them.

    Args:
        paths: of the files.
        folder: of the index.

    Raises:
        ConfigError: ``paths`` is empty.
        DataError: one is missing, is a folder or a pipe, or is listed twice.
    """
    if not paths:
        raise ConfigError("no input files; pass at least one file of passages")
    files: dict[str, IndexFile] = {}
    for path in paths:
        if not Path(path).exists():
            raise DataError("file not found; check the path", path=path)
        if is_special(path):
            raise DataError(
                "not a regular file, so its passages cannot get stable ids; save it as a regular"
                " file",
                path=path,
            )
        name = file_name(path, folder)
        if name in files:
            raise DataError(
                f"the file is listed twice, also as {os.fspath(files[name].path)}; remove one",
                path=path,
            )
        files[name] = IndexFile(path, name)
    return list(files.values())


def read_files(
    files: Sequence[IndexFile],
    *,
    language: str | None = None,
    documents: bool = False,
    columns: PassageColumns = USUAL_COLUMNS,
) -> Iterator[Passage]:
    """Yield the passages of all files; see ``read_passages``."""
    for file in files:
        yield from read_passages(
            file.path, language=language, name=file.name, documents=documents, columns=columns
        )


def check_index_files(
    files: Sequence[IndexFile],
    *,
    language: str | None = None,
    documents: bool = False,
    columns: PassageColumns = USUAL_COLUMNS,
) -> None:
    """Read all files and refuse those that can't be in one index.

    So a fault in the last file is found before the first passage is embedded. Memory: about 100
    bytes for each passage.

    Args:
        files: any number.
        language: see ``read_passages``.
        documents: see ``read_passages``.
        columns: see ``read_passages``.

    Raises:
        DataError: a file can't be read or has no passage, or an id occurs twice, in one file or in
            two.
    """
    # Maps the digest of an id, which is smaller than the id itself, to the number of its file.
    file_of: dict[int, int] = {}
    for number, file in enumerate(files):
        passage = None
        for passage in read_files([file], language=language, documents=documents, columns=columns):
            key = text_digest(passage.id)
            if key in file_of:
                raise DataError(_twice(passage.id, files[file_of[key]].path, file.path))
            file_of[key] = number
        if passage is None:
            raise DataError(
                "the file contains no passage; remove it, or add a text", path=file.path
            )


def _twice(name: str, first: PathLike, second: PathLike) -> str:
    """Return the message for an id that two passages share."""
    places = f"in {os.fspath(first)}"
    if first != second:
        places += f" and in {os.fspath(second)}"
    return f"the id {name!r} occurs twice, {places}; use unique ids"
