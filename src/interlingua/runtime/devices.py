"""Placement of batches: host memory, where all work on their indices is done.

Offsets of sentences, hidden tokens and the joins of batches decide the sizes of tensors. If these
were computed on a GPU, the host would have to wait for each such number, and the GPU would then
wait for the host. So masks, joins and lists of indices are made on the host from the batch, and
copied to the device where they select states. A run makes the indices of a method ahead of its
steps, in page-locked memory (``Objective.prepare``). Values such as positions, which follow only
from the boundaries of sentences and whose size the host knows, are computed where they are needed.
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
    # Only from page-locked memory does a copy to the GPU run while the host continues.
    if tensor.device.type == "cpu" and device.type == "cuda":
        tensor = tensor.pin_memory()
    # The host must wait for a copy to its memory, as it reads the bytes at once.
    return tensor.to(device, non_blocking=device.type != "cpu")
