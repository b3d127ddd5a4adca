"""Bounds of similarities, and the similarities themselves.

The mathematics is in the package's docstring. Its letters are used here too: mu and nu are the
means of both sides, u and v the vectors less their means along the axes Q, p the coordinates of a
stage.

A ``Frame`` holds mu, nu and Q. A ``FrameView`` is a block expressed in it. ``BlockPrecision`` keeps
the lengths that the bounds are made of, and the amount by which a similarity may exceed its rounded
product.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from jaxtyping import Float32, Int64
from numpy import ndarray
from torch import Tensor

from interlingua.retrieval.topk.lists import NeighborLists
from interlingua.runtime.devices import on_device
from interlingua.runtime.portions import ceil_div

PART = 4096
"""Number of vectors prepared at once, in whole panels."""
_PAIRS_AT_ONCE = 1024
"""Number of pairs computed at once, so that their vectors stay in the cache."""
EXACT_LANES = 16
"""Sums of an exact product, as in kernels/neighbors.c."""
FLOAT32_STEP = 2.0**-23
LOST = 2.0**-63
"""Smallest length: float32 rounds the squares of shorter numbers to few digits or to 0."""
ROUNDINGS = 40
"""Roundings of a bound, not counting those of its products. There are 8; another 32 allow for the
part of a term that its two pieces in bfloat16 do not hold."""
STAGE = 64
"""Number of coordinates that a stage adds."""

_Prepared = TypeVar("_Prepared")


class Block(NamedTuple):
    """Some vectors of a side, all finite.

    Attributes:
        vectors: contiguous.
        start: index of the first one.
    """

    vectors: Float32[ndarray, "n d"]
    start: int


class Frame(NamedTuple):
    """The means and axes in which vectors are expressed.

    Any means and axes give correct bounds, and good ones give tight bounds.

    Attributes:
        x: mu.
        y: nu.
        axes: Q, the axes of largest variance first; if None, all coordinates are multiplied.
    """

    x: Float32[ndarray, " d"]
    y: Float32[ndarray, " d"]
    axes: Float32[ndarray, "d d"] | None = None

    @property
    def stages(self) -> list[int]:
        """Number of coordinates in each stage's bound."""
        # Without axes of decreasing variance, the first coordinates say no more than the others.
        if self.axes is None:
            return [len(self.x)]
        return [*range(STAGE, len(self.x), STAGE), len(self.x)]


class Scanner(Protocol, Generic[_Prepared]):
    """The protocol of scanners, which go through all pairs of two blocks."""

    def prepare(self, block: Block, *, of_x: bool) -> _Prepared:
        """Prepare a block for the products; the result can be scanned with several other blocks."""
        ...

    def scan(
        self, x: _Prepared, y: _Prepared, of_x: NeighborLists, of_y: NeighborLists | None
    ) -> None:
        """Update the lists of both blocks, those of y only if they are passed."""
        ...


class FrameView(NamedTuple):
    """The vectors of a block as seen from a frame.

    Attributes:
        rest: the vectors less their mean, along the axes.
        term: the term of the sum for each vector: x.nu, or mu.(y - nu).
        size: the product of the lengths of the term's two factors, which bounds its rounding error.
        error: upper bound of the length of the rounding error of the rotation in float32.
    """

    rest: Float32[Tensor, "n d"]
    term: Float32[Tensor, " n"]
    size: Float32[Tensor, " n"]
    error: Float32[Tensor, " n"]


def view(vectors: Float32[Tensor, "n d"], frame: Frame, *, of_x: bool) -> FrameView:
    """Transform vectors to a frame, on their device."""
    device = vectors.device
    own = on_device(torch.from_numpy(frame.x), device)
    other = on_device(torch.from_numpy(frame.y), device)
    if not of_x:
        own, other = other, own
    rest = vectors - own
    # x . y = (x - mu) . (y - nu) + x . nu + mu . (y - nu): the second term belongs to x, the third
    # to y.
    factor = rest
    if of_x:
        factor = vectors
    term = factor @ other
    size = lengths(factor) * lengths(other)
    if frame.axes is None:
        return FrameView(rest, term, size, torch.zeros_like(term))
    # u = Q^T (x - mu). The rotation rounds d sums of d products. Its error is sqrt(d) times the
    # error of one sum, which is d steps relative to the vector's length.
    rest = rest @ on_device(torch.from_numpy(frame.axes), device)
    return FrameView(rest, term, size, rest.shape[1] ** 1.5 * FLOAT32_STEP * lengths(rest))


