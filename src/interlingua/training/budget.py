"""The number of steps that fit into a time budget.

The run measures the time of some first steps, an evaluation and a checkpoint, and then undoes the
steps: weights and optimizer are restored. The times give the largest number of steps that fits into
the budget together with its evaluations and checkpoints. This number is written to the run's
config.toml, so that the run can be repeated on another machine. A run with this number in its
config ends with the same bytes as the original run.

The machine may become slower after the steps were counted. By default all steps are made, however
long they take, since only then the run is repeatable. With ``stop_at_budget`` the run ends in time:
if the run is late, its learning rate depends on the time instead of the steps, so that the rate is
low at the end in this case too.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import math
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from interlingua.batches.prefetch import Prefetcher
from interlingua.errors import ConfigError
from interlingua.runtime import duration
from interlingua.runtime.portions import ceil_div
from interlingua.training.build import MicroBatches
from interlingua.training.checkpoint import TrainState, save_checkpoint
from interlingua.training.config import RunConfig, TrainConfig
from interlingua.training.log import warn
from interlingua.training.machine.engine import Engine, local
from interlingua.training.machine.memory import freed_memory_kept
from interlingua.training.optimization.schedules import steps_of
from interlingua.training.step import TrainingStep
from interlingua.training.validation import RunEvaluation

_UNBOUNDED = 1 << 30
"""More steps than any run has."""
WARMUP_STEPS = 2
"""Steps that are not timed: the first ones allocate memory and choose algorithms."""
MOST_STEPS = 40
"""Steps that are timed, at most."""
MOST_OVERHEAD = 1 / 3
"""Largest share of the budget for evaluations and checkpoints; above it they are made less
often."""
SPACED = (0.2, 0.25, 0.34, 0.5)
"""Intervals of evaluations and checkpoints that are tried, as shares of the run; if none fits, both
are made only at the end."""
FEW_STEPS = 50
"""A run with fewer steps than this gets a warning."""
_SPARE = 1.2
"""Factor by which the measured minimum of seconds is multiplied, so that a budget of this size is
enough the next time."""
SHARE_FOR_MEASURING = 0.04
"""Share of the budget that is spent on timing steps."""
TELLING_SHARE = 0.1
"""Share of the steps after which the time of the whole run is estimated."""
LEAST_STEPS = 5
"""Steps before an estimate; the first ones also compile and fill caches."""
_LATE = 1.25
"""A run that will take longer than this many times its budget is called late."""


class BudgetError(ConfigError):
    """A budget is too small for a single step.

    Args:
        message: see ``ConfigError``.
        needed_seconds: a budget that is enough.
    """

    def __init__(self, message: str, *, needed_seconds: float) -> None:
        super().__init__(message)
        self.needed_seconds = needed_seconds


def fix_length(
    config: TrainConfig,
    make_step: TrainingStep,
    batches: MicroBatches,
    evaluation: RunEvaluation,
    began_at: float,
) -> TrainConfig:
    """Return the config with ``max_steps`` in place of ``num_train_epochs`` or ``budget_seconds``.

    Args:
        config: of the run.
        make_step: makes a step of the run. Weights, buffers and optimizer are restored afterwards;
            the meter and the loss scale are not.
        batches: of the run.
        evaluation: of the run; one is timed, and nothing is recorded.
        began_at: ``time.perf_counter`` when the budget started.

    Raises:
        BudgetError: the budget is too small for a single step.
    """
    run = config.run
    if run.max_steps is not None:
        return config
    if run.num_train_epochs is not None:
        pairs = run.num_train_epochs * batches.epoch_size
        max_steps = max(1, round(pairs / run.global_batch_size))
        return config.replace_run(max_steps=max_steps, num_train_epochs=None)
    assert run.budget_seconds is not None
    # All processes use the main process's times, because they have to make the same number of
    # steps.
    measured = _measured_steps(config, make_step, batches, evaluation, began_at)
    fitted = make_step.engine.share(measured)
    if fitted.steps < 1:
        raise BudgetError(
            f"run: budget_seconds {run.budget_seconds:g} is too small for one step with an"
            f" evaluation and a checkpoint, which take {fitted.least_seconds:.1f} s on this"
            f" machine; set at least {math.ceil(fitted.least_seconds * _SPARE)}",
            needed_seconds=fitted.least_seconds * _SPARE,
        )
    for line in fitted.warnings:
        warn(line)
    kept = run.budget_seconds if run.stop_at_budget else None
    return config.replace_run(
        max_steps=fitted.steps,
        budget_seconds=kept,
        eval_steps=fitted.eval_steps,
        save_steps=fitted.save_steps,
    )


class Costs(NamedTuple):
    """Seconds that each part of a run takes."""

    step: float
    evaluation: float
    checkpoint: float
    evaluates_start: bool = False
    """True if a pretrained encoder is evaluated before its first step."""


class FittedSteps(NamedTuple):
    """The steps that fit into a budget, and the settings that were changed to make them fit."""

    steps: int
    eval_steps: float
    save_steps: float
    warnings: tuple[str, ...]
    least_seconds: float = 0.0
    """Seconds of one step with everything before and after it."""


def fit_steps(seconds: float, run: RunConfig, costs: Costs) -> FittedSteps:
    """Compute the number of steps that fit into the time.

    Evaluations and checkpoints are made less often if they would take too much of the time.

    Args:
        seconds: for steps, evaluations and checkpoints.
        run: specifies how often to evaluate and to save.
        costs: seconds of each.
    """
    steps = steps_within(seconds, run, costs)
    spaced = run
    warnings = []
    share = _overhead(steps, run, costs) / seconds
    if share > MOST_OVERHEAD:
        # Each interval is longer than the one before; the last is the whole run with one
        # evaluation.
        at_the_end = max(1, steps_within(seconds, _every(run, _UNBOUNDED), costs))
        for every in (*SPACED, float(at_the_end)):
            spaced = _every(run, every)
            steps = steps_within(seconds, spaced, costs)
            if _overhead(steps, spaced, costs) <= MOST_OVERHEAD * seconds:
                break
        times = "only at the end"
        if spaced.eval_steps < 1:
            times = f"every {100 * spaced.eval_steps:.0f} % of the run"
        warnings.append(
            f"an evaluation takes {costs.evaluation:.1f} s and a checkpoint"
            f" {costs.checkpoint:.1f} s, together {100 * share:.0f} % of the budget with"
            f" the given run.eval_steps and run.save_steps; both are made {times} instead"
        )
    if 0 < steps < FEW_STEPS:
        warnings.append(
            f"only {steps} steps of {costs.step:.2f} s fit into the budget, fewer than the"
            f" {FEW_STEPS} recommended; raise budget_seconds, or lower run.global_batch_size or"
            " data.valid_pairs"
        )
    return FittedSteps(steps, spaced.eval_steps, spaced.save_steps, tuple(warnings))


def _every(run: RunConfig, every: float) -> RunConfig:
    """Return the run with evaluations and checkpoints at least ``every`` apart."""
    length = 1 << 20  # to compare shares with numbers of steps
    rarer: dict[str, Any] = {
        name: every
        for name in ("eval_steps", "save_steps")
        if steps_of(getattr(run, name), length) < length * every
    }
    return dataclasses.replace(run, **rarer)


def _overhead(steps: int, run: RunConfig, costs: Costs) -> float:
    """Compute the seconds of all evaluations and checkpoints.

    The last step is always evaluated and saved.
    """
    if steps < 1:
        return costs.evaluation + costs.checkpoint
    evaluations = ceil_div(steps, steps_of(run.eval_steps, steps)) + costs.evaluates_start
    checkpoints = ceil_div(steps, steps_of(run.save_steps, steps))
    return evaluations * costs.evaluation + checkpoints * costs.checkpoint


def steps_within(seconds: float, run: RunConfig, costs: Costs) -> int:
    """Compute the largest number of steps that fits, with evaluations and checkpoints."""

    def needed(steps: int) -> float:
        return steps * costs.step + _overhead(steps, run, costs)

    # Search by bisection, because the number of evaluations depends on the number of steps if
    # evaluations have an interval that is a share of the run.
    fits = 0
    too_many = int(max(0.0, seconds) / costs.step) + 1  # even without any evaluation
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if needed(middle) <= seconds:
            fits = middle
        else:
            too_many = middle
    return fits


def _measured_steps(
    config: TrainConfig,
    make_step: TrainingStep,
    batches: MicroBatches,
    evaluation: RunEvaluation,
    began_at: float,
) -> FittedSteps:
    run = config.run
    assert run.budget_seconds is not None
    with taken_back(make_step.objective, make_step.optimizer):
        step_seconds = _time_steps(make_step, batches, SHARE_FOR_MEASURING * run.budget_seconds)
        began = time.perf_counter()
        evaluation.measure(0, batches(0)[0])
        evaluation_seconds = time.perf_counter() - began
        checkpoint_seconds = _time_checkpoint(make_step, _existing(run.output))
    # At its end the run also writes two models, which take about as long as a checkpoint.
    left = run.budget_seconds - (time.perf_counter() - began_at) - checkpoint_seconds
    pretrained = config.encoder.path is not None
    costs = Costs(step_seconds, evaluation_seconds, checkpoint_seconds, evaluates_start=pretrained)
    # All time outside of the steps, and one step with its evaluations and checkpoint.
    least = run.budget_seconds - left + step_seconds + _overhead(1, run, costs)
    return fit_steps(max(left, 1e-9), run, costs)._replace(least_seconds=least)


@contextlib.contextmanager
def taken_back(objective: nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Restore weights, buffers and the optimizer's averages when the block ends.

    Step t is a function of these, the seed and t. So steps that were made in the block have no
    effect on those that follow.

    Args:
        objective: with whole or sharded weights.
        optimizer: of these weights.
    """
    # On the host: a GPU may have no room for a second copy. Sharded weights stay sharded.
    before = {
        name: local(tensor).detach().to("cpu", copy=True)
        for name, tensor in objective.state_dict().items()
    }
    averages = copy.deepcopy(optimizer.state_dict())
    try:
        yield
    finally:
        with torch.no_grad():
            for name, tensor in objective.state_dict().items():
                local(tensor).copy_(before[name])
        optimizer.load_state_dict(averages)


