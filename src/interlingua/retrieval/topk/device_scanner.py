"""The nearest pairs of two blocks on a GPU, in large tiles, with the neighbor lists on the device.

A tile is one matrix product of rounded vectors. As in ``torch_scanner``, the largest bound of each
chunk is compared with the k-th best similarity so far, and the chunks that reach it are looked at
one by one. Here the lists and the vectors themselves are on the device too: pairs with a high
enough bound are computed there in float64, in the order of additions of ``dot_float64``, and sorted
into the lists. So values and neighbors are the same as on the CPU, bit for bit. For each tile of a
billion pairs, the host waits a few times until it knows how many pairs there are to look at.

All coordinates are multiplied at once, since a GPU is faster at products than at deciding to leave
some out.
"""

from __future__ import annotations

import contextlib
import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64
from torch import Tensor
from torch.nn import functional as F

from interlingua.retrieval.topk.bounds import EXACT_LANES, Block, BlockPrecision, Frame
from interlingua.retrieval.topk.lists import NeighborLists
from interlingua.retrieval.topk.torch_scanner import (
    CHUNK,
    CODES,
    TooManyPairsError,
    TorchScanner,
    hits,
    hits_of_columns,
    kth_of_chunks,
    sums_in_float32,
)
from interlingua.runtime.devices import on_device
from interlingua.runtime.portions import ceil_div

_TILE_ROWS = 16_384
_TILE_COLUMNS = 65_536
LEAST_TILE = 1024
"""A tile with at most this number of rows, and of columns, is never cut in two."""
_PAIRS_AT_ONCE = 2**26
"""Maximum number of pairs of a tile to examine one by one; a tile with more is cut in two."""
ELEMENTS_AT_ONCE = 2**26
"""Maximum number of products in float64 that are held in memory at once."""


class Resident(NamedTuple):
    """A block on the device.

    Attributes:
        vectors: as they are, for exact similarities.
        matrix: rounded, as in ``Rounded``.
        precision: of the rounded vectors.
        start: index of the first vector.
    """

    vectors: Float32[Tensor, "n d"]
    matrix: Float[Tensor, "padded 4+d"]
    precision: BlockPrecision
    start: int


