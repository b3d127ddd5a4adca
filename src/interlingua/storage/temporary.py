"""Temporary files and folders: created, renamed to their target, removed after a kill.

A temporary name contains the machine and the process that made it, and the process holds a lock
(``flock``) on the file or folder. The lock ends with the process, in whatever way the process ends.
So another process may remove a temporary file if two conditions are met: no such process is alive
on this machine, and no process holds the lock. The second condition protects the files of another
container with the same host name, whose processes are not visible here.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import functools
import logging
import os
import re
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Self

from interlingua.runtime.processes import is_alive

log = logging.getLogger("interlingua")
A_DAY = 86_400.0
"""Seconds without a change after which leftovers are removed on file systems without locks."""
_NAME = re.compile(r"\.(?P<name>.+)\.(?P<host>[0-9a-f]{8})-(?P<pid>\d+)\.\w+\.(?P<kind>tmp|old)")
"""``.old`` is a folder that was moved aside for a new one, see ``replace_directory``."""
_AT_WORKING_DIRECTORY = -100
_EXCHANGE = 2
"""``AT_FDCWD`` and ``RENAME_EXCHANGE`` of Linux."""
_NOT_POSSIBLE = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EXDEV)


class Temporary:
    """A file or folder under a temporary name next to ``target``, locked in a block.

    Args:
        target: the final name.
        folder: whether to make a folder.

    Attributes:
        path: the temporary name.
        handle: file descriptor of the open file or folder.
    """

    here: ClassVar[set[Path]] = set()
    """Temporary paths that this process is writing."""

    def __init__(self, target: Path, *, folder: bool = False) -> None:
        # Repeat until the new file still has its name after it was locked.
        while True:
            if folder:
                name = tempfile.mkdtemp(prefix=_prefix(target), suffix=".tmp", dir=target.parent)
                self.handle = os.open(name, os.O_RDONLY)
            else:
                self.handle, name = tempfile.mkstemp(
                    prefix=_prefix(target), suffix=".tmp", dir=target.parent
                )
            if _lock(self.handle, name):
                break
            # Another process swept it before it was locked.
            os.close(self.handle)
        self.path = Path(name)
        self.here.add(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Remove the files under the temporary name, then release the lock."""
        _remove(self.path)
        self.here.discard(self.path)
        os.close(self.handle)


def sweep(folder: Path, name: str | None = None) -> None:
    """Remove temporary files and folders of killed processes.

    A folder that was moved aside gets its name back.

    Args:
        folder: where to look; folders below it are not searched.
        name: name of the final file; default: any.
    """
    with os.scandir(os.path.realpath(folder)) as entries:
        leftovers = [
            (Path(entry.path), match) for entry in entries if (match := _NAME.fullmatch(entry.name))
        ]
    for path, match in leftovers:
        pid = int(match["pid"])
        is_requested = name in (None, _final_name(match["name"])) and match["host"] == _host()
        if not is_requested or path in Temporary.here:
            continue
        # A file with the number of this process, but not made by it, was left by a dead process
        # that had the same number.
        if pid != os.getpid() and is_alive(pid):
            continue
        target = path.with_name(match["name"])
        # The process was killed between the two renames of _step_aside, so only the old folder
        # exists.
        is_inner = _NAME.fullmatch(match["name"]) is not None
        if match["kind"] == "old" and not target.exists() and not is_inner:
            _if_abandoned(path, functools.partial(_give_back, target=target))
        else:
            _if_abandoned(path, _remove)


def _final_name(name: str) -> str:
    """Return the final name of a temporary name, which may contain another temporary name."""
    while inner := _NAME.fullmatch(name):
        name = inner["name"]
    return name


def replace_directory(source: Path, target: Path) -> None:
    """Move a finished folder to ``target``; an older one of that name is removed.

    Linux exchanges both names in one step, so that a complete folder of that name exists at every
    moment. If the file system can't do this, the older folder is moved aside first. If the process
    is killed in between, ``sweep`` gives the older folder its name back.
    """
    if not target.exists():
        source.rename(target)
    elif exchange(source, target):
        shutil.rmtree(source, ignore_errors=True)
    else:
        _step_aside(source, target)
    sync_folder(target.parent)


def exchange(one: Path, other: Path) -> bool:
    """Swap the names of two files or folders in one step, by ``renameat2``.

    The result is False where this is not possible.

    Raises:
        OSError: the exchange is possible, but it failed.
    """
    rename = _renameat2()
    if rename is None:
        return False
    first = (_AT_WORKING_DIRECTORY, os.fsencode(one))
    second = (_AT_WORKING_DIRECTORY, os.fsencode(other))
    status = rename(*first, *second, _EXCHANGE)
    if status == 0:
        return True
    # Older kernels do not have the call, and some file systems do not support the exchange.
    number = ctypes.get_errno()
    if number in _NOT_POSSIBLE:
        return False
    raise OSError(number, os.strerror(number), os.fspath(other))


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _step_aside(source: Path, target: Path) -> None:
    """Replace a folder in two renames; between them no folder has its name."""
    old = Path(tempfile.mkdtemp(prefix=_prefix(target), suffix=".old", dir=target.parent))
    Temporary.here.add(old)
    handle = os.open(target, os.O_RDONLY)
    try:
        # The lock is on the folder itself and stays with it when it is renamed.
        _lock(handle, target)
        target.rename(old)
        try:
            source.rename(target)
        except OSError:
            old.rename(target)
            raise
        # Make sure that the new folder is on the disk before the older one is removed.
        sync_folder(target.parent)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        os.close(handle)
        Temporary.here.discard(old)


@functools.cache
def _renameat2() -> Callable[..., int] | None:
    """Return the function of the C library that Python does not expose."""
    if not sys.platform.startswith("linux"):
        return None
    found: Callable[..., int] | None = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    return found


def _lock(handle: int, name: str | Path) -> bool:
    """Lock a new file or folder; return False if it lost its name before it was locked."""
    # On a file system without locks, leftovers are removed only after a day, so a new file still
    # has its name.
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError:
        return True
    try:
        return os.path.samestat(os.fstat(handle), os.stat(name))
    except FileNotFoundError:
        return False


def _if_abandoned(path: Path, action: Callable[[Path], None]) -> None:
    """Run an action on a leftover while holding its lock, if no other process holds the lock."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_abandoned = True
    except BlockingIOError:
        is_abandoned = False
    # On a file system without locks only the age decides.
    except OSError:
        is_abandoned = time.time() - _last_change(path) > A_DAY
    try:
        if is_abandoned:
            action(path)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _give_back(path: Path, target: Path) -> None:
    path.rename(target)
    log.warning("%s was restored: a run was stopped while it replaced the folder", target)


def _last_change(path: Path) -> float:
    """Return the time of a file, or of the newest file in a folder, in seconds since the epoch."""
    times = [path.stat().st_mtime]
    for inner in path.rglob("*"):
        with contextlib.suppress(OSError):
            times.append(inner.stat().st_mtime)
    return max(times)


def _prefix(target: Path) -> str:
    return f".{target.name}.{_host()}-{os.getpid()}."


def _host() -> str:
    """Return a short identifier of this machine.

    On a disk that several machines share, a machine can see only its own processes.
    """
    return f"{zlib.crc32(os.uname().nodename.encode()):08x}"
