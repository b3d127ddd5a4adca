"""``evaluate --devices 8``: several processes embed, and this one scores.

Each process embeds a part of the passages into the cache that all share, as ``evaluate --shard``
does on machines of a cluster. Then this process finds all vectors in the cache.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

from interlingua.errors import ConfigError, InterlinguaError, TaskError
from interlingua.runtime.processes import LibraryContext, end_with_parent
from interlingua.runtime.progress import SILENT, Progress

EvaluateFunction = Callable[[Any, Progress], object]
"""Function at module level that evaluates with given options. The processes import it."""
_SECONDS = 0.5
"""Seconds between two checks of the messages from the processes."""


def check_devices(options: Any) -> None:
    """Refuse input that several processes can't embed, before a model is loaded.

    Args:
        options: of ``evaluate``.

    Raises:
        ConfigError: the model is already loaded, a part or a budget is also set, or there are fewer
            GPUs than processes.
    """
    import torch

    if not isinstance(options.model, str | os.PathLike):
        raise ConfigError(
            "devices starts processes that each load the model; pass a model directory or"
            " hf:owner/name"
        )
    for name in ("shard", "budget"):
        if getattr(options, name) is not None:
            raise ConfigError(f"devices and {name} cannot be combined; remove one")
    if options.device not in (None, "cuda", "cpu"):
        raise ConfigError(
            f"devices uses one GPU for each process, or the CPU; remove device {options.device!r}"
        )
    if options.device == "cpu":
        return
    gpus = torch.cuda.device_count()
    if gpus and (options.devices or 0) > gpus:
        raise ConfigError(
            f"devices is {options.devices}, but this machine has {gpus} GPUs; pass {gpus}, or"
            " --device cpu"
        )


def embed_parts(options: Any, run: EvaluateFunction, progress: Progress) -> None:
    """Embed the passages of all tasks, a part in each of ``options.devices`` processes.

    An interrupted part resumes in the next run.

    Args:
        options: accepted by ``check_devices``; all tasks allow parts, and a cache is set.
        run: embeds a part.
        progress: receives the progress of the work.

    Raises:
        TaskError: a process ended early, or met an error.
    """
    import torch

    assert options.devices is not None
    on_gpus = options.device != "cpu" and torch.cuda.device_count() > 0
    threads = None
    if not on_gpus:  # the processes share this one's cores
        threads = max(1, torch.get_num_threads() // options.devices)
    # CUDA fails in forked processes. Only a process that imports the caller's script finds a task
    # that this script defines.
    context: Any = LibraryContext()
    if _is_of_script(options.suite):
        context = multiprocessing.get_context("spawn")
    messages: Any = context.Queue()
    processes = []
    for number in range(options.devices):
        # Pooling, prompt and scale are checked once, by the process that scores.
        shard = f"{number + 1}/{options.devices}"
        part = replace(options, devices=None, shard=shard, check=False)
        if on_gpus:
            part = replace(part, device=f"cuda:{number}")
        processes.append(context.Process(target=_embed, args=(run, part, threads, messages)))
    # All processes end if one of them fails or this process is interrupted (Ctrl-C reaches all,
    # but only this one handles it). Each also ends itself if this process is killed.
    try:
        for process in processes:
            process.start()
        _wait(processes, messages, progress)
    finally:
        started = [process for process in processes if process.pid is not None]
        for process in started:
            process.terminate()  # has no effect on a process that has ended
        for process in started:
            process.join()


def _is_of_script(suite: Any) -> bool:
    """Return whether a task is of a class that the caller's script defines."""
    if isinstance(suite, str):
        return False
    return any(type(task).__module__ == "__main__" for task in suite)


def _wait(processes: Sequence[BaseProcess], messages: Any, progress: Progress) -> None:
    running = list(processes)
    while running:
        wait([process.sentinel for process in running], timeout=_SECONDS)
        # Messages are read before exit codes, because a process sends its error as a message.
        _read(messages, progress)
        for process in running:
            if process.exitcode:
                raise TaskError(
                    f"a process that embeds a part ended with exit code {process.exitcode}; check"
                    " that enough memory is free, and, if a script defines a task, that it calls"
                    " this function below if __name__ == '__main__'; then run the same command"
                    " again to resume"
                )
        running = [process for process in running if process.exitcode is None]
    _read(messages, progress)


def _read(messages: Any, progress: Progress) -> None:
    """Forward the messages of the processes: the progress of the first one, or an error."""
    with contextlib.suppress(queue.Empty):
        while True:
            problem, *call = messages.get(timeout=0.01)
            if problem is not None:
                raise TaskError(problem)
            name, values, named = call
            getattr(progress, name)(*values, **named)


class _Sent(Progress):
    """Progress that is shown by the process at the other end of a queue."""

    def __init__(self, messages: Any) -> None:
        self._messages = messages

    def start(
        self, total: float | None = None, unit: str = "", label: str = "", *, done: float = 0
    ) -> None:
        """Send the start of the progress to the main process."""
        self._messages.put((None, "start", (total, unit, label), {"done": done}))

    def advance(self, count: float = 1) -> None:
        """Send an advance of the progress to the main process."""
        self._messages.put((None, "advance", (count,), {}))

    def note(self, text: str) -> None:
        """Send a note to the main process."""
        self._messages.put((None, "note", (text,), {}))


def _embed(run: EvaluateFunction, options: Any, threads: int | None, messages: Any) -> None:
    """Embed one part in this child process, which ends when its parent process ends."""
    import torch

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    end_with_parent()
    # Else each process would take all cores.
    if threads is not None:
        torch.set_num_threads(threads)
    progress = SILENT
    if options.shard.startswith("1/"):
        progress = _Sent(messages)
    try:
        run(options, progress)
    except InterlinguaError as error:  # as text, because some error objects can't be sent
        messages.put((str(error),))
