"""What the verbs that measure models share: progress bars, and Ctrl-C."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from interlingua.cli.minute_lines import minute_lines
from interlingua.files import PathLike
from interlingua.progress_bars import Column, ProgressBars
from interlingua.runtime import Progress, Steps, Streamed, TimeLeft, duration

STEP_COLUMNS: tuple[Column, ...] = ("padded label", "bar", "count", "left")


@contextlib.contextmanager
def resumable(keeps: bool, output: Path, cache: PathLike | None = None) -> Iterator[None]:
    """Ctrl-C in one line, where vectors are kept: in the cache, or else below the results.

    Args:
        keeps: whether they are kept.
        output: folder of the results.
        cache: folder of the cache.
    """
    from interlingua.errors import InterlinguaError

    try:
        yield
    except KeyboardInterrupt:
        if not keeps:  # a change of a function would go unnoticed
            raise
        raise InterlinguaError(
            f"stopped; the vectors so far are kept below {cache or output / 'results'}, so the"
            " same command goes on from there"
        ) from None


@contextlib.contextmanager
def bar(quiet: bool, *, last: bool = True) -> Iterator[Progress]:
    """A progress bar on standard error with the time left for the whole run.

    Without a terminal a line a minute.

    Args:
        quiet: show nothing.
        last: without a terminal, write the last state too.
    """
    meter = TimeLeft()
    if not sys.stderr.isatty():
        with minute_lines(quiet, last=last) as tell:

            def report_line(label: str, done: float, total: float) -> None:
                left = _left_later(meter, done, total)
                # Made into text only when a minute is over: work is reported far more often.
                tell(lambda _: f"{label}: {done:,.0f}/{total:,.0f}{left()}")

            yield report_line
        return
    bars = ProgressBars(*STEP_COLUMNS, is_silent=quiet, transient=True)
    shown = bars.add()

    def report(label: str, done: float, total: float) -> None:
        # Only a bar that has begun stays on the screen at the end.
        bars.keep()
        left = _left(meter(done, total))
        shown.update(label=label, done=done, total=total or None, left=left)

    with bars:
        yield report


@contextlib.contextmanager
def steps_bar(quiet: bool) -> Iterator[Steps]:
    """A progress bar on standard error for a run of several steps, with the time left for all.

    Without a terminal it is a line a minute.
    """
    if not sys.stderr.isatty():
        with minute_lines(quiet, last=True) as tell:

            def report_line(what: str, done: int, total: int, left: float | None) -> None:
                tell(lambda _: _step_line(what, done, total, left))

            yield Steps(report_line)
        return
    with ProgressBars(*STEP_COLUMNS, is_silent=quiet) as bars:
        shown = bars.add()

        def show(what: str, done: int, total: int, left: float | None) -> None:
            remaining = ""
            if left is not None:
                remaining = f"{_left(left)} for all"
            shown.update(label=what, done=done, total=total or None, left=remaining)

        yield Steps(show)


@contextlib.contextmanager
def rate_bar(quiet: bool, unit: str) -> Iterator[Streamed]:
    """A progress bar on standard error for what streams by.

    It shows how much, how fast, and the time left if that is known. Without a terminal it is a line
    a minute, and none for less.
    """
    meter = TimeLeft()
    if not sys.stderr.isatty():
        with minute_lines(quiet, last=False) as tell:

            def report_line(done: float, total: int | None) -> None:
                left = _left_later(meter, done, total)
                tell(lambda seconds: f"{_rate_note(done, total, unit, seconds)}{left()}")

            yield report_line
        return
    # No fraction of all, which is unknown where a stream is read.
    columns: tuple[Column, ...] = ("bar", "note", "left")
    with ProgressBars(*columns, is_silent=quiet) as bars:
        shown = bars.add()

        def report(done: float, total: int | None) -> None:
            note = _rate_note(done, total, unit, shown.elapsed_seconds)
            shown.update(done=done, total=total, note=note, left=_left(meter(done, total)))

        yield report


def _left(seconds: float | None) -> str:
    """For a bar, where the time left is known."""
    if seconds is None:
        return ""
    return f"{duration(seconds)} left"


def _left_later(meter: TimeLeft, done: float, total: float | None) -> Callable[[], str]:
    """Return a function that gives the time left when a line is written, some time after this."""
    seconds = meter(done, total)
    reported = meter.clock()

    def text() -> str:
        if seconds is None:
            return ""
        left = seconds - (meter.clock() - reported)
        return f", {_left(left)}" if left > 0 else ""

    return text


def _rate_note(done: float, total: int | None, unit: str, seconds: float) -> str:
    amount = f"{done:,.0f}"
    if total is not None:
        amount = f"{amount} of {total:,}"
    return f"{amount} {unit}, {done / max(seconds, 1e-9):,.0f}/s"


def _step_line(what: str, done: int, total: int, left: float | None) -> str:
    line = f"{what}: {done:,}"
    if total:
        line = f"{line} of {total:,}"
    if left is not None:
        line = f"{line}, {duration(left)} left for all"
    return line
