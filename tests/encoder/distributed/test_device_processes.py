"""Tasks in two processes of this machine, of which some end badly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from interlingua.encoder.files import device_processes
from interlingua.encoder.files.device_processes import on_devices, visible_devices
from interlingua.errors import ConfigError, DataError, InterlinguaError


def square(number):
    if number == 13:
        raise DataError("thirteen", path="numbers.txt", line=13)
    if number == 15:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 16:
        raise KeyError("a bug")
    return number * number, torch.get_num_threads(), os.getpid()


def square_in_company(number, folder):
    """Wait until two processes have a task, so that the first cannot take all of them."""
    (folder / str(os.getpid())).touch()
    end = time.monotonic() + 60
    while len(list(folder.iterdir())) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    return square(number)


def test_results_come_in_order_and_tasks_are_taken_as_needed(tmp_path):
    taken = []
    with on_devices(2, "cpu") as workers:
        found = workers.run(
            square_in_company, ((taken.append(n) or n + 100, tmp_path) for n in range(12))
        )
        first = next(found)
        assert len(taken) == 4 * workers.slots == 8
        results = [first, *found]
    assert [number for number, _, _ in results] == [(n + 100) ** 2 for n in range(12)]
    assert {threads for _, threads, _ in results} == {max(1, torch.get_num_threads() // 2)}
    processes = {process for _, _, process in results}
    assert len(processes) == 2
    assert os.getpid() not in processes


@pytest.mark.parametrize(
    ("number", "kind", "message"),
    [
        (13, InterlinguaError, r"^numbers\.txt:13: thirteen$"),
        (15, InterlinguaError, "2 processes was killed.*--devices"),
        (16, KeyError, "a bug"),
    ],
)
def test_an_error_of_a_process_is_raised_here(number, kind, message):
    with on_devices(2, "cpu") as workers, pytest.raises(kind, match=message):
        list(workers.run(square, [(1,), (number,), (2,)]))


def test_each_process_sees_a_gpu_of_its_own(monkeypatch):
    monkeypatch.setattr(device_processes.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(device_processes.torch.cuda, "device_count", lambda: 3)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible_devices(2, None) == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6,7")
    assert visible_devices(3, "cuda") == ["4", "6", "7"]
    assert visible_devices(2, "cpu") == [None, None]
    with pytest.raises(ConfigError, match="has 3 GPUs"):
        visible_devices(4, None)


@pytest.mark.parametrize("device", ["cuda:1", "cuda"])
def test_a_device_that_does_not_go_with_several_is_refused(device, monkeypatch):
    monkeypatch.setattr(device_processes.torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=f"--device {device}"), on_devices(2, device):
        pass


PARENT = """
import os, time
from interlingua.encoder.files.device_processes import on_devices
if __name__ == "__main__":
    with on_devices(2, "cpu") as workers:
        print(*workers.run(os.getpid, [()] * 3), flush=True)
        time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_processes_end_when_their_parent_is_killed(tmp_path):
    (tmp_path / "parent.py").write_text(PARENT)
    with subprocess.Popen(
        [sys.executable, tmp_path / "parent.py"], stdout=subprocess.PIPE, text=True
    ) as parent:
        children = {int(number) for number in parent.stdout.readline().split()}
        parent.kill()
    assert children
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.1)
