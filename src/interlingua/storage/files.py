"""Atomic writing of files, compressed text, and digests."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import lzma
import os
import pickle
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, Generic, TextIO, TypeVar

from interlingua.errors import ConfigError, DamagedFileError, DataError
from interlingua.storage.compression import ZstandardReader, zstandard_library
from interlingua.storage.content_kinds import find_kind
from interlingua.storage.limits import guard_expansion, guard_lines
from interlingua.storage.temporary import Temporary, replace_directory, sweep, sync_folder

T = TypeVar("T")
PathLike = str | os.PathLike[str]
COMPRESSIONS = (".gz", ".xz", ".zst")
LOOKED_AT_BYTES = 4096
"""Number of first bytes of a file by which plain text is recognized."""


def stem_and_suffix(path: PathLike) -> tuple[str, str]:
    """Split a name into its stem and the suffix of its format, without that of a compression.

    Returns:
        ``("news", ".tsv")`` for ``news.tsv.gz``; the suffix is lower case.
    """
    name = Path(path).name
    if Path(name).suffix.lower() in COMPRESSIONS:
        name = name[: -len(Path(name).suffix)]
    return Path(name).stem, Path(name).suffix.lower()


@contextlib.contextmanager
def atomic_write(path: PathLike, mode: str = "w") -> Iterator[IO[Any]]:
    """Write a file that appears under its name only when it is complete and on the disk.

    A link is kept: its target is replaced. A pipe or a device is written to directly.

    Args:
        path: the final name; its folder is created.
        mode: ``"w"`` for text, ``"wb"`` for bytes.

    Raises:
        DataError: the disk is full or the folder can't be written; the old file, if any, is
            untouched.
    """
    text: Any = {}
    if "b" not in mode:
        text = {"encoding": "utf-8", "newline": "\n"}
    with _disk_errors(path, has_reader=True):
        # A pipe or a device can't be replaced by a rename.
        if is_special(path):
            with open(path, mode, **text) as file:
                yield file
            return
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target.parent, target.name)
        with Temporary(target) as temporary:
            # Use a copy of the handle: the file is closed before the rename, but the lock stays
            # until after the rename.
            with os.fdopen(os.dup(temporary.handle), mode, **text) as file:
                yield file
                file.flush()
                # The bytes must be on the disk before the name is; otherwise a power failure could
                # leave an empty file under the name.
                os.fsync(file.fileno())
            temporary.path.chmod(usual_mode())
            temporary.path.replace(target)
            sync_folder(target.parent)


@contextlib.contextmanager
def _disk_errors(path: PathLike, *, has_reader: bool = False) -> Iterator[None]:
    """Convert an error of the disk to a one-line error.

    Args:
        path: path of the file to write.
        has_reader: whether another program may read the file while it is written.
    """
    try:
        yield
    except OSError as error:
        # The reader has closed the pipe. This is no disk error; the command line ends silently.
        if has_reader and isinstance(error, BrokenPipeError):
            raise
        raise DataError(
            f"cannot be written ({error.strerror or error}); free disk space, or use another"
            " output",
            path=path,
        ) from error


@contextlib.contextmanager
def atomic_directory(
    path: PathLike,
    *,
    overwrite: bool = False,
    ours: Callable[[Path], bool] | None = None,
    entries: str = "",
) -> Iterator[Path]:
    """Fill a folder under a temporary name and rename it when the block ends without an error.

    A user's own files and folders in a folder that is replaced stay in it.

    Args:
        path: the final name.
        overwrite: replace a folder that is already there.
        ours: returns whether a folder that is not empty may be replaced; default: any folder may,
            with its whole content.
        entries: regular expression of paths relative to the folder. Old files with such paths are
            replaced; other files are kept.

    Raises:
        DataError: ``path`` exists and ``overwrite`` is false, ``path`` is a file, or the disk is
            full.
        ConfigError: ``path`` is a folder, but not ``ours``.
    """
    target = Path(os.path.realpath(path))
    # Sweep first, as this may restore a folder that a killed run moved aside. The parent folder may
    # not exist yet, or may not be readable.
    with contextlib.suppress(OSError):
        sweep(target.parent, target.name)
    if target.exists() and not target.is_dir():
        raise DataError("is a file, expected a folder; remove it, or use another output", path=path)
    if target.exists() and not overwrite:
        raise DataError(
            "already exists; pass --overwrite to replace it, or use another output", path=path
        )
    if target.exists() and ours is not None and any(target.iterdir()) and not ours(target):
        raise ConfigError(
            f"{os.fspath(path)}: the folder contains other files, which would be overwritten;"
            " name another folder"
        )
    with _disk_errors(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        with Temporary(target, folder=True) as temporary:
            # Only its owner can enter the folder until it is complete.
            yield temporary.path
            if ours is not None and target.exists():
                _keep_others(target, temporary.path, entries)
            # All of it is on the disk before the folder gets its name.
            for inner in (temporary.path, *temporary.path.rglob("*")):
                if inner.is_dir():
                    sync_folder(inner)
                elif inner.is_file():
                    sync_file(inner)
            # The next step would replace a folder that another process has written since the check
            # above.
            if not overwrite and target.exists():
                raise DataError("another process created the folder; use another output", path=path)
            temporary.path.chmod(0o777 & ~_umask())
            replace_directory(temporary.path, target)


def other_entries(folder: Path, entries: str) -> list[Path]:
    """Return the files and links below a folder that are not ours.

    Args:
        folder: the folder, which may be missing.
        entries: regular expression of the paths of our files below it.
    """
    return sorted(
        path
        for path in _files_below(folder)
        if not re.fullmatch(entries, path.relative_to(folder).as_posix())
    )


def remove_entries(folder: Path, entries: str) -> None:
    """Remove our files below a folder, and the folders that hold nothing else; a user's files stay.

    Args:
        folder: the folder, which may be missing.
        entries: see ``other_entries``.
    """
    if folder.is_symlink():
        return
    for path in list(_files_below(folder)):
        if re.fullmatch(entries, path.relative_to(folder).as_posix()):
            path.unlink()
    # The innermost folders first.
    folders = [Path(place) for place, _, _ in os.walk(folder, topdown=False)]
    for inner in folders:
        with contextlib.suppress(OSError):
            inner.rmdir()


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield all files and links below a folder; links are not followed."""
    for place, folders, names in os.walk(folder):
        for name in [*folders, *names]:
            path = Path(place) / name
            if path.is_symlink() or not path.is_dir():
                yield path


