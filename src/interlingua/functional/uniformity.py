"""Regularizers that spread embeddings over the sphere.

An alignment loss without a regularizer has its minimum where all embeddings are equal. A
regularizer of this kind prevents that: it pushes each embedding away from its nearest neighbor,
where a contrast would push it away from all others.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from interlingua.functional.contrastive import widen

KOLEO_EPSILON = 1e-8
"""Constant of MEXMA's released code that keeps the logarithm finite if two embeddings are equal."""


def koleo(x: Float[Tensor, "b d"], *, normalize: bool = True) -> Float[Tensor, ""]:
    r"""Compute the Kozachenko-Leonenko entropy regularizer, MEXMA (Janeiro et al. 2024), L_K.

    .. math:: -\frac1B \sum_i \log \min_{j \ne i} \lVert x_i - x_j \rVert

    The gradient flows through both a vector and its nearest neighbor, but not through the choice of
    that neighbor.

    Differs from the paper: as in its released code the embeddings are L2-normalized, the nearest
    neighbor has the largest inner product, and 1e-8 is added to each coordinate's difference and to
    the distance. Computed in float32 or wider, also under autocast.

    Args:
        x: embeddings.
        normalize: divide by the L2 norm first; False is the formula as printed.

    Returns:
        Nats, a mean over B.

    Raises:
        ValueError: there are fewer than two rows, so that none has a neighbor.
    """
    if len(x) < 2:
        raise ValueError(
            f"KoLeo requires at least 2 embeddings, found {len(x)}; use a larger batch"
        )
    # Without autocast: half precision can't distinguish near neighbors.
    with torch.autocast(x.device.type, enabled=False):
        x = widen(x)
        if normalize:
            x = F.normalize(x, dim=-1, eps=KOLEO_EPSILON)
        nearest = _nearest_others(x, normalized=normalize)
        # ``pairwise_distance`` adds its eps to each coordinate's difference
        distances = F.pairwise_distance(x, x[nearest], eps=KOLEO_EPSILON)
        return -torch.log(distances + KOLEO_EPSILON).mean()


@torch.no_grad()
def _nearest_others(x: Float[Tensor, "b d"], *, normalized: bool) -> Int64[Tensor, " b"]:
    """Return the row nearest to each row, other than itself."""
    # For unit vectors the inner product gives the same order: |u - v|^2 = 2 - 2 u.v.
    nearness = x @ x.T if normalized else -torch.cdist(x, x)
    return nearness.fill_diagonal_(-torch.inf).argmax(dim=1)
