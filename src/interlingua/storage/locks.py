"""Locks that prevent two runs in one folder, held to the end of a run.

The lock is ``flock`` on a file in the folder. The system releases it when the process ends, even by
SIGKILL, so a leftover lock file never locks. The file names the process that holds the lock, so
that the error message of another run can name it.

The package filelock implements shared locks by SQLite, which is unsafe on network disks, and does
not name the holder.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

from interlingua.errors import ConfigError, DataError
from interlingua.runtime.processes import is_alive
from interlingua.storage.files import PathLike

log = logging.getLogger("interlingua")
LOCK_FILE = ".interlingua.lock"
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL)
"""Errors of ``flock`` on file systems that have no locks."""
_HOLDER = re.compile(r"process (?P<pid>\d+) on (?P<host>\S+) since [\w:+-]+")
_BEGINNING = b"process "
"""First bytes of a lock file that is not empty; a full disk may have cut off a part of them."""
_held: set[int] = set()
"""File descriptors of locks; a forked child must close them, as otherwise the lock of its parent
would outlive the parent."""


@contextlib.contextmanager
def exclusive(
    folder: Path,
    *,
    remedy: str,
    name: str = LOCK_FILE,
    what: PathLike | None = None,
    shared: bool = False,
    wait: bool = False,
    private: bool = False,
) -> Iterator[None]:
    """Keep other runs out of a folder until the block ends.

    On a file system without locks it logs a warning and continues.

    Args:
        folder: made if it is missing.
        remedy: what the user of a second run can do besides waiting, e.g.
            ``choose another --work folder``.
        name: name of the lock file, which is removed when the lock is released.
        what: name of the locked object in the message; default: the folder.
        shared: admit other shared holders, and exclude all others.
        wait: wait until the lock is free.
        private: only its owner can enter the folder, if it is made here.

    Raises:
        ConfigError: another process holds the lock; the message names it.
        DataError: the lock file can't be created, or another file has its name.
    """
    path = folder / name
    is_new = not folder.exists()
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    if not wait:
        kind |= fcntl.LOCK_NB
    # Repeat until the locked file is still the file of that name.
    while True:
        handle = _open(path, 0o700 if private else 0o777)
        try:
            fcntl.flock(handle, kind)
        except BlockingIOError:
            holder = _holder(handle)
            os.close(handle)
            raise ConfigError(
                f"{os.fspath(what or folder)} is in use by {holder}; wait until that process"
                f" ends, or {remedy}"
            ) from None
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS:
                os.close(handle)
                raise
            log.warning(
                "%s: the file system supports no locks; check that no other run uses this folder",
                folder,
            )
        # A file of the user's must be neither written over nor removed.
        if not _BEGINNING.startswith(os.pread(handle, len(_BEGINNING), 0)):
            os.close(handle)
            raise DataError(
                "the file has the name of a lock, but is not a lock; remove it, or use another"
                " folder",
                path=path,
            )
        if _has_name(handle, path):
            break
        # The previous holder removed the file after we opened it and before we locked it; a lock on
        # a removed file excludes no one.
        os.close(handle)
    owner = os.getpid()
    _held.add(handle)
    try:
        _write_holder(handle, shared=shared)
        yield
    finally:
        # A forked child leaves this block too, and must not release its parent's lock.
        if os.getpid() == owner:
            _release(handle, path, kind)
            # Leave no new folder behind if it is still empty; rmdir fails if a file is in it.
            if is_new:
                with contextlib.suppress(OSError):
                    folder.rmdir()


def _open(path: Path, mode: int) -> int:
    try:
        # Try a second time if another run removes its empty folder between mkdir and open.
        with contextlib.suppress(FileNotFoundError):
            return _make(path, mode)
        return _make(path, mode)
    except OSError as error:
        raise DataError(
            f"cannot be written ({error.strerror or error}); use another folder", path=path
        ) from error


def _make(path: Path, mode: int) -> int:
    # The mode applies only to the last folder.
    path.parent.mkdir(mode, parents=True, exist_ok=True)
    # Do not truncate the file on opening, as it names its holder, and do not follow a link, which
    # another user may have made.
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o666)


def _has_name(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _write_holder(handle: int, *, shared: bool) -> None:
    since = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    line = f"process {os.getpid()} on {os.uname().nodename} since {since}\n"
    # On a full disk the lock is valid even without its line in the file.
    with contextlib.suppress(OSError):
        if not shared:
            os.ftruncate(handle, 0)
        os.write(handle, line.encode())


def _holder(handle: int) -> str:
    """Return the holder of the lock from its file; of several holders the last living one."""
    found = list(_HOLDER.finditer(os.pread(handle, 1 << 16, 0).decode(errors="replace")))
    for match in reversed(found):
        # The state of a process of another machine is not visible here.
        if match["host"] != os.uname().nodename or is_alive(int(match["pid"])):
            return match[0]
    if not found:
        return "another process"
    return found[-1][0]


def _remove_holder(handle: int) -> None:
    """Remove this process from the list of those that share the lock."""
    own = f"process {os.getpid()} on {os.uname().nodename} since ".encode()
    lines = os.pread(handle, 1 << 16, 0).splitlines(keepends=True)
    own_line = next((line for line in lines if line.startswith(own)), None)
    # Remove only one line, as this process may hold the lock several times.
    if own_line is not None:
        lines.remove(own_line)
        os.ftruncate(handle, 0)
        os.write(handle, b"".join(lines))


def _release(handle: int, path: Path, kind: int) -> None:
    """Remove the lock file while no other process can hold it, then give up the lock."""
    try:
        # The last of several holders removes the file, because only the last one can get the lock
        # exclusively.
        if not kind & fcntl.LOCK_EX:
            _remove_holder(handle)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _has_name(handle, path):
            path.unlink()
    except OSError:
        pass
    finally:
        _held.discard(handle)
        os.close(handle)


def _forget() -> None:
    """Close all lock files in a forked child, which does not affect its parent's locks."""
    for handle in _held:
        os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_forget)
