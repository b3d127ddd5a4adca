"""Loss scaling for fp16 (Micikevicius et al. 2018), as torch's ``GradScaler`` does it.

In fp16 small gradients round to 0. The loss is multiplied by a large number before the backward
pass and the gradients are divided by it afterwards. If a gradient is not finite, the number was too
large: the step is skipped and the number is halved. After 2,000 steps in a row with finite
gradients the number is doubled. The number and the count of these steps belong to the state of a
run, so that a resumed run gives the same result as an uninterrupted one.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from interlingua.training.checkpoint import TrainState

GROWTH_STEPS = 2_000
"""Steps in a row with finite gradients, as in ``GradScaler``."""


class LossScale:
    """The number that losses are multiplied by.

    Args:
        enabled: whether losses are scaled; otherwise the number is 1, and nothing is done.
    """

    def __init__(self, *, enabled: bool) -> None:
        self.enabled = enabled
        self.value = TrainState().loss_scale if enabled else 1.0
        self._good_steps = 0

    def scale(self, loss: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Return the loss to differentiate."""
        if not self.enabled:
            return loss
        return loss * self.value

    @torch.no_grad()
    def unscale(self, objective: nn.Module) -> None:
        """Divide all gradients by the number."""
        if not self.enabled:
            return
        # The number is a power of two, so the product with its inverse is exact.
        for weight in objective.parameters():
            if weight.grad is not None:
                weight.grad.mul_(1 / self.value)

    def is_finite(self, norm: Float[Tensor, ""]) -> bool:
        """Return whether the norm of all gradients is finite; always true without a scale.

        This is the only place where a step in fp16 waits for the GPU.
        """
        if not self.enabled:
            return True
        return bool(norm.isfinite())

    def adapt(self, *, finite: bool) -> None:
        """Halve the number if the gradients are not finite; double it after many finite steps."""
        if not self.enabled:
            return
        if not finite:
            self.value /= 2
            self._good_steps = 0
            return
        # Doubling finds the largest number that fits, as the gradients become smaller.
        self._good_steps += 1
        if self._good_steps == GROWTH_STEPS:
            self.value *= 2
            self._good_steps = 0

    def save(self, state: TrainState) -> None:
        """Write the number into the state of the run."""
        if self.enabled:
            state.loss_scale = self.value
            state.loss_scale_steps = self._good_steps

    def load(self, state: TrainState) -> None:
        """Restore the number that ``save`` stored."""
        if self.enabled:
            self.value = state.loss_scale
            self._good_steps = state.loss_scale_steps
