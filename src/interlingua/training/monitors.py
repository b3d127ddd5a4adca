"""Three measures of the collapse of an embedding space, and a line with the remedy.

A loss without negatives is low if all sentences have the same embedding, so it does not show a
collapse. Complete collapse shows in the spread of each dimension and in the cosines of different
sentences; collapse to a few directions shows in the effective rank.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

STD_FLOOR = 0.1
RANK_FLOOR = 2.0
COSINE_CEILING = 0.95
"""Bounds of a healthy ``Spread``, beyond which there is a warning."""


class Spread(NamedTuple):
    """The spread of embeddings of different sentences, as three plain numbers."""

    std: float
    """Standard deviation of the normalized embeddings times sqrt(D): 1 = spread evenly, 0 = all the
    same."""
    effective_rank: float
    """exp of the entropy of the covariance's normalized singular values: directions in use, 1 to
    D."""
    mean_cosine: float
    """Mean cosine of two different sentences: 0 = unrelated, 1 = all the same."""

    def warning(self) -> str | None:
        """Return one line on the problem and its remedy, or None."""
        if not math.isfinite(self.std):
            return (
                "the embeddings contain NaN or infinity; lower learning_rate, or set a longer"
                " warm-up or max_grad_norm"
            )
        if self.std < STD_FLOOR or self.mean_cosine > COSINE_CEILING:
            sign = f"std {self.std:.3f}, mean cosine of random pairs {self.mean_cosine:.3f}"
            return (
                f"the embeddings are collapsing to one point ({sign}); lower learning_rate, or"
                " use a longer warm-up, a larger global_batch_size or more weight on the"
                " contrastive term"
            )
        if self.effective_rank < RANK_FLOOR:
            return (
                "the embeddings vary in little more than one direction (effective rank"
                f" {self.effective_rank:.1f}); lower learning_rate, or use a larger"
                " global_batch_size or more weight on the contrastive term"
            )
        return None


def spread(embeddings: Float[Tensor, "n d"]) -> Spread:
    """Measure the spread of at least two embeddings of different sentences, normalized first.

    The effective rank is that of Roy & Vetterli (2007). It is computed from the centered
    embeddings, because the part that all sentences have in common does not distinguish them. It is
    NaN if an embedding is not finite.
    """
    unit = F.normalize(embeddings.float(), dim=-1)
    if not unit.isfinite().all():
        return Spread(math.nan, math.nan, math.nan)
    n, width = unit.shape
    centered = unit - unit.mean(0)
    # a random unit vector has a deviation of 1 / sqrt(D) in each dimension
    std = centered.pow(2).mean(0).sqrt().mean() * width**0.5
    share = torch.linalg.svdvals(centered)
    share = share / share.sum().clamp_min(torch.finfo(torch.float32).tiny)
    entropy = torch.special.entr(share).sum()
    # |sum_i u_i|^2 = sum_i |u_i|^2 + sum over i != j of u_i.u_j
    cosine = (unit.sum(0).square().sum() - unit.square().sum()) / (n * (n - 1))
    return Spread(std.item(), entropy.exp().item(), cosine.item())
