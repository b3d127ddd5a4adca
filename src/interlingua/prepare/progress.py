"""Progress bars on stderr, one a stage."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any


class StageBar:
    """One bar: items done of a known total, and a running number next to it."""

    def __init__(self, progress: Progress, name: str, total: int, unit: str) -> None:
        self._progress = progress
        self._name = name
        self._unit = unit
        self._started = time.monotonic()
        self._counted = 0
        self._task = None
        if progress.bar is not None:
            self._task = progress.bar.add_task(name, total=total, note="")

    def advance(self, steps: int = 1) -> None:
        """So many more items are done."""
        if self._task is not None:
            self._progress.bar.advance(self._task, steps)

    def count(self, number: int) -> None:
        """So many more units (pairs, texts) have passed."""
        self._counted += number
        if self._task is not None:
            self._progress.bar.update(self._task, note=f"{self._counted:,} {self._unit}")

    def done(self) -> None:
        """The stage is over; its time is kept."""
        self._progress.seconds[self._name] = round(time.monotonic() - self._started, 3)
        if self._task is not None:
            # A stage may end with fewer items than were announced.
            total = self._progress.bar.tasks[self._task].total
            self._progress.bar.update(self._task, completed=total)


class Progress:
    """Bars for the stages of a job, or silence.

    Attributes:
        seconds: wall time of every finished stage.
    """

    def __init__(self, bar: Any | None = None) -> None:
        self.bar: Any = bar
        self.seconds: dict[str, float] = {}

    def stage(self, name: str, *, total: int, unit: str) -> StageBar:
        """Starts a stage."""
        return StageBar(self, name, total, unit)


@contextlib.contextmanager
def progress_bars(show: bool) -> Iterator[Progress]:
    """Bars while the block runs, where ``show`` is true."""
    if not show:
        yield Progress()
        return
    # Here, so that silence does not wait for their import.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Bars(*columns, console=Console(stderr=True)) as bars:
        yield Progress(bars)
