"""``Progress``: the interface that long functions use to report their progress.

A function calls ``start`` for each piece of its work, ``advance`` as it proceeds, and ``note`` to
name what it works on. ``make_progress`` returns a progress that draws bars if standard error is a
terminal, and writes a line a minute otherwise. ``SILENT`` shows nothing: it is the default of all
functions, so that Python is silent by default. Public functions also take True for
``make_progress()``, see ``progress_of``.

Rich draws the bars. It is imported when the first bar is drawn, since the library also works
without it, and a silent run should not wait for its import.
"""

from __future__ import annotations

import bisect
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from interlingua.runtime import duration

if TYPE_CHECKING:
    import rich.console
    import rich.progress

EVERY_SECONDS = 60.0
"""Seconds between two lines if standard error is not a terminal."""
LABEL_WIDTH = 28
"""Width of labels, so that bars below one another start in the same column."""
BAR_WIDTH = 30


class Progress:
    """Progress that shows nothing; its subclasses show something and have the same methods."""

    def expect(self, steps: Callable[[], Mapping[str, Expected]]) -> None:
        """Announce all pieces of work, to estimate the time left for all.

        Args:
            steps: returns the pieces of work by their labels. The call may take long, so only a
                progress that is shown makes it.
        """

    def start(
        self, total: float | None = None, unit: str = "", label: str = "", *, done: float = 0
    ) -> None:
        """Start a piece of work, or correct the total of the current one.

        Args:
            total: how much there is; None = not known.
            unit: unit of the count, such as ``sentences``.
            label: name of the work; with the label of the current work the call only corrects the
                total.
            done: how much is done already.
        """

    def advance(self, count: float = 1) -> None:
        """Add ``count`` to the amount of work that is done."""

    def note(self, text: str) -> None:
        """Set a note on the current work: a file, a language, a loss."""

    def within(self, size: float) -> Progress:
        """Return the progress for a part of the current work.

        Args:
            size: the whole part counts as this amount of the current work.
        """
        return _Within(self, size)

    def stop(self) -> None:
        """Show nothing more."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


SILENT = Progress()


class _Within(Progress):
    """Progress of a part in any unit; the whole part is ``size`` of the outer work."""

    def __init__(self, outer: Progress, size: float) -> None:
        self._outer = outer
        self._size = size
        self._total = 0.0
        self._done = 0.0
        self._given = 0.0

    def start(
        self, total: float | None = None, unit: str = "", label: str = "", *, done: float = 0
    ) -> None:
        self._total = total or 0.0
        self._done = done
        if label:
            self._outer.note(label)
        self._give()

    def advance(self, count: float = 1) -> None:
        self._done += count
        self._give()

    def note(self, text: str) -> None:
        self._outer.note(text)

    def stop(self) -> None:
        """Count the rest of the part as done."""
        self._done = self._total = 1.0
        self._give()

    def _give(self) -> None:
        # If the total grew, nothing is taken back from the outer work: it waits until the part has
        # reached the share that was already counted.
        if not self._total:
            return
        worth = self._size * min(1.0, self._done / self._total)
        if worth > self._given:
            self._outer.advance(worth - self._given)
            self._given = worth


class _Shown(Progress):
    """State that bars and lines share, and its description in words."""

    def __init__(self) -> None:
        self._label = ""
        self._unit = ""
        self._note = ""
        self._total: float | None = None
        self._done = 0.0
        self._begun = 0.0
        self._first = 0.0
        self._left: float | None = None
        self._meter = TimeLeft()
        self._steps = StepsLeft()

    def expect(self, steps: Callable[[], Mapping[str, Expected]]) -> None:
        self._steps.expect(steps())

    def start(
        self, total: float | None = None, unit: str = "", label: str = "", *, done: float = 0
    ) -> None:
        is_new = label != self._label or not self._begun
        if is_new:
            self._begin()
            self._begun = time.perf_counter()
            self._first = done
            self._meter = TimeLeft()
            self._label = label
            self._note = ""
        self._unit = unit
        self._total = total
        self._set(done)

    def advance(self, count: float = 1) -> None:
        self._set(self._done + count)

    def note(self, text: str) -> None:
        self._note = text
        self._show()

    def amount(self) -> str:
        """Return how much is done, of how much, and how fast: ``250 of 1,000 pairs, 83/s``."""
        text = f"{self._done:,.0f}"
        if self._total:
            text = f"{text} of {self._total:,.0f}"
        text = f"{text} {self._unit}"
        # Leave out the work of an earlier run, which says nothing about the speed of this one.
        more = self._done - self._first
        if more > 0:
            seconds = max(time.perf_counter() - self._begun, 1e-9)
            text = f"{text}, {more / seconds:,.0f}/s"
        return text

    def time_left(self) -> str:
        """Return ``3.4 min left``, ``1.2 h left for all`` of several steps, or nothing."""
        if self._left is None:
            return ""
        text = f"{duration(self._left)} left"
        if self._steps.to_come:
            text = f"{text} for all"
        return text

    def _set(self, done: float) -> None:
        self._done = done
        # Both meters get every state, because future steps may be announced at any later time.
        of_all = self._steps(self._label, done, self._total or 0)
        self._left = self._meter(done, self._total)
        if self._steps.to_come:
            self._left = of_all
        self._show()

    def _begin(self) -> None:
        """Prepare to show another piece of work."""

    def _show(self) -> None:
        """Show the state."""


class TerminalProgress(_Shown):
    """A bar for each piece of work, below one another.

    Args:
        console: where to draw; standard error by default.
        transient: remove the bars at the end.
    """

    def __init__(
        self, *, console: rich.console.Console | None = None, transient: bool = False
    ) -> None:
        super().__init__()
        self._console = console
        self._transient = transient
        self._bars: rich.progress.Progress | None = None
        self._bar: rich.progress.TaskID | None = None

    def stop(self) -> None:
        """Draw the bars for the last time."""
        if self._bars is not None:
            self._fill()
            self._bars.stop()
            self._bars = None

    def _begin(self) -> None:
        # Not earlier: importing rich takes long, and the work may end at once.
        if self._bars is None:
            self._bars = _rich_bars(self._console, self._transient)
            self._bars.start()
        self._fill()
        # Rich formats its columns with these texts, so they must be there from the start.
        self._bar = self._bars.add_task("", total=None, amount="", left="", note="")

    def _fill(self) -> None:
        """Fill the bar of the previous work, which may end with fewer items than announced."""
        if self._bars is not None and self._bar is not None and not self._transient:
            self._bars.update(self._bar, completed=self._total or self._done, left="", note="")

    def _show(self) -> None:
        if self._bars is None or self._bar is None:
            return
        texts: Any = {"amount": self.amount(), "left": self.time_left(), "note": self._note}
        self._bars.update(
            self._bar,
            description=f"{self._label:<{LABEL_WIDTH}}",
            completed=self._done,
            total=self._total or None,
            **texts,
        )


def _rich_bars(console: rich.console.Console | None, transient: bool) -> rich.progress.Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    names = ("description", "fields[amount]", "fields[left]", "fields[note]")
    columns = [TextColumn(f"{{task.{name}}}", markup=False) for name in names]
    return Progress(
        columns[0],
        BarColumn(BAR_WIDTH),
        *columns[1:],
        console=console or Console(stderr=True),
        transient=transient,
    )


class LineProgress(_Shown):
    """Progress as one line a minute on standard error, also during a long step."""

    def __init__(self) -> None:
        super().__init__()
        self._opened = time.monotonic()
        self._over = threading.Event()
        self._writer: threading.Thread | None = None

    def line(self) -> str:
        """Return the state in words."""
        amount = ", ".join(filter(None, (self.amount(), self.time_left())))
        words = ": ".join(filter(None, (self._label, amount)))
        return "; ".join(filter(None, (words, self._note)))

    def stop(self) -> None:
        """Write no more lines."""
        self._over.set()
        # Wait for the thread: no line may follow the results, which may be on the same terminal.
        if self._writer is not None:
            self._writer.join()
            self._writer = None

    def _begin(self) -> None:
        # A thread, because a long step may report nothing for minutes. It is a daemon, so that it
        # does not keep a process alive that ends by an error.
        if self._writer is None and not self._over.is_set():
            self._writer = threading.Thread(target=self._write_until_over, daemon=True)
            self._writer.start()

    def _write_until_over(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            seconds = time.monotonic() - self._opened
            print(f"after {duration(seconds)}: {self.line()}", file=sys.stderr, flush=True)


def make_progress(quiet: bool = False) -> Progress:
    """Return a progress on standard error: bars on a terminal, otherwise a line a minute.

    Args:
        quiet: show nothing.
    """
    if quiet:
        return SILENT
    if sys.stderr.isatty():
        return TerminalProgress()
    return LineProgress()


@contextlib.contextmanager
def progress_of(
    progress: bool | Progress, total: float | None = None, unit: str = "", label: str = ""
) -> Iterator[Progress]:
    """Yield the caller's progress, or a new one, which is shown if ``progress`` is True.

    Args:
        progress: True, False, or a progress, which the caller starts and stops.
        total: total of the new progress; see ``Progress.start``.
        unit: unit of the new progress.
        label: label of the new progress; "" = the block itself calls ``start``.
    """
    # The caller's progress counts the caller's work, of which this may be only a part.
    if isinstance(progress, Progress):
        yield progress
        return
    with make_progress(quiet=not progress) as own:
        if label:
            own.start(total, unit, label)
        yield own


class Expected(NamedTuple):
    """A step to come.

    Attributes:
        size: in any unit.
        each: seconds that a unit takes; None = as measured in earlier steps whose names have the
            same first word.
    """

    size: float
    each: float | None = 1.0


class TimeLeft:
    """Estimator of the seconds left of some work; it returns None while a result would be a guess.

    The first piece of work also loads a model, compiles or fills caches, so it is not counted. An
    estimate needs a minimum of seconds, of reports and of the work's share after this first piece.
    The speed must be about the same in the earlier and in the later half of these reports; if it is
    not, the earlier half is discarded. So an estimate is right within a factor of two, unless the
    work itself changes later.

    Args:
        clock: returns the time in seconds.

    Attributes:
        seconds_each: seconds that a unit of the work takes; None while they are not known.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.seconds_each: float | None = None
        self._reports: list[tuple[float, float]] = []

    def __call__(self, done: float, total: float | None) -> float | None:
        """Record how much is done, and return the seconds left if they are known.

        Args:
            done: amount of the work that is done.
            total: amount of all the work; None or 0 = not known.
        """
        now = self.clock()
        reports = self._reports
        # If less is done than before, this is another piece of work.
        if reports and done < reports[-1][1]:
            reports.clear()
            self.seconds_each = None
        if done > 0 and (not reports or done > reports[-1][1]):
            reports.append((now, done))
            if len(reports) > MOST_REPORTS:
                del reports[1:-1:2]
            self.seconds_each = self._measured(total or 0)
        if self.seconds_each is None or not total or done >= total:
            return None
        # If the next report is late, as during a long piece, the speed does not yet include it.
        left = self.seconds_each * (total - done) - (now - reports[-1][0])
        return left if left > 0 else None

    def _measured(self, total: float) -> float | None:
        """Return the seconds per unit; None if too little was measured, or the speed changes."""
        reports = self._reports
        first = reports[0]
        last = reports[-1]
        if len(reports) < LEAST_REPORTS or last[0] - first[0] < LEAST_SECONDS:
            return None
        if last[1] - first[1] < _LEAST_SHARE * (total - first[1]):
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
"""Minimum seconds of work after the first piece, before the time left is estimated."""
LEAST_REPORTS = 5
_LEAST_SHARE = 0.02
"""Minimum share of all work after the first piece."""
MOST_REPORTS = 1000
STEADY = 1.5
"""Maximum ratio of two speeds that count as about the same."""


