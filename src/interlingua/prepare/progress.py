"""Progress bars on stderr, one a stage."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any


class StageBar:
    """One bar: items done of a known total, and a running number next to it."""

    def __init__(self, stages: Stages, name: str, total: int, unit: str) -> None:
        self._stages = stages
        self._name = name
        self._unit = unit
        self._started = time.monotonic()
        self._counted = 0
        self._task = None
        if stages.bar is not None:
            self._task = stages.bar.add_task(name, total=total, note="")

    def advance(self, steps: int = 1) -> None:
        """So many more items are done."""
        if self._task is not None:
            self._stages.bar.advance(self._task, steps)

    def count(self, number: int) -> None:
        """So many more units (pairs, texts) have passed."""
        self._counted += number
        if self._task is not None:
            self._stages.bar.update(self._task, note=f"{self._counted:,} {self._unit}")

    def done(self) -> None:
        """The stage is over; its time is kept."""
        self._stages.seconds[self._name] = round(time.monotonic() - self._started, 3)
        if self._task is not None:
            # A stage may end with fewer items than were announced.
            total = self._stages.bar.tasks[self._task].total
            self._stages.bar.update(self._task, completed=total)


class Stages:
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
def progress_bars(show: bool) -> Iterator[Stages]:
    """Bars while the block runs, where ``show`` is true."""
    if not show:
        yield Stages()
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
        yield Stages(bars)
