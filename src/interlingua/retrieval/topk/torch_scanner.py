"""The nearest pairs of two blocks in plain torch.

One matrix product of rounded vectors gives the bounds of a tile; the terms of the sum are further
coordinates. The largest of every 64 bounds of a row (or 16 of a column) is compared with the k-th
best similarity so far, and pairs are looked at one by one only in chunks that reach it. The
remaining pairs are computed again in float32, and those that still reach it are then computed
exactly.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64
from numpy import ndarray
from torch import Tensor

from interlingua.retrieval.topk.bounds import (
    PART,
    Block,
    BlockPrecision,
    Frame,
    dot_float32,
    dot_float64,
    lengths,
    product_error,
    view,
)
from interlingua.retrieval.topk.lists import NeighborLists
from interlingua.runtime.devices import on_device
from interlingua.runtime.portions import ceil_div

CHUNK = 64
ROWS_OF_CHUNK = 16
"""Sizes of the chunks of products, along a row and along a column. The largest product of a chunk
is compared first. Products of a column are far apart in memory."""
_TILE_ROWS = 2048
_TILE_COLUMNS = 4096
LEAST_IN_VAIN = 2**-11
MOST_IN_VAIN = 2**-8
TOO_MANY = 2**-6
"""Shares of a tile's pairs that are examined in vain. Below the first share, another stage costs
more than it saves; above the second, it costs less than it saves; above the third, this tile takes
another stage at once."""
CODES = {torch.bfloat16: torch.int16, torch.float32: torch.int32}
"""Integer types with the bits of the products. Positive floats have the same order as their bits,
and integers are compared much faster."""


class Rounded(NamedTuple):
    """A block in the type of the products.

    Attributes:
        block: the vectors themselves.
        matrix: both terms of the sum in two pieces each, and behind them the rounded vectors less
            their mean; zero rows fill the last chunk.
        precision: of the rounded vectors.
        longest: upper bound of the length of the longest vector.
    """

    block: Block
    matrix: Float[Tensor, "padded 4+d"]
    precision: BlockPrecision
    longest: float


class TorchScanner:
    """Scanner with products in bfloat16 if the processor supports them, otherwise in float32.

    Args:
        frame: of both sides.
        device: where the products are made.
        dtype: of the products; None = bfloat16 or float32, as above.
    """

    def __init__(
        self, frame: Frame, *, device: str | torch.device = "cpu", dtype: torch.dtype | None = None
    ) -> None:
        self.frame = frame
        self.device = torch.device(device)
        if dtype is None:
            dtype = torch.float32
            if multiplies_bfloat16(self.device):
                dtype = torch.bfloat16
        self.dtype = dtype
        # mu . nu; nearly all similarities are close to it.
        self.middle = float(frame.x.astype(np.float64) @ frame.y)
        self.stages = frame.stages
        # It starts with all coordinates, as the lists are empty.
        self.stage = len(frame.stages) - 1
        self.room = torch.empty(0, device=self.device, dtype=self.dtype)

    def prepare(self, block: Block, *, of_x: bool) -> Rounded:
        """Round a block of vectors to the dtype of the products, and bound the error."""
        vectors = torch.from_numpy(block.vectors)
        matrix, precision = self.rounded(vectors, of_x=of_x)
        longest = max(float(lengths(part).max()) for part in torch.split(vectors, PART))
        return Rounded(block, matrix, precision, longest)

    def rounded(
        self, vectors: Float32[Tensor, "n d"], *, of_x: bool
    ) -> tuple[Float[Tensor, "padded 4+d"], BlockPrecision]:
        """Return the matrix of ``Rounded``, and its precision.

        The similarity of the means is left out of the products, so that little is lost by rounding.

        Args:
            vectors: on the device, or still on the host.
            of_x: whether they are of x, otherwise of y.
        """
        n, d = vectors.shape
        padded = ceil_div(n, CHUNK) * CHUNK
        matrix = torch.zeros(padded, 4 + d, device=self.device, dtype=self.dtype)
        measured = []
        for start in range(0, n, PART):
            at = slice(start, min(start + PART, n))
            seen = view(on_device(vectors[at], self.device), self.frame, of_x=of_x)
            if of_x:
                term = seen.term - self.middle
                seen = seen._replace(term=term, size=seen.size + abs(self.middle))
            rounded = seen.rest.to(self.dtype)
            # A term in two pieces of bfloat16 has twice the digits. Each piece is multiplied by a 1
            # of the other side, so that the product of the matrices adds both terms.
            high = seen.term.to(self.dtype)
            low = (seen.term - high.float()).to(self.dtype)
            one = torch.ones_like(high)
            terms = [one, one, high, low]
            if of_x:
                terms = [high, low, one, one]
            matrix[at, :4] = torch.stack(terms, dim=1)
            matrix[at, 4:] = rounded
            measured.append(BlockPrecision.measured(seen, rounded.float(), self.stages))
        # The host waits for a GPU only here, however many parts there are.
        return matrix, BlockPrecision.joined(measured)

    @torch.inference_mode()
    def scan(self, x: Rounded, y: Rounded, of_x: NeighborLists, of_y: NeighborLists | None) -> None:
        """Update the lists of both blocks, those of y only if they are passed."""
        # Small tiles: the products of a tile stay in the cache until they are looked at.
        with sums_in_float32():
            for i in range(0, len(x.block.vectors), _TILE_ROWS):
                for j in range(0, len(y.block.vectors), _TILE_COLUMNS):
                    self._tile(x, y, of_x, of_y, i, j)

    def _tile(
        self,
        x: Rounded,
        y: Rounded,
        of_x: NeighborLists,
        of_y: NeighborLists | None,
        i: int,
        j: int,
    ) -> None:
        """Take as many stages as necessary, so that few pairs are looked at in vain.

        Lists that aren't full need the last stage.
        """
        rows = slice(i, min(i + _TILE_ROWS, len(x.block.vectors)))
        columns = slice(j, min(j + _TILE_COLUMNS, len(y.block.vectors)))
        part_of_y = None
        if of_y is not None:
            part_of_y = of_y.part(columns.start, columns.stop)
        lists = (of_x.part(rows.start, rows.stop), part_of_y)
        is_full = not any(np.isneginf(part.kth_best).any() for part in lists if part is not None)
        last = len(self.stages) - 1
        pairs = (rows.stop - rows.start) * (columns.stop - columns.start)
        # Pairs with a bound that reaches a list.
        stage = last
        if is_full:
            stage = self.stage
        row, column = self._near(x, y, lists, rows, columns, stage)
        while len(row) > TOO_MANY * pairs and stage < last:
            stage += 1
            row, column = self._near(x, y, lists, rows, columns, stage)
        looked_at = len(row)
        # Of these, only the pairs whose product in float32 reaches a list too are computed exactly.
        row, column = self._reach(x, y, row, column, of_x, of_y)
        values = dot_float64(x.block.vectors, y.block.vectors, row, column)
        # A value equal to the k-th best counts too: the lists then decide by the index.
        is_near = values >= of_x.kth_best[row]
        of_x.add(row[is_near], values[is_near], column[is_near] + y.block.start)
        if of_y is not None:
            is_near_column = values >= of_y.kth_best[column]
            of_y.add(
                column[is_near_column],
                values[is_near_column],
                row[is_near_column] + x.block.start,
            )
            is_near |= is_near_column
        # The next tile takes one stage more or less, depending on how many pairs this tile looked
        # at in vain.
        in_vain = looked_at - int(is_near.sum())
        if is_full:
            is_costly = in_vain > MOST_IN_VAIN * pairs
            is_cheap = in_vain < LEAST_IN_VAIN * pairs
            self.stage = min(max(stage + int(is_costly) - int(is_cheap), 0), last)

    def _near(
        self,
        x: Rounded,
        y: Rounded,
        lists: tuple[NeighborLists, NeighborLists | None],
        rows: slice,
        columns: slice,
        stage: int,
    ) -> tuple[Int64[ndarray, " p"], Int64[ndarray, " p"]]:
        """Return pairs of a tile with a bound that reaches a bar.

        The bar of a row or a column is the value that its products have to reach.
        """
        left = self._side(x, rows, stage)
        right = self._side(y, columns, stage)
        # The memory of the products is kept from tile to tile, as new pages cost time.
        size = len(left) * len(right)
        if self.room.numel() < size:
            self.room = torch.empty(size, device=self.device, dtype=self.dtype)
        tile = torch.mm(left, right.T, out=self.room[:size].view(len(left), len(right)))
        width = x.matrix.shape[1]
        n = rows.stop - rows.start
        m = columns.stop - columns.start
        codes = tile.view(CODES[self.dtype])
        # Without the zero rows and columns that fill the last chunks.
        real = tile[:n, :m]
        own = x.precision.part(rows)
        other = y.precision.part(columns)
        kth_best = self._codes(real, lists[0], own.slack(other, width, stage), len(left))
        places = hits(codes, kth_best)
        if lists[1] is not None:
            of_columns = self._codes(real.T, lists[1], other.slack(own, width, stage), len(right))
            places_of_columns = hits_of_columns(codes, of_columns)
            # Pairs that also reach their row's bar are there already.
            is_new = codes.flatten()[places_of_columns] < kth_best[places_of_columns // len(right)]
            places = torch.cat([places, places_of_columns[is_new]])
        row, column = np.divmod(places.cpu().numpy(), len(right))
        is_inside = (row < n) & (column < m)
        return row[is_inside] + rows.start, column[is_inside] + columns.start

    @staticmethod
    def _reach(
        x: Rounded,
        y: Rounded,
        row: Int64[ndarray, " p"],
        column: Int64[ndarray, " p"],
        of_x: NeighborLists,
        of_y: NeighborLists | None,
    ) -> tuple[Int64[ndarray, " near"], Int64[ndarray, " near"]]:
        """Return the pairs whose float32 product may reach the k-th best of their row or column."""
        kth_best = of_x.kth_best[row]
        if of_y is not None:
            kth_best = np.minimum(kth_best, of_y.kth_best[column])
        left = x.block.vectors
        right = y.block.vectors
        # A NaN may represent any value; the negated comparison keeps it.
        with np.errstate(over="ignore", invalid="ignore"):
            error = product_error(x.longest, y.longest, left.shape[1])
            bound = dot_float32(left, right, row, column) + error
            is_near = ~(bound < kth_best)
        return row[is_near], column[is_near]

    def _side(self, side: Rounded, at: slice, stage: int) -> Float[Tensor, "padded p"]:
        """Return rounded vectors up to a stage, with the length of the rest as first coordinate."""
        padded_stop = ceil_div(at.stop, CHUNK) * CHUNK
        matrix = side.matrix[at.start : padded_stop, : 4 + self.stages[stage]]
        if stage == len(self.stages) - 1:
            return matrix
        # |u_{>p}| |v_{>p}| is then a part of the product. Two rounding steps are added, which is
        # more than rounding to the nearest number can take away.
        tails = torch.from_numpy(side.precision.tails[at, stage]).to(self.device)
        behind = matrix.new_zeros(len(matrix), 1)
        behind[: len(tails), 0] = (tails * (1 + 2 * torch.finfo(self.dtype).eps)).to(self.dtype)
        return torch.cat([behind, matrix], dim=1)

    def _codes(
        self,
        tile: Float[Tensor, "n m"],
        lists: NeighborLists,
        slack: Float32[ndarray, " n"],
        padded: int,
    ) -> Int[Tensor, " padded"]:
        """Return the values that the bits of a product have to reach, for each row.

        If a list is not full, the tile's own k-th value is used. Rounding keeps the order: a
        similarity that reaches the bar has a rounded product that reaches the rounded bar.
        """
        kth_best = lists.kth_best - np.float32(self.middle) - slack
        unfilled = np.flatnonzero(np.isneginf(lists.kth_best))
        k = lists.values.shape[1]
        if len(unfilled) and tile.shape[1] >= k:
            products = tile[torch.from_numpy(unfilled).to(tile.device)]
            best = kth_of_chunks(products, k).float().cpu().numpy()
            # At least k pairs of the tile are that good. Their products may be too large by the
            # slack and by a rounding to bfloat16, and the bound of a better pair may be too small
            # by the slack.
            kth_best[unfilled] = best - np.abs(best) * 2.0**-7 - 2 * slack[unfilled]
        rounded = torch.from_numpy(kth_best).to(self.device, self.dtype)
        # Rows that only fill a chunk reach nothing. All products reach a bar of 0 or less, because
        # only the bits of positive numbers are in the order of the numbers.
        limits = torch.iinfo(CODES[self.dtype])
        codes = torch.full((padded,), limits.max, dtype=CODES[self.dtype], device=self.device)
        bits = rounded.view(CODES[self.dtype])
        codes[: len(kth_best)] = torch.where(rounded > 0, bits, limits.min)
        return codes


@contextlib.contextmanager
def sums_in_float32() -> Iterator[None]:
    """Prevent torch from rounding parts of a product's sums to bfloat16, as it may do on a GPU."""
    before = torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = before