@dataclass(frozen=True, slots=True)
class BlockPrecision:
    """The precision of the vectors of a block after rounding, at each stage.

    Attributes:
        lengths: of the rounded vectors.
        errors: lengths of the rounding errors of the coordinates up to each stage.
        tails: lengths of the coordinates after each stage.
        sizes: of the terms that are added to their products.
    """

    lengths: Float32[ndarray, " n"]
    errors: Float32[ndarray, "n stages"]
    tails: Float32[ndarray, "n stages"]
    sizes: Float32[ndarray, " n"]

    @classmethod
    def of(
        cls, seen: FrameView, rounded: Float32[Tensor, "n d"], stages: list[int]
    ) -> BlockPrecision:
        """Measure the precision."""
        return cls.joined([cls.measured(seen, rounded, stages)])

    @classmethod
    def joined(cls, parts: Iterable[tuple[Tensor, ...]]) -> BlockPrecision:
        """Join the precision of several measured parts, copied from their device at once."""
        return cls(*(torch.cat(of).cpu().numpy() for of in zip(*parts, strict=True)))

    @staticmethod
    def measured(
        seen: FrameView, rounded: Float32[Tensor, "n d"], stages: list[int]
    ) -> tuple[Tensor, ...]:
        """Return the fields of a part, on its device."""
        rest = seen.rest
        width = rounded.shape[1]
        parts = np.diff([0, *stages]).tolist()
        lost = LOST * width**0.5
        # |u - u^| over the coordinates up to each stage.
        errors = _squares(rest - rounded, parts).cumsum(dim=1).sqrt() + lost + seen.error[:, None]
        # |u_{>p}|: sums from the last coordinate backwards, enlarged a little to cover the rounding
        # of the sums.
        squares_behind = _squares(rest, parts).flip(1).cumsum(dim=1).flip(1)[:, 1:]
        behind = squares_behind.sqrt() * (1 + width * FLOAT32_STEP) + lost
        # Behind the last stage there is nothing.
        tails = torch.cat([behind, torch.zeros_like(errors[:, :1])], dim=1)
        return lengths(rounded), errors, tails, seen.size

    @classmethod
    def empty(cls, n: int, stages: int) -> BlockPrecision:
        """Allocate the precision of n vectors."""
        shapes = (n, (n, stages), (n, stages), n)
        return cls(*(np.empty(shape, np.float32) for shape in shapes))

    def put(self, at: slice, other: BlockPrecision) -> None:
        """Store the precision of some of the vectors."""
        for field in dataclasses.fields(self):
            getattr(self, field.name)[at] = getattr(other, field.name)

    def part(self, at: slice) -> BlockPrecision:
        """Return the precision of some of the vectors."""
        return BlockPrecision(
            *(getattr(self, field.name)[at] for field in dataclasses.fields(self))
        )

    def slack(self, other: BlockPrecision, width: int, stage: int) -> Float32[ndarray, " n"]:
        """Compute how far similarities of each vector with the others may be from their bounds."""
        # |u - u^| max |v| + |u^| max |v - v^|; |v| is at most |v^| + |v - v^|.
        other_length = float((other.lengths + other.errors[:, -1]).max())
        rounding = (
            self.errors[:, stage] * other_length + self.lengths * other.errors[:, stage].max()
        )
        slack: Float32[ndarray, " n"] = rounding + self.float_error(other, width)
        return slack

    def float_error(self, other: BlockPrecision, width: int) -> Float32[ndarray, " n"]:
        """Compute how far a bound in float32 may be from its exact value, for each vector."""
        # (d + 40) steps, relative to the product of the lengths and to both terms.
        largest = self.lengths * float(other.lengths.max()) + self.sizes + float(other.sizes.max())
        error: Float32[ndarray, " n"] = (width + ROUNDINGS) * np.float32(FLOAT32_STEP) * largest
        return error


