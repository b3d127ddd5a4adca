"""Cross-entropy of tokens over a large vocabulary, with the logits computed by tiles of words.

With 250,000 words the logits of a batch are by far its largest tensor: for 2,000 masked tokens
they take two gigabytes in float32. The loss needs only three numbers per token: the largest logit,
the sum of the exponentials relative to it, and the target's logit. So the forward pass goes through
the vocabulary tile by tile and keeps these three. If it finds a larger logit, it rescales the sum
(the online softmax that FlashAttention uses). The backward pass goes through the tiles once more.
On the CPU a kernel reads each tile only once in the forward pass and once in the backward pass;
each of its threads takes a part of the rows.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from interlingua.kernels.calls import call_in_parts, can_use_training_kernel, even_parts
from interlingua.runtime.devices import on_device
from interlingua.runtime.fusion import one_pass, switch

TILE_ELEMENTS = {"cpu": 2**20, "cuda": 2**27}
"""Number of logits in memory at a time: the size of a CPU's cache, or half a gigabyte on a GPU."""
SMALLEST_TILE = 1024
"""Minimum number of words in a tile, for any number of tokens."""
_KEPT_BYTES = 2**29
"""Bytes of logits that are kept for the backward pass; the others are computed again."""


def linear_cross_entropy(
    hidden: Float[Tensor, "n d"],
    weight: Float[Tensor, "v d"],
    bias: Float[Tensor, " v"],
    targets: Int64[Tensor, " n"],
    *,
    tile: int | None = None,
    kept_bytes: int = _KEPT_BYTES,
) -> Float[Tensor, " n"]:
    r"""Compute the cross-entropy of tokens under softmax(h W' + b), by tiles of the vocabulary.

    .. math:: \ell_i = \log\sum_w e^{h_i \cdot W_w + b_w} - (h_i \cdot W_{y_i} + b_{y_i})

    The forward pass keeps the first tiles of h W'; the backward pass reads these and computes the
    others again. So memory does not grow with n V, at the price of up to a third more arithmetic
    than if all tiles were kept. Under autocast the products run in the autocast type, as those of a
    linear layer would; sums and logarithms stay in float32.

    *Symbols*: h ``hidden``, W ``weight``, b ``bias``, y ``targets``.

    Args:
        hidden: one vector a token.
        weight: the output embeddings.
        bias: one number a word.
        targets: the words to predict; they may still be on the host.
        tile: words per tile; the default depends on the device.
        kept_bytes: maximum number of bytes of h W' to keep for the backward pass.

    Returns:
        Nats, one value a token.
    """
    targets = on_device(targets, hidden.device)
    device = hidden.device.type
    dtype = weight.dtype
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    if tile is None:
        tile = max(SMALLEST_TILE, TILE_ELEMENTS.get(device, 2**20) // max(1, len(hidden)))
    losses: Tensor = _LinearCrossEntropy.apply(
        hidden.to(dtype), weight, bias, targets, tile, kept_bytes
    )  # type: ignore[no-untyped-call]
    return losses


def group_means(
    losses: Float[Tensor, " n"], group: Int64[Tensor, " n"], groups: int
) -> Float[Tensor, " g"]:
    """Compute the mean of each group's losses, 0 for an empty group.

    Args:
        losses: one value a token.
        group: index of the group of each loss; may still be on the host.
        groups: number of groups.
    """
    group = on_device(group, losses.device)
    # not bincount, because the host would wait for its result
    counts = group.new_zeros(groups).index_add(0, group, torch.ones_like(group)).clamp(min=1)
    return losses.new_zeros(groups).index_add(0, group, losses) / counts


class _LinearCrossEntropy(torch.autograd.Function):
    """Autograd function of ``linear_cross_entropy``."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        tile: int,
        kept_bytes: int,
    ) -> Tensor:
        seen = _Seen(len(hidden), bias)
        kept = []
        for start in range(0, len(weight), tile):
            words = slice(start, start + tile)
            product = _product(hidden, weight[words])
            seen.add(product, bias[words], targets - start)
            # The first tiles are kept, as long as there is room: product i of the list is tile i.
            kept_bytes -= product.numel() * product.element_size()
            if kept_bytes >= 0 and any(ctx.needs_input_grad):
                kept.append(product)
        log_normalizer = seen.log_normalizer()
        ctx.save_for_backward(hidden, weight, bias, targets, log_normalizer, *kept)
        ctx.tile = tile
        return log_normalizer - seen.expected

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, targets, log_normalizer, *kept = ctx.saved_tensors
        # A sum over the tiles, therefore in the type of the bias, which is wider under autocast.
        d_hidden = torch.zeros_like(hidden, dtype=bias.dtype)
        d_weight: Tensor | None = None
        if ctx.needs_input_grad[1]:  # False if the word embeddings are frozen
            d_weight = torch.empty_like(weight)
        d_bias = torch.empty_like(bias)
        for place, start in enumerate(range(0, len(weight), ctx.tile)):
            words = slice(start, start + ctx.tile)
            some_weights = weight[words].to(hidden.dtype)
            product = kept[place] if place < len(kept) else _product(hidden, some_weights)
            slopes, d_bias[words] = _slopes(
                product, bias[words], targets - start, log_normalizer, upstream
            )
            d_hidden += slopes @ some_weights
            if d_weight is not None:
                d_weight[words] = slopes.T @ hidden
        return d_hidden.to(hidden.dtype), d_weight, d_bias, None, None, None


def _product(hidden: Float[Tensor, "n d"], weight: Float[Tensor, "w d"]) -> Float[Tensor, "n w"]:
    with torch.autocast(hidden.device.type, enabled=False):
        return hidden @ weight.to(hidden.dtype).T


class _Seen:
    """Statistics of each row's softmax after some tiles.

    Attributes:
        largest: the largest logit so far.
        sum: the sum of e^(logit - largest).
        expected: the target's logit, once its tile was seen.
    """

    def __init__(self, rows: int, bias: Float[Tensor, " v"]) -> None:
        self.largest = bias.new_full((rows,), -torch.inf)
        self.sum = torch.zeros_like(self.largest)
        self.expected = torch.zeros_like(self.largest)

    def add(
        self, product: Float[Tensor, "n w"], bias: Float[Tensor, " w"], targets: Int64[Tensor, " n"]
    ) -> None:
        """Add the logits of some words; target indices are relative to the first of them."""
        if can_use_training_kernel(product) and bias.dtype == torch.float32:
            # the kernel writes its results in place
            _by_rows("observe", product, bias, (targets, self.largest, self.sum, self.expected))
            return
        self.largest, self.sum, self.expected = _observed(
            product, bias, targets, self.largest, self.sum, self.expected
        )

    def log_normalizer(self) -> Float[Tensor, " n"]:
        return self.largest + self.sum.log()


@one_pass()
def _observed(
    product: Float[Tensor, "n w"],
    bias: Float[Tensor, " w"],
    targets: Int64[Tensor, " n"],
    largest_so_far: Float[Tensor, " n"],
    sum_so_far: Float[Tensor, " n"],
    expected: Float[Tensor, " n"],
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Update the statistics of each row's softmax with the logits of some more words."""
    logits = product + bias
    largest = torch.maximum(largest_so_far, logits.amax(dim=1))
    place, inside = _places(targets, logits)
    # before the logits are overwritten in the next line
    expected = torch.where(inside, logits.gather(1, place[:, None])[:, 0], expected)
    sum_of_these = logits.sub_(largest[:, None]).exp_().sum(dim=1)
    # The previous sum is relative to the previous largest logit; in the first tile both factors
    # of this product are 0: 0 e^-inf.
    total = sum_so_far * (largest_so_far - largest).exp() + sum_of_these
    return largest, total, expected


def _slopes(
    product: Float[Tensor, "n w"],
    bias: Float[Tensor, " w"],
    targets: Int64[Tensor, " n"],
    log_normalizer: Float[Tensor, " n"],
    upstream: Float[Tensor, " n"],
) -> tuple[Float[Tensor, "n w"], Float[Tensor, " w"]]:
    """Compute the slopes of the losses along the logits of some words, and their sums over rows.

    The slopes are in the type of the products, for the products of the backward pass.
    """
    if can_use_training_kernel(product) and bias.dtype == torch.float32:
        slopes = torch.empty_like(product)
        rows = (targets, log_normalizer, upstream.contiguous(), slopes)
        sums = _by_rows("slopes_of", product, bias, rows, sums=True)
        return slopes, sums
    if switch.is_on:
        # Two passes, each only over the products. A single pass would write all slopes in float32
        # for their sums, and read them again.
        slopes, sums = (
            _slopes_of(product, bias, targets, log_normalizer, upstream, summed=summed)
            for summed in (False, True)
        )
        return slopes, sums
    # As in ``_slopes_of``, but in place: here each operation is a separate pass over all slopes.
    slopes = (product + bias).sub_(log_normalizer[:, None]).exp_()  # softmax
    place, inside = _places(targets, slopes)
    # less 1 at the target, if it is one of these words
    slopes.scatter_add_(1, place[:, None], -inside.to(slopes.dtype)[:, None])
    slopes.mul_(upstream[:, None])
    return slopes.to(product.dtype), slopes.sum(dim=0)


@one_pass()
def _slopes_of(
    product: Float[Tensor, "n w"],
    bias: Float[Tensor, " w"],
    targets: Int64[Tensor, " n"],
    log_normalizer: Float[Tensor, " n"],
    upstream: Float[Tensor, " n"],
    *,
    summed: bool,
) -> Tensor:
    """Compute the slopes in the type of the products, or their sums over the rows."""
    softmax = (product + bias - log_normalizer[:, None]).exp()
    words = torch.arange(product.shape[1], device=product.device)
    is_target = (words == targets[:, None]).to(softmax.dtype)
    slopes = (softmax - is_target) * upstream[:, None]
    if summed:
        return slopes.sum(dim=0)
    return slopes.to(product.dtype)


def _by_rows(
    name: str,
    product: Float[Tensor, "n w"],
    bias: Float[Tensor, " w"],
    rows: tuple[Tensor, ...],
    *,
    sums: bool = False,
) -> Float[Tensor, " w"]:
    """Call the kernel on parts of the rows of a product and of other tensors."""
    parts = even_parts(*product.shape)
    # Each thread adds up in a row of its own; without sums the rows are empty.
    width = len(bias) if sums else 0
    totals = bias.new_zeros(len(parts), width)

    def part(first: int, last: int) -> list[Any]:
        tensors = [product[first:], bias, *(x[first:] for x in rows)]
        if sums:
            tensors.append(totals[parts.index(first)])
        return [last - first, product.shape[1], *tensors]

    call_in_parts(name, product, parts, part)
    return totals.sum(0)


def _places(targets: Int64[Tensor, " n"], logits: Float[Tensor, "n w"]) -> tuple[Tensor, Tensor]:
    """Return the column of each target, and whether the logits have such a column.

    If they don't, the returned column has no meaning.
    """
    inside = (targets >= 0) & (targets < logits.shape[1])
    return targets.clamp(0, logits.shape[1] - 1), inside
