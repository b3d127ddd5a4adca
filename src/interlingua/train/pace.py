"""A run with a time budget, on a machine that may become slower than it was when the steps were
counted.
"""

from __future__ import annotations

from interlingua.runtime import duration
from interlingua.train.engine import Engine

TELLING_SHARE = 0.1
"""Of the steps, after which the time of the whole run is estimated."""
LATE = 1.25
"""Times the budget, from which a run is called late."""


class Pace:
    """How far a run is in its steps and in its time.

    Args:
        budget_seconds: of the whole run, where it has a budget.
        max_steps: that were found to fit in.
        stops: whether the run ends with the budget.
        spent_before: seconds of the budget that were spent before the run's clock starts: on
            measuring how many steps fit in, and on building the model.
    """

    def __init__(
        self,
        budget_seconds: float | None,
        max_steps: int,
        *,
        stops: bool = False,
        spent_before: float = 0.0,
    ) -> None:
        self.budget_seconds = budget_seconds
        self.max_steps = max_steps
        self.stops = stops
        self.spent_before = spent_before
        self.evaluation_seconds = 0.0

    def agreed(self, seconds: float, engine: Engine) -> float:
        """The time spent as the main process has it, where anything depends on it.

        Every process must call this.
        """
        return engine.share(seconds) if self.stops else seconds

    def is_over(self, seconds: float) -> bool:
        """Whether the step in hand has to be the last one, so that its evaluation still fits in."""
        if not self.stops or self.budget_seconds is None:
            return False
        return seconds >= self._last_step_at(self.budget_seconds)

    def position(self, step: int, seconds: float) -> int:
        """The step of the learning rate that is due: the present one, or a later one where time
        runs ahead of steps.

        Args:
            step: from 0.
            seconds: spent by the whole run.
        """
        if not self.stops or self.budget_seconds is None:
            return step
        # The share of the time until the last step, not of the budget: else the rate would end
        # above its last value.
        share = seconds / max(self._last_step_at(self.budget_seconds), 1e-9)
        by_time = int(min(share, 1.0) * self.max_steps)
        return min(max(step, by_time), self.max_steps - 1)

    def _last_step_at(self, budget_seconds: float) -> float:
        """Seconds of the run's clock at which the last step begins, so that its evaluation fits
        in.
        """
        return budget_seconds - self.spent_before - self.evaluation_seconds

    def warning(self, done: int, seconds: float) -> str | None:
        """After a tenth of the steps: how long all will take, where that is beyond the budget.

        Args:
            done: optimizer steps.
            seconds: spent by the whole run.
        """
        if self.budget_seconds is None or done != max(1, round(TELLING_SHARE * self.max_steps)):
            return None
        expected = seconds / done * self.max_steps
        if expected <= LATE * self.budget_seconds:
            return None
        remedy = (
            "it will stop at the budget, with fewer steps"
            if self.stops
            else "it makes all its steps; run.stop_at_budget=true ends a run in time"
        )
        return (
            "the machine is slower than when the steps were counted: this run takes about"
            f" {duration(expected)} instead of {duration(self.budget_seconds)}; {remedy}"
        )
