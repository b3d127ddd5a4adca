"""Gradients of large batches from small passes: GradCache, Gao et al. 2021 (arXiv 2101.06983)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from interlingua.batches.sentences import split_batch
from interlingua.batches.tokens import TokenBatch


def in_parts(
    encode: Callable[[TokenBatch, Tensor], Tensor],
    batch: TokenBatch,
    word_embeddings: Float[Tensor, "t d"],
    size: int,
) -> Tensor:
    """Encode a batch part by part, and recompute each part when its gradient is needed.

    Between the two passes only the inputs and results of the parts are held, so that a contrastive
    loss over a batch of any size needs memory for the activations of only one part; the cost is a
    second forward pass. The gradients are the same as if all parts were held at once, since the
    second pass draws the same random numbers as the first. Without dropout the parts do not affect
    the result, since no sentence sees another.

    Differs from the paper: autograd itself requests the second pass. So the loss needs no separate
    gradient cache and may use the results in any way, and several calls may share the weights.

    Args:
        encode: function from sentences and their looked-up word embeddings to rows, in order.
        batch: any number of sentences.
        word_embeddings: of all tokens. They are looked up for all parts at once, since the gradient
            of each look-up is as large as the vocabulary's matrix.
        size: largest number of sentences of a part.

    Returns:
        the rows of all parts, one part after another.
    """
    parts = split_batch(batch, size)
    inputs = torch.split(word_embeddings, [len(part.input_ids) for part in parts])
    arguments = zip(parts, inputs, strict=True)
    if not torch.is_grad_enabled():
        return torch.cat([encode(*part) for part in arguments])
    # A checkpoint keeps its inputs, and computes the rest again in the backward pass.
    return torch.cat([checkpoint(encode, *part, use_reentrant=False) for part in arguments])
