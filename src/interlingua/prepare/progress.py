"""Progress bars on stderr, one a stage."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from interlingua.progress_bars import ProgressBar, ProgressBars


class StageBar:
    """One bar: items done of a known total, and a running number next to it."""

    def __init__(self, stages: Stages, name: str, total: int, unit: str) -> None:
        self._stages = stages
        self._name = name
        self._unit = unit
        self._started = time.monotonic()
        self._counted = 0
        self._bar: ProgressBar | None = None
        if stages.bars is not None:
            self._bar = stages.bars.add(name, total=total)

    def advance(self, steps: int = 1) -> None:
        """So many more items are done."""
        if self._bar is not None:
            self._bar.advance(steps)

    def count(self, number: int) -> None:
        """So many more units (pairs, texts) have passed."""
        self._counted += number
        if self._bar is not None:
            self._bar.update(note=f"{self._counted:,} {self._unit}")

    def done(self) -> None:
        """The stage is over; its time is kept."""
        self._stages.seconds[self._name] = round(time.monotonic() - self._started, 3)
        if self._bar is not None:
            self._bar.finish()


class Stages:
    """Bars for the stages of a job, or silence.

    Attributes:
        seconds: wall time of every finished stage.
    """

    def __init__(self, bars: ProgressBars | None = None) -> None:
        self.bars = bars
        self.seconds: dict[str, float] = {}

    def stage(self, name: str, *, total: int, unit: str) -> StageBar:
        """Starts a stage."""
        return StageBar(self, name, total, unit)


@contextlib.contextmanager
def stage_bars(show: bool) -> Iterator[Stages]:
    """Bars while the block runs, where ``show`` is true."""
    if not show:
        yield Stages()
        return
    with ProgressBars("padded label", "bar", "count", "elapsed", "note", bar_width=30) as bars:
        yield Stages(bars)