def _seconds_each(first: tuple[float, float], last: tuple[float, float]) -> float:
    """Return the seconds per unit of work between two reports."""
    return max(last[0] - first[0], 1e-9) / (last[1] - first[1])


class StepsLeft:
    """Estimate of the remaining time of a run from its finished steps.

    The remaining time of the current step follows from its own speed. The time of a future step is
    its size times the seconds per unit. These are passed, or measured at an earlier step of its
    kind.

    Args:
        clock: returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.to_come: dict[str, Expected] = {}
        self.speeds: dict[str, float] = {}
        self.now = ""
        self.meter = TimeLeft(clock)

    def expect(self, steps: Mapping[str, Expected]) -> None:
        """Set the future steps, by the names that are passed later."""
        self.to_come = dict(steps)

    def __call__(self, what: str, done: float, total: float) -> float | None:
        """Record a step's state; return the seconds left for all steps, or None if not known."""
        if what != self.now:
            self.to_come.pop(self.now, None)
            self.now = what
            self.meter = TimeLeft(self.clock)
        return self._left(done, total)

    def _left(self, done: float, total: float) -> float | None:
        """Return the seconds to the end of the run; None while any of its steps has no estimate."""
        own = self._own(done, total)
        others = [
            self._seconds(what, step) for what, step in self.to_come.items() if what != self.now
        ]
        if not self.to_come or own is None or None in others:
            return None
        return own + sum(seconds for seconds in others if seconds is not None)

    def _own(self, done: float, total: float) -> float | None:
        """Return the seconds to the end of the current step."""
        step = self.to_come.get(self.now)
        left = self.meter(done, total)
        # Seconds per unit of size, for later steps of the same kind.
        each = self.meter.seconds_each
        if step is not None and step.each is None and each is not None:
            self.speeds[_kind(self.now)] = each * total / step.size
        if left is not None:
            return left
        if total and done >= total:
            return 0.0
        return self._own_by_plan(step, done, total)

    def _own_by_plan(self, step: Expected | None, done: float, total: float) -> float | None:
        if step is None:
            return None
        seconds = self._seconds(self.now, step)
        if seconds is None or not total:
            return seconds
        return seconds * (1 - done / total)

    def _seconds(self, what: str, step: Expected) -> float | None:
        """Return the seconds that a whole step takes."""
        each = step.each
        if each is None:
            each = self.speeds.get(_kind(what))
        if each is None:
            return None
        return step.size * each


def _kind(what: str) -> str:
    """Return the first word of a step's name; the other words name the file or language."""
    return what.partition(" ")[0]
