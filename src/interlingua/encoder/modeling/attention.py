"""Self-attention over packed sentences, with exact lengths: nothing is padded.

Sentences of a batch are concatenated in a (T, D) tensor. Each attends only to itself.
FlashAttention does that from the boundaries of the sentences, on a GPU in half precision. Anywhere
else the sentences are sorted into groups of equal length, and the attention of a group of n
sentences of l tokens is one dense product over (n, heads, l, head width). A ``Layout`` holds this
order; the backbone moves the tokens into it once before the layers and back once after them.

A GPU would have to run some dozens of small kernels for each group. So, where possible, it runs a
single kernel for all groups, see ``efficient_attention.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Int64, Shaped
from torch import Tensor
from torch.nn import functional as F

from interlingua.batches.packing import LengthGroups, length_groups
from interlingua.encoder.modeling import efficient_attention
from interlingua.encoder.modeling.alibi import alibi_bias
from interlingua.encoder.modeling.dropout import dropout
from interlingua.runtime.devices import on_device

# The widest head that FlashAttention's kernels are built for.
MAX_FLASH_HEAD_WIDTH = 256
MAX_BIAS_ELEMENTS = 2**25
"""Number of scores that ALiBi's penalties are made for at a time: 128 MiB in float32."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The order in which a batch's tokens pass through the layers.

    With FlashAttention (CUDA, half precision) they stay as they are. Otherwise sentences of equal
    length are made neighbors, so that each such group is one dense attention; this costs one gather
    before the layers and one after.

    Attributes:
        positions: place of each token in its sentence, from 0, in this order.
        by_length: the order and the groups, or None for FlashAttention.
        cu_seqlens: sentence boundaries on the device, for FlashAttention; else None.
        max_seqlen: longest sentence.
        rotations: cosines and sines, made once for all layers; the keys are the base of the angles
            and the width of a head.
        counts_places: True if ``positions`` are the places of tokens in their sentences, and so
            equal in sentences of equal length; False if a caller has set other positions.
    """

    positions: Int[Tensor, " t"]
    by_length: LengthGroups | None
    cu_seqlens: Int[Tensor, " b+1"] | None
    max_seqlen: int
    rotations: dict[tuple[float, int], tuple[Tensor, Tensor]] = field(
        default_factory=dict, compare=False
    )
    counts_places: bool = True

    @classmethod
    def of(
        cls,
        cu_seqlens: Int[Tensor, " b+1"],
        *,
        flash: bool = False,
        device: torch.device | None = None,
    ) -> Layout:
        """Plan the order of a batch.

        Args:
            cu_seqlens: sentence boundaries; on the host, so that nothing waits for the device.
            flash: True = for FlashAttention, False = for groups of equal length.
            device: device of the tokens; default: device of the boundaries.
        """
        if device is None:
            device = cu_seqlens.device
        if flash:
            # Before the boundaries are moved: reading a number from the device would wait for it.
            longest = int(cu_seqlens.diff().max())
            tokens = int(cu_seqlens[-1])
            boundaries = on_device(cu_seqlens.int(), device)
            return cls(_places(boundaries, tokens), None, boundaries, longest)
        return cls.by_groups(length_groups(cu_seqlens), device)

    @classmethod
    def by_groups(cls, groups: LengthGroups, device: torch.device) -> Layout:
        """Return the order of groups of equal length, which may be made ahead of the step."""
        groups = groups.to(device)
        positions = _places(groups.cu_seqlens, len(groups.permutation))
        # Groups are sorted by length, so that the last one is the longest.
        return cls(positions, groups, None, groups.groups[-1].length)

    def rotation(
        self, base: float, head_width: int
    ) -> tuple[Float[Tensor, "t w/2"], Float[Tensor, "t w/2"]]:
        """Compute cosine and sine of each token's angles (Su et al. 2021).

        Angle i of a token is ``position * base^(-2i/w)``, w the width of a head.
        """
        # Layers of one model may have two bases (ModernBERT's local and global ones).
        key = (base, head_width)
        if key not in self.rotations:
            frequencies = inverse_frequencies(base, head_width, self.positions.device)
            angles = self.positions[:, None].float() * frequencies
            self.rotations[key] = (angles.cos(), angles.sin())
        return self.rotations[key]

    def with_positions(self, positions: Int[Tensor, " t"]) -> Layout:
        """Return the same order with other positions, which must be arranged in this order."""
        # The angles that have been made belong to the previous positions.
        return replace(self, positions=positions, rotations={}, counts_places=False)

    def group_positions(self, start: int, n: int, length: int) -> Int[Tensor, "m l"]:
        """Return positions in a group of sentences of equal length, in one row if all are the same.

        Args:
            start: of the group's first token in this order.
            n: sentences.
            length: of each.
        """
        if self.counts_places:
            n = 1
        return self.positions[start : start + n * length].view(n, length)

    def arrange(self, x: Shaped[Tensor, " t *d"]) -> Shaped[Tensor, " t *d"]:
        """Reorder from the batch's order to this one."""
        if self.by_length is None:
            return x
        return _permute(x, self.by_length.permutation, self.by_length.inverse)

    def restore(self, x: Shaped[Tensor, " t *d"]) -> Shaped[Tensor, " t *d"]:
        """Reorder from this order to the batch's."""
        if self.by_length is None:
            return x
        return _permute(x, self.by_length.inverse, self.by_length.permutation)


