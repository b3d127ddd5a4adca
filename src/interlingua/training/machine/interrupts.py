"""Ctrl-C and SIGTERM ask the loop to save and stop; a second one stops at once.

SIGTERM is what schedulers of clusters send before they end a job.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Self


class Interrupts:
    """Sets ``is_requested``, and nothing else, at the first SIGINT or SIGTERM in the block.

    Outside the main thread no signal is caught.
    """

    def __init__(self) -> None:
        self.is_requested = False
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        # Python lets only the main thread set handlers.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _ask(self, number: int, _: FrameType | None) -> None:
        if self.is_requested:
            raise KeyboardInterrupt
        self.is_requested = True
