"""The package's form of the weights: four bits for vectors of tokens, eight for other matrices.

A stock model directory, which transformers and sentence-transformers read, would be three times as
large. The initial weights of the model were published in four bits; training left the vectors of
tokens as they are, so that four bits hold them exactly. Of every other matrix a row is integers
of eight bits with one scale.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy import ndarray

BLOCK = 32
"""Values of a row of four bits that share a scale."""
LARGEST = 127
"""Largest integer of eight bits."""
FOUR, EIGHT, SCALES = ".four_bits", ".eight_bits", ".scales"
"""Suffixes of a tensor's name."""


def pack(tensors: Mapping[str, ndarray], *, four_bits: str) -> dict[str, ndarray]:
    """Pack a model's weights.

    Args:
        tensors: name -> values.
        four_bits: name of the matrix that four bits shall hold.
    """
    packed = {}
    for name, values in tensors.items():
        if name == four_bits:
            packed[name + FOUR], packed[name + SCALES] = _to_four_bits(values)
        elif values.ndim == 2 and len(values) > 2:
            packed[name + EIGHT], packed[name + SCALES] = _to_eight_bits(values)
        else:
            packed[name] = values.astype(np.float32)
    return packed


def unpack(packed: Mapping[str, ndarray]) -> dict[str, ndarray]:
    """Return the weights in float32 that ``pack`` packed."""
    tensors = {}
    for name, values in packed.items():
        if name.endswith(FOUR):
            whole = name.removesuffix(FOUR)
            tensors[whole] = _of_four_bits(values, packed[whole + SCALES])
        elif name.endswith(EIGHT):
            whole = name.removesuffix(EIGHT)
            tensors[whole] = values.astype(np.float32) * packed[whole + SCALES][:, None]
        elif not name.endswith(SCALES):
            tensors[name] = values
    return tensors


def _to_four_bits(values: ndarray) -> tuple[ndarray, ndarray]:
    """Return (rows, columns / 2) bytes and (rows, columns / 32) scales.

    A byte holds a value and the one 16 further on.
    """
    rows, columns = values.shape
    blocks = values.reshape(rows, columns // BLOCK, BLOCK).astype(np.float32)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=2)[..., None], axis=2)[..., 0]
    scales = (largest / -8).astype(np.float16)
    divisors = np.where(scales == 0, 1, scales).astype(np.float32)[..., None]
    codes = np.clip(np.rint(blocks / divisors) + 8, 0, 15).astype(np.uint8)
    half = BLOCK // 2
    return (codes[..., :half] | codes[..., half:] << 4).reshape(rows, columns // 2), scales


def _of_four_bits(packed: ndarray, scales: ndarray) -> ndarray:
    rows, blocks = scales.shape
    packed = packed.reshape(rows, blocks, BLOCK // 2)
    codes = np.concatenate([packed & 15, packed >> 4], axis=2).astype(np.float32) - 8
    return (codes * scales.astype(np.float32)[..., None]).reshape(rows, blocks * BLOCK)


def _to_eight_bits(values: ndarray) -> tuple[ndarray, ndarray]:
    scales = np.abs(values).max(axis=1).astype(np.float32) / LARGEST
    divisors = np.where(scales == 0, 1, scales)[:, None]
    return np.rint(values / divisors).astype(np.int8), scales
