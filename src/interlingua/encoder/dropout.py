"""Dropout with random numbers at an eighth of the cost: one byte per element."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from torch.nn import functional as F

LEVELS = 256


def dropout(x: Float[Tensor, " *shape"], rate: float) -> Float[Tensor, " *shape"]:
    """Zeroes each element with probability ``rate`` and scales the rest so that the expectation
    stays.

    On the CPU one 64-bit random number decides eight elements, so ``rate`` is rounded to 1/256 (0.1
    becomes 26/256), never to 0 or 1; the scale uses the rounded rate, so the expectation is exact.
    Elsewhere it is torch's own dropout.

    Args:
        x: any tensor.
        rate: probability of a zero, in [0, 1).
    """
    if rate == 0.0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, rate)
    threshold, scale = threshold_and_scale(rate)
    keep = random_bytes([x.numel()])[: x.numel()].view(x.shape) >= threshold
    return x * keep * scale


def threshold_and_scale(rate: float) -> tuple[int, float]:
    """The least byte of an element that is kept, and what it is multiplied by."""
    threshold = min(max(1, round(rate * LEVELS)), LEVELS - 1)
    return threshold, LEVELS / (LEVELS - threshold)


def random_bytes(sizes: Sequence[int]) -> UInt8[Tensor, " bytes"]:
    """Bytes of torch's global generator for tensors of so many elements, each from the next whole
    word on.
    """
    words = torch.empty(sum(map(whole_words, sizes)), dtype=torch.int64, device="cpu")
    for part in torch.split(words, [whole_words(size) for size in sizes]):
        part.random_(torch.iinfo(torch.int64).min, None)
    return words.view(torch.uint8)


def whole_words(size: int) -> int:
    """64-bit words that hold so many bytes."""
    return -(-size // 8)
