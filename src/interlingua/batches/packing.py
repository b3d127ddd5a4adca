"""Packed sequences by length: attention runs on rectangles without padding.

A batch padded to its longest sequence is a rectangle, but many of the results on it are discarded.
If sequences are sorted by length, those of one length form a rectangle without padding.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Int32, Int64
from torch import Tensor
from torch.nn import functional as F

from interlingua.runtime.devices import on_device


class LengthGroup(NamedTuple):
    """Consecutive sequences of one length in the sorted tensor.

    Its tokens are ``start : start + sequences * length``.
    """

    start: int
    """First token, in sorted order."""
    sequences: int
    """Number of sequences."""
    length: int
    """Number of tokens of each sequence."""


class LengthGroups(NamedTuple):
    """Order of the tokens when sequences are sorted by length."""

    permutation: Int64[Tensor, " t"]
    """``x[permutation]`` is sorted by length."""
    inverse: Int64[Tensor, " t"]
    """``x[permutation][inverse]`` is ``x`` again."""
    order: Int64[Tensor, " b"]
    """Row in the batch of each sequence, shortest first; it stays on the host."""
    groups: tuple[LengthGroup, ...]
    """Groups, those of the shortest sequences first; together they cover all tokens."""
    cu_seqlens: Int32[Tensor, " b+1"]
    """Boundaries of the sequences in sorted order."""

    @property
    def sizes(self) -> list[int]:
        """Tokens of each group, for ``torch.split``."""
        return [group.sequences * group.length for group in self.groups]

    def to(self, device: torch.device) -> LengthGroups:
        """Return the groups with the permutations and the boundaries on a device."""
        return self._replace(
            permutation=on_device(self.permutation, device),
            inverse=on_device(self.inverse, device),
            cu_seqlens=on_device(self.cu_seqlens, device),
        )


def length_groups(cu_seqlens: Int32[Tensor, " b+1"]) -> LengthGroups:
    """Group the sequences of a packed batch by equal length.

    Sequences of one length keep their order.
    """
    # Stable, so that sequences of one length keep their order.
    lengths, order = cu_seqlens.diff().long().sort(stable=True)
    ends = lengths.cumsum(0)
    total = int(ends[-1])
    # How far each sequence moves: from its start in the batch to its start in sorted order.
    shift = cu_seqlens[:-1].long()[order] - (ends - lengths)
    tokens = torch.arange(total, device=cu_seqlens.device)
    permutation = tokens + torch.repeat_interleave(shift, lengths, output_size=total)
    inverse = torch.empty_like(permutation)
    inverse[permutation] = tokens
    values, counts = torch.unique_consecutive(lengths, return_counts=True)
    groups = []
    start = 0
    for length, count in zip(values.tolist(), counts.tolist(), strict=True):
        groups.append(LengthGroup(start, count, length))
        start += count * length
    boundaries = F.pad(ends, (1, 0)).int()
    return LengthGroups(permutation, inverse, order, tuple(groups), boundaries)
