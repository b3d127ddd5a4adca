"""Attention that shows each token only some tokens of its sentence.

The decoders of training objectives need it: one that reads from left to right (LASER), and one that
shows each token a different part of the sentence (RetroMAE).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from interlingua.encoder.executors.eager import EagerSteps
from interlingua.encoder.modeling.attention import (
    Layout,
    alibi_attention,
    apply_rotary,
    masked_attention,
)
from interlingua.encoder.modeling.layer import Layer
from interlingua.encoder.modeling.layer_weights import run_layer
from interlingua.runtime.devices import on_device

Visible = Callable[[Int64[Tensor, " n"], int], Bool[Tensor, "m l l"]]
"""Function that maps rows of the batch, all of one length, to a mask of what each token (second
axis) sees of its sentence (third axis). The first axis has one element per row, or one
element for all rows. Each token must see at least one token."""


def causal(rows: Int64[Tensor, " n"], length: int) -> Bool[Tensor, "1 l l"]:
    """Return a mask in which each token sees itself and those before it."""
    return torch.ones(1, length, length, dtype=torch.bool, device=rows.device).tril()


class VisibleLayer(Layer):
    """A layer that may hide tokens, and take queries from another stream than keys and values."""

    def forward(
        self,
        x: Float[Tensor, "t d"],
        layout: Layout,
        *,
        context: Float[Tensor, "t d"] | None = None,
        visible: Visible | None = None,
    ) -> Float[Tensor, "t d"]:
        """Transform the queries' stream.

        Args:
            x: source of the queries and of the residual sum.
            layout: where the sentences are. If ``visible`` is set, it must have groups of
                sentences of equal length.
            context: source of keys and values; default: ``x``.
            visible: which tokens each token sees; default: its whole sentence.
        """
        if visible is None:
            return super().forward(x, layout)
        if context is None:
            context = x
        return run_layer(self.spec, VisibleSteps(self, layout, context, visible), x)


class VisibleSteps(EagerSteps):
    """A layer in torch's own operations, with attention to visible tokens only.

    Args:
        layer: the weights.
        layout: where the sentences are.
        context: keys and values are made from it.
        visible: which tokens each token sees.
    """

    def __init__(
        self, layer: Layer, layout: Layout, context: Float[Tensor, "t d"], visible: Visible
    ) -> None:
        super().__init__(layer, layout)
        self.context = layer.before_attention(context)
        self.visible = visible

    def attended(self, x: Float[Tensor, "t d"]) -> Float[Tensor, "t d"]:
        """Compute the attention of the layer, see ``LayerSteps``."""
        layer = self.layer
        return attend_visible(
            layer.queries(x),
            layer.keys(self.context),
            layer.value(self.context),
            self.layout,
            heads=layer.spec.heads,
            visible=self.visible,
            dropout_rate=self.attention_dropout_rate,
            rotary_base=layer.spec.rotary_base,
            alibi=layer.spec.alibi,
        )


def attend_visible(
    q: Float[Tensor, "t d"],
    k: Float[Tensor, "t d"],
    v: Float[Tensor, "t d"],
    layout: Layout,
    *,
    heads: int,
    visible: Visible,
    dropout_rate: float = 0.0,
    rotary_base: float | None = None,
    alibi: bool = False,
) -> Float[Tensor, "t d"]:
    """Compute softmax(q k' / sqrt(head width)) v of every sentence over its visible tokens."""
    if rotary_base is not None:
        q = apply_rotary(q, layout, heads=heads, base=rotary_base)
        k = apply_rotary(k, layout, heads=heads, base=rotary_base)
    by_length = layout.by_length
    assert by_length is not None
    rows = on_device(by_length.order, q.device)
    contexts = []
    first = 0
    split = [torch.split(x, by_length.sizes) for x in (q, k, v)]
    for (start, n, length), *qkv in zip(by_length.groups, *split, strict=True):
        # (n, heads, length, width) each.
        queries, keys, values = (x.view(n, length, heads, -1).transpose(1, 2) for x in qkv)
        # The same for all heads.
        seen = visible(rows[first : first + n], length)[:, None]
        if alibi:
            positions = layout.group_positions(start, n, length)
            context = alibi_attention(queries, keys, values, positions, seen, dropout_rate)
        else:
            context = masked_attention(queries, keys, values, seen, dropout_rate)
        contexts.append(context.transpose(1, 2).reshape(n * length, -1))
        first += n
    return torch.cat(contexts)
