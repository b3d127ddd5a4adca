"""What can be done with the sentences of packed batches: put two batches together, find repeats."""

from __future__ import annotations

import torch
from jaxtyping import Int64
from torch import Tensor

from interlingua.batches.tokens import TokenBatch


def join(a: TokenBatch, b: TokenBatch) -> TokenBatch:
    """The sentences of ``a``, then those of ``b``, in one batch."""
    return TokenBatch(
        torch.cat([a.input_ids, b.input_ids]),
        torch.cat([a.cu_seqlens, b.cu_seqlens[1:] + a.cu_seqlens[-1]]),
        max(a.max_seqlen, b.max_seqlen),
        a.languages + b.languages,
    )


def sentence_keys(batch: TokenBatch) -> Int64[Tensor, " b"]:
    """A 64-bit number for each sentence that depends on its tokens and their order alone; equal sentences, equal keys.

    Each (token, position) is scrambled as in SplitMix64 and the results are added up.
    """
    z = (batch.input_ids + 1) * -7046029254386353131 + (batch.positions() + 1) * -4658895280553007687
    z = (z ^ (z >> 30)) * -4658895280553007687
    z = (z ^ (z >> 27)) * -7723592293110705685
    return z.new_zeros(batch.batch_size).index_add(0, batch.sequence_ids(), z ^ (z >> 31))