def _places(cu_seqlens: Int[Tensor, " b+1"], tokens: int) -> Int64[Tensor, " t"]:
    """Return each token's position in its sentence: its index minus that of the first token.

    The positions are computed on the device of the boundaries. Because the number of tokens is
    passed, the host need not wait for a GPU.
    """
    lengths = cu_seqlens.diff()
    starts = torch.repeat_interleave(cu_seqlens[:-1].long(), lengths, output_size=tokens)
    return torch.arange(tokens, device=cu_seqlens.device) - starts


def inverse_frequencies(
    base: float, head_width: int, device: torch.device | None = None
) -> Float[Tensor, " w/2"]:
    """Compute the angle by which each pair of elements of a head turns per position, in radians."""
    exponents = torch.arange(0, head_width, 2, dtype=torch.float32, device=device) / head_width
    return 1.0 / base**exponents


def apply_rotary(
    x: Float[Tensor, "t d"], layout: Layout, *, heads: int, base: float
) -> Float[Tensor, "t d"]:
    """Rotate queries or keys by their positions (RoPE).

    In each head of width w, elements i and i + w/2 are a pair.

    Args:
        x: of packed tokens, all heads side by side; computed in float32 and returned in its own
            dtype.
        layout: contains each token's position.
        heads: number of heads.
        base: of the angles.
    """
    cosine, sine = layout.rotation(base, x.shape[1] // heads)
    # (t, heads, w/2) each; the angles are equal for all heads.
    first, second = x.reshape(len(x), heads, 2, -1).unbind(-2)
    cosine, sine = cosine[:, None], sine[:, None]
    turned = torch.stack([first * cosine - second * sine, second * cosine + first * sine], dim=-2)
    return turned.to(x.dtype).flatten(1)


def window_mask(
    length: int, window: int | None, device: torch.device
) -> Bool[Tensor, "l l"] | None:
    """Return which tokens each token sees with ``window`` neighbors on either side.

    The result is None if that is the whole sentence.
    """
    # In a sentence of window + 1 tokens the first one still sees the last one.
    if window is None or length <= window + 1:
        return None
    place = torch.arange(length, device=device)
    return (place[:, None] - place).abs() <= window


def attend(
    qkv: Float[Tensor, "t 3*d"],
    layout: Layout,
    *,
    heads: int,
    dropout_rate: float = 0.0,
    rotary_base: float | None = None,
    window: int | None = None,
    alibi: bool = False,
) -> Float[Tensor, "t d"]:
    """Compute softmax(q k' / sqrt(head width)) v of every sentence over itself.

    Args:
        qkv: queries, keys and values side by side.
        layout: positions of the sentences.
        heads: number of heads.
        dropout_rate: probability of zeroing an attention weight.
        rotary_base: turn queries and keys by their positions, with angles of this base.
        window: number of neighbors that a token sees on either side; default: its whole sentence.
        alibi: subtract from each score a penalty on the distance; not supported in FlashAttention's
            order.
    """
    tokens = qkv.shape[0]
    width = qkv.shape[1] // 3
    split = (3, heads, width // heads)
    if rotary_base is not None:
        # Queries and keys are side by side: they are turned as if they were twice as many heads.
        turned = apply_rotary(qkv[:, : 2 * width], layout, heads=2 * heads, base=rotary_base)
        qkv = torch.cat([turned, qkv[:, 2 * width :]], dim=1)
    by_sentence = qkv.view(tokens, *split)
    by_length = layout.by_length
    if by_length is None:
        return _flash(by_sentence, layout, window, dropout_rate).reshape(tokens, width)
    sees_all = not alibi and (window is None or layout.max_seqlen <= window + 1)
    # A single group needs only one kernel anyway.
    is_mixed = len(by_length.groups) > 1
    if (
        sees_all
        and is_mixed
        and not dropout_rate
        and efficient_attention.can_use_efficient_attention(qkv, split[2])
    ):
        context = efficient_attention.attend_packed(
            by_sentence, by_length.cu_seqlens, layout.max_seqlen
        )
        return context.reshape(tokens, width)
    return _group_by_group(by_sentence, layout, window, dropout_rate, alibi=alibi)


def _group_by_group(
    qkv: Float[Tensor, "t 3 h w"],
    layout: Layout,
    window: int | None,
    dropout_rate: float,
    *,
    alibi: bool,
) -> Float[Tensor, "t d"]:
    """Compute attention, one group of sentences of equal length after another."""
    assert layout.by_length is not None
    contexts = []
    # Split, not slices: the backward pass of a slice fills a zero tensor of the whole size.
    pieces = torch.split(qkv, layout.by_length.sizes)
    for (start, n, length), piece in zip(layout.by_length.groups, pieces, strict=True):
        # (n, length, 3, heads, head width) becomes three of (n, heads, length, head width).
        q, k, v = piece.view(n, length, *qkv.shape[1:]).permute(2, 0, 3, 1, 4).unbind(0)
        seen = window_mask(length, window, qkv.device)
        if alibi:
            positions = layout.group_positions(start, n, length)
            context = alibi_attention(q, k, v, positions, seen, dropout_rate)
        else:
            context = masked_attention(q, k, v, seen, dropout_rate)
        contexts.append(context.transpose(1, 2).reshape(n * length, -1))
    return torch.cat(contexts)


def alibi_attention(
    q: Float[Tensor, "n h l w"],
    k: Float[Tensor, "n h l w"],
    v: Float[Tensor, "n h l w"],
    positions: Int[Tensor, "m l"],
    seen: Bool[Tensor, "*n l l"] | None,
    dropout_rate: float,
) -> Float[Tensor, "n h l w"]:
    """Compute ``masked_attention`` with a penalty on the distance in the scores, see ``alibi.py``.

    The penalties of all pairs of a long sentence would take more memory than anything else, so
    queries are processed in blocks.

    Args:
        q: queries, by sentence and head.
        k: keys.
        v: values.
        positions: of the tokens, in one row if all sentences have the same.
        seen: the tokens (last axis) that each token (second last axis) sees; None = all.
        dropout_rate: probability of zeroing an attention weight.
    """
    heads, length = q.shape[1:3]
    rows = max(1, MAX_BIAS_ELEMENTS // (len(positions) * heads * length))
    contexts = []
    for first in range(0, length, rows):
        block = slice(first, first + rows)
        bias = alibi_bias(positions[:, block], positions, heads, q.dtype)
        if seen is not None:
            bias = bias.masked_fill(~seen[..., block, :], -torch.inf)
        contexts.append(masked_attention(q[:, :, block], k, v, bias, dropout_rate))
    return torch.cat(contexts, dim=2)


def masked_attention(
    q: Float[Tensor, "n h r w"],
    k: Float[Tensor, "n h l w"],
    v: Float[Tensor, "n h l w"],
    mask: Bool[Tensor, "*n r l"] | Float[Tensor, "*n r l"] | None,
    dropout_rate: float,
) -> Float[Tensor, "n h r w"]:
    """Compute softmax(q k' / sqrt(w)) v of sentences of equal length, with a mask.

    Args:
        q: queries, by sentence and head.
        k: keys.
        v: values.
        mask: the tokens (last axis) that each token (second last axis) sees, or numbers that are
            added to its scores; None = it sees all.
        dropout_rate: probability of zeroing an attention weight.
    """
    if q.is_cuda or not torch.is_grad_enabled():
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout_rate)
    # Step by step, since the backward pass of the CPU's fused kernel is several times slower.
    # Queries are scaled, not scores: if a sentence is longer than a head is wide, scores are more
    # numerous.
    scores = torch.matmul(q * (1 / math.sqrt(q.shape[-1])), k.transpose(-1, -2))
    if mask is not None and mask.is_floating_point():
        scores = scores + mask
    elif mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    # Back to the type of the values, in case the softmax was computed in a wider one.
    return torch.matmul(dropout(scores.softmax(-1), dropout_rate).to(v.dtype), v)


def flash_available(device: torch.device, dtype: torch.dtype, head_width: int) -> bool:
    """Return whether torch's FlashAttention can run on packed sentences.

    It needs CUDA from Ampere on, 16 bits, and a supported width of heads.
    """
    if device.type != "cuda" or dtype not in (torch.float16, torch.bfloat16):
        return False
    if head_width % 8 or head_width > MAX_FLASH_HEAD_WIDTH:
        return False
    # Compute capability 8.0 is Ampere.
    if torch.cuda.get_device_capability(device) < (8, 0):
        return False
    return torch.backends.cuda.is_flash_attention_available()


def _flash(
    qkv: Float[Tensor, "t 3 h w"], layout: Layout, window: int | None, dropout_rate: float
) -> Float[Tensor, "t h w"]:
    """Compute attention of packed sentences in one kernel.

    The kernel is the one that ``torch.nn.attention.varlen`` calls, which offers no dropout.
    """
    q, k, v = qkv.unbind(1)
    longest = layout.max_seqlen
    bounds = layout.cu_seqlens
    is_causal = False
    returns_mask = False
    sides = {}
    if window is not None:
        sides = {"window_size_left": window, "window_size_right": window}
    context, *_ = torch.ops.aten._flash_attention_forward(
        q, k, v, bounds, bounds, longest, longest, dropout_rate, is_causal, returns_mask, **sides
    )
    return context  # type: ignore[no-any-return]


def _permute(x: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
    # Ids and positions have no gradient.
    if not x.is_floating_point():
        return x[order]
    permuted: Tensor = _Permute.apply(x, order, inverse)  # type: ignore[no-untyped-call]
    return permuted


class _Permute(torch.autograd.Function):
    """Row permutation with a gather in its backward pass too.

    The backward pass of index_select would scatter and add, since it can't know that no row is
    taken twice.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(inverse)
        return x.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (inverse,) = ctx.saved_tensors
        return gradient.index_select(0, inverse), None, None
