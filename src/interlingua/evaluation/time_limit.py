"""A limit on the time of a suite: tasks that no longer fit are left out, and named."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from interlingua.errors import ConfigError

_UNITS = {"s": 1, "m": 60, "h": 3600}


class BudgetUsed(Exception):  # noqa: N818 - the end of a task here is not an error
    """Texts remain to be embedded, but the time limit has passed."""


class Budget:
    """A limit of wall time from now on, after which no more texts are embedded.

    A portion that is being embedded is still finished, and embedded texts are still scored.

    Args:
        seconds: duration.
        clock: returns the time, in seconds.

    Attributes:
        left_out: task -> its skipped parts.
    """

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._start = clock()
        self.left_out: dict[str, str] = {}

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Parse a budget of ``90s``, ``10m`` or ``2h``.

        Raises:
            ConfigError: it is none of these.
        """
        # a number without a unit is refused: whether it means seconds or minutes would be a guess
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text.strip())
        if not found or float(found[1]) <= 0:
            raise ConfigError(
                f"budget: expected a time with a unit, for example 90s, 10m or 2h, found {text!r}"
            )
        return cls(float(found[1]) * _UNITS[found[2]])

    @property
    def is_used(self) -> bool:
        """Return whether the time is over."""
        return self._clock() - self._start >= self.seconds

    def __str__(self) -> str:
        # the largest unit that the limit reaches; seconds for less than a second
        unit = next(unit for unit in ("h", "m", "s") if self.seconds >= _UNITS[unit] or unit == "s")
        return f"{self.seconds / _UNITS[unit]:g}{unit}"

    @property
    def report(self) -> str | None:
        """A sentence that lists all that was left out; None if nothing was."""
        if not self.left_out:
            return None
        parts = "; ".join(f"{task}: {what}" for task, what in self.left_out.items())
        return f"the budget of {self} is used up; skipped: {parts}"
