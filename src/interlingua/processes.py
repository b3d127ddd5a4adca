"""The processes of one command: which of them this is, and how they end together."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Mapping


def is_first_process(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is the one that talks.

    The processes may be started by torchrun, by srun or by training itself.
    """
    # torchrun and training set RANK, the number over all machines; it is the one that counts.
    rank = environ.get("RANK")
    if rank is None:
        rank = _number_by_launcher(environ, slurm="SLURM_PROCID")
    return int(rank) == 0


def is_first_on_machine(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether of the processes on this machine this is the one that reports a common error."""
    return int(_number_by_launcher(environ, slurm="SLURM_LOCALID")) == 0


def _number_by_launcher(environ: Mapping[str, str], *, slurm: str) -> str:
    """The number of this process from srun's own variable, or else the one on this machine.

    A process that nothing started is the first.
    """
    if is_task_of_srun(environ):
        return environ.get(slurm, "0")
    return environ.get("LOCAL_RANK", "0")


def is_task_of_srun(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this is one of several tasks that srun started.

    The script of a job has a step's variables but for its number, and starts one process. A task in
    which torchrun starts the processes has their rank.
    """
    return (
        "SLURM_STEP_ID" in environ
        and int(environ.get("SLURM_NTASKS", "1")) > 1
        and "LOCAL_RANK" not in environ
    )


def end_with_parent() -> None:
    """From now on this process ends when the one that started it has ended, even by SIGKILL.

    Without this a process of a pool would wait for tasks forever.
    """
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        # Waits for the end of a pipe, which the system closes however the parent ends.
        parent.join()
        # Not sys.exit, which would end this thread alone.
        os._exit(1)


def is_alive(pid: int) -> bool:
    """Whether a process of this machine has not ended, of whatever user it is."""
    # Signal 0 is not sent; only whether it could be is checked.
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process of another user.
    except PermissionError:
        pass
    return True
