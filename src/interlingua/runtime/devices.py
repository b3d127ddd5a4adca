"""Placement of batches: host memory, where all work on their indices is done.

Offsets of sentences, hidden tokens and how batches are joined decide the sizes of tensors. On a GPU
the host would have to wait for each such number, and the GPU then for the host. So masks, joins and
lists of indices are made on the host from the batch, and copied to the device where states are
gathered by them. A run makes those of a method ahead of its steps, in page-locked memory
(``Objective.prepare``). Values that follow only from the boundaries of sentences, with a size that
the host knows, such as positions, is computed where it is needed.
"""

from __future__ import annotations

import torch
from jaxtyping import Int64, Shaped
from torch import Tensor


def gather_rows(x: Shaped[Tensor, n * d], rows: Int64[Tensor, " m"]) -> Shaped[Tensor, m * d]:
    """Return rows of a tensor on any device, by a list of row numbers on the host."""
    return x.index_select(0, on_device(rows, x.device))


def on_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy the tensor to a device, without waiting for a GPU.

    Args:
        tensor: on any device.
        device: where it is needed.
    """
    if tensor.device == device:
        return tensor
    # A copy to the GPU runs while the host continues only from page-locked memory.
    if tensor.device.type == "cpu" and device.type == "cuda":
        tensor = tensor.pin_memory()
    # A copy to the host has to wait, as the host reads its bytes at once.
    return tensor.to(device, non_blocking=device.type != "cpu")
