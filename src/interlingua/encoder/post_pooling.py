"""The layers between pooling and the final vector: linear layers and scalings.

sentence-transformers stores them as modules of a model. A model such as LaBSE is a transformer, a
pooling, a ``Dense`` layer with tanh, and a scaling to length 1; a debiased model has a scaling, a
``Dense`` layer without activation and a scaling again. The last scaling is an option of every
encoder (``EncodingSettings.normalize``); what comes before it is a :class:`PostPooling`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from interlingua.errors import ConfigError

Activation = Literal["identity", "tanh", "relu", "gelu", "silu", "sigmoid"]
_FUNCTIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "identity": nn.Identity(),
    "tanh": torch.tanh,
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
}
FEW_ROWS = 2
"""Largest number of vectors that one thread multiplies if gradients are not recorded. torch uses
several threads even for one vector, and for a while these occupy cores that the encoding of the
next query needs. Also, for few vectors torch adds in another order than for more vectors."""


class Dense(nn.Module):
    """A linear layer and an activation: sentence-transformers' ``Dense``.

    Args:
        in_features: width D of the input.
        out_features: width E of the output.
        bias: whether a vector is added.
        activation: applied to each element of the result.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        bias: bool = True,
        activation: Activation = "identity",
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, bias=bias)
        self.activation = activation

    @classmethod
    def of(cls, weight: Float[np.ndarray, "e d"], bias: Float[np.ndarray, " e"]) -> Dense:
        """Create the affine layer ``x -> weight x + bias``, in float32."""
        layer = cls(weight.shape[1], weight.shape[0])
        layer.linear.weight.data = torch.from_numpy(np.array(weight, dtype=np.float32))
        layer.linear.bias.data = torch.from_numpy(np.array(bias, dtype=np.float32))
        return layer

    @classmethod
    def identity(cls, width: int) -> Dense:
        """Create the affine layer that changes nothing, to be trained."""
        return cls.of(np.eye(width), np.zeros(width))

    def forward(self, vectors: Float[Tensor, "b d"]) -> Float[Tensor, "b e"]:
        """Compute the layer's output, in float32 or wider even under autocast."""
        with torch.autocast(vectors.device.type, enabled=False):
            transformed = self._transformed(vectors.to(self.linear.weight.dtype))
        activated: Tensor = _FUNCTIONS[self.activation](transformed)
        return activated

    def _transformed(self, vectors: Float[Tensor, "b d"]) -> Float[Tensor, "b e"]:
        weight, bias = self.linear.weight, self.linear.bias
        if (
            len(vectors) > FEW_ROWS
            or weight.device.type != "cpu"
            or weight.dtype != torch.float32
            or not torch.is_inference_mode_enabled()
        ):
            transformed: Tensor = self.linear(vectors)
            return transformed
        # Not by BLAS, which starts threads as well.
        product = torch.from_numpy(np.einsum("bd,ed->be", vectors.numpy(), weight.detach().numpy()))
        if bias is not None:
            product += bias
        return product


class Normalize(nn.Module):
    """Scaling of every vector to length 1; the zero vector does not change."""

    def forward(self, vectors: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        """Scale the vectors to length 1."""
        return F.normalize(vectors, dim=-1)


class PostPooling(nn.Sequential):
    """Dense and Normalize layers, in order; without any, vectors stay as pooling made them."""

    def __init__(self, layers: Sequence[Dense | Normalize] = ()) -> None:
        super().__init__(*layers)
        # Compare each Dense layer with the next; Normalize layers between them keep the width.
        for before, after in zip(self.dense_layers, self.dense_layers[1:], strict=False):
            if before.linear.out_features != after.linear.in_features:
                raise ConfigError(
                    f"a Dense layer returns {before.linear.out_features} elements, but the next"
                    f" one expects {after.linear.in_features}; make both numbers equal"
                )

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the layers' classes, as sentence-transformers calls them too."""
        return tuple(type(layer).__name__ for layer in self)

    @property
    def described(self) -> tuple[str, ...]:
        """Class and activation of each layer, which its weights do not contain."""
        described = []
        for layer in self:
            name = type(layer).__name__
            if isinstance(layer, Dense):
                name = f"{name}:{layer.activation}"
            described.append(name)
        return tuple(described)

    @property
    def dense_layers(self) -> list[Dense]:
        """The layers that have weights."""
        return [layer for layer in self if isinstance(layer, Dense)]

    def output_dim(self, pooled_dim: int) -> int:
        """Return the width of the result for pooled vectors of ``pooled_dim`` numbers.

        Raises:
            ConfigError: the first Dense layer takes another width.
        """
        dense = self.dense_layers
        if not dense:
            return pooled_dim
        if dense[0].linear.in_features != pooled_dim:
            raise ConfigError(
                f"the first Dense layer expects {dense[0].linear.in_features} elements, but"
                f" pooling returns {pooled_dim}; make both numbers equal"
            )
        return int(dense[-1].linear.out_features)
