"""Token-level objectives: a sentence embedding has to predict the tokens of the translation.

The target is the frequency of each token in the translation. This distribution over the vocabulary
is 0 almost everywhere, so it is kept as a list of (sentence, token, weight). The prediction is
dense. The divergence of the two needs only the logits of the listed tokens and the normalizer.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import torch
from jaxtyping import Float, Int, Int64
from torch import Tensor

from interlingua.functional.contrastive import widen
from interlingua.runtime.devices import on_device

TargetKind = Literal["paper", "code"]
TARGET_KINDS: tuple[TargetKind, ...] = get_args(TargetKind)


class TokenTargets(NamedTuple):
    """Sparse token distributions: entry t adds ``weights[t]`` to p(``ids[t]``) of ``rows[t]``."""

    rows: Int64[Tensor, " t"]
    ids: Int64[Tensor, " t"]
    weights: Float[Tensor, " t"]
    mass: Float[Tensor, " b"]
    """Sum of p over the vocabulary: 1, or less for the targets of the released code."""
    negative_entropy: Float[Tensor, " b"]
    """Sum of p log p over the vocabulary, nats."""

    def to(self, device: torch.device) -> TokenTargets:
        """Return the distributions on another device."""
        return TokenTargets(*(on_device(tensor, device) for tensor in self))

    def dense(self, vocab_size: int) -> Float[Tensor, "b v"]:
        """Return the distributions as a matrix."""
        matrix = self.weights.new_zeros(len(self.mass), vocab_size)
        return matrix.index_put((self.rows, self.ids), self.weights, accumulate=True)


def token_targets(
    input_ids: Int64[Tensor, " t"],
    cu_seqlens: Int[Tensor, " b+1"],
    *,
    extra_ids: Int64[Tensor, " b"] | None = None,
    kind: TargetKind = "paper",
    dtype: torch.dtype = torch.float32,
) -> TokenTargets:
    r"""Compute the token distribution of each sentence, EMS (Mao et al. 2023), Eq. (7).

    .. math:: p_S(w) = N_w / |S|

    *Symbols*: N_w, the occurrences of token w in the sentence S of |S| tokens.

    Args:
        input_ids: tokens of all sentences, packed.
        cu_seqlens: start of each sentence; none is empty.
        extra_ids: one more token for each sentence, so that p = N_w / (|S| + 1): the masked token
            of the unified generative task.
        kind: "paper", or "code": the released implementation writes 1 / |S| once for each distinct
            token, so that a sentence with repeated tokens has a mass below 1.
        dtype: of the weights.

    Raises:
        ValueError: there is no such kind.
    """
    if kind not in TARGET_KINDS:
        raise ValueError(f"unknown kind of targets {kind!r}; use one of: {', '.join(TARGET_KINDS)}")
    batch = len(cu_seqlens) - 1
    sentences = torch.arange(batch, device=input_ids.device)
    lengths = cu_seqlens.long().diff()
    # With a known output size, the host does not wait for lengths on a GPU.
    rows = torch.repeat_interleave(sentences, lengths, output_size=len(input_ids))
    if extra_ids is not None:
        rows = torch.cat([rows, sentences])
        input_ids = torch.cat([input_ids, extra_ids])
        lengths = lengths + 1
    counts = _counts_within(rows, input_ids).to(dtype)  # N_w of each token
    share = lengths.to(dtype).reciprocal()[rows]  # 1 / |S|
    # A token that occurs N_w times has N_w entries, whose weights add up to p(w).
    if kind == "paper":
        p = counts * share
        weights = share
    else:
        p = share
        weights = share / counts
    zeros = torch.zeros(batch, dtype=dtype, device=input_ids.device)
    return TokenTargets(
        rows,
        input_ids,
        weights,
        mass=zeros.index_add(0, rows, weights),
        # sum_w p(w) log p(w), as N_w entries of weight p(w) / N_w
        negative_entropy=zeros.index_add(0, rows, weights * p.log()),
    )


def token_divergence(logits: Float[Tensor, "b v"], targets: TokenTargets) -> Float[Tensor, " b"]:
    r"""Compute divergences of predicted from true token distributions, EMS, Eq. (6), one direction.

    .. math:: KL(p \Vert q) = \sum_w p(w) \log p(w) - \sum_w p(w) z_w
              + \Bigl(\sum_w p(w)\Bigr) \log\sum_w e^{z_w}

    *Symbols*: z ``logits``, q = softmax(z); p ``targets``, of the sentence in the other language.
    One value a pair, without the mean over B.

    Returns:
        Nats. Not negative where p sums to 1.
    """
    logits = widen(logits)
    # sum_w p(w) z_w, over the entries of each sentence
    weighted = targets.weights * logits[targets.rows, targets.ids]
    expected = torch.zeros_like(targets.mass).index_add(0, targets.rows, weighted)
    return targets.negative_entropy - expected + targets.mass * torch.logsumexp(logits, dim=1)


def linear_token_divergence(
    hidden: Float[Tensor, "b h"], weight: Float[Tensor, "v h"], targets: TokenTargets
) -> Float[Tensor, " b"]:
    """Compute ``token_divergence(hidden @ weight.T, targets)`` with one (B, V) matrix in memory.

    The matrix is overwritten in place: it holds first the logits, then the probabilities, then the
    gradient along the logits. Under autocast, the two products with the vocabulary run in the
    autocast type, and the matrix is kept in it; sums and logarithms stay in float32.
    """
    device = hidden.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        hidden = hidden.to(dtype)
        weight = weight.to(dtype)
    divergence: Tensor = _LinearTokenDivergence.apply(hidden, weight, *targets)  # type: ignore[no-untyped-call]
    return divergence


class _LinearTokenDivergence(torch.autograd.Function):
    """Autograd function with a forward pass that overwrites the logits by their slopes."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        rows: Tensor,
        ids: Tensor,
        w: Tensor,
        mass: Tensor,
        entropy: Tensor,
    ) -> Tensor:
        with torch.autocast(hidden.device.type, enabled=False):
            logits = (hidden @ weight.T).to(w.dtype)  # the product may be in 16 bits
        expected = torch.zeros_like(mass).index_add(0, rows, w * logits[rows, ids])
        log_normalizer = torch.logsumexp(logits, dim=1)
        # d KL / d logits = mass * q - p
        gradient = logits.sub_(log_normalizer[:, None]).exp_().mul_(mass[:, None])
        gradient.index_put_((rows, ids), -w, accumulate=True)
        ctx.save_for_backward(hidden, weight, gradient.to(hidden.dtype))
        return entropy - expected + mass * log_normalizer

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, gradient = ctx.saved_tensors
        # The slope of row b is scaled by its upstream gradient; scaling the (B, h) factors instead
        # of the (B, V) matrix is less work, and leaves the matrix as it was saved.
        scale = upstream[:, None].to(hidden.dtype)
        d_hidden = scale * (gradient @ weight)
        d_weight = gradient.T @ (scale * hidden)
        return d_hidden, d_weight, None, None, None, None, None


def _counts_within(rows: Int64[Tensor, " t"], ids: Int64[Tensor, " t"]) -> Int64[Tensor, " t"]:
    """Count the occurrences of each entry's (row, id).

    Shapes are known in advance, so that the host does not wait for a GPU.
    """
    if not len(ids):  # an empty tensor has no maximum
        return torch.zeros_like(ids)
    # Each (row, id) becomes one number. In sorted order equal numbers are adjacent; the distance
    # from the first of them to the place after the last is their count.
    keys = rows * (ids.max() + 1) + ids
    order = keys.sort().values
    return torch.searchsorted(order, keys, right=True) - torch.searchsorted(order, keys)
