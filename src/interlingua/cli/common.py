"""What the verbs that measure models share: lists with commas, a progress bar, and Ctrl-C."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlingua.mining.progress import Steps


def split(names: str) -> list[str]:
    """The parts of a list with commas."""
    return [part.strip() for part in names.split(",") if part.strip()]


def listed(names: str | None) -> list[str] | None:
    """The parts of a list with commas, or None where there is no list."""
    return None if names is None else split(names)


@contextlib.contextmanager
def resumable(keeps: bool, output: Path, cache: Path | None = None) -> Iterator[None]:
    """Ctrl-C in one line, where vectors are kept: in the cache, or else below the results."""
    from interlingua.errors import InterlinguaError

    try:
        yield
    except KeyboardInterrupt:
        if not keeps:  # nobody can tell whether a function is still the same
            raise
        raise InterlinguaError(
            f"stopped; the vectors so far are kept below {cache or output / 'results'}, so the same command goes on"
            " from there"
        ) from None


@contextlib.contextmanager
def bar(quiet: bool) -> Iterator[Callable[[str, float, float], None]]:
    """A progress bar on standard error with the time left for the whole run; none is left where nothing was told."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    an_hour = 3600.0  # a language may take minutes: the speed is that of all so far
    console = Console(stderr=True)
    shown = Progress(*columns, console=console, disable=quiet, speed_estimate_period=an_hour, transient=True)
    task = shown.add_task("", total=None)

    def told(label: str, done: float, total: float) -> None:
        shown.live.transient = False
        shown.start()
        shown.update(task, description=label, completed=done, total=total or None)

    if console.is_terminal:  # elsewhere the bar is written once, at its end
        shown.start()
    try:
        yield told
    finally:
        if shown.live.is_started:
            shown.stop()


@contextlib.contextmanager
def steps_bar(quiet: bool) -> Iterator[Steps]:
    """A progress bar on standard error for a run of several steps, with the time left for all of them."""
    from datetime import timedelta

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from interlingua.mining.progress import Steps

    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet) as shown:
        task = shown.add_task("", total=None, left="")

        def show(what: str, done: int, total: int, left: float | None) -> None:
            told = "" if left is None else f"{timedelta(seconds=round(left))} left for all"
            shown.update(task, description=what, completed=done, total=total or None, left=told)

        yield Steps(show)


@contextlib.contextmanager
def rate_bar(quiet: bool, unit: str) -> Iterator[Callable[[float, int | None], None]]:
    """A progress bar on standard error for what streams by: how much, how fast, and the time left if that is known."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (BarColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=quiet, speed_estimate_period=3600.0) as shown:
        task = shown.add_task("", total=None, note="")

        def told(done: float, total: int | None) -> None:
            seconds = shown.tasks[0].elapsed or 0.0
            note = f"{done:,.0f}{'' if total is None else f' of {total:,}'} {unit}, {done / max(seconds, 1e-9):,.0f}/s"
            shown.update(task, completed=done, total=total, note=note)

        yield told
