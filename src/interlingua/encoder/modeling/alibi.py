"""Positions as a penalty on the distance of two tokens: ALiBi (Press et al. 2022).

Nothing is added to the embeddings, and queries and keys stay as they are. Instead each head has a
slope m, and a score loses m times the distance of its two tokens. The paper's models read from left
to right; an encoder looks both ways, so its distance is symmetric: ``|i - j|`` (MosaicBERT, and
Jina Embeddings 2, Guenther et al. 2023).
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from interlingua.runtime.devices import on_device

STEEPNESS = 8
"""If the number of heads is a power of two, the last head has the slope 2^-8."""


def alibi_slopes(heads: int) -> list[float]:
    """Compute the slope of each head, positive.

    For n heads, n a power of two, the slopes are 2^(-8/n), 2^(-16/n), ... 2^-8. For another number
    of heads, the first heads have the slopes for the next lower power of two; the rest have the
    first, third ... slopes for twice that power, as in the code of the paper's authors.
    """
    power = 1 << (heads.bit_length() - 1)
    slopes = [2 ** (-STEEPNESS * head / power) for head in range(1, power + 1)]
    rest = range(1, 2 * (heads - power), 2)
    return slopes + [2 ** (-STEEPNESS * head / (2 * power)) for head in rest]


def slopes_tensor(heads: int, device: torch.device) -> Float[Tensor, " h"]:
    """Return ``alibi_slopes`` on a device."""
    return on_device(torch.tensor(alibi_slopes(heads), dtype=torch.float32), device)


def alibi_bias(
    queries: Int[Tensor, "n r"], keys: Int[Tensor, "n l"], heads: int, dtype: torch.dtype
) -> Float[Tensor, "n h r l"]:
    """Compute the bias that is added to the scores of each head.

    Args:
        queries: positions of the tokens that look.
        keys: positions of the tokens that they look at.
        heads: number of heads.
        dtype: of the scores; the bias is computed in float32 before it is converted.
    """
    distances = (queries[:, None, :, None] - keys[:, None, None, :]).abs()
    slopes = slopes_tensor(heads, keys.device)
    return (distances * -slopes[:, None, None]).to(dtype)
