"""Processes that srun starts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from tests.training.machine.test_launch import STEP, WORKER


def test_two_tasks_of_srun_are_one_run():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    tasks = []
    for rank in ("0", "1"):
        environ = {
            **os.environ,
            **STEP,
            "SLURM_NTASKS": "2",
            "SLURM_NNODES": "1",
            "SLURM_PROCID": rank,
            "SLURM_LOCALID": rank,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-W", "ignore", "-c", WORKER]
        tasks.append(
            subprocess.Popen(
                command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
    outputs = [task.communicate(timeout=120) for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], outputs
    assert [output.split() for output, _ in outputs] == [["0", "2", "0.5"], ["1", "2", "0.5"]]
