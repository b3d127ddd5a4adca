"""Token batches: packed first, padded on demand.

Sentences of a batch are concatenated in one tensor, so no memory and no arithmetic goes into
padding. Their boundaries are ``cu_seqlens``, the name that FlashAttention has for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int, Int32, Int64
from torch import Tensor

from interlingua.errors import DataError
from interlingua.runtime.devices import on_device


class TokenBatch(NamedTuple):
    """B sequences concatenated in one tensor of T tokens, without padding.

    Sequence i is ``input_ids[cu_seqlens[i] : cu_seqlens[i + 1]]``.
    """

    input_ids: Int64[Tensor, " t"]
    cu_seqlens: Int32[Tensor, " b+1"]
    max_seqlen: int
    languages: tuple[str, ...]
    """One code a sequence, e.g. ``deu_Latn``."""

    @classmethod
    def from_lists(
        cls, sequences: Sequence[Sequence[int] | np.ndarray], languages: Sequence[str]
    ) -> TokenBatch:
        """Pack token id sequences.

        Raises:
            DataError: there is no sequence, a sequence is empty, or the number of languages
                differs from that of the sequences.
        """
        if not sequences:
            raise DataError("expected a batch of at least one sequence, found none")
        lengths = np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))
        return cls.from_flat(
            np.concatenate([np.asarray(ids, dtype=np.int64) for ids in sequences]),
            lengths,
            languages,
        )

    @classmethod
    def from_flat(
        cls,
        input_ids: Int[np.ndarray, " t"],
        lengths: Int[np.ndarray, " b"],
        languages: Sequence[str],
    ) -> TokenBatch:
        """Pack sequences that are concatenated already.

        Raises:
            DataError: a sequence is empty, or the numbers of ids, lengths and languages do not
                match.
        """
        if len(languages) != len(lengths):
            raise DataError(
                f"{len(lengths)} sequences with {len(languages)} languages; pass one language"
                " per sequence"
            )
        if lengths.size == 0 or lengths.min() < 1:
            empty = int(np.argmin(lengths)) if lengths.size else 0
            raise DataError(
                f"sequence {empty} of the batch has no tokens; remove empty texts before batching"
            )
        # int32, because attention kernels take boundaries in this type
        cu_seqlens = np.zeros(len(lengths) + 1, dtype=np.int32)
        np.cumsum(lengths, out=cu_seqlens[1:])
        if int(cu_seqlens[-1]) != len(input_ids):
            raise DataError(
                f"the lengths sum to {cu_seqlens[-1]} tokens, but there are {len(input_ids)}"
                " token ids; pass the length of each sequence"
            )
        ids = torch.from_numpy(np.ascontiguousarray(input_ids, dtype=np.int64))
        return cls(ids, torch.from_numpy(cu_seqlens), int(lengths.max()), tuple(languages))

    @property
    def batch_size(self) -> int:
        """Number of sequences B."""
        return len(self.languages)

    @property
    def lengths(self) -> Int32[Tensor, " b"]:
        """Tokens of each sequence."""
        return self.cu_seqlens.diff()

    def sequence_ids(self) -> Int64[Tensor, " t"]:
        """Return for each token the index of its sequence."""
        index = torch.arange(self.batch_size, device=self.cu_seqlens.device)
        # with a known output size the host need not wait for the lengths from a GPU
        return torch.repeat_interleave(index, self.lengths, output_size=len(self.input_ids))

    def positions(self) -> Int64[Tensor, " t"]:
        """Return for each token its position in its sequence, from 0."""
        starts = torch.repeat_interleave(
            self.cu_seqlens[:-1], self.lengths, output_size=len(self.input_ids)
        )
        return torch.arange(len(self.input_ids), device=starts.device) - starts

    def to(self, device: torch.device | str) -> TokenBatch:
        """Return the same batch on another device."""
        device = torch.device(device)
        return self._replace(
            input_ids=on_device(self.input_ids, device),
            cu_seqlens=on_device(self.cu_seqlens, device),
        )

    def pinned(self) -> TokenBatch:
        """Return the batch in page-locked memory.

        A GPU can copy from such memory while the host continues.
        """
        return self._replace(
            input_ids=self.input_ids.pin_memory(), cu_seqlens=self.cu_seqlens.pin_memory()
        )

    def padded(self, pad_id: int) -> tuple[Int64[Tensor, "b l"], Bool[Tensor, "b l"]]:
        """Return the batch as a rectangle.

        Returns:
            ids with ``pad_id`` behind short sequences, and the mask that is true at real tokens.
        """
        columns = torch.arange(self.max_seqlen, device=self.input_ids.device)
        mask = columns < self.lengths[:, None]
        ids = self.input_ids.new_full(mask.shape, pad_id)
        # a mask goes row by row, which is the order of the packed tokens
        ids[mask] = self.input_ids
        return ids, mask


class BatchPosition(NamedTuple):
    """Position of a batch in a run: everything that random draws on it depend on."""

    seed: int
    step: int
    side: str
    """``"a"`` or ``"b"``: the draws for the two sides of a pair are independent."""
    first_row: int = 0
    """Row of the first sequence in the step's global batch."""


class ParallelBatch(NamedTuple):
    """Pairs of translations: sequences i of ``a`` and ``b`` have the same meaning."""

    a: TokenBatch
    """The stored source side."""
    b: TokenBatch
    """The stored target side."""
    step: int
    """The optimizer step it belongs to."""
    first_row: int = 0
    """Start of this slice in the step's global batch (0 unless sliced by rank)."""
    seed: int = 0
    """The run's seed."""

    def place(self, side: str) -> BatchPosition:
        """Return the position that random draws on side ``"a"`` or ``"b"`` depend on."""
        return BatchPosition(self.seed, self.step, side, self.first_row)
