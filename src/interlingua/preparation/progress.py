"""The progress of prepare, which also records how long each stage takes."""

from __future__ import annotations

import time

from interlingua.runtime.progress import SILENT, Progress


class StageProgress(Progress):
    """Progress that forwards everything to another one, and records the time of each stage.

    Args:
        outer: the progress that shows it.

    Attributes:
        seconds: wall time of every finished stage.
    """

    def __init__(self, outer: Progress = SILENT) -> None:
        self.seconds: dict[str, float] = {}
        self._outer = outer
        self._label = ""
        self._begun = 0.0
        self._counted = 0
        self._unit = ""

    def stage(self, label: str, *, total: int, unit: str) -> None:
        """Start a stage.

        Args:
            label: name of the stage.
            total: number of files or sides, which ``advance`` counts.
            unit: of the items that ``count`` counts: pairs, tokens.
        """
        self._label = label
        self._begun = time.monotonic()
        self._counted = 0
        self._unit = unit
        self._outer.start(total, label=label)

    def advance(self, count: float = 1) -> None:
        """Count files as done."""
        self._outer.advance(count)

    def count(self, number: int) -> None:
        """Count pairs or texts, which are shown next to the bar."""
        self._counted += number
        self._outer.note(f"{self._counted:,} {self._unit}")

    def done(self) -> None:
        """End the stage, and keep its time."""
        self.seconds[self._label] = round(time.monotonic() - self._begun, 3)
