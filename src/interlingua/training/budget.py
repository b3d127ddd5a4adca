"""How many steps fit into a time budget: measured on a throwaway copy, then fixed.

A copy of the objective makes some steps, an evaluation and a checkpoint. Their times give the
largest number of steps that fits into the budget together with its evaluations and checkpoints.
This number is written to the run's config.toml, so that the run can be repeated on another machine.
"""

from __future__ import annotations

import dataclasses
import math
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from interlingua.batches.prefetch import Prefetcher
from interlingua.errors import ConfigError
from interlingua.methods.objective import Objective
from interlingua.runtime.portions import ceil_div
from interlingua.training.build import MicroBatches, build_objective
from interlingua.training.checkpoint import TrainState, save_checkpoint
from interlingua.training.config import RunConfig, TrainConfig
from interlingua.training.feeds.feeds import TrainingData
from interlingua.training.log import warn
from interlingua.training.machine.engine import Engine
from interlingua.training.machine.memory import freed_memory_kept
from interlingua.training.optimization.optim import build_optimizer
from interlingua.training.optimization.schedules import steps_of
from interlingua.training.optimization.term_gradients import TermGradients
from interlingua.training.step import gradients
from interlingua.training.validation import Evaluate, measure, valid_batches

UNBOUNDED = 1 << 30
"""More tokens or steps than there are."""
WARMUP_STEPS = 2
"""Steps that are not timed: the first ones allocate memory and choose algorithms."""
MOST_STEPS = 40
"""Steps that are timed, at most."""
MOST_OVERHEAD = 1 / 3
"""Of the budget, for evaluations and checkpoints; beyond it they are spaced."""
SPACED = (0.2, 0.25, 0.34, 0.5)
"""Intervals that are tried, as shares of the run; if none fits, both are made only at the end."""
FEW_STEPS = 50
"""Fewer than this are reported."""
SPARE = 1.2
"""Times the least seconds that were measured, so that a budget of that size is enough the next
time."""
SHARE_FOR_MEASURING = 0.04
"""Of the budget, spent on timing steps."""


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
    config: TrainConfig, data: TrainingData, engine: Engine, evaluate: Evaluate | None
) -> TrainConfig:
    """The config with ``max_steps`` in place of ``num_train_epochs`` or ``budget_seconds``.

    Raises:
        BudgetError: the budget is too small for a single step.
    """
    run = config.run
    if run.max_steps is not None:
        return config
    if run.num_train_epochs is not None:
        batches = MicroBatches(config, data.train, UNBOUNDED, engine)
        pairs = run.num_train_epochs * batches.epoch_size
        max_steps = max(1, round(pairs / run.global_batch_size))
        return config.replace_run(max_steps=max_steps, num_train_epochs=None)
    assert run.budget_seconds is not None
    # The main process's times count for all, which have to make the same number of steps.
    fitted = engine.share(_measured_steps(config, data, engine, evaluate, run.budget_seconds))
    if fitted.steps < 1:
        raise BudgetError(
            f"run: budget_seconds {run.budget_seconds:g} is too small for one step with an"
            f" evaluation and a checkpoint, which take {fitted.least_seconds:.1f} s here; give at"
            f" least {math.ceil(fitted.least_seconds * SPARE)}",
            needed_seconds=fitted.least_seconds * SPARE,
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
    """What the parts of a run take, seconds each."""

    step: float
    evaluation: float
    checkpoint: float
    evaluates_start: bool = False
    """Whether a pretrained encoder is evaluated before its first step."""


class FittedSteps(NamedTuple):
    """The steps that fit into a budget, with what had to change to that end."""

    steps: int
    eval_steps: float
    save_steps: float
    warnings: tuple[str, ...]
    least_seconds: float = 0.0
    """What one step takes with all that goes before and after it."""


def fit(seconds: float, run: RunConfig, costs: Costs) -> FittedSteps:
    """The steps that fit into the time.

    Evaluations and checkpoints that would take most of it are spaced.

    Args:
        seconds: for steps, evaluations and checkpoints.
        run: says how often to evaluate and to save.
        costs: what each takes.
    """
    steps = steps_within(seconds, run, costs)
    spaced = run
    warnings = []
    share = _overhead(steps, run, costs) / seconds
    if share > MOST_OVERHEAD:
        # Each wider than the one before; the last one is all steps of a run that evaluates once.
        at_the_end = max(1, steps_within(seconds, _every(run, UNBOUNDED), costs))
        for every in (*SPACED, float(at_the_end)):
            spaced = _every(run, every)
            steps = steps_within(seconds, spaced, costs)
            if _overhead(steps, spaced, costs) <= MOST_OVERHEAD * seconds:
                break
        times = "at the end alone"
        if spaced.eval_steps < 1:
            times = f"every {100 * spaced.eval_steps:.0f} % of the run"
        warnings.append(
            f"an evaluation takes {costs.evaluation:.1f} s and a checkpoint {costs.checkpoint:.1f}"
            f" s, {100 * share:.0f} % of the budget as often as run.eval_steps and save_steps say;"
            f" they are made {times}"
        )
    if 0 < steps < FEW_STEPS:
        warnings.append(
            f"{steps} steps of {costs.step:.2f} s fit into the budget, and fewer than {FEW_STEPS}"
            " teach little; give more budget_seconds, or lower run.global_batch_size or"
            " data.valid_pairs"
        )
    return FittedSteps(steps, spaced.eval_steps, spaced.save_steps, tuple(warnings))


def _every(run: RunConfig, every: float) -> RunConfig:
    """The run with evaluations and checkpoints no more often than that."""
    length = 1 << 20  # to compare shares with numbers of steps
    rarer: dict[str, Any] = {
        name: every
        for name in ("eval_steps", "save_steps")
        if steps_of(getattr(run, name), length) < length * every
    }
    return dataclasses.replace(run, **rarer)


def _overhead(steps: int, run: RunConfig, costs: Costs) -> float:
    """Seconds of all evaluations and checkpoints; the last step is always evaluated and saved."""
    if steps < 1:
        return costs.evaluation + costs.checkpoint
    evaluations = ceil_div(steps, steps_of(run.eval_steps, steps)) + costs.evaluates_start
    checkpoints = ceil_div(steps, steps_of(run.save_steps, steps))
    return evaluations * costs.evaluation + checkpoints * costs.checkpoint


def steps_within(seconds: float, run: RunConfig, costs: Costs) -> int:
    """The largest number of steps that fits into the time, evaluations and checkpoints included."""

    def needed(steps: int) -> float:
        return steps * costs.step + _overhead(steps, run, costs)

    # By bisection, as the number of evaluations depends on the steps where it is a share of them.
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
    data: TrainingData,
    engine: Engine,
    evaluate: Evaluate | None,
    budget_seconds: float,
) -> FittedSteps:
    started = time.perf_counter()
    objective = build_objective(config, data.vocabulary, data.languages).to(engine.device)
    unsharded = engine.unsharded_copy(objective)
    model = engine.setup(objective)
    optimizer = build_optimizer(
        objective, config.optimizer, sparse_gradients=engine.sparse_gradients
    )
    batches = MicroBatches(config, data.train, objective.encoder.max_tokens, engine)
    build_seconds = time.perf_counter() - started
    most_seconds = SHARE_FOR_MEASURING * budget_seconds
    step_seconds = _time_steps(config, (model, objective), optimizer, batches, engine, most_seconds)
    evaluation_seconds = _time_evaluation(config, unsharded, data, batches, engine, evaluate)
    # On the disk of the run's folder, which may be slower than that of temporary files.
    with tempfile.TemporaryDirectory(dir=_existing(config.run.output)) as folder:
        saving = time.perf_counter()
        save_checkpoint(Path(folder), objective, optimizer, TrainState(), write=engine.is_main)
        checkpoint_seconds = time.perf_counter() - saving
    # the run builds everything again, and writes two model directories at its end
    left = budget_seconds - (time.perf_counter() - started) - build_seconds - checkpoint_seconds
    pretrained = config.encoder.path is not None
    costs = Costs(step_seconds, evaluation_seconds, checkpoint_seconds, evaluates_start=pretrained)
    # All that is spent around the steps, and one step with what it brings.
    least = budget_seconds - left + step_seconds + _overhead(1, config.run, costs)
    return fit(max(left, 1e-9), config.run, costs)._replace(least_seconds=least)


