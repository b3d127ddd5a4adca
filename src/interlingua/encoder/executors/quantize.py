"""Rows of whole numbers in place of floats: rotated, then rounded by a scale of each row.

Rotation removes outliers. A few channels of a transformer's activations are many times as large as
the others, and a scale that fits the large ones rounds the others to few steps. A product does not
change if both sides are turned by the same orthogonal matrix, and a Hadamard matrix spreads every
number over all the others of its block (QuaRot, Ashkboos et al. 2024).
"""

from __future__ import annotations

import functools

import torch
from jaxtyping import Float, Float32, Int8, Int16
from torch import Tensor

from interlingua.runtime.portions import ceil_div

LANES = 16
_MOST = 32
"""Largest number of strides that are mixed, as in kernels/whole_rows.h."""
_LARGEST = 127
LARGEST_INT16 = 2047
"""Largest activation that int16 weights are multiplied by; as in kernels/whole_rows.h."""
PRECISE_LAYERS = 3
"""The last 1 / ``PRECISE_LAYERS`` of the layers compute attention without bytes."""


def attention_dtypes(dtype: torch.dtype, finer: torch.dtype, layers: int) -> list[torch.dtype]:
    """Return the dtype of each layer's attention products: a finer one in the last layers.

    No later layer dampens the errors of the last layers. Feed-forward blocks stay in bytes: they
    take two thirds of the time, and their bytes lower the mean cosine with float32 by 0.0001.

    Args:
        dtype: int8.
        finer: dtype in the last layers.
        layers: number of layers.
    """
    precise = ceil_div(layers, PRECISE_LAYERS)
    return [dtype] * (layers - precise) + [finer] * precise


def mixed(width: int) -> tuple[int, int]:
    """Return how many strides of a row are mixed, and how many neighbors within a stride.

    A stride is a group of up to ``LANES`` adjacent numbers. The numbers within a stride are mixed
    only if there are fewer than ``_MOST`` strides.
    """
    # n & -n is the largest power of two that divides n.
    lanes = min(LANES, width & -width)
    strides = min(_MOST, (width // lanes) & -(width // lanes))
    if strides == _MOST:
        return strides, 1
    return strides, lanes


def rotate_rows(rows: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """Multiply rows by an orthogonal matrix, which is its own inverse."""
    strides, lanes = mixed(rows.shape[1])
    blocks = rows.reshape(len(rows), -1, strides, min(LANES, rows.shape[1] & -rows.shape[1]))
    turned = torch.einsum("vw,nbwl->nbvl", hadamard(strides).to(rows), blocks)
    if lanes > 1:
        turned = turned @ hadamard(lanes).to(rows)
    return turned.reshape(rows.shape)


@functools.cache
def hadamard(order: int) -> Float32[Tensor, "o o"]:
    """Return Sylvester's orthogonal matrix of entries +-1 / sqrt(order).

    Args:
        order: a power of two.
    """
    matrix = torch.ones(1, 1)
    # H of twice the order is [[H, H], [H, -H]] / sqrt(2).
    while len(matrix) < order:
        upper = torch.cat([matrix, matrix], 1)
        lower = torch.cat([matrix, -matrix], 1)
        matrix = torch.cat([upper, lower]) / 2**0.5
    return matrix


def quantize(rows: Float[Tensor, "n d"]) -> tuple[Int8[Tensor, "n d"], Float32[Tensor, "n 1"]]:
    """Quantize rotated rows to whole numbers from -127 to 127; return them and their scales."""
    turned = rotate_rows(rows.float())
    scales = (
        turned.abs().amax(1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny) / _LARGEST
    )
    return (turned / scales).round_().to(torch.int8), scales


def quantize_to_int16(
    weight: Float[Tensor, "o d"],
) -> tuple[Int16[Tensor, "o d"], Float32[Tensor, "o 1"]]:
    """Quantize rotated rows of a weight to whole numbers; return them and their scales.

    The numbers are as large as possible without overflow of an int32 that sums their products with
    activations of up to ``LARGEST_INT16``. The sum of a row's absolute values times
    ``LARGEST_INT16`` fits into the int32, so no order of adding overflows.
    """
    turned = rotate_rows(weight.float())
    # Rounding adds up to a half to each number.
    most = torch.iinfo(torch.int32).max // LARGEST_INT16 - weight.shape[1]
    sums = turned.abs().sum(1, keepdim=True)
    largest = turned.abs().amax(1, keepdim=True)
    scales = torch.maximum(sums / most, largest / torch.iinfo(torch.int16).max)
    scales = scales.clamp(min=torch.finfo(torch.float32).tiny)
    return (turned / scales).round().to(torch.int16), scales


def whole_product(x: Int8[Tensor, "n d"], weight: Int8[Tensor, "o d"]) -> Float32[Tensor, "n o"]:
    """Compute products of rows, summed in whole numbers if torch does that fast.

    On a CPU with AVX-512 VNNI that takes less than half of the time of floats. With only AVX2 it
    would take twenty times as long as floats, so floats are multiplied there. AArch64 was not
    timed; floats are multiplied there too.
    """
    if x.device.type == "cpu" and _multiplies_bytes():
        return torch._int_mm(x, weight.T).float()
    return x.float() @ weight.float().T


def _multiplies_bytes() -> bool:
    """Return whether torch has instructions for products of bytes; the check is torch-private."""
    is_supported = getattr(torch.cpu, "_is_vnni_supported", None)
    return hasattr(torch, "_int_mm") and is_supported is not None and is_supported()
