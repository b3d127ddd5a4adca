from __future__ import annotations

import os
import subprocess
import sys

import pytest

from interlingua.runtime.processes import is_alive, is_first_on_machine, is_first_process

TASK = {"SLURM_STEP_ID": "0", "SLURM_NTASKS": "4"}


@pytest.mark.parametrize(
    ("environ", "first", "first_there"),
    [
        ({}, True, True),
        ({"LOCAL_RANK": "1"}, False, False),
        ({"LOCAL_RANK": "0", "RANK": "2"}, False, True),  # torchrun's second machine
        (TASK | {"SLURM_PROCID": "0", "SLURM_LOCALID": "0"}, True, True),
        (TASK | {"SLURM_PROCID": "2", "SLURM_LOCALID": "0"}, False, True),
        (TASK | {"SLURM_PROCID": "3", "SLURM_LOCALID": "1"}, False, False),
        # Of this command, in a job.
        ({"SLURM_NTASKS": "4", "SLURM_PROCID": "0", "LOCAL_RANK": "1"}, False, False),
    ],
)
def test_one_process_of_all_and_one_of_a_machine_speak(environ, first, first_there):
    assert is_first_process(environ) == first
    assert is_first_on_machine(environ) == first_there


def test_a_process_is_alive_until_it_has_ended():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert is_alive(os.getpid())
    assert not is_alive(ended.pid)


def test_a_process_of_another_user_is_alive(monkeypatch):
    def refuse(pid, signal):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert is_alive(1)


def test_usable_cores_are_those_that_this_process_is_bound_to():
    code = (
        "import os; from interlingua.runtime.processes import usable_cores\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(usable_cores())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "1\n"
