"""Prefetching of batches by a thread, in order, so that training never waits for the disk."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

BatchT = TypeVar("BatchT")


class Prefetcher(Generic[BatchT]):
    """Iterator over the batches of consecutive steps, a few of them made in advance.

    The thread ends with the ``with`` block, even if an exception or Ctrl-C ends the block. If
    making a batch fails, the error is raised where that batch would have been yielded.

    Args:
        batch_at: makes the batch of a step; called in one thread, in order.
        start_step: the first step.
        stop_step: the first step not to make; default: never stop.
        depth: batches held ready.
    """

    def __init__(
        self,
        batch_at: Callable[[int], BatchT],
        start_step: int = 0,
        *,
        stop_step: int | None = None,
        depth: int = 4,
    ) -> None:
        self._batch_at = batch_at
        self._start = start_step
        self._stop = stop_step
        self._ready: queue.Queue[BatchT | _End] = queue.Queue(maxsize=depth)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="prefetch", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[BatchT]:
        while not self._closed.is_set():
            item = self._ready.get()
            if isinstance(item, _End):
                self.close()
                if item.error is not None:
                    raise item.error
                return
            yield item

    def __enter__(self) -> Prefetcher[BatchT]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the thread and wait for it; a second call has no effect."""
        self._closed.set()
        while self._thread.is_alive():
            # The thread may be waiting for room in the queue: make room, so that it sees the flag.
            while not self._ready.empty():
                self._ready.get_nowait()
            self._thread.join(timeout=0.05)

    def _work(self) -> None:
        step = self._start
        end = _End(None)
        try:
            while not self._closed.is_set() and (self._stop is None or step < self._stop):
                self._ready.put(self._batch_at(step))
                step += 1
        except BaseException as error:
            end = _End(error)  # raised in the other thread, which waits for the batch
        if not self._closed.is_set():
            self._ready.put(end)


class _End:
    """The end of the batches, with the error that ended them if there was one."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error
