"""The processes of one command: the rank of this one, and their common end."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from importlib.machinery import ModuleSpec
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any

_COMMAND: ContextVar[tuple[str, ...] | None] = ContextVar("_COMMAND", default=None)
_MAIN_LOCK = threading.Lock()
"""Lock that is held while the script is hidden from a process that starts."""


def is_first_process(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether this process is the one that writes messages.

    The processes may be started by torchrun, by srun or by training itself.
    """
    # torchrun and training set RANK, the number over all machines; it takes precedence.
    rank = environ.get("RANK")
    if rank is None:
        rank = _number_by_launcher(environ, slurm="SLURM_PROCID")
    return int(rank) == 0


def is_first_on_machine(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether this process is the one on this machine that reports a common error."""
    return int(_number_by_launcher(environ, slurm="SLURM_LOCALID")) == 0


def _number_by_launcher(environ: Mapping[str, str], *, slurm: str) -> str:
    """Return the number of this process from srun's variable, or else its number on this machine.

    A process without a launcher has the number of the first process.
    """
    if is_task_of_srun(environ):
        return environ.get(slurm, "0")
    return environ.get("LOCAL_RANK", "0")


def is_task_of_srun(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether this is one of several tasks that srun started.

    The batch script of a job has all variables of a step except the step's number, and starts one
    process. Processes that torchrun starts in a task have a rank.
    """
    return (
        "SLURM_STEP_ID" in environ
        and int(environ.get("SLURM_NTASKS", "1")) > 1
        and "LOCAL_RANK" not in environ
    )


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    # Not on macOS, where no process is bound to cores.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _LibraryProcess(SpawnProcess):
    """A spawned process that does not run the caller's script again."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - the name in multiprocessing
        with _hidden_script():
            return SpawnProcess._Popen(process_obj)


class LibraryContext(SpawnContext):
    """Start processes only for functions of this library.

    ``spawn`` imports the caller's script in every new process, to find functions that it defines. A
    script without ``if __name__ == "__main__"`` would repeat all its work there. These processes
    run only code of this library, so they do not need the script, and the script needs no guard.
    """

    Process = _LibraryProcess


@contextlib.contextmanager
def others_run(arguments: Sequence[str]) -> Iterator[None]:
    """Start the other processes of a training run with our command, not the caller's script.

    Fabric would start them in the way this process was started, and a script would repeat all its
    work in each of them. The setting is valid inside the block.

    Args:
        arguments: command-line arguments of ``interlingua``.
    """
    before = _COMMAND.set(tuple(arguments))
    try:
        yield
    finally:
        _COMMAND.reset(before)


@contextlib.contextmanager
def command_in_place_of_script() -> Iterator[None]:
    """Replace the caller's script by the command of ``others_run``, for Fabric."""
    command = _COMMAND.get()
    if command is None:
        yield
        return
    with _MAIN_LOCK:
        before = sys.modules["__main__"], sys.argv
        stand_in = ModuleType("__main__")
        stand_in.__spec__ = ModuleSpec("interlingua", None)
        sys.modules["__main__"] = stand_in
        sys.argv = ["interlingua", *command]
        try:
            yield
        finally:
            sys.modules["__main__"], sys.argv = before


@contextlib.contextmanager
def _hidden_script() -> Iterator[None]:
    """Hide the main module's file name, by which ``spawn`` would find the script."""
    with _MAIN_LOCK:
        script = sys.modules["__main__"]
        # Use a copy: other threads may look up names in the main module at the same time.
        nameless = ModuleType("__main__")
        nameless.__dict__.update(vars(script))
        nameless.__dict__.pop("__file__", None)
        nameless.__spec__ = None
        sys.modules["__main__"] = nameless
        try:
            yield
        finally:
            sys.modules["__main__"] = script


def end_with_parent() -> None:
    """End this process when its parent has ended, even by SIGKILL.

    Otherwise a process of a pool would wait for tasks forever.
    """
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        # This waits for the end of a pipe, which the system closes in whatever way the parent ends.
        parent.join()
        # Not sys.exit, which would end only this thread.
        os._exit(1)


def is_alive(pid: int) -> bool:
    """Return whether a process of this machine, of any user, is still running."""
    # The system does not send signal 0, but checks whether it could send a signal.
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process of another user.
    except PermissionError:
        pass
    return True