def _keep_others(old: Path, new: Path, entries: str) -> None:
    """Link the files of the replaced folder into its replacement, except our own."""
    for path in other_entries(old, entries):
        kept = new / path.relative_to(old)
        # A file of the new folder has priority if its path is this one, or that of a folder above
        # this one.
        with contextlib.suppress(FileExistsError, NotADirectoryError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(kept):
                _link(path, kept)


def _link(source: PathLike, target: PathLike) -> None:
    """Link a file to a second name, or copy it if the file system has no links."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def is_below(path: PathLike, folder: PathLike) -> bool:
    """Return whether a path, with its links resolved, is below a folder."""
    place = Path(os.path.realpath(path))
    base = Path(os.path.realpath(folder))
    return base in place.parents


def is_special(path: PathLike) -> bool:
    """Return whether a path is a pipe or a device, which can be written to but not replaced.

    Raises:
        DataError: the path is a folder.
    """
    if os.path.isdir(path):
        raise DataError("is a folder, expected a file; name a file", path=path)
    return os.path.exists(path) and not os.path.isfile(path)


@contextlib.contextmanager
def open_text(
    path: PathLike,
    *,
    in_lines: bool = True,
    errors: str = "strict",
    is_json: bool = False,
    any_text: bool = False,
) -> Iterator[TextIO]:
    """Open text, plain or compressed (.gz, .xz, .zst), as UTF-8 with an optional byte-order mark.

    A line ends at a line feed and nowhere else, so that files stay aligned whatever else their text
    holds.

    Args:
        path: the file; ``-`` is standard input.
        in_lines: whether the file is read line by line, with a limit for lines; False for files
            that are read in blocks.
        errors: ``surrogateescape`` for callers that check each line for bytes that are not UTF-8.
        is_json: the content is expected to be JSON, which is refused otherwise.
        any_text: markup is expected; only binary content is refused.

    Raises:
        DataError: the file is missing, is cut short, has a line beyond the limit, is of another
            kind (a document, subtitles, markup, JSON), or holds bytes that are not UTF-8 (with the
            line's number).
    """
    try:
        with open_bytes(path) as raw:
            stream: Any = raw
            refuse_other_content(_head(raw), path, is_json=is_json, any_text=any_text)
            if in_lines:
                stream = guard_lines(raw, path)
            # newline="\n": the default would also end lines at a lone carriage return.
            with io.TextIOWrapper(
                stream, encoding="utf-8-sig", errors=errors, newline="\n"
            ) as text:
                yield text
    # The decoder works on blocks and does not count lines, so the file is read again to find the
    # line.
    except UnicodeDecodeError as error:
        line = _line_of_bad_byte(path)
        raise DataError(
            f"not UTF-8 (byte 0x{error.object[error.start]:02x}); convert it to"
            " UTF-8, for example: iconv -f ISO-8859-1 -t UTF-8",
            path=path,
            line=line,
        ) from error


def refuse_other_content(
    head: bytes, path: PathLike, *, is_json: bool = False, any_text: bool = False
) -> None:
    """Refuse a file that is not plain text, by its first bytes and not by its name.

    Args:
        head: the first bytes, unpacked.
        path: path that errors name.
        is_json: JSON is expected.
        any_text: markup is expected.

    Raises:
        DataError: the file is of another kind; the message says what to do.
    """
    kind = find_kind(head, stem_and_suffix(path)[1], is_json=is_json)
    if kind is not None and not (any_text and kind.is_text):
        form = "plain text" if kind.is_text else "text"
        raise DataError(f"expected {form}, found {kind.name}; {kind.remedy}", path=path)


def check_content(path: PathLike) -> None:
    """Refuse a file that exists and is not plain text; see ``refuse_other_content``.

    Raises:
        DataError: it is of another kind.
    """
    if not os.path.isfile(path):
        return
    with open_bytes(path) as raw:
        refuse_other_content(_head(raw), path)


def _head(stream: Any) -> bytes:
    """Return the first bytes of a stream without consuming them; none if it can't look ahead."""
    if not hasattr(stream, "peek"):
        return b""
    head: bytes = stream.peek(LOOKED_AT_BYTES)
    return head[:LOOKED_AT_BYTES]


def tab_rows(path: PathLike) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line of a tab-separated text, and its cells.

    Raises:
        DataError: see ``open_text``.
    """
    with open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            yield number, line.rstrip("\r\n").split("\t")


_OPENERS: dict[str, Any] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".zst": lambda path, mode: io.BufferedReader(ZstandardReader(path), 1 << 17),
}


@contextlib.contextmanager
def open_bytes(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, decompressing by its suffix; ``-`` is standard input.

    Raises:
        DataError: there is no such file, it can't be read, or it is cut short.
    """
    suffix = Path(path).suffix.lower()
    try:
        stream: Any
        if os.fspath(path) == "-":
            stream = sys.stdin.buffer
        else:
            stream = _OPENERS.get(suffix, open)(path, "rb")
        # A small file may unpack to more bytes than the memory can hold.
        if suffix in COMPRESSIONS and os.fspath(path) != "-":
            stream = guard_expansion(stream, path, os.path.getsize(path))
    except FileNotFoundError as error:
        raise DataError("file not found; check the path", path=path) from error
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror or error}); check the path and its permissions",
            path=path,
        ) from error
    # Damage shows only while the file is read, in the caller's block.
    try:
        with stream:
            yield stream
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        raise DamagedFileError(
            f"is damaged or incomplete ({error}); download or compress it again", path=path
        ) from error


