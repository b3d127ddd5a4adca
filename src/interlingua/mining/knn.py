"""Exact k nearest neighbours by inner product, in blocks: both directions from one pass over the similarities.

The vectors may be memory maps of any length; what is held is one tile of similarities, two blocks of vectors and
the neighbours themselves. Equal similarities go to the lower index, so a result never depends on the block sizes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64
from numpy.typing import NDArray
from torch import Tensor

from interlingua.errors import DataError

ROWS, COLUMNS = 2048, 4096  # one float32 tile is 32 MiB
EDGE = 64


class Neighbours(NamedTuple):
    """The nearest candidates of each query, best first; equal similarities stand in order of their index."""

    similarities: Float[Tensor, "n k"]
    indices: Int64[Tensor, "n k"]


def nearest_neighbours(
    queries: NDArray[np.floating],
    candidates: NDArray[np.floating],
    *,
    k: int,
    rows: int = ROWS,
    columns: int = COLUMNS,
    device: str | torch.device = "cpu",
) -> Neighbours:
    """The k candidates of largest inner product for every query.

    Args:
        queries: (n, d), in memory or mapped; read block by block as float32.
        candidates: (m, d), likewise.
        k: neighbours per query; m where there are fewer candidates.
        rows: queries per tile.
        columns: candidates per tile.
        device: where the tiles are computed.

    Raises:
        DataError: a side is empty, widths differ, or a vector is not finite.
    """
    return _search(queries, candidates, k=k, rows=rows, columns=columns, device=device, both=False)[0]


def mutual_neighbours(
    x: NDArray[np.floating],
    y: NDArray[np.floating],
    *,
    k: int,
    rows: int = ROWS,
    columns: int = COLUMNS,
    device: str | torch.device = "cpu",
) -> tuple[Neighbours, Neighbours]:
    """Nearest neighbours of x in y and of y in x; every similarity is computed once.

    Args:
        x: (n, d), in memory or mapped; read block by block as float32.
        y: (m, d), likewise.
        k: neighbours per vector; fewer where the other side is smaller than k.
        rows: vectors of x per tile.
        columns: vectors of y per tile.
        device: where the tiles are computed.

    Returns:
        ``(of_x, of_y)``: indices of ``of_x`` point into y, those of ``of_y`` into x.

    Raises:
        DataError: a side is empty, widths differ, or a vector is not finite.
    """
    of_x, of_y = _search(x, y, k=k, rows=rows, columns=columns, device=device, both=True)
    return of_x, of_y


def top_k(similarities: Float[Tensor, "n m"], k: int) -> Neighbours:
    """The k largest of each row, best first, the lower index first among equals.

    ``torch.topk`` picks any of several equal values. One more than k shows whether the choice at the edge was open;
    the few rows where it was are sorted in full.
    """
    k = min(k, similarities.shape[1])
    values, indices = torch.topk(similarities, min(k + 1, similarities.shape[1]), dim=1)
    open_edge = values[:, k - 1 : k] == values[:, k:]
    values, indices = _by_value_then_index(values[:, :k], indices[:, :k])
    if open_edge.any():
        at = open_edge[:, 0].nonzero()[:, 0]
        sorted_values, sorted_indices = similarities[at].sort(dim=1, descending=True, stable=True)
        values[at], indices[at] = sorted_values[:, :k], sorted_indices[:, :k]
    return Neighbours(values, indices)


def _search(
    x: NDArray[np.floating],
    y: NDArray[np.floating],
    *,
    k: int,
    rows: int,
    columns: int,
    device: str | torch.device,
    both: bool,
) -> tuple[Neighbours, Neighbours]:
    _check(x, y, k)
    best_x: list[Neighbours] = []
    best_y = [_nobody(min(columns, len(y) - j)) for j in range(0, len(y) if both else 0, columns)]
    with torch.inference_mode():
        for i in range(0, len(x), rows):
            x_block, n = _block(x, i, rows, device)
            best = _nobody(n)
            for number, j in enumerate(range(0, len(y), columns)):
                y_block, m = _block(y, j, columns, device)
                tile = (x_block @ y_block.T)[:n, :m]
                best = _merge(best, top_k(tile, k), offset=j, k=k)
                if both:
                    best_y[number] = _merge(best_y[number], top_k(tile.T, k), offset=i, k=k)
            best_x.append(best)
    return _concatenate(best_x), _concatenate(best_y or [_nobody(0)])


def _check(x: NDArray[np.floating], y: NDArray[np.floating], k: int) -> None:
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise DataError(f"expected two tables of vectors of one width, got shapes {x.shape} and {y.shape}")
    if not len(x) or not len(y):
        raise DataError(f"nothing to search: {len(x)} vectors against {len(y)}")


def _block(
    vectors: NDArray[np.floating], start: int, size: int, device: str | torch.device
) -> tuple[Float[Tensor, "padded d"], int]:
    """Rows of ``vectors`` as float32, and how many they are.

    Zero rows fill the block up to a multiple of EDGE: a matrix product sums a ragged edge in another order than the
    middle, and then equal vectors would have unequal similarities.
    """
    rows = np.asarray(vectors[start : start + size])
    block = torch.zeros(-(-len(rows) // EDGE) * EDGE, rows.shape[1])
    block.numpy()[: len(rows)] = rows
    finite = torch.isfinite(block).all(dim=1)
    if not finite.all():
        row = start + int((~finite).nonzero()[0, 0])
        raise DataError(f"vector {row} (counted from 0) holds NaN or infinity; embed its text again")
    return block.to(device), len(rows)


def _nobody(n: int) -> Neighbours:
    return Neighbours(torch.empty(n, 0), torch.empty(n, 0, dtype=torch.int64))


def _merge(old: Neighbours, new: Neighbours, *, offset: int, k: int) -> Neighbours:
    """Joins the best of earlier tiles with a tile's; the earlier ones have the lower indices, so they go first."""
    values = torch.cat([old.similarities, new.similarities.cpu()], dim=1)
    indices = torch.cat([old.indices, new.indices.cpu() + offset], dim=1)
    values, order = values.sort(dim=1, descending=True, stable=True)
    return Neighbours(values[:, :k], indices.gather(1, order[:, :k]))


def _by_value_then_index(values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    indices, order = indices.sort(dim=1)
    values, by_value = values.gather(1, order).sort(dim=1, descending=True, stable=True)
    return values, indices.gather(1, by_value)


def _concatenate(parts: list[Neighbours]) -> Neighbours:
    return Neighbours(torch.cat([part.similarities for part in parts]), torch.cat([part.indices for part in parts]))
