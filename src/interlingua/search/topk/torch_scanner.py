"""The nearest pairs of two blocks in plain torch.

One matrix product of rounded vectors makes the bounds of a tile, terms included as further
coordinates. Of every 64 bounds of a row (or 16 of a column) the largest is compared with the k-th
best similarity so far, and only chunks that reach it are looked at one by one. What is left is
computed once more in float32, and then exactly.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64
from numpy import ndarray
from torch import Tensor

from interlingua.search.topk.bounds import (
    PART,
    Block,
    Frame,
    Precision,
    dot_float32,
    dot_float64,
    lengths,
    product_error,
    view,
)
from interlingua.search.topk.lists import NeighborLists

CHUNK = 64
ROWS_OF_CHUNK = 16
"""Products of a row, or of a column, to take the largest of first; those of a column lie far
apart."""
TILE_ROWS = 2048
TILE_COLUMNS = 4096
LEAST_IN_VAIN = 2**-11
MOST_IN_VAIN = 2**-8
TOO_MANY = 2**-6
"""Shares of a tile's pairs looked at in vain: another stage would cost more, or less, or is taken
at once."""
CODES = {torch.bfloat16: torch.int16, torch.float32: torch.int32}
"""Positive numbers of either type are in the order of their bits, and whole numbers are compared
much faster."""


class Rounded(NamedTuple):
    """A block in the type of the products.

    Attributes:
        block: the vectors themselves.
        matrix: both terms of the sum in two pieces each, and behind them the rounded vectors less
            their mean; zero rows fill the last chunk.
        precision: of the rounded vectors.
        longest: length of the longest vector, at most.
    """

    block: Block
    matrix: Float[Tensor, "padded 4+d"]
    precision: Precision
    longest: float


class TorchScanner:
    """Products in bfloat16 where the processor multiplies that, else in float32.

    Args:
        frame: of both sides.
        device: where the products are made.
        dtype: of the products, in place of the device's choice.
    """

    def __init__(
        self, frame: Frame, *, device: str | torch.device = "cpu", dtype: torch.dtype | None = None
    ) -> None:
        self.frame, self.device = frame, torch.device(device)
        self.dtype = dtype or (
            torch.bfloat16 if multiplies_bfloat16(self.device) else torch.float32
        )
        self.middle = float(frame.x.astype(np.float64) @ frame.y)
        self.stages, self.stage = frame.stages, len(frame.stages) - 1
        self.room = torch.empty(0, device=self.device, dtype=self.dtype)

    def prepare(self, block: Block, *, of_x: bool) -> Rounded:
        """See ``Scanner``; the similarity of the means is left out of the products, so that little
        is rounded away.
        """
        n, d = block.vectors.shape
        matrix = torch.zeros(-(-n // CHUNK) * CHUNK, 4 + d, device=self.device, dtype=self.dtype)
        precision = Precision.empty(n, len(self.stages))
        longest = 0.0
        for start in range(0, n, PART):
            at = slice(start, min(start + PART, n))
            seen = view(Block(block.vectors[at], 0), self.frame, of_x=of_x, device=self.device)
            seen = (
                seen._replace(term=seen.term - self.middle, size=seen.size + abs(self.middle))
                if of_x
                else seen
            )
            rounded = seen.rest.to(self.dtype)
            high = seen.term.to(self.dtype)
            low = (seen.term - high.float()).to(self.dtype)
            one = torch.ones_like(high)
            matrix[at, :4] = torch.stack(
                [high, low, one, one] if of_x else [one, one, high, low], dim=1
            )
            matrix[at, 4:] = rounded
            precision.put(at, Precision.of(seen, rounded.float(), self.stages))
            longest = max(longest, float(lengths(torch.from_numpy(block.vectors[at])).max()))
        return Rounded(block, matrix, precision, longest)

    @torch.inference_mode()
    def scan(self, x: Rounded, y: Rounded, of_x: NeighborLists, of_y: NeighborLists | None) -> None:
        """See ``Scanner``."""
        with sums_in_float32():
            for i in range(0, len(x.block.vectors), TILE_ROWS):
                for j in range(0, len(y.block.vectors), TILE_COLUMNS):
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
        """Takes as many stages as leave few pairs to be looked at in vain.

        Lists that aren't full need the last one.
        """
        rows = slice(i, min(i + TILE_ROWS, len(x.block.vectors)))
        columns = slice(j, min(j + TILE_COLUMNS, len(y.block.vectors)))
        lists = (
            of_x.part(rows.start, rows.stop),
            None if of_y is None else of_y.part(columns.start, columns.stop),
        )
        full = not any(np.isneginf(part.kth_best).any() for part in lists if part is not None)
        last = len(self.stages) - 1
        pairs = (rows.stop - rows.start) * (columns.stop - columns.start)
        stage = self.stage if full else last
        row, column = self._near(x, y, lists, rows, columns, stage)
        while len(row) > TOO_MANY * pairs and stage < last:
            stage += 1
            row, column = self._near(x, y, lists, rows, columns, stage)
        looked_at = len(row)
        row, column = self._reach(x, y, row, column, of_x, of_y)
        values = dot_float64(x.block.vectors, y.block.vectors, row, column)
        near = values >= of_x.kth_best[row]
        of_x.add(row[near], values[near], column[near] + y.block.start)
        if of_y is not None:
            near_columns = values >= of_y.kth_best[column]
            of_y.add(column[near_columns], values[near_columns], row[near_columns] + x.block.start)
            near |= near_columns
        vain = looked_at - int(near.sum())
        if full:
            more = vain > MOST_IN_VAIN * pairs
            less = vain < LEAST_IN_VAIN * pairs
            self.stage = min(max(stage + int(more) - int(less), 0), last)

    def _near(
        self,
        x: Rounded,
        y: Rounded,
        lists: tuple[NeighborLists, NeighborLists | None],
        rows: slice,
        columns: slice,
        stage: int,
    ) -> tuple[Int64[ndarray, " p"], Int64[ndarray, " p"]]:
        """Pairs of a tile with a bound that reaches a bar."""
        left = self._side(x, rows, stage)
        right = self._side(y, columns, stage)
        if self.room.numel() < len(left) * len(right):  # kept, as new pages cost time
            self.room = torch.empty(len(left) * len(right), device=self.device, dtype=self.dtype)
        tile = torch.mm(
            left, right.T, out=self.room[: len(left) * len(right)].view(len(left), len(right))
        )
        width = x.matrix.shape[1]
        n = rows.stop - rows.start
        m = columns.stop - columns.start
        codes = tile.view(CODES[self.dtype])
        real = tile[:n, :m]
        own = x.precision.part(rows)
        other = y.precision.part(columns)
        kth_best = self._codes(real, lists[0], own.slack(other, width, stage), len(left))
        places = _hits(codes, kth_best)
        if lists[1] is not None:
            more = _hits_of_columns(
                codes, self._codes(real.T, lists[1], other.slack(own, width, stage), len(right))
            )
            new = codes.flatten()[more] < kth_best[more // len(right)]
            places = torch.cat([places, more[new]])
        row, column = np.divmod(places.cpu().numpy(), len(right))
        inside = (row < n) & (column < m)
        return row[inside] + rows.start, column[inside] + columns.start

    @staticmethod
    def _reach(
        x: Rounded,
        y: Rounded,
        row: Int64[ndarray, " p"],
        column: Int64[ndarray, " p"],
        of_x: NeighborLists,
        of_y: NeighborLists | None,
    ) -> tuple[Int64[ndarray, " near"], Int64[ndarray, " near"]]:
        """The given pairs with a product in float32 that does not stay below the kth_best of
        both.
        """
        kth_best = (
            of_x.kth_best[row]
            if of_y is None
            else np.minimum(of_x.kth_best[row], of_y.kth_best[column])
        )
        left = x.block.vectors
        right = y.block.vectors
        with np.errstate(over="ignore", invalid="ignore"):  # what is no number may be anything
            bound = dot_float32(left, right, row, column) + product_error(
                x.longest, y.longest, left.shape[1]
            )
            near = ~(bound < kth_best)
        return row[near], column[near]

    def _side(self, side: Rounded, at: slice, stage: int) -> Float[Tensor, "padded p"]:
        """Some vectors up to a stage.

        The length of what lies behind is one more coordinate, rounded up.
        """
        matrix = side.matrix[at.start : -(-at.stop // CHUNK) * CHUNK, : 4 + self.stages[stage]]
        if stage == len(self.stages) - 1:
            return matrix
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
        """What the bits of a product have to reach, for each row.

        Where a list is not full, the tile's own k-th tells.

        Rounding keeps the order: a similarity that reaches the bar has a rounded product that
        reaches the rounded bar.
        """
        kth_best = lists.kth_best - np.float32(self.middle) - slack
        new = np.flatnonzero(np.isneginf(lists.kth_best))
        k = lists.values.shape[1]
        if len(new) and tile.shape[1] >= k:
            best = (
                kth_of_chunks(tile[torch.from_numpy(new).to(tile.device)], k).float().cpu().numpy()
            )
            kth_best[new] = (
                best - np.abs(best) * 2.0**-7 - 2 * slack[new]
            )  # at least that good are k of the tile
        rounded = torch.from_numpy(kth_best).to(self.device, self.dtype)
        limits = torch.iinfo(CODES[self.dtype])
        codes = torch.full((padded,), limits.max, dtype=CODES[self.dtype], device=self.device)
        codes[: len(kth_best)] = torch.where(
            rounded > 0, rounded.view(CODES[self.dtype]), limits.min
        )
        return codes


@contextlib.contextmanager
def sums_in_float32() -> Iterator[None]:
    """On a GPU torch may round parts of a product's sums to bfloat16, unless that is switched
    off.
    """
    before = torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = before


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether a device has instructions for products in bfloat16."""
    if device.type == "cpu":
        if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
            return False
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return device.type != "mps"


