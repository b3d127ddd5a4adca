"""A layer in training by the kernel ``training``: one pass between two matrix products.

The same layer as in ``layer.py``, with the same random numbers and the same gradients. A dozen
operations of torch, each of which reads and writes all activations, are one pass here, computed in
float32 for any type of activations. torch still computes matrix products. Each of the three passes
(attention, activation, residual sum with norm) is an autograd function: its forward pass saves what
the backward pass of the kernel needs, and the random bytes by which it dropped elements. Threads
take parts of the rows or sentences; gradients of weights are summed per part, then over the parts.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor, nn
from torch.nn import functional as F

from interlingua.encoder.executors.eager import EagerSteps
from interlingua.encoder.modeling.dropout import random_bytes, threshold_and_scale, whole_words
from interlingua.encoder.modeling.layer_weights import ACTIVATIONS, LayerWeights
from interlingua.kernels.calls import (
    call_in_parts,
    can_use_training_kernel,
    even_parts,
    threads_for,
)

if TYPE_CHECKING:
    from interlingua.batches.packing import LengthGroups
    from interlingua.encoder.modeling.attention import Layout

# The kernel supports only rows that consist of whole vectors of this number of floats.
FUSED_LANES = 16


def takes(layer: LayerWeights, x: Float[Tensor, "t d"], layout: Layout) -> bool:
    """Return whether the kernel is available and supports the layer and its activations."""
    spec = layer.spec
    weight = layer.query.weight
    # The dtype of torch's products; the kernel only reads states of that type.
    dtype = weight.dtype
    if torch.is_autocast_enabled("cpu"):
        dtype = torch.get_autocast_dtype("cpu")
    widths = (spec.width, spec.head_width, spec.inner)
    fits = (
        x.dtype == dtype
        and weight.dtype == torch.float32
        and not any(width % FUSED_LANES for width in widths)
    )
    return (
        spec.is_plain
        and fits
        and layout.by_length is not None
        and len(x) > 0
        and can_use_training_kernel(x)
    )


class FusedSteps(EagerSteps):
    """The steps of a layer that ``is_plain``, see ``encoder/modeling/layer_weights.py``.

    The layout is by groups of equal length.
    """

    def attended(self, x: Float[Tensor, "t d"]) -> Float[Tensor, "t d"]:
        """Compute attention before its output matrix, see ``LayerSteps``."""
        weight, bias = self.layer.joint_projection()
        heads = self.layer.spec.heads
        # Without the bias, here and below: the kernel adds it while it reads the product.
        qkv = F.linear(x, weight)
        context: Tensor = _Attention.apply(
            qkv, bias, self.layout.by_length, heads, self.attention_dropout_rate
        )  # type: ignore[no-untyped-call]
        return context

    def activated(self, x: Float[Tensor, "t d"]) -> Float[Tensor, "t i"]:
        """Compute the first feed-forward product and its activation, see ``LayerSteps``."""
        linear = self.layer.intermediate
        kind = ACTIVATIONS[self.layer.spec.activation].kernel
        inner: Tensor = _Activation.apply(F.linear(x, linear.weight), linear.bias, kind)  # type: ignore[no-untyped-call]
        return inner

    def added(
        self, x: Float[Tensor, "t d"], y: Float[Tensor, "t i"], linear: str, norm: str | None
    ) -> Float[Tensor, "t d"]:
        """Compute product, bias, dropout, residual sum and norm, see ``LayerSteps``."""
        # Plain layers are post-LN: both of their sums are normalized.
        assert norm is not None
        matrix: nn.Linear = getattr(self.layer, linear)
        scale: nn.LayerNorm = getattr(self.layer, norm)
        product = F.linear(y, matrix.weight)
        out: Tensor = _ResidualNorm.apply(  # type: ignore[no-untyped-call]
            x, product, matrix.bias, scale.weight, scale.bias, scale.eps, self.dropout_rate
        )
        return out


def struct_fields(kind: Any, *names: str) -> list[tuple[str, Any]]:
    """Return fields of one type for a ``struct`` of the kernel."""
    return [(name, kind) for name in names]


class _Dropout(ctypes.Structure):
    """The kernel's ``struct`` of this name: random bytes, the lowest byte to keep, the scale."""

    _fields_ = [
        ("random", ctypes.c_void_p),
        ("threshold", ctypes.c_int64),
        ("scale", ctypes.c_float),
    ]

    @classmethod
    def of(cls, random: UInt8[Tensor, " n"] | None, rate: float, first: int = 0) -> _Dropout:
        """Return the struct for the bytes from ``first`` on; without bytes nothing is dropped."""
        if random is None:
            return cls(None, 0, 1.0)
        return cls(random.data_ptr() + first, *threshold_and_scale(rate))


