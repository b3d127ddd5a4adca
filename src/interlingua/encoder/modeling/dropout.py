"""Dropout with random numbers at an eighth of the cost: one byte per element.

On a CPU the random numbers are most of the work of dropout. A 64-bit word of the generator decides
eight elements here, in place of one: an element is kept where its byte is at least a threshold.
The kernel ``training`` reads the same bytes, so that it drops the same elements.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from torch.nn import functional as F

from interlingua.runtime.portions import ceil_div

# Values of a byte.
LEVELS = 256


def dropout(x: Float[Tensor, " *shape"], rate: float) -> Float[Tensor, " *shape"]:
    """Zero each element with probability ``rate`` and scale the rest: the expectation stays.

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
    # The bytes fill whole words; the last word may have bytes that are not needed.
    keep = random_bytes([x.numel()])[: x.numel()].view(x.shape) >= threshold
    return x * keep * scale


def threshold_and_scale(rate: float) -> tuple[int, float]:
    """Return the least byte of an element that is kept, and the factor of kept elements."""
    threshold = min(max(1, round(rate * LEVELS)), LEVELS - 1)
    return threshold, LEVELS / (LEVELS - threshold)


def random_bytes(sizes: Sequence[int]) -> UInt8[Tensor, " bytes"]:
    """Draw bytes from torch's global generator for tensors of ``sizes`` elements.

    The bytes of each tensor start at a whole word.
    """
    words = torch.empty(sum(map(whole_words, sizes)), dtype=torch.int64, device="cpu")
    # Drawn tensor by tensor, as separate calls of ``dropout`` draw them.
    for part in torch.split(words, [whole_words(size) for size in sizes]):
        part.random_(torch.iinfo(torch.int64).min, None)
    return words.view(torch.uint8)


def whole_words(size: int) -> int:
    """Return the number of 64-bit words that hold ``size`` bytes."""
    return ceil_div(size, 8)