def kth_of_chunks(products: Float[Tensor, "n m"], k: int) -> Float[Tensor, " n"]:
    """What k products of each row reach.

    Where there are many, the k-th of the chunks' largest will do.
    """
    chunks = products.shape[1] // CHUNK
    if chunks >= 2 * k:
        products = products[:, : chunks * CHUNK].reshape(-1, chunks, CHUNK).amax(dim=2)
    return products.topk(k, dim=1).values[:, -1]


def _hits(codes: Int[Tensor, "n m"], kth_best: Int[Tensor, " n"]) -> Int[Tensor, " p"]:
    """Places, row * m + column, that reach their row's bar."""
    largest = codes.view(len(codes), -1, CHUNK).amax(dim=2)
    near = (largest >= kth_best[:, None]).flatten().nonzero().flatten()
    hits = (
        (codes.view(-1, CHUNK)[near] >= kth_best[near // largest.shape[1], None])
        .flatten()
        .nonzero()
        .flatten()
    )
    return near[hits // CHUNK] * CHUNK + hits % CHUNK


def _hits_of_columns(codes: Int[Tensor, "n m"], kth_best: Int[Tensor, " m"]) -> Int[Tensor, " p"]:
    """Places, row * m + column, that reach their column's bar."""
    m = codes.shape[1]
    chunks = codes.view(-1, ROWS_OF_CHUNK, m)
    chunk, column = (chunks.amax(dim=1) >= kth_best).nonzero(as_tuple=True)
    hit, lane = (chunks[chunk, :, column] >= kth_best[column, None]).nonzero(as_tuple=True)
    return (chunk[hit] * ROWS_OF_CHUNK + lane) * m + column[hit]