class _Sentences(ctypes.Structure):
    """The kernel's ``struct`` of this name: sizes, starts of sentences and of random bytes."""

    _fields_ = [
        *struct_fields(ctypes.c_int64, "width", "heads"),
        *struct_fields(ctypes.c_void_p, "starts", "bytes"),
        ("dropout", _Dropout),
    ]


class _ResidualNorm(torch.autograd.Function):
    """LayerNorm(x + dropout(y + bias))."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        y: Tensor,
        bias: Tensor,
        weight: Tensor,
        shift: Tensor,
        eps: float,
        rate: float,
    ) -> Tensor:
        x = x.contiguous()
        y = y.contiguous()
        width = x.shape[1]
        random = _random(rate, [x.numel()])
        out = torch.empty_like(x)
        # For the backward pass: the normalized sums before weight and shift, and 1 / deviation.
        normal = torch.empty_like(x)
        inverse = _floats(x, len(x))

        def part(first: int, last: int) -> tuple[Any, ...]:
            return (
                last - first,
                width,
                x[first:],
                y[first:],
                bias,
                _Dropout.of(random, rate, first * width),
                weight,
                shift,
                float(eps),
                out[first:],
                normal[first:],
                inverse[first:],
            )

        call_in_parts("residual_norm", x, even_parts(*x.shape), part)
        ctx.save_for_backward(normal, inverse, weight, random)
        ctx.rate = rate
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        normal, inverse, weight, random = ctx.saved_tensors
        upstream = upstream.contiguous()
        width = upstream.shape[1]
        dx = torch.empty_like(upstream)
        dy = torch.empty_like(upstream)
        parts = even_parts(*upstream.shape)
        # Gradients of weight, shift and bias, a row for each part: threads share none.
        sums = _floats(upstream, len(parts), 3, width)

        def part(first: int, last: int) -> tuple[Any, ...]:
            return (
                last - first,
                width,
                upstream[first:],
                normal[first:],
                inverse[first:],
                _Dropout.of(random, ctx.rate, first * width),
                weight,
                dx[first:],
                dy[first:],
                *sums[parts.index(first)],
            )

        call_in_parts("residual_norm_back", upstream, parts, part)
        d_weight, d_shift, d_bias = sums.sum(0)
        return dx, dy, d_bias, d_weight, d_shift, None, None


class _Activation(torch.autograd.Function):
    """The function activation(x + bias)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, kind: int) -> Tensor:
        x = x.contiguous()
        width = x.shape[1]
        y = torch.empty_like(x)

        def part(first: int, last: int) -> tuple[Any, ...]:
            return kind, last - first, width, x[first:], bias, y[first:]

        call_in_parts("activation", x, even_parts(*x.shape), part)
        # The input is kept, because not every slope can be computed from the result.
        ctx.save_for_backward(x, bias)
        ctx.kind = kind
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        x, bias = ctx.saved_tensors
        upstream = upstream.contiguous()
        width = x.shape[1]
        dx = torch.empty_like(x)
        parts = even_parts(*x.shape)
        sums = _floats(x, len(parts), width)

        def part(first: int, last: int) -> tuple[Any, ...]:
            return (
                ctx.kind,
                last - first,
                width,
                upstream[first:],
                x[first:],
                bias,
                dx[first:],
                sums[parts.index(first)],
            )

        call_in_parts("activation_back", x, parts, part)
        return dx, sums.sum(0), None