def _time_steps(
    config: TrainConfig,
    model_and_objective: tuple[nn.Module, Objective],
    optimizer: torch.optim.Optimizer,
    batches: MicroBatches,
    engine: Engine,
    seconds: float,
) -> float:
    """Seconds of a step, measured over at least one step and about so many seconds."""
    model, objective = model_and_objective
    with (
        freed_memory_kept(),
        Prefetcher(
            partial(batches.prepared, objective), stop_step=WARMUP_STEPS + MOST_STEPS
        ) as prefetched,
    ):
        first = time.perf_counter()
        for step, made in enumerate(prefetched):
            losses = gradients(model, objective, made, engine, seed=config.run.seed, step=step)
            optimizer.step()
            optimizer.zero_grad()
            losses["loss"].item()  # waits for the device
            if step + 1 == WARMUP_STEPS:
                first = time.perf_counter()
            timed = step + 1 - WARMUP_STEPS
            # All processes stop after the same step: the next one would wait for all of them.
            if timed > 0 and engine.any(time.perf_counter() - first > seconds):
                break
    return (time.perf_counter() - first) / timed


def _time_evaluation(
    config: TrainConfig,
    objective: Objective,
    data: TrainingData,
    batches: MicroBatches,
    engine: Engine,
    evaluate: Evaluate | None,
) -> float:
    started = time.perf_counter()
    fixed = valid_batches(config, data, batches)
    measure(objective, fixed, engine, evaluate=evaluate, step=0)
    TermGradients(engine).measure(objective, batches(0)[0])
    return time.perf_counter() - started


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    while not folder.is_dir():
        folder = folder.parent
    return folder
