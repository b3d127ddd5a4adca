"""Progress bars on a terminal: the one place that makes them.

Rich draws them. It is imported where bars are made, since the library also works without it and
silence should not wait for its import. Whether there is anything to show is for the caller to
decide: functions are silent unless they are given a progress, commands where ``--quiet`` is set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

if TYPE_CHECKING:
    import rich.console
    import rich.progress

Column = Literal["spinner", "label", "padded label", "bar", "count", "elapsed", "note", "left"]
"""A column of a progress bar. "count" shows the items done and their total, "elapsed"
shows a time, "note" and "left" show texts that ``ProgressBar.update`` sets."""
LABEL_WIDTH = 28
"""Of a "padded label", so that bars below one another begin in the same place."""


class ProgressBar:
    """A line of ``ProgressBars``."""

    def __init__(self, progress: rich.progress.Progress, task: rich.progress.TaskID) -> None:
        self._progress = progress
        self._task = task

    def advance(self, steps: float = 1) -> None:
        """So much more is done."""
        self._progress.advance(self._task, steps)

    def update(
        self,
        *,
        label: str | None = None,
        done: float | None = None,
        total: float | None = None,
        note: str | None = None,
        left: str | None = None,
    ) -> None:
        """Shows a new state; what is not given stays as it is.

        Args:
            label: what is being done.
            done: how much is done.
            total: how much there is.
            note: the text of that column.
            left: the text of that column.
        """
        # Rich would show None as a word.
        given = {"note": note, "left": left}
        texts: Any = {name: text for name, text in given.items() if text is not None}
        self._progress.update(self._task, description=label, completed=done, total=total, **texts)

    def finish(self) -> None:
        """Fills the bar: work may end with fewer items than were announced."""
        self.update(done=self._progress.tasks[self._task].total)

    @property
    def elapsed_seconds(self) -> float:
        """Since the bar was added."""
        return self._progress.tasks[self._task].elapsed or 0.0


class ProgressBars:
    """Bars below one another, drawn while the block runs, or between ``start`` and ``stop``.

    Args:
        columns: of every line, from left to right.
        bar_width: in characters.
        console: where to draw; standard error by default.
        is_silent: draw nothing.
        transient: remove the bars at the end of the block.
    """

    def __init__(
        self,
        *columns: Column,
        bar_width: int = 40,
        console: rich.console.Console | None = None,
        is_silent: bool = False,
        transient: bool = False,
    ) -> None:
        from rich.console import Console
        from rich.progress import Progress

        made = _column_makers(bar_width)
        self._progress = Progress(
            *[made[column]() for column in columns],
            console=console or Console(stderr=True),
            disable=is_silent,
            transient=transient,
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begins to draw."""
        self._progress.start()

    def stop(self) -> None:
        """Draws for the last time."""
        self._progress.stop()

    def add(self, label: str = "", *, total: float | None = None, done: int = 0) -> ProgressBar:
        """A new line.

        Args:
            label: what is being done.
            total: how much there is; None = not known yet.
            done: how much is done already.
        """
        # Rich formats its columns with these texts, so they must be there from the beginning.
        task = self._progress.add_task(label, total=total, completed=done, note="", left="")
        return ProgressBar(self._progress, task)

    def keep(self) -> None:
        """Leaves the bars on the screen at the end of the block, though they were transient."""
        self._progress.live.transient = False

    def refresh(self) -> None:
        """Draws the bars now, not at the next tenth of a second."""
        self._progress.refresh()


def _column_makers(bar_width: int) -> Mapping[Column, Callable[[], rich.progress.ProgressColumn]]:
    from rich import progress

    return {
        "spinner": progress.SpinnerColumn,
        "label": lambda: progress.TextColumn("{task.description}"),
        "padded label": lambda: progress.TextColumn(f"{{task.description:<{LABEL_WIDTH}}}"),
        "bar": lambda: progress.BarColumn(bar_width),
        "count": progress.MofNCompleteColumn,
        "elapsed": progress.TimeElapsedColumn,
        "note": lambda: progress.TextColumn("{task.fields[note]}"),
        "left": lambda: progress.TextColumn("{task.fields[left]}"),
    }
