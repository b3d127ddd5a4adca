"""Regularisers that spread embeddings over the sphere."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

KOLEO_EPSILON = 1e-8


def koleo(x: Float[Tensor, "b d"], *, normalize: bool = True) -> Float[Tensor, ""]:
    r"""Kozachenko-Leonenko differential-entropy regulariser, MEXMA (Janeiro et al. 2024), L_K.

    .. math:: -\frac1B \sum_i \log \min_{j \ne i} \lVert x_i - x_j \rVert

    The gradient flows through both a vector and its neighbor; which one is nearest is not
    differentiated.

    Differs from the paper: as in its released code the embeddings are L2-normalized, the nearest
    neighbor is the one of the largest inner product, and 1e-8 is added to each coordinate's
    difference and to the distance. Computed in float32 or wider, also under autocast.

    Args:
        x: embeddings.
        normalize: divide by the L2 norm first; False is the formula as printed.

    Returns:
        Nats, a mean over B.

    Raises:
        ValueError: there are fewer than two rows, so that none has a neighbor.
    """
    if len(x) < 2:
        raise ValueError(f"KoLeo needs at least 2 embeddings, got {len(x)}")
    with torch.autocast(
        x.device.type, enabled=False
    ):  # half precision can't tell near neighbors apart
        x = x if x.dtype == torch.float64 else x.float()
        x = F.normalize(x, dim=-1, eps=KOLEO_EPSILON) if normalize else x
        with torch.no_grad():
            nearness = x @ x.T if normalize else -torch.cdist(x, x)
            nearest = nearness.fill_diagonal_(-torch.inf).argmax(dim=1)
        distances = F.pairwise_distance(x, x[nearest], eps=KOLEO_EPSILON)
        return -torch.log(distances + KOLEO_EPSILON).mean()
