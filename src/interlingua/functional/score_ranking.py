"""Losses that order pairs of sentences by scores that people gave."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from interlingua.functional.contrastive import check_temperature, widen


def cosent(
    cosines: Float[Tensor, " n"], scores: Float[Tensor, " n"], *, temperature: float = 0.05
) -> Float[Tensor, ""]:
    r"""Compute the loss of pairs of sentences whose cosines are not in the order of their scores.

    .. math:: \log\Bigl(1 + \sum_{i,j:\ y_i > y_j} e^{(c_j - c_i) / T}\Bigr)

    *Symbols*: c ``cosines`` and y ``scores`` of the pairs, T ``temperature``. CoSENT (Su 2022), as
    in sentence-transformers' ``CoSENTLoss``, whose ``scale`` is 1 / T. Only the order of the scores
    matters, as for Spearman's correlation: pairs with equal scores are not compared. Use sets with
    different scales in separate batches.

    Args:
        cosines: similarities of the pairs.
        scores: on any scale; higher means more similar.
        temperature: > 0; a lower one makes the loss count the most wrongly ordered pairs more.

    Returns:
        The loss in nats, at least 0. It is 0 if all scores are equal.
    """
    check_temperature(temperature)
    scores, order = scores.sort()
    c = widen(cosines)[order] / temperature
    # In ascending order of the scores, the pairs j of a pair i are the ones before the first pair
    # with the score of i. Their sums of e^c_j are prefix sums, so n pairs need no n x n matrix.
    prefix_sums = torch.cat([c.new_full((1,), -torch.inf), c.logcumsumexp(dim=0)])
    num_lower = torch.searchsorted(scores, scores)
    # The prepended 0 is the 1 in the logarithm.
    return torch.cat([c.new_zeros(1), prefix_sums[num_lower] - c]).logsumexp(dim=0)
