"""Workers that run tasks one by one in this process, in processes, or on a Ray cluster.

Texts and vectors are sent with the tasks, so machines need no common disk, and the machine that
started the work writes the results. If the process or machine of a task dies, another one repeats
the task.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from interlingua.errors import ConfigError, InterlinguaError, import_extra
from interlingua.runtime.portions import taken_ahead
from interlingua.runtime.processes import LibraryContext, end_with_parent

_LOCAL = "local"
_AHEAD = 4
"""Submitted tasks per process: enough to keep all busy while the oldest task, whose result comes
first, still runs; few enough to limit memory."""
RETRIES = 3
"""Number of times that a task is repeated because its process died."""
_Result = TypeVar("_Result")


class Workers:
    """Executor of tasks, one after the other in this process; subclasses use other processes.

    Attributes:
        slots: number of tasks that run at once.
    """

    slots = 1

    def run(
        self,
        function: Callable[..., _Result],
        tasks: Iterable[tuple[Any, ...]],
        *,
        encodes: bool = False,
    ) -> Iterator[_Result]:
        """Yield the results of a function for the arguments of each task, in their order.

        A few tasks are submitted ahead.

        Args:
            function: a function of a module that all machines have.
            tasks: the arguments of the function for each task.
            encodes: whether the function runs a model, for which a GPU is used.
        """
        return itertools.starmap(function, tasks)

    def warm_up(self, function: Callable[..., object], *arguments: Any) -> None:
        """Start the processes and call a function in them, without waiting.

        It fills caches before the first task. Results and errors are discarded, and a process may
        get no call. Only processes of this machine are warmed up; other workers do nothing.
        """

    def share(self, value: Any) -> Any:
        """Share a value that several tasks use; it is sent to each machine once.

        The result has to be an argument of a task itself, not a part of an argument.
        """
        return value


class OnProcesses(Workers):
    """Processes of this machine, for functions that compute with one thread.

    Args:
        pool: the processes.
        count: number of them.
        remedy: advice to the user if a process is killed.
    """

    def __init__(self, pool: ProcessPoolExecutor, count: int, remedy: str) -> None:
        self.slots = count
        self._pool = pool
        self._remedy = remedy

    def run(
        self,
        function: Callable[..., _Result],
        tasks: Iterable[tuple[Any, ...]],
        *,
        encodes: bool = False,
    ) -> Iterator[_Result]:
        """Run the tasks in the processes, and yield their results in order.

        Raises:
            InterlinguaError: the function raises one, or a process was killed.
        """
        try:
            sent = (self._pool.submit(_run_task, function, task) for task in tasks)
            for future in taken_ahead(sent, _AHEAD * self.slots):
                yield future.result()
        except BrokenProcessPool as error:
            raise InterlinguaError(
                f"one of {self.slots} processes was killed, possibly for lack of memory;"
                f" {self._remedy}"
            ) from error

    def warm_up(self, function: Callable[..., object], *arguments: Any) -> None:
        """Send one call per process; a process that starts late may find none left."""
        for _ in range(self.slots):
            self._pool.submit(_run_quietly, function, arguments)


class OnRay(Workers):
    """The processes of a Ray cluster that this one is connected to.

    Args:
        cores: number of processor cores of a task, and of its threads.
    """

    def __init__(self, cores: int = 1) -> None:
        self.ray = _ray()
        self.cores = cores
        there = self.ray.cluster_resources()
        self.gpus = int(there.get("GPU", 0))
        self.slots = int(there.get("CPU", 0)) // cores
        if self.slots < 1:
            raise ConfigError(
                f"the cluster has {there.get('CPU', 0):g} CPU cores, but a task requires"
                f" {cores}; lower --ray-cores"
            )

    def run(
        self,
        function: Callable[..., _Result],
        tasks: Iterable[tuple[Any, ...]],
        *,
        encodes: bool = False,
    ) -> Iterator[_Result]:
        """Run the tasks on the machines of a Ray cluster, and yield their results in order.

        After an error the few tasks taken ahead are not cancelled. They run until they or the
        connection end, because Ray aborts a process that cancels a task just when it finishes.

        Raises:
            InterlinguaError: the function raises one, or a task's processes died too often.
        """
        needs = {"num_cpus": self.cores}
        at_once = self.slots
        if encodes and self.gpus:
            needs = {"num_gpus": 1}
            at_once = self.gpus
        remote = self.ray.remote(**needs, max_retries=RETRIES)(_with_threads)
        # Submit twice as many tasks as slots, so that a worker has its next task before the caller
        # has taken the last result. Do not submit all, because each task contains its texts.
        sent = (remote.remote(function, self.cores, *task) for task in tasks)
        yield from map(self._result, taken_ahead(sent, 2 * at_once))

    def share(self, value: Any) -> Any:
        """Store a value in Ray's object store; tasks receive its reference."""
        return self.ray.put(value)

    def _result(self, reference: Any) -> Any:
        errors = self.ray.exceptions
        try:
            return self.ray.get(reference)
        # The function itself failed.
        except errors.RayTaskError as error:
            if isinstance(error.cause, InterlinguaError):
                raise InterlinguaError(str(error.cause)) from None
            raise
        # The process or the machine of the task died.
        except errors.RayError as error:
            reason = str(error).strip().splitlines()[0]
            raise InterlinguaError(
                f"Ray stopped a task after {RETRIES} retries ({type(error).__name__}: {reason});"
                " if memory was short, raise --ray-cores or lower --memory; run the same command"
                " again to resume"
            ) from error


