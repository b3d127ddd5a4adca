"""One step of training: gradients of its micro-batches, their norm, and the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from interlingua.errors import ConfigError
from interlingua.methods.objective import Objective
from interlingua.training.log import Meter
from interlingua.training.machine.engine import Engine
from interlingua.training.optimization.loss_scale import LossScale
from interlingua.training.optimization.optim import set_learning_rate


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingStep:
    """Training steps of a run. On a GPU, a step waits for the device only to read the norm in fp16.

    Attributes:
        model: the objective as the engine has set it up.
        objective: the objective itself.
        optimizer: of the objective's weights.
        engine: this process's.
        meter: receives the losses of each step.
        loss_scale: of fp16.
        seed: of the run.
        max_grad_norm: norm to which gradients are clipped; None = no clipping.
    """

    model: nn.Module
    objective: Objective
    optimizer: torch.optim.Optimizer
    engine: Engine
    meter: Meter
    loss_scale: LossScale
    seed: int
    max_grad_norm: float | None

    def __call__(
        self, step: int, micro_batches: Sequence[Any], *, learning_rate: float, logs: bool
    ) -> None:
        """Move the weights once.

        Args:
            step: of the run.
            micro_batches: of this process.
            learning_rate: of this step.
            logs: whether the norm of the gradients is measured even if nothing else needs it.

        Raises:
            NotFiniteError: see ``Meter.add``.
        """
        set_learning_rate(self.optimizer, learning_rate)
        losses = gradients(
            self.model,
            self.objective,
            micro_batches,
            self.engine,
            seed=self.seed,
            step=step,
            loss_scale=self.loss_scale,
        )
        self.loss_scale.unscale(self.objective)
        # In fp16 a norm that is not finite means that the loss scale is too large: the step is
        # skipped, and the norm is not passed to the meter, which would end the run.
        finite = True
        if self.max_grad_norm is not None or logs or self.loss_scale.enabled:
            grad_norm = self.engine.clip(self.objective, self.max_grad_norm)
            finite = self.loss_scale.is_finite(grad_norm)
            if finite:
                losses["grad_norm"] = grad_norm
        self.meter.add(step, losses)
        if finite:
            self.optimizer.step()
        self.optimizer.zero_grad()
        self.loss_scale.adapt(finite=finite)
        self.objective.after_step(step)


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
    """Run forward and backward passes over a step's micro-batches, which all count equally.

    Parts of the loss are backpropagated in turn, which adds up to the gradient of their sum. The
    random numbers of a micro-batch depend on (seed, step, its place, rank) and nothing else.

    Args:
        model: the objective as the engine has set it up.
        objective: the objective itself.
        batches: the micro-batches.
        engine: this process's.
        seed: of the run.
        step: of the run.
        loss_scale: multiplies the loss before it is differentiated; the caller must divide the
            gradients by the scale.

    Returns:
        the loss and its terms, mean over the micro-batches.

    Raises:
        ConfigError: the loss has no gradient.
    """
    count = len(batches)
    loss_scale = loss_scale or LossScale(enabled=False)
    parts: tuple[str | None, ...] = objective.parts or (None,)  # None: the whole loss
    measured: dict[str, Tensor] = {}
    for place, batch in enumerate(batches):
        engine.seed(seed, "step", step, "micro-batch", place)
        for part in parts:
            # The processes average their gradients only in the last backward pass of the step.
            last = part == parts[-1] and place + 1 == count
            with engine.accumulate(model, more=not last):
                output = model(batch) if part is None else model(batch, part=part)
                if not output.loss.requires_grad:
                    raise ConfigError(
                        f"method {type(objective).__name__}: the loss depends on no trained"
                        " weight; remove detach() and torch.no_grad() from forward"
                    )
                engine.backward(loss_scale.scale(output.loss / count))
            for name, value in {"loss": output.loss, **output.terms}.items():
                share = value.detach() / count
                measured[name] = measured[name] + share if name in measured else share
    return measured
