"""Whole tiles of similarities, for callers that need more than the nearest neighbors.

Each similarity is computed once, in float32 and by matrix products, without any bounds.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from interlingua.errors import DataError
from interlingua.retrieval.topk.exact import Neighbors
from interlingua.runtime.portions import ceil_div

EDGE = 64
"""Divisor of the number of rows of every padded block; see ``padded_block``."""


def padded_block(
    vectors: NDArray[np.floating], start: int, size: int
) -> tuple[Float[Tensor, "padded d"], int]:
    """Return rows of ``vectors`` as float32 padded with zero rows, and the number of real rows.

    Zero rows fill the block up to a multiple of EDGE: a matrix product sums an incomplete edge in
    another order than the middle, and then equal vectors would have unequal similarities.

    Raises:
        DataError: a vector is not finite.
    """
    rows = np.asarray(vectors[start : start + size])
    block = torch.zeros(ceil_div(len(rows), EDGE) * EDGE, rows.shape[1])
    block.numpy()[: len(rows)] = rows
    is_finite = torch.isfinite(block).all(dim=1)
    if not is_finite.all():
        row = start + int((~is_finite).nonzero()[0, 0])
        raise DataError(
            f"vector {row} (counted from 0) contains NaN or infinity; embed its text again"
        )
    return block, len(rows)


def no_neighbors(n: int) -> Neighbors:
    """Return empty lists of neighbors for n queries, into which tiles can be merged."""
    return Neighbors(torch.empty(n, 0), torch.empty(n, 0, dtype=torch.int64))


def merge(old: Neighbors, new: Neighbors, *, offset: int, k: int) -> Neighbors:
    """Join the best neighbors from earlier tiles with those from a new tile.

    The neighbors from earlier tiles have lower indices, so they go first.
    """
    values = torch.cat([old.similarities, new.similarities.cpu()], dim=1)
    indices = torch.cat([old.indices, new.indices.cpu() + offset], dim=1)
    # A stable sort leaves equal values in their order, the lower index first.
    values, order = values.sort(dim=1, descending=True, stable=True)
    return Neighbors(values[:, :k], indices.gather(1, order[:, :k]))


def top_k(similarities: Float[Tensor, "n m"], k: int) -> Neighbors:
    """Return the k largest of each row, best first, the lower index first among equals.

    ``torch.topk`` picks any of several equal values. The value after the k-th shows whether the
    choice of the k-th is ambiguous; the few rows with an ambiguous choice are sorted in full.
    """
    k = min(k, similarities.shape[1])
    values, indices = torch.topk(similarities, min(k + 1, similarities.shape[1]), dim=1)
    # If there is no value after the k-th, this has no column: all values are taken, so no choice is
    # ambiguous.
    is_open = values[:, k - 1 : k] == values[:, k:]
    values, indices = _by_value_then_index(values[:, :k], indices[:, :k])
    if is_open.any():
        at = is_open[:, 0].nonzero()[:, 0]
        sorted_values, sorted_indices = similarities[at].sort(dim=1, descending=True, stable=True)
        values[at], indices[at] = sorted_values[:, :k], sorted_indices[:, :k]
    return Neighbors(values, indices)


def _by_value_then_index(values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Sort each row by descending value, equal values by index."""
    # By the second key first, then by the first one with a stable sort.
    indices, order = indices.sort(dim=1)
    values, by_value = values.gather(1, order).sort(dim=1, descending=True, stable=True)
    return values, indices.gather(1, by_value)
