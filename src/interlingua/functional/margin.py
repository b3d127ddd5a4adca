"""Margin scores: how much closer two sentences are to each other than to their neighbors.

Cosines of different sentences are not comparable: a sentence in a dense region has many near
neighbors and a high cosine with all of them. The margin relates a pair's cosine to the mean of both
sentences' cosines with their k nearest neighbors.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor

MarginKind = Literal["ratio", "distance", "absolute"]
MARGINS: tuple[MarginKind, ...] = get_args(MarginKind)


def margin_score(
    similarity: Float[Tensor, "*shape"],
    x_mean: Float[Tensor, "*#shape"],
    y_mean: Float[Tensor, "*#shape"],
    *,
    margin: MarginKind = "ratio",
) -> Float[Tensor, "*shape"]:
    r"""Compute the margin score of candidate pairs, Artetxe & Schwenk (2019), Eq. (2)-(5).

    .. math:: score(x, y) = margin(\cos(x, y), b), \qquad b = (a_x + a_y) / 2

    with margin(c, b) = c / b (``ratio``), c - b (``distance``) or c (``absolute``).

    *Symbols*: a_x ``x_mean`` and a_y ``y_mean``, the mean cosine of x (of y) to its k nearest on
    the other side.

    Args:
        similarity: cosines.
        x_mean: cosine units, broadcast against ``similarity``.
        y_mean: cosine units, broadcast against ``similarity``.
        margin: one of these three kinds.

    Returns:
        A ratio (no unit), or a cosine for ``distance`` and ``absolute``.

    Raises:
        ValueError: there is no such margin.
    """
    if margin not in MARGINS:
        raise ValueError(f"unknown margin {margin!r}; use one of: {', '.join(MARGINS)}")
    if margin == "absolute":
        return similarity  # the means are not used
    b = (x_mean + y_mean) / 2
    if margin == "ratio":
        return similarity / b
    return similarity - b


def score_neighbors(
    similarities: Float[Tensor, "n k"],
    indices: Int64[Tensor, "n k"],
    x_means: Float[Tensor, " n"],
    y_means: Float[Tensor, " m"],
    *,
    margin: MarginKind = "ratio",
) -> Float[Tensor, "n k"]:
    """Compute the margin scores of every x and its k nearest y.

    Args:
        similarities: cosine of x_i and its neighbors.
        indices: of the neighbors in ``y_means``.
        x_means: a_x of every x.
        y_means: a_y of every y.
        margin: see ``margin_score``.
    """
    return margin_score(similarities, x_means[:, None], y_means[indices], margin=margin)


def best_neighbor(
    scores: Float[Tensor, "n k"], indices: Int64[Tensor, "n k"]
) -> Int64[Tensor, " n"]:
    """Return the neighbor with the highest score in each row.

    Of equal scores the first one is returned, the nearer neighbor.
    """
    # argmax takes the first of equal scores
    return indices.gather(1, torch.argmax(scores, dim=1, keepdim=True))[:, 0]
