"""Dropout whose random numbers cost an eighth: one byte per element."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

LEVELS = 256


def dropout(x: Float[Tensor, " *shape"], rate: float) -> Float[Tensor, " *shape"]:
    """Zeroes each element with probability ``rate`` and scales the rest so that the expectation stays.

    On the CPU one 64-bit random number decides eight elements, so ``rate`` is rounded to 1/256 (0.1 becomes 26/256);
    the scale uses the rounded rate, so the expectation is exact. Elsewhere it is torch's own dropout.

    Args:
        x: any tensor.
        rate: probability of a zero, in [0, 1).
    """
    if rate == 0.0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, rate)
    threshold = max(1, round(rate * LEVELS))
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(torch.iinfo(torch.int64).min, None)
    keep = words.view(torch.uint8)[: x.numel()].view(x.shape) >= threshold
    return x * keep * (LEVELS / (LEVELS - threshold))
