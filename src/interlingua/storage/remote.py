"""Remote files such as ``s3://bucket/name``: fetched to be read, sent when complete.

All protocols of fsspec are supported, such as ``gs://`` and ``memory://``; ``file://`` and names
without ``://`` mean this machine. Nothing is read or written in place over the network, so the rest
of the library uses only files of this machine.

fsspec does the transfers. Its own cache of whole files is not used, for three reasons. It writes a
copy in place: after an interrupted fetch the same process may read 2 bytes of 100 as the whole
file. Its record names the copies by arbitrary paths, so an untrusted work folder could make it read
any file of this machine. And its copies lack the suffix, by which formats are recognized. The cache
here is ``fetch_file``, a short function.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from interlingua.errors import ConfigError, DataError, InterlinguaError, MissingExtraError
from interlingua.storage.files import PathLike, atomic_write, is_special

EXTRAS = {"s3fs": "s3", "gcsfs": "gcs"}
"""Packages that fsspec needs, and our extras that bring them."""
WILD = "*?["
"""Characters in a file's name that make it a pattern."""


def is_remote(path: PathLike) -> bool:
    """Return whether a path is on another machine."""
    return "://" in os.fspath(path) and not os.fspath(path).startswith("file://")


def name_of(path: PathLike) -> str:
    """Return the last part of a path, local or remote."""
    return os.fspath(path).rstrip("/").rpartition("/")[2]


def expand_pattern(pattern: PathLike) -> list[str]:
    """Return the files that a name matches, sorted by name.

    There may be several if the name has ``*``, ``?`` or ``[``.

    Raises:
        DataError: no file matches.
    """
    name = os.fspath(pattern).removeprefix("file://")
    # A local file may have such a character in its name, as in "news [2024].txt".
    if not any(mark in name for mark in WILD) or (not is_remote(name) and os.path.exists(name)):
        return [name]
    if not is_remote(name):
        found = sorted(path for path in glob.glob(name) if os.path.isfile(path))
    else:
        files, inner = filesystem(name)
        with _errors_in_one_line(name):
            found = [files.unstrip_protocol(path) for path in sorted(files.glob(inner))]
    if not found:
        raise DataError("no file matches the pattern; check the path and the pattern", path=pattern)
    return found


def fetch_file(path: PathLike, folder: Path) -> Path:
    """Return a local file with the same bytes: the file itself, or a copy that is made once.

    Args:
        path: a local or remote file.
        folder: folder for copies; if the file has changed since it was copied, it is fetched again.

    Raises:
        DataError: there is no such file, or it can't be fetched.
        MissingExtraError: fsspec needs a package that is not installed.
    """
    name = os.fspath(path).removeprefix("file://")
    if not is_remote(name):
        return Path(name)
    # Two remote folders may have a file of the same name, so the copy's name has a hash; it keeps
    # the suffix, which determines the format.
    copy = folder / f"{hashlib.sha256(name.encode()).hexdigest()[:8]}-{name_of(name)}"
    mark = copy.with_name(f"{copy.name}.state")
    found = state(name)
    if copy.is_file() and mark.is_file() and mark.read_text(encoding="utf-8") == found:
        return copy
    files, inner = filesystem(name)
    # Remove the mark before the copy changes and write it after that, so that it never belongs to
    # an incomplete copy.
    mark.unlink(missing_ok=True)
    with (
        _errors_in_one_line(name),
        files.open(inner, "rb") as source,
        atomic_write(copy, "wb") as file,
    ):
        shutil.copyfileobj(source, file, 1 << 20)
    with atomic_write(mark) as file:
        file.write(found)
    return copy


def state(path: PathLike) -> str:
    """Return a text that changes with the file: its size and time, or the store's equivalent.

    Raises:
        DataError: there is no such file, or it can't be reached.
    """
    files, inner = filesystem(path)
    with _errors_in_one_line(path):
        return str(files.ukey(inner))


def size_of(path: PathLike) -> int:
    """Return the bytes of a file.

    Raises:
        DataError: there is no such file, or it can't be reached.
    """
    files, inner = filesystem(path)
    with _errors_in_one_line(path):
        return int(files.size(inner))


def exists(path: PathLike) -> bool:
    """Return whether a file is there."""
    files, inner = filesystem(path)
    with _errors_in_one_line(path):
        return bool(files.exists(inner))


