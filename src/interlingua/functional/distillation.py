"""Learning to embed as another encoder does."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def mean_squared_error(
    student: Float[Tensor, "b d"], teacher: Float[Tensor, "b d"]
) -> Float[Tensor, ""]:
    r"""Squared distance of embeddings as they are, not normalized (Reimers and Gurevych 2020).

    .. math:: \frac1{Bd} \sum_{i=1}^{B} \sum_{j=1}^{d} (s_{ij} - t_{ij})^2

    Differs from the paper: it writes the squared distance of the vectors; its code takes the mean
    over dimensions too, which divides the loss by d.

    Args:
        student: s.
        teacher: t; whether it is a constant is the caller's business.

    Returns:
        Squared units of an embedding's coordinate, in float32 or wider.
    """
    # The wider of the two, and at least float32: near embeddings differ in the last bits.
    wide = torch.promote_types(torch.promote_types(student.dtype, teacher.dtype), torch.float32)
    return (student.to(wide) - teacher.to(wide)).square().mean()
