"""The evaluations of a run: loss on fixed batches, collapse, and the caller's own metrics.

Only the main process measures, on batches that depend neither on the number of processes nor on the
size of a micro-batch, so that the curves of two runs can be compared.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import torch

from interlingua.batches.feeds import FeedName, Plan, token_batches
from interlingua.corpus.samples.sampling import Caps
from interlingua.errors import ConfigError
from interlingua.methods.objective import Objective
from interlingua.training.build import MicroBatches, batch_of
from interlingua.training.checkpoint import TrainState
from interlingua.training.config import RunConfig, TrainConfig
from interlingua.training.feeds.open_feeds import TrainingData, make_plan
from interlingua.training.log import RunLog, in_words_of_training, require_finite
from interlingua.training.machine.engine import Engine
from interlingua.training.monitors import Spread, spread
from interlingua.training.optimization.loss_scale import LossScale
from interlingua.training.optimization.term_gradients import TermGradients
from interlingua.training.run_folder import RunFolder

Evaluate = Callable[[Any, int], dict[str, float]]
VALID_LOSS = "valid_loss"
SPREAD_SENTENCES = 512
"""Number of validation sentences that the spread of the embeddings is measured on."""


class ValidationResult(NamedTuple):
    """Result of one evaluation."""

    metrics: dict[str, float]
    spread: Spread | None


def valid_batches(config: TrainConfig, data: TrainingData, batches: MicroBatches) -> list[Any]:
    """Return fixed validation batches, for any number of processes and any micro-batch size.

    All have the same size, because in-batch negatives make losses of batches of different sizes
    incomparable.

    Args:
        config: specifies the maximum number of rows, and the size of a batch, which is smaller only
            if there are fewer rows.
        data: if the method's main feed has no validation rows there are no batches; if another feed
            has none, its training rows are taken.
        batches: of training; they give the proportion of the other feeds' rows.
    """
    main = next(iter(data.train))
    count = min(config.data.valid_pairs, len(data.valid.get(main, ())))
    if count < 2:
        return []  # a single row has nothing to be compared with
    size = min(config.data.valid_batch_size or config.run.global_batch_size, count)
    # In the proportions of the data, not in those of the training mixture.
    unmixed = dataclasses.replace(config.data, temperature=1.0, caps=Caps())
    plans: dict[FeedName, Plan] = {}
    for feed, plan in batches.plans.items():
        batch_size = size
        if feed != main:
            # as many rows for each row of the main feed as in training
            batch_size = max(1, plan.global_batch_size * size // config.run.global_batch_size)
        plans[feed] = make_plan(
            feed,
            data.valid.get(feed, data.train[feed]),
            unmixed,
            batch_size=batch_size,
            max_tokens=batches.max_tokens,
            seed=0,
        )
    return [batch_of(plans, step) for step in range(count // size)]


def measure_validation(
    objective: Objective,
    batches: Sequence[Any],
    engine: Engine,
    *,
    evaluate: Evaluate | None,
    step: int,
) -> ValidationResult:
    """Measure the validation loss with its terms, the spread, and the caller's own metrics.

    Dropout is off.

    Args:
        objective: is in training mode again afterwards.
        batches: see ``valid_batches``.
        engine: only its main process measures, all get the result.
        evaluate: is called with ``objective.evaluated``, mostly the encoder, and the step; returns
            metrics by name.
        step: optimizer steps done.
    """
    measured = None
    if engine.is_main:
        objective.eval()
        with engine.alone(objective):
            metrics, found = _on_batches(objective, batches, engine)
        if evaluate is not None:
            metrics |= evaluate(objective.evaluated, step)
        measured = ValidationResult(metrics, found)
        objective.train()
    shared = engine.share(measured)
    assert shared is not None
    return shared


class RunEvaluation:
    """Periodic evaluation of a run, which records the results and keeps the best model.

    All processes must call its methods; the main one measures.

    Args:
        objective: the objective in training.
        unsharded: the same, or a whole copy of it, which is evaluated and saved.
        batches: see ``valid_batches``.
        engine: of this process.
        evaluate: see ``measure_validation``.
        folder: of the run.
        loss_scale: of fp16, for the gradients of the terms.

    Attributes:
        seconds: wall time of the last evaluation that was recorded.
    """

    def __init__(
        self,
        objective: Objective,
        unsharded: Objective,
        batches: Sequence[Any],
        engine: Engine,
        evaluate: Evaluate | None,
        folder: RunFolder,
        *,
        loss_scale: LossScale,
    ) -> None:
        self._objective = objective
        self._unsharded = unsharded
        self._batches = batches
        self._engine = engine
        self._evaluate = evaluate
        self._folder = folder
        self._term_gradients = TermGradients(engine, loss_scale)
        self.seconds = 0.0

    def check_metric(self, config: RunConfig) -> None:
        """Check that the metric of the best model will be measured; see ``check_metric``."""
        check_metric(
            self._unsharded, self._batches, self._engine, evaluate=self._evaluate, config=config
        )

    def measure(self, step: int, batch: Any) -> tuple[ValidationResult, dict[str, float]]:
        """Measure the present weights without a record.

        Args:
            step: optimizer steps done.
            batch: a micro-batch of this process.

        Returns:
            the measures, and the norms of the terms' gradients.

        Raises:
            NotFiniteError: a weight or a vector is NaN or infinite.
        """
        require_finite(self._objective, self._engine, self._folder.checkpoints, step)
        self._engine.refresh(self._unsharded, self._objective)
        with in_words_of_training(self._folder.checkpoints, step):
            measured = measure_validation(
                self._unsharded, self._batches, self._engine, evaluate=self._evaluate, step=step
            )
        return measured, self._term_gradients.measure(self._unsharded, batch)

    def record(
        self, state: TrainState, batch: Any, config: RunConfig, log: RunLog
    ) -> dict[str, float]:
        """Measure the model, save it if it is the best so far, and write a record with warnings.

        Args:
            state: of the run; it is updated with the result of the evaluation.
            batch: a micro-batch of this process.
            config: specifies the metric of the best model.
            log: receives the record.

        Returns:
            the measures by name.

        Raises:
            NotFiniteError: see ``measure``.
        """
        began = time.perf_counter()
        step = state.step
        (metrics, found_spread), norms = self.measure(step, batch)
        best = update_best(state, metrics, config)
        if best and self._engine.is_main:
            self._unsharded.save(self._folder.best)
        log.evaluation(step, metrics, best=best, term_grad_norms=norms)
        if not step and (saturated := saturation_warning(metrics, config)) is not None:
            log.warn(saturated)
        # Before the first step a student may be equal to its teacher, with a gradient of 0.
        if step:
            for line in self._term_gradients.warnings(norms, self._objective):
                log.warn(line)
        if found_spread is not None and (warning := found_spread.warning()):
            log.warn(warning)
        # Wait here, in the group of all processes: the group of the shards may have a shorter
        # timeout.
        self._engine.barrier()
        self.seconds = time.perf_counter() - began
        return metrics


def check_metric(
    objective: Objective,
    batches: Sequence[Any],
    engine: Engine,
    *,
    evaluate: Evaluate | None,
    config: RunConfig,
) -> None:
    """Check before the first step that the metric of the best model will be measured.

    Args:
        objective: is called with one batch if the name of the metric is not sufficient.
        batches: see ``valid_batches``.
        engine: see ``measure_validation``.
        evaluate: a function with an attribute ``names`` that lists its metrics; a function without
            this attribute can't be checked.
        config: specifies the metric.

    Raises:
        ConfigError: it is not measured.
    """
    name = config.metric_for_best_model
    evaluated = () if evaluate is None else getattr(evaluate, "names", None)
    if evaluated is None or name in evaluated or (name == VALID_LOSS and batches):
        return
    measured = measure_validation(objective, batches[:1], engine, evaluate=None, step=0).metrics
    if name not in measured:
        raise _unmeasured(name, (*measured, *evaluated))


def update_best(state: TrainState, metrics: dict[str, float], config: RunConfig) -> bool:
    """Enter an evaluation into the state.

    If the metric is saturated, which may be the case before the first step, no later evaluation can
    improve it. Then the validation loss decides among evaluations with equal values.

    Returns:
        whether it is the best so far; a value that is not finite never is.

    Raises:
        ConfigError: the metric that decides was not measured.
    """
    name = config.metric_for_best_model
    if name not in metrics:
        raise _unmeasured(name, metrics)
    value = metrics[name]
    compare = operator.gt if _is_greater_better(config) else operator.lt
    best = state.best_metric
    loss = metrics.get(VALID_LOSS, math.nan)
    # The comparison is strict: of equal evaluations the first stays the best.
    better = math.isfinite(value) and (best is None or compare(value, best))
    if value == best and is_saturated(value, config) and state.best_loss is not None:
        better = loss < state.best_loss
    if better:
        state.best_metric = value
        state.best_loss = loss if math.isfinite(loss) else None
        state.best_step = state.step
        state.evaluations_since_best = 0
    else:
        state.evaluations_since_best += 1
    return better


def _is_greater_better(config: RunConfig) -> bool:
    """Return whether a higher value of the metric is better.

    The name of the metric decides unless the config sets ``greater_is_better``.
    """
    if config.greater_is_better is None:
        return not config.metric_for_best_model.endswith("loss")
    return config.greater_is_better


def is_saturated(value: float, config: RunConfig) -> bool:
    """Return whether the metric has the best value that a share in [0, 1] can have."""
    return value == (1.0 if _is_greater_better(config) else 0.0)


def saturation_warning(metrics: dict[str, float], config: RunConfig) -> str | None:
    """Return a warning if the metric can't get better than before the first step.

    Otherwise return None.
    """
    name = config.metric_for_best_model
    value = metrics[name]
    if not is_saturated(value, config):
        return None
    outcome = "the model at the start stays the best"
    if math.isfinite(metrics.get(VALID_LOSS, math.nan)):
        outcome = f"{VALID_LOSS} decides among evaluations with this value"
    return (
        f"{name} is {value:g} before the first step and cannot improve: {outcome}; use a harder"
        " test, or another metric_for_best_model"
    )


def _unmeasured(name: str, known: Collection[str]) -> ConfigError:
    there = ", ".join(known) or "none, because there are no validation pairs"
    return ConfigError(f"run: metric_for_best_model {name!r} is not measured; use one of: {there}")


def out_of_patience(state: TrainState, config: RunConfig) -> bool:
    """Return whether the run ends because too many evaluations in a row were no better."""
    patience = config.early_stopping_patience
    return patience is not None and state.evaluations_since_best >= patience


@torch.no_grad()
def _on_batches(
    objective: Objective, batches: Sequence[Any], engine: Engine
) -> tuple[dict[str, float], Spread | None]:
    if not batches:
        return {}, None
    sums: dict[str, float] = {}
    embeddings: list[torch.Tensor] = []
    for batch in batches:
        with engine.autocast():
            output = objective(batch)
            # of the first side only: translations of one another are meant to be close
            if sum(map(len, embeddings)) < SPREAD_SENTENCES:
                embeddings.append(objective.encoder(next(token_batches(batch))).float())
        for name, value in {"loss": output.loss, **output.terms}.items():
            sums[f"valid_{name}"] = sums.get(f"valid_{name}", 0.0) + value.item()
    measured = {name: value / len(batches) for name, value in sums.items()}
    found = spread(torch.cat(embeddings)[:SPREAD_SENTENCES])
    measured |= {f"embedding_{name}": value for name, value in found._asdict().items()}
    return measured, found
