"""The smallest and the largest number that each option of a run may be.

The bounds are not advice: a value between them may still be a bad choice. A value beyond them can't
work or would crash the process, so it is refused with an error that names the option.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from interlingua.config import ABOVE_ZERO, BELOW_ONE, check_bounds

MANY = 10**12
"""Steps, sentences or seconds: more than any run has."""
RUN_BOUNDS: dict[str, tuple[float, float]] = {
    "max_steps": (1, MANY),
    "num_train_epochs": (0, 1e9),
    "budget_seconds": (0, 1e9),
    "global_batch_size": (1, 2**31),
    "micro_batch_size": (1, 2**31),
    "gradcache_sentences": (1, 2**31),
    "devices": (1, 256),
    "threads": (1, 1024),  # torch starts them all, and dies of a million
    "save_total_limit": (1, MANY),
    "max_grad_norm": (ABOVE_ZERO, 1e38),
    "logging_steps": (ABOVE_ZERO, MANY),
    "eval_steps": (ABOVE_ZERO, MANY),
    "save_steps": (ABOVE_ZERO, MANY),
    "early_stopping_patience": (1, MANY),
}
OPTIMIZER_BOUNDS: dict[str, tuple[float, float]] = {
    "learning_rate": (ABOVE_ZERO, 1e38),
    "learning_rate_steps": (0, MANY),
    "betas": (0, BELOW_ONE),
    "eps": (ABOVE_ZERO, 1),
    "weight_decay": (0, 1e6),
    "momentum": (0, BELOW_ONE),
    "trust_coefficient": (ABOVE_ZERO, 1e6),
}
SCHEDULE_BOUNDS: dict[str, tuple[float, float]] = {
    "warmup_steps": (0, MANY),
    "warmup_start": (0, 1),
}
METHOD_BOUNDS: dict[str, tuple[float, float]] = {
    "_dim": (1, 65_536),
    "_layers": (0, 1_000),
    "_heads": (1, 1_024),
    "_size": (1, 2**31),
    "_steps": (0, MANY),
    "_weight": (-1e6, 1e6),
    "temperature": (1e-6, 1e6),
    "dropout": (0, BELOW_ONE),
    "decay": (0, 1),
    "margin": (-1e6, 1e6),
}
"""Of a method's options, by how their names end."""


def check_method(options: Any, where: str) -> None:
    """Refuses numbers of a method's options that are out of range.

    Args:
        options: an instance of the method's ``Config``.
        where: what errors call it.

    Raises:
        ConfigError: one is.
    """
    for option in dataclasses.fields(options):
        value = getattr(options, option.name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        # the first of the endings that fits
        fitting = [bounds for end, bounds in METHOD_BOUNDS.items() if option.name.endswith(end)]
        bounds = next(iter(fitting), (-MANY, MANY))
        check_bounds(options, where, {option.name: bounds})
