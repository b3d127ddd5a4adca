"""The training loop: read ``run_training`` from top to bottom.

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

from interlingua.batches.prefetch import Prefetcher
from interlingua.config import with_absolute_paths
from interlingua.methods.objective import Objective
from interlingua.runtime.processes import is_first_process
from interlingua.training.banks import Banks
from interlingua.training.budget import Pace, fix_length
from interlingua.training.build import (
    MicroBatches,
    build_objective,
    feeds_of,
    fewer_negatives,
    remember_lengths,
)
from interlingua.training.checkpoint import (
    TrainState,
    load_checkpoint,
    remove_old_checkpoints,
    save_checkpoint,
)
from interlingua.training.config import TrainConfig
from interlingua.training.exposure import exposure_lines
from interlingua.training.feeds.open_feeds import TrainingData, open_data
from interlingua.training.log import Meter, RunLog, open_log, require_finite, warn
from interlingua.training.machine.engine import Engine
from interlingua.training.machine.interrupts import Interrupts
from interlingua.training.machine.memory import freed_memory_kept
from interlingua.training.optimization.loss_scale import LossScale
from interlingua.training.optimization.optim import build_optimizer
from interlingua.training.optimization.schedules import due, learning_rate_at, notes
from interlingua.training.result import Clock, TrainResult, read_run_result, result_of
from interlingua.training.run_folder import RunFolder, Start
from interlingua.training.step import TrainingStep
from interlingua.training.validation import Evaluate, RunEvaluation, out_of_patience, valid_batches


def run_training(
    config: TrainConfig,
    *,
    evaluate: Evaluate | None = None,
    resume: str | Path = "auto",
    progress: bool = False,
) -> TrainResult:
    """Train an encoder, or resume the run in the output folder.

    Args:
        config: the whole run.
        evaluate: is called with the encoder and the step at each evaluation, and returns further
            metrics by name.
        resume: "auto" resumes from the newest undamaged checkpoint of the output folder, "never"
            starts over and removes what is there, a path resumes from that checkpoint.
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
    # The first step and the length of the run.
    given = with_absolute_paths(config)
    folder = RunFolder(given.run.output)
    # One process locks the folder for all.
    with folder.alone() if is_first_process() else contextlib.nullcontext():
        start = folder.start(given, resume, warn)
        if resume == "auto" and start.checkpoint is not None:
            finished = read_run_result(folder)
            if finished is not None:
                return finished
        data = open_data(given, feeds_of(given.method))
        digests = data.digests(given.data)
        if start.checkpoint is not None and is_first_process():
            RunFolder(start.checkpoint.parent.parent).compare(digests, warn)
        if is_first_process():
            data.verify()
        # From here on there may be several processes, each of which has run the code above.
        with Engine(start.config.run) as engine:
            if start.devices not in (None, engine.world_size):
                warn(
                    f"this run began with {start.devices} processes and continues with"
                    f" {engine.world_size}; results may differ by rounding"
                )
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
    config = engine.resolve_hardware(start.config)

    # Everything is built once. ``setup`` may shard the weights, so the whole copy is made before
    # ``setup``; the optimizer, which refers to the weights, is built after it.
    objective = build_objective(config, data.vocabulary, data.languages).to(engine.device).train()
    batches = MicroBatches(config, data.train, objective.encoder.max_tokens, engine)
    validation = valid_batches(config, data, batches)
    remember_lengths(objective, config)
    new_dense = config.encoder.dense and start.checkpoint is None
    banks = Banks(objective, batches, engine, new_dense=new_dense)
    unsharded = engine.unsharded_copy(objective)
    model = engine.setup(objective)
    optimizer = build_optimizer(
        objective, config.optimizer, sparse_gradients=engine.sparse_gradients
    )
    meter = Meter(engine, folder.checkpoints)
    loss_scale = LossScale(enabled=engine.precision == "fp16")
    make_step = TrainingStep(
        model=model,
        objective=objective,
        optimizer=optimizer,
        engine=engine,
        meter=meter,
        loss_scale=loss_scale,
        seed=config.run.seed,
        max_grad_norm=config.run.max_grad_norm,
    )
    evaluation = RunEvaluation(
        objective, unsharded, validation, engine, evaluate, folder, loss_scale=loss_scale
    )
    evaluation.check_metric(config.run)

    # How long is the run? With a time budget it measures the time of some first steps, and then
    # undoes them.
    config = fix_length(config, make_step, batches, evaluation, began_at)
    run, max_steps = config.run, config.length
    objective.total_steps = unsharded.total_steps = max_steps
    if engine.is_main:
        folder.begin(given, config, digests=digests, fresh=start.checkpoint is None)
    engine.barrier()

    # The state: that of the checkpoint, or of step 0. The processor time of the run includes that
    # of the banks; the value in a checkpoint already contains it.
    bank_seconds = banks.fill(validation, steps=max_steps, folder=folder.path, unsharded=unsharded)
    state = TrainState(cpu_seconds=bank_seconds)
    if start.checkpoint:
        state = load_checkpoint(start.checkpoint, objective, optimizer)
    first_step = state.step
    end = max_steps
    if out_of_patience(state, run):
        end = first_step  # the run had stopped early, and only its last model is written again
    meter.load(state)
    loss_scale.load(state)
    clock = Clock(state)
    spent_before = engine.share(time.perf_counter() - began_at)
    pace = Pace(
        given.run.budget_seconds, max_steps, stops=run.stop_at_budget, spent_before=spent_before
    )
    metrics = dict[str, float]()
    stop = False

    with (
        freed_memory_kept(),
        open_log(folder, config, engine, step=first_step, progress=progress) as log,
        Prefetcher(partial(batches.prepared, objective), first_step, stop_step=end) as prefetcher,
        Interrupts() as interrupts,
    ):
        _announce(log, folder, config, objective, batches, state)
        # The trained model has to be better than the pretrained one.
        if first_step == 0 and config.encoder.path is not None:
            metrics = evaluation.record(state, batches(0)[0], run, log)
            pace.evaluation_seconds = evaluation.seconds
            clock.leave_out()
        for step, micro_batches in enumerate(prefetcher, start=first_step):
            # The actions due in this step: all processes decide the same.
            done = step + 1
            seconds = pace.agreed(clock.seconds, engine)
            ends = pace.is_over(seconds)
            logs = due(run.logging_steps, done, max_steps) or ends
            evaluates = due(run.eval_steps, done, max_steps) or ends
            saves = due(run.save_steps, done, max_steps) or ends
            learning_rate = learning_rate_at(pace.position(step, seconds), config)
            make_step(step, micro_batches, learning_rate=learning_rate, logs=logs)

            # Only the first step shows whether the loss compares the rows of a batch.
            if step == first_step and (warning := fewer_negatives(config, batches, engine)):
                log.warn(warning)

            # Records, evaluation and checkpoint, in this order: a checkpoint holds the evaluation.
            state.step = done
            clock.count(micro_batches, engine.world_size)
            log.advance(done)
            if logs:
                log.train(done, meter.means(), learning_rate=learning_rate, **clock.rates())
            if evaluates:
                metrics = evaluation.record(state, micro_batches[0], run, log)
                pace.evaluation_seconds = evaluation.seconds
                stop = out_of_patience(state, run)
            if (late := pace.warning(done, seconds)) is not None:
                log.warn(late)
            interrupted = engine.any_at(interrupts.is_requested, done)
            if saves or stop or interrupted:
                require_finite(objective, engine, folder.checkpoints, done)
                for part in (meter, loss_scale, clock):
                    part.save(state)
                save_checkpoint(
                    folder.checkpoints, objective, optimizer, state, write=engine.is_main
                )
                if engine.is_main:
                    remove_old_checkpoints(
                        folder.checkpoints, keep=run.save_total_limit, best_step=state.best_step
                    )
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
                    f"step {done} | the budget of {pace.budget_seconds:,.0f} s is used up: stopping"
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


def _announce(
    log: RunLog,
    folder: RunFolder,
    config: TrainConfig,
    objective: Objective,
    batches: MicroBatches,
    state: TrainState,
) -> None:
    """Show the plan of the run."""
    steps = config.length
    for line in batches.repeat_warnings():
        log.warn(line)
    exposure = exposure_lines(batches.expected(steps), batches.available, heading="planned")
    for note in (*objective.notes(), *notes(config.optimizer, steps), *exposure):
        log.say(note)
    if state.best_step is not None and not folder.best.is_dir():
        log.say(
            f"the best model so far, of step {state.best_step}, stays in the folder of the"
            " earlier run"
        )
