"""Attention in which each token is shown some tokens of its sentence only: the decoders of training objectives."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn import functional as F

from interlingua.encoder.attention import Layout
from interlingua.encoder.backbone import Layer
from interlingua.encoder.dropout import dropout

Visible = Callable[[Int64[Tensor, " n"], int], Bool[Tensor, "m l l"]]
"""From rows of the batch, all of one length, to what each token (second axis) is shown of its sentence (third); the
first axis is that of the rows, or 1. No token may be shown nothing."""


def causal(rows: Int64[Tensor, " n"], length: int) -> Bool[Tensor, "1 l l"]:
    """Each token is shown itself and those before it."""
    return torch.ones(1, length, length, dtype=torch.bool, device=rows.device).tril()


class VisibleLayer(Layer):
    """A layer that may take its queries from another stream than keys and values, and may hide tokens."""

    def forward(
        self,
        x: Float[Tensor, "t d"],
        layout: Layout,
        *,
        context: Float[Tensor, "t d"] | None = None,
        visible: Visible | None = None,
    ) -> Float[Tensor, "t d"]:
        """Transforms the queries' stream.

        Args:
            x: what asks, and what the residual sum is over.
            layout: where the sentences are; by groups of equal length, unless everything is shown.
            context: what answers; default: ``x``.
            visible: what each token is shown; default: its whole sentence.
        """
        if visible is None:
            return super().forward(x, layout)
        context = x if context is None else context
        attended = attend_visible(
            self.query(x),
            self.key(context),
            self.value(context),
            layout,
            heads=self.config.num_attention_heads,
            visible=visible,
            dropout_rate=self.dropout_rates()[1],
        )
        return self.after_attention(x, attended)


def attend_visible(
    q: Float[Tensor, "t d"],
    k: Float[Tensor, "t d"],
    v: Float[Tensor, "t d"],
    layout: Layout,
    *,
    heads: int,
    visible: Visible,
    dropout_rate: float = 0.0,
) -> Float[Tensor, "t d"]:
    """Softmax(q k' / sqrt(head width)) v of every sentence over those of its tokens that are shown."""
    by_length = layout.by_length
    assert by_length is not None
    lengths = layout.cu_seqlens.diff().long()
    rows = lengths.sort(stable=True).indices  # sentences in the layout's order
    contexts = []
    first = 0
    pieces = zip(by_length.groups, *(torch.split(x, by_length.sizes) for x in (q, k, v)), strict=True)
    for (_, n, length), *qkv in pieces:
        queries, keys, values = (x.view(n, length, heads, -1).transpose(1, 2) for x in qkv)  # (n, heads, length, width)
        seen = visible(rows[first : first + n], length)[:, None]
        context = _attention(queries, keys, values, seen, dropout_rate)
        contexts.append(context.transpose(1, 2).reshape(n * length, -1))
        first += n
    return torch.cat(contexts)


def _attention(
    q: Float[Tensor, "n h l w"], k: Float[Tensor, "n h l w"], v: Float[Tensor, "n h l w"], seen: Tensor, rate: float
) -> Float[Tensor, "n h l w"]:
    if q.is_cuda or not torch.is_grad_enabled():
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=rate)
    scores = torch.matmul(q * (1 / math.sqrt(q.shape[-1])), k.transpose(-1, -2)).masked_fill(~seen, -torch.inf)
    return torch.matmul(dropout(scores.softmax(-1), rate).to(v.dtype), v)
