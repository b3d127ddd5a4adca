"""Search for the documents in folders, with the reasons why other files are left out."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from interlingua.corpus.documents.kinds import DOCUMENT_SUFFIXES, OTHER_DOCUMENTS
from interlingua.corpus.documents.reading import remedy_of
from interlingua.errors import DataError
from interlingua.storage.files import PathLike, sha256_file, stem_and_suffix

_TEMPORARY = re.compile(r"~\$.*|\.~.*|.*~|#.*#|.*\.(?:tmp|temp|bak|swp|part|crdownload|orig)", re.I)
_SYSTEM = frozenset(("Thumbs.db", "desktop.ini"))
_GLOB = re.compile(r"[*?\[]")


class LeftOut(NamedTuple):
    """A file that is not read.

    Attributes:
        path: of the file or folder.
        reason: why it is left out, with the remedy.
    """

    path: str
    reason: str


def find_documents(
    paths: PathLike | Iterable[PathLike],
) -> tuple[list[Path], list[LeftOut]]:
    """Find the documents below folders, by name and without reading their text.

    Args:
        paths: files, folders (which are searched with all their subfolders), and patterns
            (``guide/**/*.docx``).

    Returns:
        The documents in the order of their paths, and all other files with the reasons: hidden,
        temporary, empty, of a kind that is not read, or equal to an earlier file.

    Raises:
        DataError: there is no such file, or a pattern fits none.
    """
    found, left_out = list_files(paths, _reason_against_kind)
    found = _without_copies(found, left_out)
    return found, sorted(left_out)


def list_files(
    paths: PathLike | Iterable[PathLike], unfit: Callable[[Path], str]
) -> tuple[list[Path], list[LeftOut]]:
    """List the files below folders, by name and without reading their text.

    Args:
        paths: files, folders and patterns; see ``find_documents``.
        unfit: function that returns why a file is of a wrong kind; empty if its kind is right.

    Returns:
        The files in the order of their paths, and all other files with the reasons.

    Raises:
        DataError: there is no such file, or a pattern fits none.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    left_out: list[LeftOut] = []
    candidates: dict[str, Path] = {}
    for path in given:
        # Links come last, so that a file is listed under its own name.
        for file in sorted(_expanded(path, left_out), key=lambda file: (file.is_symlink(), file)):
            first = candidates.setdefault(os.path.realpath(file), file)
            if first != file:
                left_out.append(LeftOut(os.fspath(file), f"the same file as {first}"))
    found = []
    for file in sorted(candidates.values()):
        reason = _reason_against(file, unfit)
        if reason:
            left_out.append(LeftOut(os.fspath(file), reason))
        else:
            found.append(file)
    return found, left_out


def _expanded(path: PathLike, left_out: list[LeftOut]) -> Iterator[Path]:
    """Yield the files of a path or pattern."""
    name = os.fspath(path)
    if os.path.isdir(name):
        yield from _files_below_folder(name, left_out)
    elif os.path.exists(name):
        yield Path(name)
    elif _GLOB.search(name):
        fitting = sorted(glob.glob(name, recursive=True))
        if not fitting:
            raise DataError("no file matches this pattern; check the path", path=path)
        # A pattern may find the same file twice, also through a link to a folder.
        files = {os.path.realpath(one): Path(one) for one in reversed(fitting)}
        yield from (file for file in files.values() if file.is_file())
    else:
        raise DataError("file or folder not found; check the path", path=path)


def _files_below_folder(folder: str, left_out: list[LeftOut]) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        reason = f"cannot be opened ({error.strerror or error})"
        left_out.append(LeftOut(os.fspath(error.filename or folder), reason))

    for place, folders, names in os.walk(folder, onerror=refuse):
        for name in sorted(folders):
            path = os.path.join(place, name)
            if name.startswith("."):
                left_out.append(LeftOut(path, "a hidden folder"))
            elif os.path.islink(path):
                left_out.append(LeftOut(path, "a link to a folder; name the folder itself"))
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            yield Path(place) / name


def _reason_against(file: Path, unfit: Callable[[Path], str]) -> str:
    """Return why a file is left out; empty if it is read."""
    # Programs create such files next to documents that are open.
    if _TEMPORARY.fullmatch(file.name):
        return "a temporary file"
    if file.name.startswith("."):
        return "a hidden file"
    if file.name in _SYSTEM:
        return "a system file"
    if reason := unfit(file):
        return reason
    try:
        size = file.stat().st_size
    except OSError as error:
        return f"cannot be opened ({error.strerror or error})"
    if not file.is_file():
        return "not a regular file"
    return "" if size else "empty"


def _reason_against_kind(file: Path) -> str:
    """Return why a file, by its name, is not a document; empty if it is one."""
    suffix = stem_and_suffix(file)[1]
    if suffix in DOCUMENT_SUFFIXES:
        return ""
    if suffix in OTHER_DOCUMENTS:
        return remedy_of(suffix)
    return f"of unknown kind ({suffix or 'no ending'})"


def _without_copies(files: list[Path], left_out: list[LeftOut]) -> list[Path]:
    """Return the files without copies: of several files with equal content, the first is kept."""
    by_size: dict[int, list[Path]] = {}
    for file in files:
        by_size.setdefault(file.stat().st_size, []).append(file)
    copies = set()
    for same in by_size.values():
        first: dict[str, Path] = {}
        # A file of a unique size cannot be a copy.
        for file in same if len(same) > 1 else ():
            try:
                digest = sha256_file(file)
            except DataError as error:
                copies.add(file)
                left_out.append(LeftOut(os.fspath(file), error.problem))
                continue
            original = first.setdefault(digest, file)
            if original is not file:
                copies.add(file)
                left_out.append(LeftOut(os.fspath(file), f"has the same content as {original}"))
    return [file for file in files if file not in copies]
