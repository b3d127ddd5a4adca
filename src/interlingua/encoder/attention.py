"""Self-attention over packed sentences, with exact lengths: nothing is padded and nothing is masked."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.nn import functional as F

from interlingua.encoder.dropout import dropout

MAX_FLASH_HEAD_WIDTH = 256


@dataclass(frozen=True, slots=True)
class Layout:
    """The order in which a batch's tokens pass through the layers.

    With FlashAttention (CUDA, half precision) they stay as they are. Otherwise sentences of equal length are made
    neighbours, so that each such group is one dense attention; this costs one gather before the layers and one after.

    Attributes:
        positions: place of each token in its sentence, from 0, in this order.
        groups: ``(sentences, length)`` of each run of equally long sentences.
        order: token taken to each place, or None if they stay.
        inverse: place of each token, or None.
        cu_seqlens: sentence boundaries for FlashAttention, or None where groups are used.
        max_seqlen: longest sentence.
    """

    positions: Int[Tensor, " t"]
    groups: tuple[tuple[int, int], ...]
    order: Int[Tensor, " t"] | None
    inverse: Int[Tensor, " t"] | None
    cu_seqlens: Int[Tensor, " b+1"] | None
    max_seqlen: int

    @classmethod
    def of(cls, cu_seqlens: Int[Tensor, " b+1"], *, heads_width: int) -> Layout:
        """Plans a batch; ``heads_width`` decides, with device and precision, whether FlashAttention can serve it."""
        device = cu_seqlens.device
        starts = cu_seqlens[:-1].long()
        lengths = cu_seqlens.long().diff()
        if flash_available(device, heads_width):
            positions = _positions(lengths)
            return cls(positions, (), None, None, cu_seqlens.int(), int(lengths.max()))
        by_length = torch.argsort(lengths, stable=True)
        sizes, counts = torch.unique_consecutive(lengths[by_length], return_counts=True)
        groups = tuple((n, size) for n, size in zip(counts.tolist(), sizes.tolist(), strict=True) if size)
        positions = _positions(lengths[by_length])
        order = positions + torch.repeat_interleave(starts[by_length], lengths[by_length])
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(len(order), device=device)
        return cls(positions, groups, order, inverse, None, groups[-1][1] if groups else 0)

    def arrange(self, x: Shaped[Tensor, "t *d"]) -> Shaped[Tensor, "t *d"]:
        """From the batch's order to this one."""
        if self.order is None or self.inverse is None:
            return x
        return _Permute.apply(x, self.order, self.inverse) if x.is_floating_point() else x[self.order]

    def restore(self, x: Shaped[Tensor, "t *d"]) -> Shaped[Tensor, "t *d"]:
        """Back to the batch's order."""
        if self.order is None or self.inverse is None:
            return x
        return _Permute.apply(x, self.inverse, self.order)


def attend(
    qkv: Float[Tensor, "t 3*d"], layout: Layout, *, heads: int, dropout_rate: float = 0.0
) -> Float[Tensor, "t d"]:
    """Softmax(q k' / sqrt(head width)) v of every sentence over itself.

    Args:
        qkv: queries, keys and values side by side.
        layout: where the sentences are.
        heads: number of heads.
        dropout_rate: probability of zeroing an attention weight.
    """
    tokens, width = qkv.shape[0], qkv.shape[1] // 3
    split = (3, heads, width // heads)
    if layout.cu_seqlens is not None and dropout_rate == 0.0:
        return _flash(qkv.view(tokens, *split), layout).reshape(tokens, width)
    if layout.cu_seqlens is not None:  # FlashAttention's varlen entry has no dropout
        lengths = layout.cu_seqlens.diff().tolist()
        groups = tuple((1, length) for length in lengths if length)
    else:
        groups = layout.groups
    contexts = []
    # split, not slices: the backward pass of a slice fills a zero tensor of the whole size
    for (n, length), piece in zip(groups, qkv.split([n * length for n, length in groups]), strict=True):
        q, k, v = piece.view(n, length, *split).permute(2, 0, 3, 1, 4).unbind(0)  # (n, heads, length, head width)
        context = _group_attention(q, k, v, dropout_rate)
        contexts.append(context.transpose(1, 2).reshape(n * length, width))
    return torch.cat(contexts)


def _group_attention(
    q: Float[Tensor, "n h l w"], k: Float[Tensor, "n h l w"], v: Float[Tensor, "n h l w"], dropout_rate: float
) -> Float[Tensor, "n h l w"]:
    if q.is_cuda or not torch.is_grad_enabled():
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout_rate)
    # spelled out, since the backward pass of the CPU's fused kernel is several times slower
    scores = torch.matmul(q * (1 / math.sqrt(q.shape[-1])), k.transpose(-1, -2))
    return torch.matmul(dropout(scores.softmax(-1), dropout_rate), v)


def flash_available(device: torch.device, head_width: int) -> bool:
    """Whether torch's variable-length FlashAttention can run here: CUDA from Ampere on, half precision under way."""
    if device.type != "cuda" or head_width % 8 or head_width > MAX_FLASH_HEAD_WIDTH:
        return False
    half = torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda") in (torch.float16, torch.bfloat16)
    return half and torch.cuda.get_device_capability(device) >= (8, 0) and _varlen_attn() is not None


@functools.cache
def _varlen_attn() -> Any:
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    return varlen_attn


def _flash(qkv: Float[Tensor, "t 3 h w"], layout: Layout) -> Float[Tensor, "t h w"]:
    q, k, v = (part.contiguous() for part in qkv.unbind(1))
    longest, bounds = layout.max_seqlen, layout.cu_seqlens
    context: Tensor = _varlen_attn()(q, k, v, bounds, bounds, longest, longest)
    return context


def _positions(lengths: Int[Tensor, " b"]) -> Int[Tensor, " t"]:
    starts = lengths.cumsum(0) - lengths
    return torch.arange(int(lengths.sum()), device=lengths.device) - torch.repeat_interleave(starts, lengths)


class _Permute(torch.autograd.Function):
    """Row permutation whose backward pass is a gather too, where index_select's would scatter and add."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(inverse)
        return x.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        (inverse,) = ctx.saved_tensors
        return gradient.index_select(0, inverse), None, None
