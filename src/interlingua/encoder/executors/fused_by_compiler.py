"""A layer in training with ``run.compile``: one kernel between two matrix products.

The states that go from layer to layer are in the products' type, bfloat16 under autocast; each sum
and each norm is computed in float32. Under autocast on a GPU ``EagerSteps`` keeps the states in
float32, which doubles the bytes to read and to write.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from interlingua.encoder.executors.eager import EagerSteps
from interlingua.encoder.modeling.layer_weights import ACTIVATIONS
from interlingua.runtime.fusion import one_pass


class OnePassSteps(EagerSteps):
    """``LayerSteps`` in one pass; products and attention are those of ``EagerSteps``."""

    def normalized(self, x: Float[Tensor, "t d"], norm: str) -> Float[Tensor, "t d"]:
        """Apply the norm named ``norm``, see ``LayerSteps``."""
        scale: nn.LayerNorm = getattr(self.layer, norm)
        return normed(x, scale.weight, scale.bias, scale.eps)

    def activated(self, x: Float[Tensor, "t d"]) -> Float[Tensor, "t i"]:
        """Compute the first feed-forward product and its activation, see ``LayerSteps``."""
        spec = self.layer.spec
        return activated(self.layer.intermediate(x), spec.activation, gated=spec.gated)

    def added(
        self, x: Float[Tensor, "t d"], y: Float[Tensor, "t i"], linear: str, norm: str | None
    ) -> Float[Tensor, "t d"]:
        """Compute the residual sum with a product and its norm, see ``LayerSteps``."""
        product = getattr(self.layer, linear)(y)
        if norm is None:
            return added(x, product, self.dropout_rate)
        scale: nn.LayerNorm = getattr(self.layer, norm)
        return added_and_normed(x, product, self.dropout_rate, scale.weight, scale.bias, scale.eps)


@one_pass(rows=1)
def normed(
    x: Float[Tensor, "t d"],
    weight: Float[Tensor, " d"],
    bias: Float[Tensor, " d"] | None,
    eps: float,
) -> Float[Tensor, "t d"]:
    """Compute LayerNorm, in float32 or wider."""
    return _norm(x, weight, bias, eps).to(x.dtype)


@one_pass(rows=1)
def activated(inner: Float[Tensor, "t i"], activation: str, *, gated: bool) -> Float[Tensor, "t i"]:
    """Apply the activation and the gate to the first feed-forward product."""
    function = ACTIVATIONS[activation].function
    if not gated:
        return function(inner)
    # Both are halves of one product: the activated half, then its factors.
    half, gate = inner.chunk(2, dim=-1)
    return function(half) * gate


@one_pass(rows=2)
def added(
    x: Float[Tensor, "t d"], product: Float[Tensor, "t d"], rate: float
) -> Float[Tensor, "t d"]:
    """Compute the residual sum, with dropout of the new term."""
    # Converted to the products' type only at the end, so that a sum is rounded only once.
    return _sum(x, product, rate).to(product.dtype)


@one_pass(rows=2)
def added_and_normed(
    x: Float[Tensor, "t d"],
    product: Float[Tensor, "t d"],
    rate: float,
    weight: Float[Tensor, " d"],
    bias: Float[Tensor, " d"] | None,
    eps: float,
) -> Float[Tensor, "t d"]:
    """Compute the residual sum and its norm."""
    return _norm(_sum(x, product, rate), weight, bias, eps).to(product.dtype)


def _sum(x: Tensor, product: Tensor, rate: float) -> Tensor:
    return _precise(x) + F.dropout(_precise(product), rate)


def _norm(x: Tensor, weight: Tensor, bias: Tensor | None, eps: float) -> Tensor:
    # The type is chosen here, whatever autocast would choose.
    with torch.autocast(x.device.type, enabled=False):
        return F.layer_norm(_precise(x), weight.shape, weight, bias, eps)


def _precise(x: Tensor) -> Tensor:
    """Return the tensor in float32, or in float64 if it has that type (gradient checks)."""
    if x.dtype == torch.float64:
        return x
    return x.float()
