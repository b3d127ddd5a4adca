"""Cross-entropy of tokens over a large vocabulary whose logits are never all there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

TILE_ELEMENTS = {"cpu": 2**20, "cuda": 2**27}
"""Logits alive at a time: what a CPU keeps in its cache, or half a gigabyte on a GPU."""
SMALLEST_TILE = 1024


def linear_cross_entropy(
    hidden: Float[Tensor, "n d"],
    weight: Float[Tensor, "v d"],
    bias: Float[Tensor, " v"],
    targets: Int64[Tensor, " n"],
    *,
    tile: int | None = None,
) -> Float[Tensor, " n"]:
    r"""Cross-entropy of each token under softmax(h W' + b), by tiles of the vocabulary.

    .. math:: \ell_i = \log\sum_w e^{h_i \cdot W_w + b_w} - (h_i \cdot W_{y_i} + b_{y_i})

    The forward pass keeps the logarithm of the sum alone, the backward pass computes each tile of logits again: memory
    does not grow with n V, for a third more arithmetic than with all logits kept. Under autocast the products run in
    the autocast type, as those of a linear layer would; sums and logarithms stay in float32.

    *Symbols*: h ``hidden``, W ``weight``, b ``bias``, y ``targets``.

    Args:
        hidden: one vector a token.
        weight: the output embeddings.
        bias: one number a word.
        targets: the words to be told.
        tile: words at a time; default: what suits the device.

    Returns:
        Nats, one value a token.
    """
    device = hidden.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
    if tile is None:
        tile = max(SMALLEST_TILE, TILE_ELEMENTS.get(device, 2**20) // max(1, len(hidden)))
    losses: Tensor = _LinearCrossEntropy.apply(hidden.to(dtype), weight, bias, targets, tile)  # type: ignore[no-untyped-call]
    return losses


def group_means(losses: Float[Tensor, " n"], group: Int64[Tensor, " n"], groups: int) -> Float[Tensor, " g"]:
    """Mean of each group's losses, 0 for a group without any.

    Args:
        losses: one value a token.
        group: which of the groups each belongs to.
        groups: how many there are.
    """
    counts = torch.bincount(group, minlength=groups).clamp(min=1)
    return losses.new_zeros(groups).index_add(0, group, losses) / counts


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, tile: int) -> Tensor:
        log_normaliser = bias.new_full((len(hidden),), -torch.inf)
        expected = torch.zeros_like(log_normaliser)
        for start, logits in _logits(hidden, weight, bias, tile):
            log_normaliser = torch.logaddexp(log_normaliser, logits.logsumexp(dim=1))
            place, inside = _places(targets, start, logits)
            expected = torch.where(inside, logits.gather(1, place[:, None])[:, 0], expected)
        ctx.save_for_backward(hidden, weight, bias, targets, log_normaliser)
        ctx.tile = tile
        return log_normaliser - expected

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, targets, log_normaliser = ctx.saved_tensors
        d_hidden = torch.zeros_like(hidden, dtype=bias.dtype)
        d_weight, d_bias = torch.empty_like(weight), torch.empty_like(bias)
        for start, logits in _logits(hidden, weight, bias, ctx.tile):
            words = slice(start, start + logits.shape[1])
            gradient = logits.sub_(log_normaliser[:, None]).exp_()  # softmax
            place, inside = _places(targets, start, logits)
            gradient.scatter_add_(1, place[:, None], -inside.to(gradient.dtype)[:, None])
            gradient.mul_(upstream[:, None])
            d_bias[words] = gradient.sum(dim=0)
            gradient = gradient.to(hidden.dtype)
            d_hidden += gradient @ weight[words].to(hidden.dtype)
            d_weight[words] = gradient.T @ hidden
        return d_hidden.to(hidden.dtype), d_weight, d_bias, None, None


def _logits(hidden: Tensor, weight: Tensor, bias: Tensor, tile: int) -> Iterator[tuple[int, Tensor]]:
    """Tiles of the logits, each with the first word it is about; in the bias's type, and the caller's to overwrite."""
    with torch.autocast(hidden.device.type, enabled=False):
        for start in range(0, len(weight), tile):
            words = slice(start, start + tile)
            product = hidden @ weight[words].to(hidden.dtype).T
            yield start, product.to(bias.dtype).add_(bias[words])


def _places(targets: Tensor, start: int, logits: Tensor) -> tuple[Tensor, Tensor]:
    """Column of each target in a tile, and whether it is in there at all; if not, the column means nothing."""
    place = targets - start
    inside = (place >= 0) & (place < logits.shape[1])
    return place.clamp(0, logits.shape[1] - 1), inside
