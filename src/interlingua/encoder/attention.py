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

from interlingua.batches.packing import LengthGroups, length_groups
from interlingua.encoder.dropout import dropout

MAX_FLASH_HEAD_WIDTH = 256


@dataclass(frozen=True, slots=True)
class Layout:
    """The order in which a batch's tokens pass through the layers.

    With FlashAttention (CUDA, half precision) they stay as they are. Otherwise sentences of equal length are made
    neighbours, so that each such group is one dense attention; this costs one gather before the layers and one after.

    Attributes:
        positions: place of each token in its sentence, from 0, in this order.
        by_length: the order and the groups, or None for FlashAttention.
        cu_seqlens: sentence boundaries in the batch's order.
        max_seqlen: longest sentence.
    """

    positions: Int[Tensor, " t"]
    by_length: LengthGroups | None
    cu_seqlens: Int[Tensor, " b+1"]
    max_seqlen: int

    @classmethod
    def of(cls, cu_seqlens: Int[Tensor, " b+1"], *, flash: bool = False) -> Layout:
        """Plans a batch, for FlashAttention or for groups of equal length."""
        starts = torch.repeat_interleave(cu_seqlens[:-1].long(), cu_seqlens.diff())
        positions = torch.arange(len(starts), device=starts.device) - starts
        if flash:
            return cls(positions, None, cu_seqlens.int(), int(cu_seqlens.diff().max()))
        by_length = length_groups(cu_seqlens)
        return cls(positions[by_length.permutation], by_length, cu_seqlens, by_length.groups[-1].length)

    def arrange(self, x: Shaped[Tensor, " t *d"]) -> Shaped[Tensor, " t *d"]:
        """From the batch's order to this one."""
        if self.by_length is None:
            return x
        return _permute(x, self.by_length.permutation, self.by_length.inverse)

    def restore(self, x: Shaped[Tensor, " t *d"]) -> Shaped[Tensor, " t *d"]:
        """Back to the batch's order."""
        if self.by_length is None:
            return x
        return _permute(x, self.by_length.inverse, self.by_length.permutation)


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
    tokens = qkv.shape[0]
    width = qkv.shape[1] // 3
    split = (3, heads, width // heads)
    if layout.by_length is None:
        return _flash(qkv.view(tokens, *split), layout).reshape(tokens, width)
    contexts = []
    # split, not slices: the backward pass of a slice fills a zero tensor of the whole size
    pieces = torch.split(qkv, layout.by_length.sizes)
    for (_, n, length), piece in zip(layout.by_length.groups, pieces, strict=True):
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


def flash_available(device: torch.device, dtype: torch.dtype, head_width: int) -> bool:
    """Whether torch's variable-length FlashAttention can run: CUDA from Ampere on, half precision, a fitting head."""
    if device.type != "cuda" or dtype not in (torch.float16, torch.bfloat16):
        return False
    if head_width % 8 or head_width > MAX_FLASH_HEAD_WIDTH or torch.cuda.get_device_capability(device) < (8, 0):
        return False
    return _varlen_attn() is not None


@functools.cache
def _varlen_attn() -> Any:
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    return varlen_attn


def _flash(qkv: Float[Tensor, "t 3 h w"], layout: Layout) -> Float[Tensor, "t h w"]:
    q, k, v = (part.contiguous() for part in qkv.unbind(1))
    longest = layout.max_seqlen
    bounds = layout.cu_seqlens
    context: Tensor = _varlen_attn()(q, k, v, bounds, bounds, longest, longest)
    return context


def _permute(x: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
    if not x.is_floating_point():
        return x[order]
    permuted: Tensor = _Permute.apply(x, order, inverse)  # type: ignore[no-untyped-call]
    return permuted


class _Permute(torch.autograd.Function):
    """Row permutation with a gather in its backward pass too, where index_select's would scatter and add."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(inverse)
        return x.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (inverse,) = ctx.saved_tensors
        return gradient.index_select(0, inverse), None, None
