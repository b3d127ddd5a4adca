"""How many steps fit into a time budget: measured on a throwaway copy, then fixed, so that the run can be repeated."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import torch
from torch import nn

from interlingua.batches.prefetch import Prefetcher
from interlingua.errors import ConfigError
from interlingua.methods.objective import Objective
from interlingua.train.build import MicroBatches, build_objective
from interlingua.train.checkpoint import TrainState, save_checkpoint
from interlingua.train.config import RunConfig, TrainConfig
from interlingua.train.engine import Engine
from interlingua.train.feeds import TrainingData
from interlingua.train.memory import freed_memory_kept
from interlingua.train.optim import build_optimizer
from interlingua.train.schedules import steps_of
from interlingua.train.step import gradients
from interlingua.train.term_gradients import TermGradients
from interlingua.train.validation import Evaluate, measure, valid_batches

UNBOUNDED = 1 << 30
WARMUP_STEPS = 2
MOST_STEPS = 40
SHARE_FOR_MEASURING = 0.04
"""Of the budget, spent on timing steps."""


def fix_length(config: TrainConfig, data: TrainingData, engine: Engine, evaluate: Evaluate | None) -> TrainConfig:
    """The config with ``max_steps`` in place of ``num_train_epochs`` or ``budget_seconds``.

    Raises:
        ConfigError: the budget is too small for a single step.
    """
    run = config.run
    if run.max_steps is not None:
        return config
    if run.num_train_epochs is not None:
        pairs = run.num_train_epochs * MicroBatches(config, data.train, UNBOUNDED, engine).epoch_size
        return config.replace_run(max_steps=max(1, round(pairs / run.global_batch_size)), num_train_epochs=None)
    assert run.budget_seconds is not None
    steps = engine.share(_measured_steps(config, data, engine, evaluate, run.budget_seconds))
    if steps < 1:
        raise ConfigError(f"run: budget_seconds {run.budget_seconds:g} is too small for one step; give more")
    return config.replace_run(max_steps=steps, budget_seconds=None)


def steps_within(
    seconds: float, run: RunConfig, *, step_seconds: float, evaluation_seconds: float, checkpoint_seconds: float
) -> int:
    """The largest number of steps whose steps, evaluations and checkpoints fit into the time."""

    def needed(steps: int) -> float:
        total = steps * step_seconds
        for every, cost in ((run.eval_steps, evaluation_seconds), (run.save_steps, checkpoint_seconds)):
            # the last step is always evaluated and saved
            total += cost * -(-steps // steps_of(every, steps))
        return total

    fits, too_many = 0, int(seconds / step_seconds) + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        fits, too_many = (middle, too_many) if needed(middle) <= seconds else (fits, middle)
    return fits


def _measured_steps(
    config: TrainConfig, data: TrainingData, engine: Engine, evaluate: Evaluate | None, budget_seconds: float
) -> int:
    started = time.perf_counter()
    objective = build_objective(config, data.vocabulary, data.languages).to(engine.device)
    twin = engine.twin(objective)
    model = engine.setup(objective)
    optimizer = build_optimizer(objective, config.optimizer, sparse_gradients=engine.sparse_gradients)
    batches = MicroBatches(config, data.train, objective.encoder.max_tokens, engine)
    build_seconds = time.perf_counter() - started
    model_and_objective = (model, objective)
    step_seconds = _time_steps(
        config, model_and_objective, optimizer, batches, engine, SHARE_FOR_MEASURING * budget_seconds
    )
    evaluation_seconds = _time_evaluation(config, twin, data, batches, engine, evaluate)
    with tempfile.TemporaryDirectory(dir=_existing(config.run.output)) as folder:
        saving = time.perf_counter()
        save_checkpoint(Path(folder), objective, optimizer, TrainState(), write=engine.is_main)
        checkpoint_seconds = time.perf_counter() - saving
    # the run builds everything again, and writes two model directories at its end
    left = budget_seconds - (time.perf_counter() - started) - build_seconds - checkpoint_seconds
    return steps_within(
        left,
        config.run,
        step_seconds=step_seconds,
        evaluation_seconds=evaluation_seconds,
        checkpoint_seconds=checkpoint_seconds,
    )


def _time_steps(
    config: TrainConfig,
    model_and_objective: tuple[nn.Module, Objective],
    optimizer: torch.optim.Optimizer,
    batches: MicroBatches,
    engine: Engine,
    seconds: float,
) -> float:
    with freed_memory_kept(), Prefetcher(batches, stop_step=WARMUP_STEPS + MOST_STEPS) as prefetched:
        first = time.perf_counter()
        for step, made in enumerate(prefetched):
            losses = gradients(*model_and_objective, made, engine, seed=config.run.seed, step=step)
            optimizer.step()
            optimizer.zero_grad()
            losses["loss"].item()  # waits for the device
            if step + 1 == WARMUP_STEPS:
                first = time.perf_counter()
            timed = step + 1 - WARMUP_STEPS
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
    while not folder.is_dir():
        folder = folder.parent
    return folder
