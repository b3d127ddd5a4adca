"""One step's gradients: forward and backward over its micro-batches and the parts of the loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from interlingua.methods.objective import Objective
from interlingua.train.engine import Engine
from interlingua.train.loss_scale import LossScale


def gradients(
    model: nn.Module,
    objective: Objective,
    batches: Sequence[Any],
    engine: Engine,
    *,
    seed: int,
    step: int,
    loss_scale: LossScale | None = None,
) -> dict[str, Float[Tensor, ""]]:
    """Forward and backward passes over a step's micro-batches, all with the same weight.

    Parts of the loss are backpropagated in turn, which adds up to the gradient of their sum. The
    random numbers of a micro-batch depend on (seed, step, its place, rank) and nothing else.

    Args:
        model: the objective as the engine has set it up.
        objective: the objective itself.
        batches: the micro-batches.
        engine: this process's.
        seed: of the run.
        step: of the run.
        loss_scale: multiplies what is differentiated; the gradients are still to be divided by it.

    Returns:
        the loss and its terms, mean over the micro-batches.
    """
    count = len(batches)
    loss_scale = loss_scale or LossScale(enabled=False)
    parts: tuple[str | None, ...] = objective.parts or (None,)  # None: the whole loss
    measured: dict[str, Tensor] = {}
    for place, batch in enumerate(batches):
        engine.seed(seed, "step", step, "micro-batch", place)
        for part in parts:
            # The processes average their gradients in the last backward pass of the step alone.
            last = part == parts[-1] and place + 1 == count
            with engine.accumulate(model, more=not last):
                output = model(batch) if part is None else model(batch, part=part)
                engine.backward(loss_scale.scale(output.loss / count))
            for name, value in {"loss": output.loss, **output.terms}.items():
                share = value.detach() / count
                measured[name] = measured[name] + share if name in measured else share
    return measured
