"""A layer in training, computed by torch's own operations: any shape, on any device.

The tests compare the faster executors with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from interlingua.encoder.modeling.attention import Layout, attend
from interlingua.encoder.modeling.dropout import dropout
from interlingua.encoder.modeling.layer_weights import LayerWeights


class EagerSteps:
    """The steps of a layer, see ``encoder/modeling/layer_weights.py``.

    Args:
        layer: the weights.
        layout: positions of the sentences.
    """

    def __init__(self, layer: LayerWeights, layout: Layout) -> None:
        # Any, since only the names of parts matter: `inference.py` has parts in another layout.
        self.layer: Any = layer
        self.layout = layout
        self.dropout_rate, self.attention_dropout_rate = layer.dropout_rates()

    def normalized(self, x: Float[Tensor, "t d"], norm: str) -> Float[Tensor, "t d"]:
        """Apply the norm named ``norm``, see ``LayerSteps``."""
        normed: Tensor = getattr(self.layer, norm)(x)
        return normed

    def attended(self, x: Float[Tensor, "t d"]) -> Float[Tensor, "t d"]:
        """Compute attention before its output matrix, see ``LayerSteps``."""
        layer = self.layer
        spec = layer.spec
        return attend(
            _with_norms(layer.qkv(x), layer.query_norm, layer.key_norm),
            self.layout,
            heads=spec.heads,
            dropout_rate=self.attention_dropout_rate,
            rotary_base=spec.rotary_base,
            window=spec.window,
            alibi=spec.alibi,
        )

    def activated(self, x: Float[Tensor, "t d"]) -> Float[Tensor, "t i"]:
        """Compute the first feed-forward product and its activation, see ``LayerSteps``."""
        inner: Tensor = self.layer.intermediate(x)
        activation: Callable[[Tensor], Tensor] = self.layer.activation
        if not self.layer.spec.gated:
            return activation(inner)
        activated, gate = inner.chunk(2, dim=-1)
        return activation(activated) * gate

    def added(
        self, x: Float[Tensor, "t d"], y: Float[Tensor, "t i"], linear: str, norm: str | None
    ) -> Float[Tensor, "t d"]:
        """Compute the residual sum with a product and its norm, see ``LayerSteps``."""
        total: Tensor = x + dropout(getattr(self.layer, linear)(y), self.dropout_rate)
        if norm is None:
            return total
        return self.normalized(total, norm)

    def summed(
        self, x: Float[Tensor, "t d"], y: Float[Tensor, "t d"], norm: str
    ) -> Float[Tensor, "t d"]:
        """Compute the norm of ``x + y``, see ``LayerSteps``."""
        return self.normalized(x + y, norm)


def _with_norms(
    qkv: Float[Tensor, "t 3*d"],
    query_norm: Callable[[Tensor], Tensor] | None,
    key_norm: Callable[[Tensor], Tensor] | None,
) -> Float[Tensor, "t 3*d"]:
    """Return queries, keys and values side by side, the first two normalized if there are norms."""
    if query_norm is None or key_norm is None:
        return qkv
    queries, keys, values = qkv.chunk(3, dim=-1)
    # Autocast computes norms in float32: convert them back to the type of the products.
    return torch.cat([query_norm(queries), key_norm(keys), values], dim=-1).to(qkv.dtype)