def _time_steps(make_step: TrainingStep, batches: MicroBatches, seconds: float) -> float:
    """Measure the seconds of a step, over at least one step and about ``seconds`` seconds."""
    engine = make_step.engine
    prepared = partial(batches.prepared, make_step.objective)
    with freed_memory_kept(), Prefetcher(prepared, stop_step=WARMUP_STEPS + MOST_STEPS) as made:
        first = time.perf_counter()
        for step, micro_batches in enumerate(made):
            # At a learning rate of 0 no step can diverge, and each takes its usual time.
            make_step(step, micro_batches, learning_rate=0.0, logs=False)
            make_step.meter.means()  # waits for the device
            if step + 1 == WARMUP_STEPS:
                first = time.perf_counter()
            timed = step + 1 - WARMUP_STEPS
            # All processes stop after the same step: the next one would wait for all of them.
            if timed > 0 and engine.any(time.perf_counter() - first > seconds):
                break
    return (time.perf_counter() - first) / timed


def _time_checkpoint(make_step: TrainingStep, disk: Path) -> float:
    """Measure the seconds of a checkpoint on the disk of a folder."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=disk) as folder:
        save_checkpoint(
            Path(folder),
            make_step.objective,
            make_step.optimizer,
            TrainState(),
            write=make_step.engine.is_main,
        )
        return time.perf_counter() - began


def _existing(folder: Path) -> Path:
    """Return the folder, or its nearest existing parent."""
    while not folder.is_dir():
        folder = folder.parent
    return folder


class Pace:
    """The progress of a run in steps and in time.

    Args:
        budget_seconds: of the whole run, if it has a budget.
        max_steps: number of steps that was found to fit into the budget.
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
        """Return the time spent: the main process's if the run stops at the budget, else its own.

        Every process must call this.
        """
        if not self.stops:
            return seconds
        return engine.share(seconds)

    def is_over(self, seconds: float) -> bool:
        """Return whether this step has to be the last, so that its evaluation fits in."""
        if not self.stops or self.budget_seconds is None:
            return False
        return seconds >= self._last_step_at(self.budget_seconds)

    def position(self, step: int, seconds: float) -> int:
        """Return the step that decides the learning rate.

        It is the present step, or a later one if the run is slower than expected.

        Args:
            step: from 0.
            seconds: spent by the whole run.
        """
        if not self.stops or self.budget_seconds is None:
            return step
        # The time is divided by the time until the last step, not by the budget: otherwise the rate
        # would end above its last value. The position is never earlier than the step, and never
        # beyond the last.
        share = seconds / max(self._last_step_at(self.budget_seconds), 1e-9)
        by_time = int(min(share, 1.0) * self.max_steps)
        return min(max(step, by_time), self.max_steps - 1)

    def _last_step_at(self, budget_seconds: float) -> float:
        """Return the run time after which a step is the last one, so that its evaluation fits."""
        return budget_seconds - self.spent_before - self.evaluation_seconds

    def warning(self, done: int, seconds: float) -> str | None:
        """Return a warning after a tenth of the steps if the run will exceed the budget.

        Args:
            done: optimizer steps.
            seconds: spent by the whole run.
        """
        # This method is called after every step, but can return a warning after one of them only.
        due = max(LEAST_STEPS, round(TELLING_SHARE * self.max_steps))
        if self.budget_seconds is None or done != due:
            return None
        expected = seconds / done * self.max_steps
        if expected <= _LATE * self.budget_seconds:
            return None
        remedy = "the run makes all its steps; set run.stop_at_budget=true to stop in time"
        if self.stops:
            remedy = "the run will stop at the budget, after fewer steps"
        return (
            "the machine is slower than when the number of steps was computed: this run takes"
            f" about {duration(expected)} instead of {duration(self.budget_seconds)}; {remedy}"
        )
