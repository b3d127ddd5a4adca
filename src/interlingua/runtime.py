"""What a run takes: time left, durations and sizes in words, memory."""

from __future__ import annotations

import bisect
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


class TimeLeft:
    """Estimate the seconds left of some work, and say nothing while that would be a guess.

    The first piece of work also loads a model, compiles or fills caches, so it is not counted. An
    estimate needs some seconds, some reports and some share of the work after it. The earlier and
    the later half of these must show about the same speed; if they do not, the earlier half is
    forgotten. So an estimate is within a factor of two, unless the work itself changes later.

    Args:
        clock: seconds.

    Attributes:
        seconds_each: seconds that a unit of the work takes; None while they are not known.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.seconds_each: float | None = None
        self._reports: list[tuple[float, float]] = []

    def __call__(self, done: float, total: float | None) -> float | None:
        """Take note of how much is done, and return the seconds left if they are known.

        Args:
            done: how much of the work.
            total: all of it; None or 0 = not known.
        """
        now = self.clock()
        reports = self._reports
        # Less than before is another piece of work.
        if reports and done < reports[-1][1]:
            reports.clear()
        if done > 0 and (not reports or done > reports[-1][1]):
            reports.append((now, done))
            if len(reports) > MOST_REPORTS:
                del reports[1:-1:2]
            self.seconds_each = self._measured(total or 0)
        if self.seconds_each is None or not total or done >= total:
            return None
        # A report that is late, as during a long piece, is not yet in the speed.
        left = self.seconds_each * (total - done) - (now - reports[-1][0])
        return left if left > 0 else None

    def _measured(self, total: float) -> float | None:
        """Seconds for a unit; None if too little was measured, or the speed changes."""
        reports = self._reports
        first = reports[0]
        last = reports[-1]
        if len(reports) < LEAST_REPORTS or last[0] - first[0] < LEAST_SECONDS:
            return None
        if last[1] - first[1] < LEAST_SHARE * (total - first[1]):
            return None
        middle = bisect.bisect(reports, ((first[0] + last[0]) / 2, 0.0))
        # Neither the first nor the last report.
        middle = min(max(middle, 1), len(reports) - 2)
        early = _seconds_each(first, reports[middle])
        late = _seconds_each(reports[middle], last)
        if max(early, late) > STEADY * min(early, late):
            del reports[:middle]
            return None
        return _seconds_each(first, last)


LEAST_SECONDS = 10.0
"""Of work after the first piece, before its time is estimated."""
LEAST_REPORTS = 5
LEAST_SHARE = 0.02
"""Of all work after the first piece."""
MOST_REPORTS = 1000
STEADY = 1.5
"""Ratio of two speeds that are about the same."""


def _seconds_each(first: tuple[float, float], last: tuple[float, float]) -> float:
    """Seconds for a unit of work between two reports."""
    return max(last[0] - first[0], 1e-9) / (last[1] - first[1])


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
        self.meter = TimeLeft(clock)

    def expect(self, steps: Mapping[str, Expected]) -> None:
        """What is to come, by the names that are passed later."""
        self.to_come = dict(steps)

    def __call__(self, what: str, done: int, total: int) -> None:
        """Takes note of a step's state."""
        if what != self.now:
            self.to_come.pop(self.now, None)
            self.now = what
            self.meter = TimeLeft(self.clock)
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
        left = self.meter(done, total)
        # Seconds per unit of size, for the steps to come of the same kind.
        each = self.meter.seconds_each
        if step is not None and step.each is None and each is not None:
            self.speeds[_kind(self.now)] = each * total / step.size
        if left is not None:
            return left
        if total and done >= total:
            return 0.0
        return self._own_by_plan(step, done, total)

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