def _with_threads(function: Callable[..., _Result], cores: int, *task: Any) -> _Result:
    """Run a task on a worker's machine with ``cores`` threads."""
    import torch

    # Otherwise torch would use one thread per core of the machine.
    torch.set_num_threads(cores)
    return _run_task(function, task)


def _run_task(function: Callable[..., _Result], task: tuple[Any, ...]) -> _Result:
    try:
        return function(*task)
    # The caller can't unpickle an error whose class takes more arguments than a text, but it can
    # always unpickle the text.
    except InterlinguaError as error:
        raise InterlinguaError(str(error)) from None


def _run_quietly(function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    # An error that cannot be unpickled would end all processes.
    with contextlib.suppress(Exception):
        function(*arguments)


@contextlib.contextmanager
def in_processes(count: int, remedy: str) -> Iterator[Workers]:
    """Yield workers of this machine for the block: several processes, or only this one.

    The processes start with the first tasks or with ``warm_up``, and end with the block. After an
    error in the block, tasks that have not started are cancelled.

    Args:
        count: number of processes; 1 = only this one.
        remedy: advice to the user if one of them is killed.
    """
    if count == 1:
        yield Workers()
        return
    # Not fork: the progress bar's thread may hold a lock at that moment.
    with ProcessPoolExecutor(count, mp_context=LibraryContext(), initializer=_start) as pool:
        try:
            yield OnProcesses(pool, count, remedy)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _start() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    end_with_parent()
    # The library ``tokenizers`` would start a thread per core.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


@contextlib.contextmanager
def connected(address: str | None, *, cores: int = 1) -> Iterator[OnRay | None]:
    """Yield the workers that process the tasks inside the block.

    Args:
        address: None for no workers, ``local`` for processes of this machine, ``auto`` for the
            cluster that this machine is part of, ``host:6379`` or ``ray://host:10001`` for another
            cluster.
        cores: number of processor cores of each task.

    Raises:
        ConfigError: there is no such cluster.
        MissingExtraError: Ray is not installed.
    """
    if address is None:
        yield None
        return
    ray = _ray()
    # If the caller's program is already connected, use this connection and leave it open.
    is_ours = not ray.is_initialized()
    if is_ours:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        # A cluster that is already running accepts no start options.
        if address == _LOCAL:
            options["include_dashboard"] = False
        try:
            # Ray's error repeats the warnings that it gives before.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ray.init(address=address, **options)
        except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            raise ConfigError(
                f"no Ray cluster found at {address!r} ({_reason(error)}); start one with `ray"
                " start --head`, or use local; if the cluster requires a token, set"
                " RAY_AUTH_MODE=token and RAY_AUTH_TOKEN to the output of `ray get-auth-token`"
                " on the cluster"
            ) from error
    try:
        yield OnRay(cores)
    finally:
        if is_ours:
            ray.shutdown()


def _reason(error: Exception) -> str:
    """Return the message of an error, in one line."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    line = lines[0]
    # A server's traceback comes as text; its last line names the error.
    if "Traceback" in line:
        line = lines[-1]
    return line.strip()[:150]


def _ray() -> Any:
    # Ray would send usage statistics to its makers; it reads this variable when it is imported.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    return import_extra("ray", extra="ray")