def lengths(vectors: Float32[Tensor, "*n d"]) -> Float32[Tensor, "*n"]:
    """Compute upper bounds of the lengths of some vectors."""
    # Each coordinate may have lost as much as LOST, if its square is too small for float32.
    lost = LOST * vectors.shape[-1] ** 0.5
    norms: Float32[Tensor, "*n"] = torch.linalg.vector_norm(vectors, dim=-1) + lost
    return norms


def _squares(vectors: Float32[Tensor, "n d"], sizes: list[int]) -> Float32[Tensor, "n stages"]:
    """Sum the squares of the coordinates that each stage adds."""
    sums = [part.square().sum(dim=1) for part in torch.split(vectors, sizes, dim=1)]
    return torch.stack(sums, dim=1)


def dot_float32(
    x: Float32[ndarray, "n d"],
    y: Float32[ndarray, "m d"],
    rows: Int64[ndarray, " p"],
    columns: Int64[ndarray, " p"],
) -> Float32[ndarray, " p"]:
    """Compute inner products of pairs in float32, in any order; much faster than exact products."""
    values = np.empty(len(rows), np.float32)
    left, right = np.empty((2, min(len(rows), _PAIRS_AT_ONCE), x.shape[1]), np.float32)
    for start in range(0, len(rows), _PAIRS_AT_ONCE):
        at = slice(start, min(start + _PAIRS_AT_ONCE, len(rows)))
        pairs = at.stop - start
        # With the mode "raise", numpy would first fill a buffer and then copy it.
        for side, vectors, places in ((left, x, rows), (right, y, columns)):
            np.take(vectors, places[at], axis=0, out=side[:pairs], mode="clip")
        np.einsum("pd,pd->p", left[:pairs], right[:pairs], out=values[at])
    return values


def product_error(x: float, y: float, width: int) -> np.float32:
    """Bound the error of a product in float32, for vectors of at most these lengths."""
    return np.float32(width + ROUNDINGS) * np.float32(FLOAT32_STEP) * np.float32(x) * np.float32(y)


def dot_float64(
    x: Float32[ndarray, "n d"],
    y: Float32[ndarray, "m d"],
    rows: Int64[ndarray, " p"],
    columns: Int64[ndarray, " p"],
) -> Float32[ndarray, " p"]:
    """Compute inner products of pairs in float64, some pairs at a time, then round them.

    The products are added in the same order as in the kernel, so that both give the same bits.
    """
    values = np.empty(len(rows), np.float32)
    width = x.shape[1]
    # Zeros fill the last round of the lanes; they add nothing.
    left, right = np.zeros(
        (2, min(len(rows), _PAIRS_AT_ONCE), ceil_div(width, EXACT_LANES) * EXACT_LANES)
    )
    for start in range(0, len(rows), _PAIRS_AT_ONCE):
        at = slice(start, min(start + _PAIRS_AT_ONCE, len(rows)))
        pairs = at.stop - start
        left[:pairs, :width], right[:pairs, :width] = x[rows[at]], y[columns[at]]
        # Coordinate c goes to lane c mod 16, each lane from the first coordinate to the last: s
        # counts the rounds, l the lanes.
        laned_left = left[:pairs].reshape(pairs, -1, EXACT_LANES)
        laned_right = right[:pairs].reshape(pairs, -1, EXACT_LANES)
        sums = np.einsum("psl,psl->pl", laned_left, laned_right)
        # Lane l and lane l + 8, then l + 4, l + 2, l + 1.
        while sums.shape[1] > 1:
            sums = sum(np.split(sums, 2, axis=1))
        values[at] = sums[:, 0]
    return values