@contextlib.contextmanager
def open_text_writer(path: PathLike) -> Iterator[TextIO]:
    """Write UTF-8 text atomically, compressed by its suffix (.gz, .xz, .zst)."""
    suffix = Path(path).suffix.lower()
    with atomic_write(path, "wb") as raw:
        binary: Any = raw
        if suffix == ".gz":
            # Leave out the time, so that the same text gives the same bytes.
            binary = gzip.GzipFile(fileobj=raw, mode="wb", mtime=0)
        elif suffix == ".xz":
            binary = lzma.LZMAFile(raw, mode="wb")  # noqa: SIM115
        elif suffix == ".zst":
            binary = zstandard_library().ZstdCompressor().stream_writer(raw, closefd=False)
        text = io.TextIOWrapper(binary, encoding="utf-8", newline="\n")
        yield text
        text.flush()
        # Detach the wrapper; otherwise it would close the file, which atomic_write still has to
        # sync.
        text.detach()
        # Closing writes the end of the compressed stream, and leaves the file itself open.
        if binary is not raw:
            binary.close()


class Spool(Generic[T]):
    """Values on the disk; all are added before they are read back.

    They are in a temporary file without a name, which disappears when the process ends.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._count = 0

    def add(self, value: T) -> None:
        """Add a value that can be pickled."""
        pickle.dump(value, self._file, protocol=pickle.HIGHEST_PROTOCOL)
        self._count += 1

    def close(self) -> None:
        """Remove the values; this has no effect if they have been read back."""
        self._file.close()

    def replay(self) -> Iterator[T]:
        """Yield all values in their order, once."""
        with self._file as file:
            file.seek(0)
            for _ in range(self._count):
                yield pickle.load(file)  # what this process has written


def files_in(folder: Path) -> list[Path]:
    """Return the files of a folder by name; none if there is no such folder."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_file())


