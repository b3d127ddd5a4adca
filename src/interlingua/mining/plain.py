"""Nearest neighbours of two blocks in plain torch: rounded products, and the largest of every 64 tell where to look."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32, Int
from numpy import ndarray
from torch import Tensor

from interlingua.mining.lists import Lists
from interlingua.mining.scan import Block, Centres, Precision, exact, rest_and_term

CHUNK = 64
"""Products whose largest is looked at first."""
TILE_ROWS, TILE_COLUMNS = 2048, 4096
CODES = {torch.bfloat16: torch.int16, torch.float32: torch.int32}
"""Positive numbers of either type are in the order of their bits, and whole numbers are compared much faster."""


class Rounded(NamedTuple):
    """A block in the type of the products.

    Attributes:
        block: the vectors themselves.
        matrix: rounded vectors less their mean, and behind them both terms of the sum in two pieces each; zero rows
            fill the last chunk.
        precision: of the rounded vectors.
    """

    block: Block
    matrix: Float[Tensor, "padded d+4"]
    precision: Precision


class TorchScanner:
    """Products in bfloat16 where the processor multiplies that, else in float32.

    Args:
        centres: of both sides.
        device: where the products are made.
        dtype: of the products, in place of the device's choice.
    """

    def __init__(
        self, centres: Centres, *, device: str | torch.device = "cpu", dtype: torch.dtype | None = None
    ) -> None:
        self.centres, self.device = centres, torch.device(device)
        self.dtype = dtype or (torch.bfloat16 if multiplies_bfloat16(self.device) else torch.float32)
        self.middle = float(centres.x.astype(np.float64) @ centres.y)

    def prepare(self, block: Block, *, of_x: bool) -> Rounded:
        """See ``Scanner``; the similarity of the means is left out of the products, so that little is rounded away."""
        rest, term = rest_and_term(block, self.centres, of_x=of_x, device=self.device)
        term = term - self.middle if of_x else term
        rounded, high = rest.to(self.dtype), term.to(self.dtype)
        low, one = (term - high.float()).to(self.dtype), torch.ones_like(high)
        tail = torch.stack([high, low, one, one] if of_x else [one, one, high, low], dim=1)
        matrix = rounded.new_zeros(-(-len(rest) // CHUNK) * CHUNK, rest.shape[1] + 4)
        matrix[: len(rest)] = torch.cat([rounded, tail], dim=1)
        return Rounded(block, matrix, Precision.of(rest, rounded.float(), term))

    @torch.inference_mode()
    def scan(self, x: Rounded, y: Rounded, of_x: Lists, of_y: Lists | None) -> None:
        """See ``Scanner``."""
        for i in range(0, len(x.block.vectors), TILE_ROWS):
            for j in range(0, len(y.block.vectors), TILE_COLUMNS):
                self._tile(x, y, of_x, of_y, i, j)

    def _tile(self, x: Rounded, y: Rounded, of_x: Lists, of_y: Lists | None, i: int, j: int) -> None:
        rows = slice(i, min(i + TILE_ROWS, len(x.block.vectors)))
        columns = slice(j, min(j + TILE_COLUMNS, len(y.block.vectors)))
        left, right = x.matrix[i : i + TILE_ROWS], y.matrix[j : j + TILE_COLUMNS]
        tile = left @ right.T
        codes, real = tile.view(CODES[self.dtype]), tile[: rows.stop - i, : columns.stop - j]
        own, other, width = x.precision.part(rows), y.precision.part(columns), left.shape[1]
        found = [_hits(codes, self._codes(real, of_x.part(rows.start, rows.stop), own.slack(other, width), len(left)))]
        if of_y is not None:
            bars = self._codes(real.T, of_y.part(columns.start, columns.stop), other.slack(own, width), len(right))
            found.append(_hits_of_columns(codes, bars))
        row, column = np.divmod(torch.unique(torch.cat(found)).cpu().numpy(), len(right))
        inside = (row < rows.stop - i) & (column < columns.stop - j)
        row, column = row[inside] + i, column[inside] + j
        values = exact(x.block.vectors, y.block.vectors, row, column)
        of_x.add(row, values, column + y.block.start)
        if of_y is not None:
            of_y.add(column, values, row + x.block.start)

    def _codes(
        self, tile: Float[Tensor, "n m"], lists: Lists, slack: Float32[ndarray, " n"], padded: int
    ) -> Int[Tensor, " padded"]:
        """What the bits of a product have to reach, for each row; where a list is not full, the tile's own k-th tells.

        Rounding keeps the order: a similarity that reaches the bar has a rounded product that reaches the rounded bar.
        """
        bars = lists.bars - np.float32(self.middle) - slack
        new, k = np.flatnonzero(np.isneginf(lists.bars)), lists.values.shape[1]
        if len(new) and tile.shape[1] >= k:
            best = tile[torch.from_numpy(new).to(tile.device)].topk(k, dim=1).values[:, -1].float().cpu().numpy()
            bars[new] = best - np.abs(best) * 2.0**-7 - 2 * slack[new]  # at least that good are k of the tile
        rounded = torch.from_numpy(bars).to(self.device, self.dtype)
        limits = torch.iinfo(CODES[self.dtype])
        codes = torch.full((padded,), limits.max, dtype=CODES[self.dtype], device=self.device)
        codes[: len(bars)] = torch.where(rounded > 0, rounded.view(CODES[self.dtype]), limits.min)
        return codes


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether a device has instructions for products in bfloat16."""
    if device.type == "cpu":
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()) and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return device.type != "mps"


def _hits(codes: Int[Tensor, "n m"], bars: Int[Tensor, " n"]) -> Int[Tensor, " p"]:
    """Places, row * m + column, that reach their row's bar."""
    m = codes.shape[1]
    chunks = codes.view(len(codes), m // CHUNK, CHUNK)
    row, chunk = (chunks.amax(dim=2) >= bars[:, None]).nonzero(as_tuple=True)
    hit, lane = (chunks[row, chunk] >= bars[row, None]).nonzero(as_tuple=True)
    return row[hit] * m + chunk[hit] * CHUNK + lane


def _hits_of_columns(codes: Int[Tensor, "n m"], bars: Int[Tensor, " m"]) -> Int[Tensor, " p"]:
    """Places, row * m + column, that reach their column's bar."""
    m = codes.shape[1]
    chunks = codes.view(len(codes) // CHUNK, CHUNK, m)
    chunk, column = (chunks.amax(dim=1) >= bars).nonzero(as_tuple=True)
    hit, lane = (chunks[chunk, :, column] >= bars[column, None]).nonzero(as_tuple=True)
    return (chunk[hit] * CHUNK + lane) * m + column[hit]
