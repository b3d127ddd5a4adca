r"""The learning rate as a pure function of the step.

Steps count from 0 and the warm-up reaches the peak in its last step: the factor of step t is (t +
1) / W for t < W, so that no step is spent at a learning rate of 0 (unless ``warmup_start`` asks for
another ramp).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from interlingua.training.config import OptimizerConfig, ScheduleConfig, TrainConfig

LARS_DIVERGES = 0.01
"""Limit of a step's length before momentum, as a share of a matrix's norm: runs with longer steps
have diverged."""
EMS_RUNS_PER_COSINE = 5
"""EMS anneals over 15 epochs and stops after 3."""


def steps_of(value: float, max_steps: int) -> int:
    """Return a number of steps; a value below 1 is a share of the run.

    A share is at least one step; 0 stays 0.
    """
    if value >= 1:
        return int(value)
    if value <= 0:
        return 0
    return max(1, round(value * max_steps))


def due(every: float, done: int, max_steps: int) -> bool:
    """Return whether something periodic is due; it always is after the last step.

    Args:
        every: steps, or a share of the run.
        done: optimizer steps done.
        max_steps: length of the run.
    """
    return done % steps_of(every, max_steps) == 0 or done == max_steps


def learning_rate_factor(step: int, *, config: ScheduleConfig, max_steps: int) -> float:
    r"""Compute the factor of the peak learning rate in a step, in [0, 1].

    With warm-up length W, run length N and w = min(1, (t + 1) / W):

    - constant: w
    - linear: w before W, then (N - t) / (N - W)
    - cosine: w before W, then (1 + cos(pi (t - W) / (N - W))) / 2
    - ems: w (1 + cos(pi t / 5N)) / 2, the shape of the released EMS code
    - ramp: w, with W = N

    With ``warmup_start`` s, w = min(1, s + (1 - s) t / W) instead.

    Args:
        step: t, from 0.
        config: name and warm-up.
        max_steps: N.
    """
    warmup = steps_of(config.warmup_steps, max_steps)
    if config.name == "ramp":
        warmup = max_steps
    factor = _warm(step, warmup, config.warmup_start)
    # EMS multiplies its cosine into the warm-up; the other decays start after it.
    if config.name == "ems":
        return factor * (1 + math.cos(math.pi * step / (EMS_RUNS_PER_COSINE * max_steps))) / 2
    if config.name in ("constant", "ramp") or step < warmup:
        return factor
    return _DECAYS[config.name]((step - warmup) / max(1, max_steps - warmup))


def learning_rate_at(step: int, config: TrainConfig) -> float:
    """Return the learning rate of a step, counted from 0; the config must have ``max_steps``."""
    factor = learning_rate_factor(step, config=config.schedule, max_steps=config.length)
    return peak_learning_rate(config.optimizer, config.length) * factor


def peak_learning_rate(config: OptimizerConfig, max_steps: int) -> float:
    """Compute the learning rate that the factors multiply.

    It is the rate of the config, or, with ``learning_rate_steps``, the rate at which the product of
    rate and number of steps stays the same.
    """
    if not config.learning_rate_steps:
        return config.rate
    return config.rate * config.learning_rate_steps / max_steps


def notes(config: OptimizerConfig, max_steps: int) -> list[str]:
    """Return lines for the user if the run's length decides the peak."""
    if not config.learning_rate_steps:
        return []
    kept = config.rate * config.learning_rate_steps
    peak = peak_learning_rate(config, max_steps)
    lines = [
        f"learning rate: learning_rate * steps = {kept:.4g} is kept, so {config.rate:g} for"
        f" {config.learning_rate_steps:,} steps becomes {peak:.4g} for {max_steps:,}"
    ]
    # LARS's step is this share of a matrix's norm, whatever the gradient: a short run that keeps
    # the product may need steps that are too long for training.
    share = peak * config.trust_coefficient
    if config.name == "lars" and share > LARS_DIVERGES:
        enough = math.ceil(kept * config.trust_coefficient / LARS_DIVERGES)
        lines.append(
            f"warning: steps of {share:.1%} of a matrix's norm are likely to diverge; train at"
            f" least {enough:,} steps, or set optimizer.learning_rate_steps=0 and choose the"
            " rate by the validation loss"
        )
    return lines


def _warm(step: int, warmup: int, start: float | None) -> float:
    """Return only the factor of the warm-up; it is 1 afterwards."""
    if not warmup:
        return 1.0
    factor = (step + 1) / warmup
    if start is not None:
        factor = start + (1 - start) * step / warmup
    return min(1.0, factor)


_DECAYS: dict[str, Callable[[float], float]] = {
    "linear": lambda done: 1 - done,
    "cosine": lambda done: (1 + math.cos(math.pi * done)) / 2,
}