class _Attention(torch.autograd.Function):
    """Softmax(q k' / sqrt(head width)) v of every sentence over itself.

    Queries, keys and values come without bias.
    """

    @staticmethod
    def forward(
        ctx: Any, qkv: Tensor, bias: Tensor, groups: LengthGroups, heads: int, rate: float
    ) -> Tensor:
        qkv = qkv.contiguous()
        width = qkv.shape[1] // 3
        context = qkv.new_empty(len(qkv), width)
        # For the backward pass two numbers of each row's softmax are kept in place of its weights,
        # which are computed again.
        stats = _floats(qkv, len(qkv), heads, 2)
        # One byte per attention weight: a sentence of l tokens has heads * l^2 weights.
        sizes = [sequences * heads * length**2 for _, sequences, length in groups.groups]
        random = _random(rate, sizes)
        starts, places = _places(groups, heads)
        _check_attention(qkv, bias, heads, tokens=int(starts[-1]))
        sentences = _Sentences(
            width, heads, starts.ctypes.data, places.ctypes.data, _Dropout.of(random, rate)
        )

        def part(first: int, last: int) -> tuple[Any, ...]:
            return sentences, first, last, qkv, bias, context, stats

        call_in_parts("attention", qkv, _by_work(starts), part)
        ctx.save_for_backward(qkv, bias, stats, random)
        ctx.sentences = sentences
        ctx.starts = starts
        ctx.places = places
        return context

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        qkv, bias, stats, random = ctx.saved_tensors
        upstream = upstream.contiguous()
        d_qkv = torch.empty_like(qkv)
        parts = _by_work(ctx.starts)
        if 3 * upstream.numel() != qkv.numel():
            raise ValueError(
                f"attention: expected gradients of {len(qkv)} tokens, found shape"
                f" {tuple(upstream.shape)}"
            )
        # Saved tensors may come back at another address, if a hook has moved them.
        if random is not None:
            ctx.sentences.dropout.random = random.data_ptr()
        sums = _floats(qkv, len(parts), len(bias))

        def part(first: int, last: int) -> tuple[Any, ...]:
            slopes = sums[parts.index(first)]
            return ctx.sentences, first, last, upstream, qkv, bias, stats, d_qkv, slopes

        call_in_parts("attention_back", qkv, parts, part)
        return d_qkv, sums.sum(0), None, None, None


def _check_attention(
    qkv: Float[Tensor, "t 3d"], bias: Float[Tensor, " 3d"], heads: int, *, tokens: int
) -> None:
    """Refuse sentences by which the kernel would read beyond the tensor.

    The kernel uses only the positions of the sentences and the width; it does not check where the
    tensor ends.
    """
    width = qkv.shape[1] // 3
    if heads < 1 or qkv.shape[1] != len(bias) or width % (heads * FUSED_LANES):
        raise ValueError(
            f"attention: expected {heads} heads, each a multiple of {FUSED_LANES} wide; found a"
            f" width of {qkv.shape[1]} / 3"
        )
    if tokens > len(qkv):
        raise ValueError(
            f"attention: expected sentences of {tokens} tokens in total, found {len(qkv)}"
        )


def _random(rate: float, sizes: list[int]) -> UInt8[Tensor, " bytes"] | None:
    """Draw a byte for each element that may be dropped; return None if nothing is dropped."""
    if not rate:
        return None
    return random_bytes(sizes)


def _floats(like: Tensor, *shape: int) -> Tensor:
    """Return zeros on a tensor's device, in float32 regardless of torch's default dtype."""
    return torch.zeros(shape, dtype=torch.float32, device=like.device)


def _places(
    groups: LengthGroups, heads: int
) -> tuple[Int64[np.ndarray, " b+1"], Int64[np.ndarray, " b"]]:
    """Return the first token of each sentence and the total, and the starts of the random bytes."""
    starts = [np.zeros(1, np.int64)]
    places = []
    byte = 0
    for start, count, length in groups.groups:
        index = np.arange(count)
        size = heads * length**2
        starts.append(start + (index + 1) * length)
        places.append(byte + index * size)
        # As `random_bytes` draws them: the bytes of each group start at a whole word.
        byte += 8 * whole_words(count * size)
    return np.concatenate(starts), np.concatenate(places)


def _by_work(starts: Int64[np.ndarray, " b+1"]) -> list[int]:
    """Return bounds that divide the sentences into parts of about equal cost, one per thread."""
    lengths = np.diff(starts)
    # Attention costs l^2, plus a cost for each of the l rows.
    work = np.cumsum(lengths * (lengths + 2 * FUSED_LANES))
    parts = threads_for(int(work[-1]))
    # The sentences at which the sum passes 1/n, 2/n, ... of the whole; a long one may pass two.
    inner = np.searchsorted(work, work[-1] * np.arange(1, parts) / parts).tolist()
    return sorted({0, *inner, len(lengths)})
