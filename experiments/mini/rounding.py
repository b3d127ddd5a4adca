"""Rounds a model's matrices to float8 so that its vectors stay closer than with each weight at its nearest value.

The weights of a matrix are rounded one column after another. What a column loses, the columns that are left make up
for, as far as the inputs of sample texts allow (GPTQ, Frantar et al. 2023). What is still off on average goes into the
biases, which stay in float32. Tables are rounded to the nearest values.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from interlingua.encoder.attention import Layout
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.layer import EagerSteps, Layer, layout_for, run_layer
from interlingua.export.compact import FLOAT8, rounded_encoder

BLOCK = 64
"""Columns after which the columns that are left are brought up to date."""
DAMPING = 0.01
"""Of the mean of the diagonal, added to it, so that the matrix of inputs can be inverted."""


class Means(EagerSteps):
    """A layer that keeps the mean of what each matrix is given."""

    def __init__(self, layer: Layer, layout: Layout) -> None:
        super().__init__(layer, layout)
        self.means: dict[str, Tensor] = {}

    def attended(self, x: Float[Tensor, "t d"]) -> Float[Tensor, "t d"]:
        """See ``Steps``."""
        for name in ("query", "key", "value"):
            self.means[name] = x.mean(dim=0)
        return super().attended(x)

    def activated(self, x: Float[Tensor, "t d"]) -> Float[Tensor, "t i"]:
        """See ``Steps``."""
        self.means["intermediate"] = x.mean(dim=0)
        return super().activated(x)

    def added(
        self, x: Float[Tensor, "t d"], y: Float[Tensor, "t i"], linear: str, norm: str | None
    ) -> Float[Tensor, "t d"]:
        """See ``Steps``."""
        self.means[linear] = y.mean(dim=0)
        return super().added(x, y, linear, norm)


class Rounding(EagerSteps):
    """A layer that rounds each of its matrices when it sees what the matrix is given.

    Args:
        layer: is changed.
        layout: where the sentences are.
        means: what the matrices of the exact layer are given, on average.
    """

    def __init__(self, layer: Layer, layout: Layout, means: dict[str, Tensor]) -> None:
        super().__init__(layer, layout)
        self.means = means

    def attended(self, x: Float[Tensor, "t d"]) -> Float[Tensor, "t d"]:
        """See ``Steps``."""
        for name in ("query", "key", "value"):
            self.fit(name, x)
        return super().attended(x)

    def activated(self, x: Float[Tensor, "t d"]) -> Float[Tensor, "t i"]:
        """See ``Steps``."""
        self.fit("intermediate", x)
        return super().activated(x)

    def added(
        self, x: Float[Tensor, "t d"], y: Float[Tensor, "t i"], linear: str, norm: str | None
    ) -> Float[Tensor, "t d"]:
        """See ``Steps``."""
        self.fit(linear, y)
        return super().added(x, y, linear, norm)

    def fit(self, name: str, inputs: Float[Tensor, "t d"]) -> None:
        """Rounds a matrix, and shifts its bias."""
        linear = getattr(self.layer, name)
        expected = linear(self.means[name])
        linear.weight.copy_(fit_matrix(linear.weight, inputs))
        linear.bias += expected - linear(inputs.mean(dim=0))


@torch.no_grad()
def rounded(encoder: Encoder, texts: Sequence[str]) -> Encoder:
    """The encoder with values that float8 holds, in all matrices but those after pooling.

    Args:
        encoder: stays as it is.
        texts: a sample of what it is to embed, in all of its languages.
    """
    ids = encoder.vocabulary.encode(list(texts), language=None, max_tokens=encoder.max_tokens)
    boundaries = torch.tensor([0, *(len(row) for row in ids)]).cumsum(0).int()
    tokens = torch.tensor([token for row in ids for token in row])
    exact = encoder.backbone.eval()
    found = copy.deepcopy(exact)
    nearest = rounded_encoder(encoder).backbone.state_dict()
    tables = {name: tensor for name, tensor in nearest.items() if not name.startswith("layers.")}
    found.load_state_dict(exact.state_dict() | tables)
    layout = layout_for(exact.layers, boundaries, torch.device("cpu"))
    true, own = exact.embed(tokens, layout), found.embed(tokens, layout)
    for exact_layer, layer in zip(exact.layers, found.layers, strict=True):
        seen = Means(exact_layer, layout)
        true = run_layer(exact_layer.spec, seen, true)
        own = run_layer(layer.spec, Rounding(layer, layout, seen.means), own)
    return encoder.with_backbone(found).eval()


def fit_matrix(weight: Float[Tensor, "o i"], inputs: Float[Tensor, "t i"]) -> Float[Tensor, "o i"]:
    """The matrix with float8 values that gives nearly the same products with the inputs."""
    moments = (inputs.T @ inputs).double()
    moments.diagonal().add_(DAMPING * moments.diagonal().mean())
    order = moments.diagonal().argsort(descending=True)  # what matters most is rounded while all others can make up
    inverse = torch.linalg.inv(moments[order][:, order])
    factor = torch.linalg.cholesky(inverse, upper=True).float()
    left = weight[:, order].clone()
    done = torch.empty_like(left)
    for start in range(0, left.shape[1], BLOCK):
        stop = min(start + BLOCK, left.shape[1])
        errors = torch.empty_like(left[:, start:stop])
        for column in range(start, stop):
            done[:, column] = left[:, column].to(FLOAT8).float()
            error = (left[:, column] - done[:, column]) / factor[column, column]
            left[:, column:stop] -= error[:, None] * factor[column, column:stop]
            errors[:, column - start] = error
        left[:, stop:] -= errors @ factor[start:stop, stop:]
    return done[:, order.argsort()]
