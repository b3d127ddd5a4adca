"""The work folder of mining: which files in it are ours, who works there, and how it is removed.

A run claims its work folder by a file, before it makes anything in it. A folder that holds files
under our names and has no such file is refused. Only files that we know by folder and name are ever
removed, so whatever else a user keeps in a work folder stays there.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

from interlingua.errors import ConfigError
from interlingua.locks import exclusive
from interlingua.storage.formats import MINING
from interlingua.storage.record import holds_record, read_record, write_record
from interlingua.temporary import sweep

log = logging.getLogger("interlingua")
RECORD = "work.json"
REMEDY = "choose another --work folder"
_SIDE = (
    r"(texts|names)\.(text|ends)|(text_of_line|starts|lines|cursor)\.i64|(documents|keys)\.u64|side\.json|model\.json"
    r"|vectors\.npy|vectors-\d+of\d+\.journal"
)
_NEIGHBORS = r"plan\.json|journal\.txt|[xy]-\d+\.npz"
_OWN = {
    r"[xy]": _SIDE,
    r"neighbors-k\d+(-\w+-\d+)?": _NEIGHBORS,
    # Each shard of a search has a folder of its own inside the search's folder.
    r"neighbors-k\d+(-\w+-\d+)?/\d+of\d+": _NEIGHBORS,
    r"scores": r"(means|hubs)-[xy]\.\w+|pairs\.bin|found\.bin",
    # An empty pattern matches no file name: these hold other folders, or temporary files alone.
    r"seen": r"",
    r"seen/seen-[xy]": r"keys-\d+\.u64",
    r"made": r"",
    r"tables": r"[0-9a-f]{8}-.*\.txt",
}
"""Our folders below a work folder, and our files in each; both are regular expressions."""


def claim(folder: Path) -> None:
    """Marks a work folder as ours before anything is made in it.

    Raises:
        RecordError: its record is damaged or of another version.
        ConfigError: it holds files under our names, and none of our runs has claimed it; or links
            under our names, through which files elsewhere would be written.
    """
    # Links are refused in a claimed folder too: one may have been put there since.
    link = next(_links(folder), None)
    if link is not None:
        raise ConfigError(
            f"{link} is a link, and what it points at would be written to; remove it or {REMEDY}"
        )
    if holds_record(folder / RECORD, MINING):
        read_record(folder / RECORD, MINING)
        return
    # Not claimed: empty folders of our names do no harm, anything in them belongs to others.
    names = [path.name for path in _folders(folder) if path.parent == folder and _is_filled(path)]
    # A record that is there and is not of this format was written by another version.
    if (folder / RECORD).exists():
        names.append(RECORD)
    if names:
        raise ConfigError(
            f"{folder} holds {', '.join(sorted(names))}, which this version of interlingua did not"
            f" make and would replace; {REMEDY}"
        )
    write_record(folder / RECORD, MINING, {})


@contextlib.contextmanager
def at_work(
    folder: Path, shard: tuple[int, int] | None = None, *, keep: bool = True
) -> Iterator[None]:
    """Claims a work folder and keeps other runs out of it until the block ends.

    Shards of one job share it. The error of a full disk gets the folder's path: that of an open
    file does not name it.

    Args:
        folder: made if it is missing.
        shard: the part that this run does, ``(2, 8)`` the second of eight.
        keep: whether the folder stays when the block ends well.

    Raises:
        ConfigError: another run is at work there, or the folder is not ours.
    """
    try:
        with contextlib.ExitStack() as stack:
            # It holds users' texts.
            lock = exclusive(folder, remedy=REMEDY, shared=shard is not None, private=True)
            stack.enter_context(lock)
            # Shards work side by side, but the same shard must not run twice.
            if shard is not None:
                name = f".shard-{shard[0]}of{shard[1]}.lock"
                stack.enter_context(exclusive(folder, remedy=REMEDY, name=name))
            claim(folder)
            yield
            if not keep:
                clear(folder)
    except OSError as error:
        # The command line prints the name of the error's file.
        error.filename = error.filename or str(folder)
        raise
    # The folder itself can go only now: the lock file in it goes when the block of the lock ends.
    if not keep:
        # It is not empty where others keep files in it.
        with contextlib.suppress(OSError):
            folder.rmdir()
        if folder.exists():
            log.warning("%s is kept: it holds files that this command did not make", folder)


@contextlib.contextmanager
def one_at_a_time(folder: Path, shard: tuple[int, int] | None) -> Iterator[None]:
    """Claims a work folder, and lets one shard of a job at a time into the block.

    It is for what all shards share and each of them would make: the first one makes it, the others
    wait and find it there.
    """
    # A run that is not a shard has the folder to itself already, see ``at_work``.
    if shard is None:
        claim(folder)
        yield
        return
    with exclusive(folder, remedy=REMEDY, name=".shared.lock", wait=True):
        claim(folder)
        yield


def clear(folder: Path) -> None:
    """Removes our files from a work folder, and our folders in it where nothing else is in them."""
    # Descending order of the paths: a folder inside another one is emptied and removed first.
    for own in sorted(_folders(folder), reverse=True):
        if own.is_symlink() or not own.is_dir():
            continue
        sweep(own)
        for path in _own_files(folder, own):
            if not path.is_dir():
                path.unlink()
        # A folder with something else in it stays.
        with contextlib.suppress(OSError):
            own.rmdir()
    # The record goes last: a clearing that is cut off leaves a folder that is still claimed.
    if holds_record(folder / RECORD, MINING):
        (folder / RECORD).unlink()


def _links(folder: Path) -> Iterator[Path]:
    """Links that have the name of one of our folders, or of one of our files in them."""
    for own in _folders(folder):
        if own.is_symlink():
            yield own
        elif own.is_dir():
            yield from (path for path in _own_files(folder, own) if path.is_symlink())


def _own_files(folder: Path, own: Path) -> list[Path]:
    """What has the name of one of our files in one of our folders below a work folder."""
    pattern = _pattern_of(own.relative_to(folder).as_posix()) or ""
    return [path for path in own.iterdir() if re.fullmatch(pattern, path.name)]


def _folders(folder: Path) -> list[Path]:
    """All that has the name of one of our folders; links are not followed."""
    found = []
    for place, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(place) / name
            if _pattern_of(path.relative_to(folder).as_posix()) is not None:
                found.append(path)
        # ``os.walk`` goes into what is left in this list: a user's folders are not looked into.
        folders[:] = [name for name in folders if Path(place) / name in found]
    return found


def _pattern_of(name: str) -> str | None:
    """What the files are called in one of our folders; None for a folder that is not ours."""
    return next((files for own, files in _OWN.items() if re.fullmatch(own, name)), None)


def _is_filled(path: Path) -> bool:
    """Whether it is anything but an empty folder."""
    return path.is_symlink() or not path.is_dir() or any(path.iterdir())
