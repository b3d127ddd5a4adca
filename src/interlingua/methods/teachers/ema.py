"""A teacher that is the exponential moving average of a student."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from interlingua.encoder.encoder import Encoder


def cosine_decay(step: int, *, base: float, total_steps: int) -> float:
    r"""Compute the decay at a step: BYOL (Grill et al. 2020), "Implementation details".

    tau_k = 1 - (1 - tau_base) (cos(pi k / K) + 1) / 2, so it rises from ``base`` at the first step
    to 1 at the last.

    *Symbols*: k ``step``; K ``total_steps``; tau_base ``base``. All unitless, in float64: 1 - tau
    vanishes in half precision. For a shorter run (a smaller K), keep the product (1 - base) K the
    same; otherwise the teacher hardly moves.
    """
    return 1 - (1 - base) * (math.cos(math.pi * step / total_steps) + 1) / 2


class EmaTeacher(nn.Module):
    """A copy of the student that follows it slowly and takes no gradients.

    Args:
        student: provides the initial weights; only ``update`` reads the student again.
        dropout: use dropout in training, with the student's rates; False: the teacher is always in
            evaluation mode.
        compensated: keep float32's rounding error, and add it to the next update (Kahan's sum). A
            weight w keeps an update only if the update is above w * 6e-8. With a decay of 0.99999
            and a student that differs by 0.1 %, the update is smaller. This option needs as much
            additional memory as the teacher.
    """

    def __init__(
        self, student: Encoder, *, dropout: bool = False, compensated: bool = False
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.encoder = student.clone().float()
        self.encoder.requires_grad_(False).eval()
        self.lost = nn.ParameterList()
        """Rounding error of each weight's updates; empty unless compensated."""
        if compensated:
            zeros = [torch.zeros_like(weight) for weight in self.encoder.parameters()]
            self.lost.extend(nn.Parameter(zero, requires_grad=False) for zero in zeros)

    def train(self, mode: bool = True) -> EmaTeacher:
        """Keep the evaluation mode of a teacher without dropout, whatever its parent does."""
        return super().train(mode and self.dropout)

    @torch.no_grad()
    def update(self, student: Encoder, decay: float) -> None:
        """Set the teacher to decay * teacher + (1 - decay) * student, after an optimizer step."""
        own: list[Tensor] = list(self.encoder.parameters())
        new = [
            weight.detach().to(mine.dtype)
            for mine, weight in zip(own, student.parameters(), strict=True)
        ]
        # One call for all weights, in place of one for each.
        if not self.lost:
            torch._foreach_lerp_(own, new, 1 - decay)
            return
        lost: list[Tensor] = list(self.lost)
        change = torch._foreach_sub(new, own)
        torch._foreach_mul_(change, 1 - decay)
        # From here on ``lost`` holds the update: the change, and what earlier updates lost.
        torch._foreach_add_(lost, change)
        del change  # as large as the teacher
        # ``arrived`` is the part of the update that the new weight contains; the rest is lost.
        # The order of these operations matters: any other order would round once more.
        arrived = torch._foreach_add(own, lost)
        torch._foreach_sub_(arrived, own)
        torch._foreach_add_(own, lost)
        torch._foreach_sub_(lost, arrived)
