"""The work folder of mining: a workspace with steps (the texts of both sides) and parts.

Vectors and neighbors are parts, because their writers resume by journals of their own and shards
write into them at the same time. Files that each run makes anew are parts, too.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from interlingua.config.options import Options, recorded
from interlingua.errors import InterlinguaError
from interlingua.mining.vectors import VECTOR_FILES
from interlingua.retrieval.topk.tiles import JOURNAL, LISTS
from interlingua.storage.files import PathLike
from interlingua.storage.formats import MINING, Format
from interlingua.storage.workspace import WORKSPACE_RECORD, Workspace, open_workspace

log = logging.getLogger("interlingua")
_OPTIONS = "options"
"""Key under which the settings of the record hold the options of the latest run."""
_REMEDY = "choose another --work folder"
_NEIGHBORS = rf"{JOURNAL}|{LISTS}"
PARTS = {
    # The steps; the record lists their files.
    r"(mixed-)?[xy]": r"",
    r"vectors-(mixed-)?[xy]": VECTOR_FILES,
    r"neighbors-(mixed-)?k\d+(-\w+-\d+)?": _NEIGHBORS,
    # Each shard of a search has a folder of its own inside the search's folder.
    r"neighbors-(mixed-)?k\d+(-\w+-\d+)?/\d+of\d+": _NEIGHBORS,
    # Vectors of the texts of a stream, by ``evaluation.kept_vectors``.
    r"kept-[0-9a-f]{12}": r"\d+\.vectors",
    r"scores": r"(means|hubs)-[xy]\.\w+|pairs\.bin|found\.bin",
    # An empty pattern matches no file name: these hold other folders, or only temporary files.
    r"seen": r"",
    r"seen/(seen-[xy]|(translations|sources)-(texts|pairs))": r"keys-\d+\.u64",
    r"made": r"",
    r"tables": r"[0-9a-f]{8}-.*\.txt",
}


@contextlib.contextmanager
def at_work(
    folder: Path,
    shard: tuple[int, int] | None = None,
    *,
    keep: bool = True,
    options: Options | None = None,
    format: Format = MINING,
    parts: Mapping[str, str] = PARTS,
    inputs: Iterable[PathLike] = (),
    remedy: str = _REMEDY,
) -> Iterator[Workspace]:
    """Open a work folder and keep other runs out of it until the block ends.

    Shards of one job share it. The error of a full disk gets the folder's path, because an
    error of an open file names no path.

    Args:
        folder: made if it is missing.
        shard: the part that this run does, ``(2, 8)`` the second of eight.
        keep: whether the folder stays when the block ends well. After a user's error it stays if
            anything was computed, or if it was there before.
        options: of the verb, which the record holds. They may change: each step and part names
            those that determine it.
        format: of the record.
        parts: see ``open_workspace``.
        inputs: files that must not change between a run and its resumption.
        remedy: how to use another folder, in the imperative.

    Raises:
        ConfigError: another run is at work there, or the folder is not ours.
    """
    is_new = not folder.exists()
    is_begun = (folder / WORKSPACE_RECORD).exists()
    settings = {}
    if options is not None:
        settings = {_OPTIONS: recorded(options)}
    try:
        # It holds users' texts, so that only its owner can enter it.
        with open_workspace(
            folder,
            format,
            settings=settings,
            may_change=(_OPTIONS,),
            remedy=remedy,
            inputs=inputs,
            parts=parts,
            shard=shard,
            is_private=True,
        ) as work:
            try:
                yield work
            except InterlinguaError:
                # Results stay, so that the corrected command resumes. Without results the record
                # goes, because it would refuse corrected inputs; a user's folder stays.
                if not is_begun and not _has_results(work, parts):
                    work.clear()
                    keep = not is_new
                raise
            if not keep:
                work.clear()
    except OSError as error:
        # The command line prints the name of the error's file.
        error.filename = error.filename or str(folder)
        raise
    except InterlinguaError:
        if not keep:
            _remove_folder(folder)
        raise
    # The folder itself can go only now: the lock file in it goes when the block of the lock ends.
    if not keep and not _remove_folder(folder):
        log.warning("%s is kept, because it contains files that this command did not make", folder)


def _remove_folder(folder: Path) -> bool:
    """Remove a folder if it contains no files of others; return whether it no longer exists."""
    with contextlib.suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def _has_results(work: Workspace, parts: Mapping[str, str]) -> bool:
    """Return whether a run has finished a step or has written a file of a part."""
    if work.steps:
        return True
    files = [path for path in work.path.rglob("*") if path.is_file()]
    return any(
        re.fullmatch(part, path.parent.relative_to(work.path).as_posix())
        and re.fullmatch(names, path.name)
        for path in files
        for part, names in parts.items()
    )
