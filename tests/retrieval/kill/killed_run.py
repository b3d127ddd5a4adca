"""A command on an index that dies at a chosen point, for test_kill.py.

Run in a process of its own.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from interlingua.runtime.progress import SILENT, Progress

BEGIN = "as it begins"
END = "when it is done, before it is reported"


class Point(NamedTuple):
    """Point at which a command is killed."""

    operation: str
    """A method of PassageIndex, or of LanceDB's table or database."""
    call: int
    """Number of the call, from 1."""
    moment: str | int
    """BEGIN or END, or inside: when a file that it writes grows beyond a number of bytes."""


def die_at(owner: type, point: Point) -> None:
    """Make a call of the method end this process.

    At the start and at the end that is kill -9. Inside, the system ends the process in the
    middle of a write, just as abruptly: at the first one beyond the size that a file may have.
    """
    real: Callable[..., Any] = getattr(owner, point.operation)
    calls: list[int] = []

    def deadly(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) < point.call:
            return real(*arguments, **options)
        if point.moment == BEGIN:
            os.kill(os.getpid(), signal.SIGKILL)
        if isinstance(point.moment, int):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.signal(
                signal.SIGXFSZ, signal.SIG_DFL
            )  # Python ignores it, which makes the write an error
            resource.setrlimit(resource.RLIMIT_FSIZE, (point.moment, resource.RLIM_INFINITY))
        result = real(*arguments, **options)
        os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, point.operation, deadly)


def run(action: str, folder: Path, given: list[Any], point: Point, reports: Path) -> None:
    """Run the command, which writes the passages that it reports as committed."""
    import lancedb
    import torch

    from interlingua.retrieval import passage_index

    torch.set_num_threads(1)
    passage_index.COMMIT_PASSAGES = 4
    owners = (passage_index.PassageIndex, lancedb.table.LanceTable, lancedb.db.LanceDBConnection)
    die_at(next(owner for owner in owners if hasattr(owner, point.operation)), point)
    with open(reports, "w") as file:
        perform(action, folder, given, Written(file))


class Written(Progress):
    """Write how many passages are committed, after each block."""

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self.done = 0

    def advance(self, count: float = 1) -> None:
        """Count passages."""
        self.done += int(count)
        print(self.done, file=self.file, flush=True)


def perform(action: str, folder: Path, given: list[Any], progress: Progress = SILENT) -> Any:
    """Run the command with its arguments: model and files, files, or ids and a condition."""
    from interlingua.retrieval.searcher import add_to_index, build_index, delete_from_index

    if action == "build":
        return build_index(given[0], given[1:], folder, progress=progress)
    if action == "add":
        return add_to_index(folder, given, progress=progress)
    return delete_from_index(folder, *given)