def multiplies_bfloat16(device: torch.device) -> bool:
    """Return whether a device has instructions for products in bfloat16."""
    if device.type == "cpu":
        if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
            return False
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return device.type != "mps"


def kth_of_chunks(products: Float[Tensor, "n m"], k: int) -> Float[Tensor, " n"]:
    """Return a value that at least k products of each row reach: the k-th largest, or lower."""
    # The largest of each chunk is one of the products, so at least k products reach the k-th of
    # these largest ones.
    chunks = products.shape[1] // CHUNK
    if chunks >= 2 * k:
        products = products[:, : chunks * CHUNK].reshape(-1, chunks, CHUNK).amax(dim=2)
    return products.topk(k, dim=1).values[:, -1]


class TooManyPairsError(Exception):
    """Error: more pairs need exact comparison than are allowed."""


def hits(
    codes: Int[Tensor, "n m"], kth_best: Int[Tensor, " n"], most: float = math.inf
) -> Int[Tensor, " p"]:
    """Return positions, row * m + column, that reach their row's bar.

    Raises:
        TooManyPairsError: more than ``most`` would be examined.
    """
    # First the numbers of the chunks whose largest product reaches the bar, row by row; then the
    # places in these chunks.
    largest = codes.view(len(codes), -1, CHUNK).amax(dim=2)
    near = (largest >= kth_best[:, None]).flatten().nonzero().flatten()
    if len(near) * CHUNK > most:
        raise TooManyPairsError
    is_hit = codes.view(-1, CHUNK)[near] >= kth_best[near // largest.shape[1], None]
    found = is_hit.flatten().nonzero().flatten()
    return near[found // CHUNK] * CHUNK + found % CHUNK


def hits_of_columns(
    codes: Int[Tensor, "n m"], kth_best: Int[Tensor, " m"], most: float = math.inf
) -> Int[Tensor, " p"]:
    """Return positions, row * m + column, that reach their column's bar; see ``hits``."""
    # The same with chunks of 16 rows. The number of rows is a multiple of 16, because it is a
    # multiple of CHUNK.
    m = codes.shape[1]
    chunks = codes.view(-1, ROWS_OF_CHUNK, m)
    chunk, column = (chunks.amax(dim=1) >= kth_best).nonzero(as_tuple=True)
    if len(chunk) * ROWS_OF_CHUNK > most:
        raise TooManyPairsError
    hit, lane = (chunks[chunk, :, column] >= kth_best[column, None]).nonzero(as_tuple=True)
    return (chunk[hit] * ROWS_OF_CHUNK + lane) * m + column[hit]
