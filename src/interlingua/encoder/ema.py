"""A teacher that is the exponential moving average of a student."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from interlingua.encoder.encoder import Encoder


def cosine_decay(step: int, *, base: float, total_steps: int) -> float:
    r"""Decay of the average at a step: BYOL (Grill et al. 2020), "Implementation details".

    tau_k = 1 - (1 - tau_base) (cos(pi k / K) + 1) / 2, so it rises from ``base`` at the first step
    to 1 at the last.

    *Symbols*: k ``step``; K ``total_steps``; tau_base ``base``. All unitless, in float64: 1 - tau
    vanishes in half precision. When K is scaled down, keep (1 - base) K, else the teacher hardly
    moves.
    """
    return 1 - (1 - base) * (math.cos(math.pi * step / total_steps) + 1) / 2


class EmaTeacher(nn.Module):
    """A copy of the student that follows it slowly and takes no gradients.

    Args:
        student: where it starts; only ``update`` looks at the student again.
        dropout: drop out in training, with the student's rates; without, it is always in evaluation
            mode.
        compensated: keep what float32 rounds off, and add it to the next update (Kahan's sum). A
            weight w keeps an update only if that is above w * 6e-8: with a decay of 0.99999 and a
            student 0.1 % away, it is not. Costs the teacher's memory a second time.
    """

    def __init__(
        self, student: Encoder, *, dropout: bool = False, compensated: bool = False
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.encoder = student.clone().float()
        self.encoder.requires_grad_(False).eval()
        self.lost = nn.ParameterList()
        """What rounding took from each weight's updates; nothing unless compensated."""
        if compensated:
            zeros = [torch.zeros_like(weight) for weight in self.encoder.parameters()]
            self.lost.extend(nn.Parameter(zero, requires_grad=False) for zero in zeros)

    def train(self, mode: bool = True) -> EmaTeacher:
        """Stays in evaluation mode whatever its parent does, unless it is to drop out."""
        return super().train(mode and self.dropout)

    @torch.no_grad()
    def update(self, student: Encoder, decay: float) -> None:
        """Moves to decay teacher + (1 - decay) student; to be called after the optimizer's step."""
        own: list[Tensor] = list(self.encoder.parameters())
        new = [
            weight.detach().to(mine.dtype)
            for mine, weight in zip(own, student.parameters(), strict=True)
        ]
        if not self.lost:
            # One call for all weights, in place of one for each.
            torch._foreach_lerp_(own, new, 1 - decay)
            return
        for mine, weight, lost in zip(own, new, self.lost, strict=True):
            update = (weight - mine) * (1 - decay) + lost
            moved = mine + update
            # Zero but for the rounding of the line above. The parentheses matter: update - moved +
            # mine would be rounded once more.
            lost.copy_(update - (moved - mine))
            mine.copy_(moved)