def count_lines(path: PathLike) -> int:
    """Count the lines of a file, plain or compressed, by their line feeds."""
    # A last line without a line feed counts too; an empty file has none.
    count = 0
    last = b"\n"
    with open_bytes(path) as file:
        while chunk := file.read(1 << 20):
            count += chunk.count(b"\n")
            last = chunk[-1:]
    return count + (last != b"\n")


def sync_file(path: PathLike) -> None:
    """Make sure that a file's bytes are on the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def sha256_file(path: PathLike) -> str:
    """Compute the hex SHA-256 of a file's bytes."""
    with open_raw(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_tree(folder: PathLike) -> str:
    """Compute the hex SHA-256 over the relative names and bytes of a folder's files, sorted."""
    digest = hashlib.sha256()
    root = Path(folder)
    for file in sorted(path for path in root.rglob("*") if path.is_file()):
        # A name can't contain a zero byte, so no other tree gives the same lines.
        digest.update(f"{file.relative_to(root).as_posix()}\0{sha256_file(file)}\n".encode())
    return digest.hexdigest()


@contextlib.contextmanager
def open_raw(path: PathLike) -> Iterator[io.BufferedReader]:
    """Open a file's own bytes, without decompressing.

    Raises:
        DataError: there is no such file, or it can't be read.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror or error}); check the path", path=path
        ) from error
    with file:
        yield file


def _line_of_bad_byte(path: PathLike) -> int | None:
    # Standard input can't be read a second time.
    if os.fspath(path) == "-":
        return None
    with open_bytes(path) as raw:
        for number, line in enumerate(raw, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1


def usual_mode() -> int:
    """Return the permissions of a new file under the process's umask."""
    return 0o666 & ~_umask()


def _umask() -> int:
    # The umask cannot be read without setting it, so set it and restore it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
