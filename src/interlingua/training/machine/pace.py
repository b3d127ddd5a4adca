"""A run with a time budget, on a machine that may have become slower since the steps were counted.

By default all steps are made, however long they take, since only then the run is repeatable. With
``stop_at_budget`` the run ends in time: if it is behind, the learning rate follows the time instead
of the steps, so that it still ends low.
"""

from __future__ import annotations

from interlingua.runtime import duration
from interlingua.training.machine.engine import Engine

TELLING_SHARE = 0.1
"""Of the steps, after which the time of the whole run is estimated."""
LEAST_STEPS = 5
"""Steps before an estimate; the first ones also compile and fill caches."""
LATE = 1.25
"""A run that will take longer than this many times its budget is called late."""


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
        if not self.stops:
            return seconds
        return engine.share(seconds)

    def is_over(self, seconds: float) -> bool:
        """Whether the step in hand has to be the last one, so that its evaluation still fits in."""
        if not self.stops or self.budget_seconds is None:
            return False
        return seconds >= self._last_step_at(self.budget_seconds)

    def position(self, step: int, seconds: float) -> int:
        """The step of the learning rate that is due.

        The present one, or a later one where time runs ahead of steps.

        Args:
            step: from 0.
            seconds: spent by the whole run.
        """
        if not self.stops or self.budget_seconds is None:
            return step
        # Of the time until the last step, not of the budget: else the rate would end above its
        # last value. Never a step back, and never beyond the last step.
        share = seconds / max(self._last_step_at(self.budget_seconds), 1e-9)
        by_time = int(min(share, 1.0) * self.max_steps)
        return min(max(step, by_time), self.max_steps - 1)

    def _last_step_at(self, budget_seconds: float) -> float:
        """Seconds of the run's clock at which the last step begins, so that its evaluation fits."""
        return budget_seconds - self.spent_before - self.evaluation_seconds

    def warning(self, done: int, seconds: float) -> str | None:
        """After a tenth of the steps: how long all will take, where that is beyond the budget.

        Args:
            done: optimizer steps.
            seconds: spent by the whole run.
        """
        # Called after every step, it answers after one of them.
        due = max(LEAST_STEPS, round(TELLING_SHARE * self.max_steps))
        if self.budget_seconds is None or done != due:
            return None
        expected = seconds / done * self.max_steps
        if expected <= LATE * self.budget_seconds:
            return None
        remedy = "it makes all its steps; run.stop_at_budget=true ends a run in time"
        if self.stops:
            remedy = "it will stop at the budget, with fewer steps"
        return (
            "the machine is slower than when the steps were counted: this run takes about"
            f" {duration(expected)} instead of {duration(self.budget_seconds)}; {remedy}"
        )
