"""Tasks shared out among processes of this machine, one per GPU or per group of cores.

Threads would share Python's interpreter lock, and a single process would feed several GPUs in turn.
So each process has a device of its own. It takes the device from a queue when it starts, and sets
it in its environment before CUDA is initialized. Results come back in the order of the tasks.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import torch

from interlingua.errors import ConfigError
from interlingua.runtime.processes import LibraryContext, end_with_parent
from interlingua.runtime.workers import OnProcesses

_VISIBLE = "CUDA_VISIBLE_DEVICES"


@contextlib.contextmanager
def on_devices(count: int, device: str | None) -> Iterator[OnProcesses]:
    """Start processes that run until the block ends.

    Args:
        count: number of processes; each has its own GPU, if there are any.
        device: ``cpu``, ``cuda``, or None: GPUs if there are any.

    Raises:
        ConfigError: there are fewer GPUs than processes, or ``device`` names a single device.
    """
    devices = visible_devices(count, device)
    # Processes are not forked: threads of torch hold locks, and CUDA does not survive a fork.
    context = LibraryContext()
    # All processes start with the same arguments: the queue gives each of them its device.
    queue = context.SimpleQueue()
    for visible in devices:
        queue.put(visible)
    threads = max(1, torch.get_num_threads() // count)
    pool = ProcessPoolExecutor(
        count, mp_context=context, initializer=_begin, initargs=(queue, threads)
    )
    try:
        remedy = "lower --devices, because each process holds the model"
        yield OnProcesses(pool, count, remedy)
    finally:
        pool.shutdown(cancel_futures=True)


def visible_devices(count: int, device: str | None) -> list[str | None]:
    """Return the GPU that each process sees; None leaves the environment unchanged.

    Args:
        count: number of processes.
        device: see ``on_devices``.

    Raises:
        ConfigError: there are fewer GPUs than processes, or ``device`` names a single device.
    """
    if device not in (None, "cpu", "cuda"):
        raise ConfigError(
            f"--device {device} is a single device and cannot be combined with --devices"
            f" {count}; remove one"
        )
    gpus = 0
    if device != "cpu" and torch.cuda.is_available():
        gpus = torch.cuda.device_count()
    if device == "cuda" and not gpus:
        raise ConfigError(
            "--device cuda: no GPU found; remove --device, so that --devices divides the CPU cores"
        )
    if not gpus:
        return [None] * count
    if count > gpus:
        raise ConfigError(
            f"--devices {count}: this machine has {gpus} GPUs; lower --devices, or pass --device"
            " cpu"
        )
    # If the environment variable lists only some GPUs, these are used, by their names in it.
    names = [str(number) for number in range(gpus)]
    chosen = os.environ.get(_VISIBLE)
    if chosen:
        names = chosen.split(",")
    return list(names[:count])


def _begin(queue: Any, threads: int) -> None:
    """Initialize a process, before CUDA looks for GPUs."""
    visible = queue.get()
    if visible is not None:
        os.environ[_VISIBLE] = visible
    torch.set_num_threads(threads)
    end_with_parent()
