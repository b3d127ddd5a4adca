"""The training loop: read ``train`` from top to bottom.

Step t is a pure function of (state, seed, t): its batch comes from the plan, its random numbers
from a seed of its own, its learning rate from the schedule. So a checkpoint needs no state of a
data loader or random generator, and a run that was killed and resumed ends with the same bytes as
an uninterrupted one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from interlingua.batches.prefetch import Prefetcher
from interlingua.config import with_absolute_paths
from interlingua.runtime.processes import is_first_process
from interlingua.training.banks import fill_banks
from interlingua.training.budget import fix_length
from interlingua.training.build import (
    MicroBatches,
    build_objective,
    feeds_of,
    fewer_negatives,
    remember_lengths,
)
from interlingua.training.checkpoint import TrainState, load_checkpoint, rotate, save_checkpoint
from interlingua.training.config import TrainConfig
from interlingua.training.exposure import exposure_lines
from interlingua.training.feeds.feeds import TrainingData, open_data
from interlingua.training.log import Meter, in_words_of_training, open_log, require_finite, warn
from interlingua.training.machine.engine import Engine
from interlingua.training.machine.interrupts import Interrupts
from interlingua.training.machine.memory import freed_memory_kept
from interlingua.training.machine.pace import Pace
from interlingua.training.optimization.loss_scale import LossScale
from interlingua.training.optimization.optim import build_optimizer
from interlingua.training.optimization.schedules import (
    due,
    learning_rate_factor,
    notes,
    peak_learning_rate,
)
from interlingua.training.optimization.term_gradients import TermGradients
from interlingua.training.result import Clock, TrainResult, read_result, result_of
from interlingua.training.run_folder import RunFolder, Start
from interlingua.training.step import TrainingStep
from interlingua.training.validation import (
    Evaluate,
    check_metric,
    measure,
    out_of_patience,
    saturation_warning,
    update_best,
    valid_batches,
)


def train(
    config: TrainConfig,
    *,
    evaluate: Evaluate | None = None,
    resume: str | Path = "auto",
    progress: bool = False,
) -> TrainResult:
    """Train an encoder, or go on where the run in the output folder stopped.

    Args:
        config: the whole run.
        evaluate: is given the encoder and the step at each evaluation, and returns further metrics
            by name.
        resume: "auto" goes on from the newest whole checkpoint of the output folder, "never" starts
            over and removes what is there, a path goes on from that checkpoint.
        progress: whether to show progress on stderr.

    Returns:
        what was written; ``interrupted`` says whether Ctrl-C ended it early.

    Raises:
        ConfigError: settings contradict each other, or the output folder holds another run or is in
            use by one.
        DataError: the corpus can't be read, or was changed since it was written.
        CheckpointError: a checkpoint can't be read or written.
        NotFiniteError: a loss term became NaN or infinite; the last checkpoint is kept.
    """
    # Where does it begin, and how long is it?
    given = with_absolute_paths(config)
    folder = RunFolder(given.run.output)
    # One process locks the folder for all.
    with folder.alone() if is_first_process() else contextlib.nullcontext():
        start = folder.start(given, resume, warn)
        if resume == "auto" and start.checkpoint is not None:
            finished = read_result(folder)
            if finished is not None:
                return finished
        data = open_data(given, feeds_of(given.method))
        digests = data.digests(given.data)
        if start.checkpoint is not None and is_first_process():
            RunFolder(start.checkpoint.parent.parent).compare(digests, warn)
        if is_first_process():
            data.verify()
        # From here on there may be several processes, each of which has come this way.
        with Engine(start.config.run) as engine:
            return _train(
                engine, given, start, data, digests=digests, evaluate=evaluate, progress=progress
            )


def _train(  # noqa: C901 - one function that one reads from top to bottom
    engine: Engine,
    given: TrainConfig,
    start: Start,
    data: TrainingData,
    *,
    digests: Mapping[str, str],
    evaluate: Evaluate | None,
    progress: bool,
) -> TrainResult:
    began_at = time.perf_counter()
    folder = RunFolder(given.run.output)
    config = fix_length(engine.resolve_hardware(start.config), data, engine, evaluate)
    if start.devices not in (None, engine.world_size):
        warn(
            f"this run began with {start.devices} processes (now {engine.world_size}): it may"
            " round otherwise"
        )
    if engine.is_main:
        folder.begin(given, config, digests=digests, fresh=start.checkpoint is None)
    engine.barrier()
    run, max_steps = config.run, config.length

    # The parts: objective, optimizer, batches, and what the checkpoint remembers of them. Banks are
    # filled, and the whole copy is made, before ``setup``, which shards the weights; the optimizer
    # holds on to the weights and is built after it.
    objective = build_objective(config, data.vocabulary, data.languages).to(engine.device).train()
    batches = MicroBatches(config, data.train, objective.encoder.max_tokens, engine)
    validation = valid_batches(config, data, batches)
    remember_lengths(objective, config)
    new_dense = config.encoder.dense and start.checkpoint is None
    bank_seconds = fill_banks(
        objective,
        batches,
        validation,
        engine,
        steps=max_steps,
        folder=folder.path,
        new_dense=new_dense,
    )
    unsharded = engine.unsharded_copy(objective)
    model = engine.setup(objective)
    optimizer = build_optimizer(
        objective, config.optimizer, sparse_gradients=engine.sparse_gradients
    )
    check_metric(unsharded, validation, engine, evaluate=evaluate, config=run)
    # A bank's processor time counts as the run's; a checkpoint's figure has it in already.
    state = TrainState(cpu_seconds=bank_seconds)
    if start.checkpoint:
        state = load_checkpoint(start.checkpoint, objective, optimizer)
    end = max_steps
    if out_of_patience(state, run):
        end = state.step  # the run had stopped early, and only its last model is written again
    peak = peak_learning_rate(config.optimizer, max_steps)
    meter = Meter(engine, folder.checkpoints)
    clock = Clock(state.seconds, state.cpu_seconds, state.tokens)
    spent_before = engine.share(time.perf_counter() - began_at)
    pace = Pace(
        given.run.budget_seconds, max_steps, stops=run.stop_at_budget, spent_before=spent_before
    )
    loss_scale = LossScale(enabled=engine.precision == "fp16")
    term_gradients = TermGradients(engine, loss_scale)
    metrics = dict[str, float]()
    stop = False
    meter.load(state)
    loss_scale.load(state)
    make_step = TrainingStep(
        model=model,
        objective=objective,
        optimizer=optimizer,
        engine=engine,
        meter=meter,
        loss_scale=loss_scale,
        seed=run.seed,
        max_grad_norm=run.max_grad_norm,
    )
    first_step = state.step

    with (
        freed_memory_kept(),
        open_log(folder, config, engine, step=state.step, progress=progress) as log,
        Prefetcher(partial(batches.prepared, objective), state.step, stop_step=end) as prefetcher,
        Interrupts() as interrupts,
    ):
        exposure = exposure_lines(batches.expected(max_steps), batches.available, heading="planned")
        for line in batches.repeat_warnings():
            log.warn(line)
        for note in (*objective.notes(), *notes(config.optimizer, max_steps), *exposure):
            log.say(note)
        if state.best_step is not None and not folder.best.is_dir():
            log.say(
                f"the best model so far, of step {state.best_step}, stays with the run that made it"
            )

        def evaluated(done: int, batch: Any) -> dict[str, float]:
            began = clock.seconds
            require_finite(objective, engine, folder.checkpoints, done)
            engine.refresh(unsharded, objective)
            with in_words_of_training(folder.checkpoints, done):
                measured = measure(unsharded, validation, engine, evaluate=evaluate, step=done)
            best = update_best(state, measured.metrics, run)
            if best and engine.is_main:
                unsharded.save(folder.best)
            norms = term_gradients.measure(unsharded, batch)
            log.evaluation(done, measured.metrics, best=best, term_grad_norms=norms)
            if not done and (saturated := saturation_warning(measured.metrics, run)) is not None:
                log.warn(saturated)
            # Before the first step a student may be equal to its teacher, with a gradient of 0.
            if done:
                for line in term_gradients.warnings(norms, objective):
                    log.warn(line)
            if measured.spread is not None and (warning := measured.spread.warning()):
                log.warn(warning)
            # Waited for here, in the group of all: that of the shards may have a shorter timeout.
            engine.barrier()
            pace.evaluation_seconds = clock.seconds - began
            return measured.metrics

        # Training has to be better than what there was.
        if state.step == 0 and config.encoder.path is not None:
            metrics = evaluated(0, batches(0)[0])
            clock.leave_out()
        for step, micro_batches in enumerate(prefetcher, start=state.step):
            # What is due in this step: all processes decide the same.
            done = step + 1
            seconds = pace.agreed(clock.seconds, engine)
            ends = pace.is_over(seconds)
            logs = due(run.logging_steps, done, max_steps) or ends
            evaluates = due(run.eval_steps, done, max_steps) or ends
            saves = due(run.save_steps, done, max_steps) or ends
            position = pace.position(step, seconds)
            learning_rate = peak * learning_rate_factor(
                position, config=config.schedule, max_steps=max_steps
            )
            make_step(step, micro_batches, learning_rate=learning_rate, logs=logs)

            # Known after the first step only: whether the loss compares the rows of a batch.
            if step == first_step and (warning := fewer_negatives(config, batches, engine)):
                log.warn(warning)

            # Records, evaluation and checkpoint, in this order: a checkpoint holds the evaluation.
            state.step = done
            clock.count(micro_batches, engine.world_size)
            log.advance(done)
            if logs:
                log.train(done, meter.means(), learning_rate=learning_rate, **clock.rates())
            if evaluates:
                metrics = evaluated(done, micro_batches[0])
                stop = out_of_patience(state, run)
            if (late := pace.warning(done, seconds)) is not None:
                log.warn(late)
            interrupted = engine.any_at(interrupts.is_requested, done)
            if saves or stop or interrupted:
                require_finite(objective, engine, folder.checkpoints, done)
                meter.save(state)
                loss_scale.save(state)
                state.seconds = clock.seconds
                state.cpu_seconds = clock.cpu_seconds
                state.tokens = clock.tokens
                save_checkpoint(
                    folder.checkpoints, objective, optimizer, state, write=engine.is_main
                )
                if engine.is_main:
                    rotate(folder.checkpoints, keep=run.save_total_limit, best_step=state.best_step)
                engine.barrier()
            # The reasons to end before the last step.
            if interrupted and done < max_steps:
                return result_of(folder, config, state, clock, batches, metrics, interrupted=True)
            if stop:
                log.say(
                    f"step {done} | no better evaluation since step {state.best_step}: stopping"
                    " early"
                )
                break
            if ends:
                log.say(
                    f"step {done} | the budget of {pace.budget_seconds:,.0f} s is spent: stopping"
                )
                break
            clock.leave_out()  # evaluations and checkpoints are not part of the speed

        # The end: the last model is saved too, next to the best.
        engine.refresh(unsharded, objective)
        if engine.is_main:
            unsharded.save(folder.model)
        result = result_of(folder, config, state, clock, batches, metrics)
        log.final(state.step, result.to_record())
    return result