@contextlib.contextmanager
def destination(path: PathLike, folder: Path) -> Iterator[Path]:
    """Yield the file to write: ``path`` itself, or a local file that is sent to it afterwards.

    Args:
        path: a local or remote file.
        folder: folder for files that are not sent yet; they are sent when the block ends.

    Raises:
        DataError: it can't be sent; the file is kept in the folder.
    """
    name = os.fspath(path).removeprefix("file://")
    if not is_remote(name):
        yield Path(name)
        return
    # Check this before the work, so that a missing package does not cost the user hours.
    files, inner = filesystem(name)
    made = folder / name_of(name)
    yield made
    with _errors_in_one_line(name, f"; the result is kept in {made}"):
        files.put_file(str(made), inner)
    made.unlink()


def keep_inputs(outputs: Iterable[PathLike | None], inputs: Iterable[PathLike | None]) -> None:
    """Refuse, before the work, to overwrite inputs.

    Args:
        outputs: names, local or remote; None if nothing is written.
        inputs: files that are read.

    Raises:
        ConfigError: a file is to be read and written, or written twice.
    """
    read = {_place(path) for path in inputs if path is not None}
    written = set[str]()
    for output in outputs:
        if output is None or _is_pipe_or_device(output):
            continue
        place = _place(output)
        if place in read:
            raise ConfigError(
                f"{os.fspath(output)} is both an input and an output and would be overwritten;"
                " name another output file"
            )
        if place in written:
            raise ConfigError(
                f"{os.fspath(output)} is named for two outputs; name two different files"
            )
        written.add(place)


def _is_pipe_or_device(path: PathLike) -> bool:
    """Return whether a path is a pipe or a device, to which several outputs may be written."""
    return not is_remote(path) and os.path.exists(path) and not os.path.isfile(path)


def check_writable(path: PathLike) -> None:
    """Check before the work that a file can be written; leave nothing behind.

    Args:
        path: path of the file; neither the file nor its folder has to exist. If the path is
            remote, an empty file is sent to a name next to it and removed.

    Raises:
        DataError: it is a folder, or nothing can be written there.
        MissingExtraError: fsspec needs a package that is not installed.
    """
    if is_remote(path):
        files, inner = filesystem(path)
        with _errors_in_one_line(path):
            files.pipe_file(f"{inner}.probe", b"")
        # A user who may write files may not be allowed to remove them.
        with contextlib.suppress(Exception):
            files.rm_file(f"{inner}.probe")
        return
    if is_special(os.fspath(path).removeprefix("file://")):
        return
    # The folders that are missing will be made in the nearest one that is there.
    folder = os.path.dirname(_place(path))
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    # Only an attempt is a reliable test: permission bits do not show a read-only file system.
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DataError(
            f"cannot be written ({error.strerror or error}); use another output", path=path
        ) from error


def _place(path: PathLike) -> str:
    """Return one text per file, by which two names of the same file are recognized."""
    name = os.fspath(path).removeprefix("file://")
    if is_remote(name):
        return name
    return os.path.realpath(name)


def filesystem(path: PathLike) -> tuple[Any, str]:
    """Return the fsspec file system of a path, and the name of the path in it.

    Raises:
        DataError: no file system has that protocol.
        MissingExtraError: it needs a package that is not installed.
    """
    import fsspec

    # Its ImportError names the package in words of its own, which differ by protocol.
    try:
        found: tuple[Any, str] = fsspec.core.url_to_fs(os.fspath(path))
    except ImportError as error:
        for package, extra in EXTRAS.items():
            if package in str(error):
                raise MissingExtraError(package, extra) from error
        raise InterlinguaError(f"{os.fspath(path)}: {error}") from error
    except ValueError as error:
        raise DataError(f"{error}; name a local file, s3://... or gs://...", path=path) from error
    return found


@contextlib.contextmanager
def _errors_in_one_line(path: PathLike, kept: str = "") -> Iterator[None]:
    """Convert any exception of a store's library to a one-line error."""
    try:
        yield
    except InterlinguaError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"file not found; check the path{kept}", path=path) from error
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise DataError(
            f"{reason}; check the path, the network and your credentials{kept}", path=path
        ) from error
