"""What a run takes: time left, durations and sizes in words, memory."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

Progress = Callable[[str, int, int], None]
"""Is given what is being done, how much of it is done, and all; ``Steps`` also takes what is to
come."""
Counted = Callable[[int, int], None]
"""Is given how much of a step is done, and all."""
Streamed = Callable[[float, int | None], None]
"""Is given how much of a stream is done, and all where that is known."""
Shown = Callable[[str, int, int, float | None], None]
"""Is given the step, how much of it is done, all of it, and the seconds left for the whole run, if
they are known."""


class Expected(NamedTuple):
    """A step to come.

    Attributes:
        size: in any unit.
        each: seconds that a unit takes; None where the steps before it that begin with the same
            word tell.
    """

    size: float
    each: float | None = 1.0


class Steps:
    """Estimates, from the steps of a run that are done, how long the others take.

    What the step at work still takes follows from its own speed. A step to come takes its size
    times the seconds of a unit, which are given, or are measured at an earlier step of its kind.

    Args:
        show: see ``Shown``.
        clock: seconds.
    """

    def __init__(self, show: Shown, clock: Callable[[], float] = time.perf_counter) -> None:
        self.show = show
        self.clock = clock
        self.to_come: dict[str, Expected] = {}
        self.speeds: dict[str, float] = {}
        self.now = ""
        self.began = 0.0
        self.first = 0

    def expect(self, steps: Mapping[str, Expected]) -> None:
        """What is to come, by the names that are passed later."""
        self.to_come = dict(steps)

    def __call__(self, what: str, done: int, total: int) -> None:
        """Takes note of a step's state."""
        if what != self.now:
            self.to_come.pop(self.now, None)
            self.now = what
            self.began = self.clock()
            self.first = done
        self.show(what, done, total, self._left(done, total))

    def _left(self, done: int, total: int) -> float | None:
        """Seconds to the end of the run; None while any of its steps has no estimate."""
        own = self._own(done, total)
        others = [
            self._seconds(what, step) for what, step in self.to_come.items() if what != self.now
        ]
        if not self.to_come or own is None or None in others:
            return None
        return own + sum(seconds for seconds in others if seconds is not None)

    def _own(self, done: int, total: int) -> float | None:
        """Seconds to the end of the step at work."""
        step = self.to_come.get(self.now)
        # A step that goes on from an earlier run begins at self.first; until it has moved there is
        # no speed to go by.
        if done <= self.first or not total:
            return self._own_by_plan(step, done, total)
        elapsed = self.clock() - self.began
        # Seconds per unit of size, for the steps to come of the same kind.
        if step is not None and step.each is None:
            self.speeds[_kind(self.now)] = elapsed / (step.size * (done - self.first) / total)
        return elapsed * (total - done) / (done - self.first)

    def _own_by_plan(self, step: Expected | None, done: int, total: int) -> float | None:
        if step is None:
            return None
        seconds = self._seconds(self.now, step)
        if seconds is None or not total:
            return seconds
        return seconds * (1 - done / total)

    def _seconds(self, what: str, step: Expected) -> float | None:
        """Seconds that the whole of a step takes."""
        each = step.each
        if each is None:
            each = self.speeds.get(_kind(what))
        if each is None:
            return None
        return step.size * each


def _kind(what: str) -> str:
    """The first word of a step's name, as the others say of which file or language it is."""
    return what.partition(" ")[0]


def duration(seconds: float) -> str:
    """A time in words: ``0.3 s``, ``45 s``, ``12.0 min``, ``3.4 h``, ``2.1 days``."""
    # A unit is used from two of it on, so 90 seconds stay seconds.
    for unit_seconds, name in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit_seconds:
            return f"{seconds / unit_seconds:.1f} {name}"
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s"


def time_left(done: float, total: float | None, seconds: float) -> str:
    """``, 3.0 min left`` by the speed so far; nothing where that is not known."""
    if not total or done <= 0 or done >= total:
        return ""
    return f", {duration(seconds * (total - done) / done)} left"


def size_text(count: float) -> str:
    """A number of bytes in words: ``1.5 GiB``."""
    for power, name in ((4, "TiB"), (3, "GiB"), (2, "MiB")):
        if count >= 2 ** (10 * power):
            return f"{count / 2 ** (10 * power):.1f} {name}"
    return f"{count / 1024:.0f} KiB"


def peak_rss_bytes() -> int:
    """The most memory that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # In bytes on macOS, in KiB on Linux.
    if sys.platform == "darwin":
        return peak
    return peak * 1024


def silent(*state: object) -> None:
    """A progress that shows nothing."""
