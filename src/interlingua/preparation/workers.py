"""The processes of preparation: they clean, hash and tokenize blocks of pairs.

One process reads and writes, the others compute. The results come back in the order of the blocks,
so that no output depends on the number of processes.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Self, TypeVar

from interlingua.errors import DataError
from interlingua.runtime.portions import taken_ahead
from interlingua.runtime.processes import LibraryContext, end_with_parent

T = TypeVar("T")
R = TypeVar("R")
_AHEAD = 3
"""Blocks in progress per process: enough to keep it busy, few enough to limit memory."""


class Workers:
    """Apply functions to blocks, in this process or in several.

    Used in a ``with`` block. The processes start with the first block and stay until the end, so
    that all stages share them.

    Args:
        processes: number of processes that compute; 1 = this one.
    """

    def __init__(self, processes: int = 1) -> None:
        self.processes = processes
        self._exit = contextlib.ExitStack()
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()

    def map(self, work: Callable[[T], R], blocks: Iterable[T]) -> Iterator[R]:
        """Yield the result for each block, in order.

        Args:
            work: a function of a module, or an object that can be pickled at little cost. It is
                sent with each block.
            blocks: read only a few blocks ahead.

        Raises:
            DataError: a process was killed.
        """
        if self.processes == 1:
            yield from map(work, blocks)
            return
        pool = self._started()
        try:
            submitted = (pool.submit(work, block) for block in blocks)
            for future in taken_ahead(submitted, _AHEAD * self.processes):
                yield future.result()
        except BrokenProcessPool as error:
            raise DataError(
                "a process of prepare was killed (is the memory full?); try again with --set"
                " processes=1"
            ) from error

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # Not fork: the progress bar's thread may hold a lock at that moment.
            pool = ProcessPoolExecutor(
                self.processes, mp_context=LibraryContext(), initializer=_start
            )
            self._pool = self._exit.enter_context(pool)
        return self._pool


def _start() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    end_with_parent()
    # One thread per process; the library of this name would start one per core.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
