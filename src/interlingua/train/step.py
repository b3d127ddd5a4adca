"""One step's gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from interlingua.train.engine import Engine


def gradients(
    model: nn.Module, batches: Sequence[Any], engine: Engine, *, seed: int, step: int
) -> dict[str, Float[Tensor, ""]]:
    """Forward and backward over a step's micro-batches; each counts the same.

    The random numbers of a micro-batch depend on (seed, step, its place, rank) and nothing else.

    Returns:
        the loss and its terms, mean over the micro-batches.
    """
    count = len(batches)
    measured: dict[str, Tensor] = {}
    for place, batch in enumerate(batches):
        engine.seed(seed, "step", step, "micro-batch", place)
        with engine.accumulate(model, more=place + 1 < count):
            output = model(batch)
            engine.backward(output.loss / count)
        for name, value in {"loss": output.loss, **output.terms}.items():
            share = value.detach() / count
            measured[name] = measured[name] + share if name in measured else share
    return measured
