"""Which of several processes of one command this is, whoever started them."""

from __future__ import annotations

import os
from collections.abc import Mapping


def is_first_process(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this process, of those that torchrun, srun or training itself started, is the one
    that talks.
    """
    rank = (
        environ.get("SLURM_PROCID", "0")
        if is_task_of_srun(environ)
        else environ.get("LOCAL_RANK", "0")
    )
    return int(environ.get("RANK", rank)) == 0


def is_first_on_machine(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether of the processes on this machine this is the one that reports an error, which all of
    them meet.
    """
    rank = (
        environ.get("SLURM_LOCALID", "0")
        if is_task_of_srun(environ)
        else environ.get("LOCAL_RANK", "0")
    )
    return int(rank) == 0


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
