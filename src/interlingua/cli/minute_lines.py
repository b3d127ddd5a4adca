"""How far the work is, in a line a minute.

It takes the place of a bar where standard error is not a terminal, as a bar can only move on one.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

from interlingua.runtime import duration

EVERY_SECONDS = 60.0
State = Callable[[float], str]
"""Seconds since the start -> what there is to tell."""


@contextlib.contextmanager
def minute_lines(quiet: bool, *, last: bool) -> Iterator[Callable[[State], None]]:
    """Yields a function that takes the latest state.

    A thread prints that once a minute, also during a long step.

    Args:
        quiet: write nothing.
        last: write the last state at the end, however short the work was.
    """
    started = time.monotonic()
    over = threading.Event()
    latest: list[State] = []

    def write() -> None:
        seconds = time.monotonic() - started
        state = "preparing"
        if latest:
            state = latest[-1](seconds)
        print(f"after {duration(seconds)}: {state}", file=sys.stderr, flush=True)

    def write_until_over() -> None:
        while not over.wait(EVERY_SECONDS):
            write()

    def tell(state: State) -> None:
        # One statement, so that the thread finds either the last state or the new one.
        latest[:] = [state]

    if quiet:
        yield tell
        return
    writer = threading.Thread(target=write_until_over, daemon=True)
    writer.start()
    try:
        yield tell
    finally:
        over.set()
        writer.join()
    if last and latest:
        write()
