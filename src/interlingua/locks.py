"""Locks that keep two runs out of one folder, held to the end of a run.

The lock is ``flock`` on a file in the folder. The system gives it up when the process ends, also by
SIGKILL, so a stale lock file never locks. The file names the process that holds the lock, for the
message that another run gets.
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

PathLike = str | os.PathLike[str]
log = logging.getLogger("interlingua")
NAME = ".interlingua.lock"
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL)
"""What ``flock`` fails with on file systems that have no locks."""
_HOLDER = re.compile(r"process (?P<pid>\d+) on (?P<host>\S+) since [\w:+-]+")
_BEGINNING = b"process "
"""Of a lock file that is not empty; a full disk may have cut it."""
_held: set[int] = set()
"""File descriptors of locks; a child by fork must not keep them, or its parent's lock would outlive
the parent."""


@contextlib.contextmanager
def exclusive(
    folder: Path,
    *,
    remedy: str,
    name: str = NAME,
    what: PathLike | None = None,
    shared: bool = False,
    wait: bool = False,
) -> Iterator[None]:
    """Keeps other runs out of a folder until the block ends.

    On a file system without locks it says so in a warning, and goes on.

    Args:
        folder: made if it is missing.
        remedy: what the user of a second run can do besides waiting, e.g.
            ``choose another --work folder``.
        name: of the lock file, which goes with the lock.
        what: what the message says is in use; the folder by default.
        shared: let others in that take it shared as well, and keep out those that do not.
        wait: wait until the lock is free.

    Raises:
        ConfigError: another process holds the lock; the message names it.
        DataError: the lock file can't be made, or a file that is none has its name.
    """
    path = folder / name
    is_new = not folder.exists()
    kind = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    while True:
        handle = _open(path)
        try:
            fcntl.flock(handle, kind)
        except BlockingIOError:
            holder = _holder(handle)
            os.close(handle)
            raise ConfigError(
                f"{os.fspath(what or folder)} is in use by {holder}; wait until it has ended, or"
                f" {remedy}"
            ) from None
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS:
                os.close(handle)
                raise
            log.warning(
                "%s: the file system has no locks; make sure that no other run uses this folder",
                folder,
            )
        if not _BEGINNING.startswith(os.pread(handle, len(_BEGINNING), 0)):
            os.close(handle)
            raise DataError(
                "a file that is no lock has the lock's name; remove it or choose another place",
                path=path,
            )
        if _has_name(handle, path):  # not a file that its holder removed before this one was locked
            break
        os.close(handle)
    owner = os.getpid()
    _held.add(handle)
    try:
        _write_holder(handle, shared=shared)
        yield
    finally:
        if os.getpid() == owner:
            _release(handle, path, kind)
            if is_new:  # a run that was refused before it began leaves nothing
                with contextlib.suppress(OSError):
                    folder.rmdir()


def _open(path: Path) -> int:
    try:
        with contextlib.suppress(
            FileNotFoundError
        ):  # another run may remove its empty folder in between
            return _make(path)
        return _make(path)
    except OSError as error:
        raise DataError(
            f"can't write: {error.strerror or error}; choose another place", path=path
        ) from error


def _make(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o666)


def _has_name(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _write_holder(handle: int, *, shared: bool) -> None:
    since = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    line = f"process {os.getpid()} on {os.uname().nodename} since {since}\n"
    with contextlib.suppress(OSError):  # the lock holds on a full disk too
        if not shared:
            os.ftruncate(handle, 0)
        os.write(handle, line.encode())


def _holder(handle: int) -> str:
    """Who holds the lock, as its file tells; of several the last one that lives."""
    found = list(_HOLDER.finditer(os.pread(handle, 1 << 16, 0).decode(errors="replace")))
    for match in reversed(found):
        if match["host"] != os.uname().nodename or _is_alive(int(match["pid"])):
            return match[0]
    return found[-1][0] if found else "another process"


def _remove_holder(handle: int) -> None:
    """Takes this process out of the list of those that share the lock."""
    own = f"process {os.getpid()} on {os.uname().nodename} since ".encode()
    lines = os.pread(handle, 1 << 16, 0).splitlines(keepends=True)
    own_line = next((line for line in lines if line.startswith(own)), None)
    if own_line is not None:
        lines.remove(own_line)  # one of them, if this process has several
        os.ftruncate(handle, 0)
        os.write(handle, b"".join(lines))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _release(handle: int, path: Path, kind: int) -> None:
    """Removes the lock file while no other process can hold it, then gives up the lock."""
    try:
        if not kind & fcntl.LOCK_EX:  # the last one of several that share it removes it
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
    """In a child by fork."""
    for handle in _held:
        os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_forget)
