"""What the verbs that measure models share: progress bars, and Ctrl-C."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from interlingua.cli.minute_lines import minute_lines
from interlingua.files import PathLike
from interlingua.runtime import Progress, Streamed, duration, time_left

if TYPE_CHECKING:
    from interlingua.runtime import Steps


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
    if not sys.stderr.isatty():
        with minute_lines(quiet, last=last) as tell:

            def report_line(label: str, done: float, total: float) -> None:
                # Made into text only when a minute is over: work is reported far more often.
                def state(seconds: float) -> str:
                    left = time_left(done, total, seconds)
                    return f"{label}: {done:,.0f}/{total:,.0f}{left}"

                tell(state)

            yield report_line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
    )
    an_hour = 3600.0  # a language may take minutes: the speed is that of all so far
    console = Console(stderr=True)
    shown = Progress(
        *columns, console=console, disable=quiet, speed_estimate_period=an_hour, transient=True
    )
    task = shown.add_task("", total=None, left="")

    def report(label: str, done: float, total: float) -> None:
        # Only a bar that has begun stays on the screen at the end.
        shown.live.transient = False
        shown.update(task, description=label, completed=done, total=total or None)
        # In a second step, as the time that remains follows from the first.
        shown.update(task, left=_left(shown.tasks[0].time_remaining))

    with shown:
        yield report


@contextlib.contextmanager
def steps_bar(quiet: bool) -> Iterator[Steps]:
    """A progress bar on standard error for a run of several steps, with the time left for all.

    Without a terminal it is a line a minute.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from interlingua.runtime import Steps

    if not sys.stderr.isatty():
        with minute_lines(quiet, last=True) as tell:

            def report_line(what: str, done: int, total: int, left: float | None) -> None:
                tell(lambda _: _step_line(what, done, total, left))

            yield Steps(report_line)
        return
    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet) as shown:
        task = shown.add_task("", total=None, left="")

        def show(what: str, done: int, total: int, left: float | None) -> None:
            remaining = ""
            if left is not None:
                remaining = f"{_left(left)} for all"
            shown.update(
                task, description=what, completed=done, total=total or None, left=remaining
            )

        yield Steps(show)


@contextlib.contextmanager
def rate_bar(quiet: bool, unit: str) -> Iterator[Streamed]:
    """A progress bar on standard error for what streams by.

    It shows how much, how fast, and the time left if that is known. Without a terminal it is a line
    a minute, and none for less.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    if not sys.stderr.isatty():
        with minute_lines(quiet, last=False) as tell:

            def report_line(done: float, total: int | None) -> None:
                def state(seconds: float) -> str:
                    note = _rate_note(done, total, unit, seconds)
                    return f"{note}{time_left(done, total, seconds)}"

                tell(state)

            yield report_line
        return
    # No fraction of all, which is unknown where a stream is read.
    columns = (BarColumn(), TextColumn("{task.fields[note]}"), TextColumn("{task.fields[left]}"))
    with Progress(
        *columns, console=Console(stderr=True), disable=quiet, speed_estimate_period=3600.0
    ) as shown:
        task = shown.add_task("", total=None, note="", left="")

        def report(done: float, total: int | None) -> None:
            seconds = shown.tasks[0].elapsed or 0.0
            shown.update(
                task, completed=done, total=total, note=_rate_note(done, total, unit, seconds)
            )
            shown.update(task, left=_left(shown.tasks[0].time_remaining))

        yield report


def _left(seconds: float | None) -> str:
    """For a bar, where the time left is known."""
    if seconds is None:
        return ""
    return f"{duration(seconds)} left"


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