class DeviceScanner:
    """A ``Scanner`` that does all on one device.

    Args:
        frame: of both sides; only its means are used.
        device: where all is done.
        dtype: of the products; None = the usual one of the device, see ``TorchScanner``.
        tile: rows and columns of a tile, multiples of 64.
    """

    def __init__(
        self,
        frame: Frame,
        *,
        device: str | torch.device,
        dtype: torch.dtype | None = None,
        tile: tuple[int, int] = (_TILE_ROWS, _TILE_COLUMNS),
    ) -> None:
        # Without axes there is one stage, all coordinates.
        self.plain = TorchScanner(Frame(frame.x, frame.y), device=device, dtype=dtype)
        self.device = self.plain.device
        self.dtype = self.plain.dtype
        self.tile = tile

    def prepare(self, block: Block, *, of_x: bool) -> Resident:
        """Copy a block to the device and round it; the block's memory on the host is not kept."""
        vectors = on_device(torch.from_numpy(block.vectors), self.device)
        matrix, precision = self.plain.rounded(vectors, of_x=of_x)
        return Resident(vectors, matrix, precision, block.start)

    @torch.inference_mode()
    def scan(
        self, x: Resident, y: Resident, of_x: NeighborLists, of_y: NeighborLists | None
    ) -> None:
        """Update the lists of both blocks, those of y only if they are passed."""
        width = x.matrix.shape[1]
        left = _DeviceBlock(x, of_x, x.precision.slack(y.precision, width, 0), self.device)
        right = _DeviceBlock(y, of_y, y.precision.slack(x.precision, width, 0), self.device)
        with sums_in_float32():
            for i in range(0, len(x.vectors), self.tile[0]):
                rows = slice(i, min(i + self.tile[0], len(x.vectors)))
                for j in range(0, len(y.vectors), self.tile[1]):
                    columns = slice(j, min(j + self.tile[1], len(y.vectors)))
                    self._tile(left, right, rows, columns)
        left.write(of_x)
        if of_y is not None:
            right.write(of_y)

    def _tile(self, left: _DeviceBlock, right: _DeviceBlock, rows: slice, columns: slice) -> None:
        """Update the lists with a tile's pairs, or with those of its two halves."""
        pairs = None
        with contextlib.suppress(TooManyPairsError):
            pairs = self._near(left, right, rows, columns)
        # Not in an "except": the error would keep this tile's tensors in memory meanwhile.
        if pairs is None:
            for smaller in _halves(rows, columns):
                self._tile(left, right, *smaller)
            return
        row, column = pairs
        values = exact_products(left.block.vectors, right.block.vectors, row, column)
        left.add(rows, row, values, column + right.block.start)
        right.add(columns, column, values, row + left.block.start)

    def _near(
        self, left: _DeviceBlock, right: _DeviceBlock, rows: slice, columns: slice
    ) -> tuple[Int64[Tensor, " p"], Int64[Tensor, " p"]]:
        """Return pairs with a bound that reaches a list.

        Raises:
            TooManyPairsError: there are too many pairs to examine, and the tile can be cut in two.
        """
        products = torch.mm(left.padded(rows), right.padded(columns).T)
        real = products[: rows.stop - rows.start, : columns.stop - columns.start]
        codes = products.view(CODES[self.dtype])
        width = products.shape[1]
        middle = self.plain.middle
        bars = left.bars(rows, real, middle, len(products))
        most = math.inf
        if max(codes.shape) > LEAST_TILE:
            most = _PAIRS_AT_ONCE
        places = hits(codes, bars, most)
        if right.values is not None:
            of_columns = right.bars(columns, real.T, middle, width)
            places_of_columns = hits_of_columns(codes, of_columns, most)
            # Pairs that also reach their row's bar are there already.
            is_new = codes.flatten()[places_of_columns] < bars[places_of_columns // width]
            places = torch.cat([places, places_of_columns[is_new]])
        row = places // width
        column = places % width
        # Zero rows that fill a chunk are not vectors.
        if real.shape != products.shape:
            inside = ((row < real.shape[0]) & (column < real.shape[1])).nonzero()[:, 0]
            row, column = row[inside], column[inside]
        return row + rows.start, column + columns.start


class _DeviceBlock:
    """A block with its lists on the device.

    Args:
        block: the vectors.
        lists: of their neighbors; None if only the other side's are searched.
        slack: how far a similarity may be from its product, for each vector.
        device: where the lists are copied to.
    """

    def __init__(
        self,
        block: Resident,
        lists: NeighborLists | None,
        slack: Float32[np.ndarray, " n"],
        device: torch.device,
    ) -> None:
        self.block = block
        self.slack = on_device(torch.from_numpy(slack), device)
        self.values: Tensor | None = None
        self.indices: Tensor | None = None
        if lists is not None:
            # Copies: without copying, on the CPU these would be the lists themselves.
            self.values = on_device(torch.tensor(lists.values), device)
            self.indices = on_device(torch.tensor(lists.indices), device)

    def write(self, lists: NeighborLists) -> None:
        """Copy the lists back to the host."""
        assert self.values is not None
        assert self.indices is not None
        lists.values[:] = self.values.cpu().numpy()
        lists.indices[:] = self.indices.cpu().numpy()

    def padded(self, at: slice) -> Float[Tensor, "padded 4+d"]:
        """Return the rounded vectors up to the end of a chunk."""
        return self.block.matrix[at.start : ceil_div(at.stop, CHUNK) * CHUNK]

    def bars(
        self, at: slice, tile: Float[Tensor, "n m"], middle: float, padded: int
    ) -> Int[Tensor, " padded"]:
        """Return the values that the bits of a product have to reach, as in ``TorchScanner``."""
        dtype = tile.dtype
        limits = torch.iinfo(CODES[dtype])
        codes = torch.full((padded,), limits.max, dtype=CODES[dtype], device=tile.device)
        if self.values is None:
            return codes
        k = self.values.shape[1]
        slack = self.slack[at]
        bar = self.values[at, -1] - middle - slack
        if tile.shape[1] >= k and bool(bar.isneginf().any()):
            # At least k pairs of the tile are that good, see ``TorchScanner._codes``.
            best = kth_of_chunks(tile, k).float()
            own = best - best.abs() * 2.0**-7 - 2 * slack
            bar = torch.where(bar.isneginf(), own, bar)
        rounded = bar.to(dtype)
        codes[: len(bar)] = torch.where(rounded > 0, rounded.view(CODES[dtype]), limits.min)
        return codes

    def add(
        self,
        span: slice,
        at: Int64[Tensor, " p"],
        values: Float32[Tensor, " p"],
        indices: Int64[Tensor, " p"],
    ) -> None:
        """Add pairs, as ``NeighborLists.add`` does.

        Args:
            span: vectors of the tile.
            at: for each pair, the vector whose list it is added to.
            values: similarity of each pair.
            indices: the neighbor.
        """
        if self.values is None or self.indices is None:
            return
        near = (values >= self.values[at, -1]).nonzero()[:, 0]
        at, values, indices = at[near], values[near], indices[near]
        # The new pairs are merged with the whole lists of the span, including the places that have
        # no neighbor yet: the number of places does not depend on the data, so the host need not
        # wait for it. Places without a neighbor are sorted after all vectors of the span.
        k = self.values.shape[1]
        own = torch.arange(span.start, span.stop, device=at.device)[:, None].expand(-1, k).flatten()
        known = self.indices[span].flatten()
        own = torch.where(known >= 0, own, span.stop)
        at = torch.cat([at, own])
        values = torch.cat([values, self.values[span].flatten()])
        indices = torch.cat([indices, known])
        order = _order(at, values, indices)
        at, values, indices = at[order], values[order], indices[order]
        # A pair that occurs twice is kept only once.
        is_new = F.pad((at[1:] != at[:-1]) | (indices[1:] != indices[:-1]), (1, 0), value=True)
        kept = (is_new & (at < span.stop)).nonzero()[:, 0]
        at, values, indices = at[kept], values[kept], indices[kept]
        # The place of a pair in its list: its number less that of the first pair of its vector.
        first = torch.searchsorted(at, at)
        place = torch.arange(len(at), device=at.device) - first
        best = (place < k).nonzero()[:, 0]
        self.values[at[best], place[best]] = values[best]
        self.indices[at[best], place[best]] = indices[best]


def _order(
    at: Int64[Tensor, " p"], values: Float32[Tensor, " p"], indices: Int64[Tensor, " p"]
) -> Int64[Tensor, " p"]:
    """Return the order of pairs: by vector, larger values first, equal ones by index."""
    # Three stable sorts, the last key first.
    order = indices.sort(stable=True).indices
    # Adding 0 makes a negative zero a positive one: the two must be equal here.
    by_value = (values[order] + 0.0).sort(descending=True, stable=True).indices
    order = order[by_value]
    return order[at[order].sort(stable=True).indices]


def _halves(rows: slice, columns: slice) -> list[tuple[slice, slice]]:
    """Cut a tile in two along its longer side."""
    if rows.stop - rows.start >= columns.stop - columns.start:
        return [(part, columns) for part in _cut(rows)]
    return [(rows, part) for part in _cut(columns)]


def _cut(span: slice) -> list[slice]:
    """Cut a span in two at the end of a chunk; the second half must start with a whole chunk."""
    middle = span.start + ceil_div(span.stop - span.start, 2 * CHUNK) * CHUNK
    return [slice(span.start, middle), slice(middle, span.stop)]


def exact_products(
    x: Float32[Tensor, "n d"],
    y: Float32[Tensor, "m d"],
    rows: Int64[Tensor, " p"],
    columns: Int64[Tensor, " p"],
) -> Float32[Tensor, " p"]:
    """Compute inner products of pairs as ``dot_float64`` does, on any device.

    Products of two float32 are exact in float64, so that only the order of the additions decides
    the bits: 16 sums, each of every sixteenth coordinate, then halves added repeatedly.
    """
    values = torch.empty(len(rows), dtype=torch.float32, device=x.device)
    width = x.shape[1]
    # Zeros up to a multiple of the lanes; they add nothing.
    behind = -width % EXACT_LANES
    at_once = max(1, ELEMENTS_AT_ONCE // (width + behind))
    for start in range(0, len(rows), at_once):
        at = slice(start, start + at_once)
        products = F.pad(x[rows[at]].double() * y[columns[at]].double(), (0, behind))
        # One addition at a time: torch's own sum would choose another order.
        steps = products.view(len(products), -1, EXACT_LANES).unbind(1)
        sums = torch.zeros_like(steps[0])
        for step in steps:
            sums += step
        while sums.shape[1] > 1:
            first, second = sums.chunk(2, dim=1)
            sums = first + second
        values[at] = sums[:, 0].float()
    return values
