r"""The k best of two blocks' pairs: a cheap product bounds every similarity, exact ones are computed where they count.

With mu and nu near the means of x and y,

.. math:: x_i \cdot y_j = (x_i - \mu) \cdot (y_j - \nu) + x_i \cdot \nu + \mu \cdot (y_j - \nu)

The vectors less their means are short where cosines crowd together, as those of sentence encoders do, and the error of
a rounded product goes with their lengths: with :math:`\hat x` for x - mu rounded, it is at most

.. math:: |x_i - \mu - \hat x_i| \max_j |y_j - \nu| + |\hat x_i| \max_j |y_j - \nu - \hat y_j|

So whatever may belong among the k best of its row or column is known, and only that is computed exactly: products and
sums in float64, rounded to float32. The result is the same for any size of blocks and any way of rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from jaxtyping import Float32, Int64
from numpy import ndarray
from torch import Tensor

from interlingua.mining.lists import Lists

PAIRS_AT_ONCE = 1024
"""Their vectors stay in the cache."""
FLOAT32_STEP = 2.0**-23

Prepared = TypeVar("Prepared")


class Block(NamedTuple):
    """Some vectors of a side, all finite.

    Attributes:
        vectors: contiguous.
        start: index of the first one.
    """

    vectors: Float32[ndarray, "n d"]
    start: int


class Centres(NamedTuple):
    """mu and nu: any vectors do, those near the means make the bounds tight."""

    x: Float32[ndarray, " d"]
    y: Float32[ndarray, " d"]


class Scanner(Protocol, Generic[Prepared]):
    """A way of going through all pairs of two blocks."""

    def prepare(self, block: Block, *, of_x: bool) -> Prepared:
        """What the products need of a block; worth keeping while it meets several."""
        ...

    def scan(self, x: Prepared, y: Prepared, of_x: Lists, of_y: Lists | None) -> None:
        """Brings the lists of both blocks up to date, those of y only where they are asked for."""
        ...


def rest_and_term(
    block: Block, centres: Centres, *, of_x: bool, device: torch.device
) -> tuple[Float32[Tensor, "n d"], Float32[Tensor, " n"]]:
    """The vectors less their mean, and the term of the sum that goes with each: x.nu, or mu.(y - nu)."""
    own, other = (torch.from_numpy(side).to(device) for side in (centres if of_x else centres[::-1]))
    vectors = torch.from_numpy(block.vectors).to(device)
    rest = vectors - own
    return rest, (vectors if of_x else rest) @ other


@dataclass(frozen=True, slots=True)
class Precision:
    """How well the vectors of a block are known after rounding.

    Attributes:
        lengths: of the rounded vectors.
        errors: lengths of what rounding took away.
        terms: sizes of the terms that are added to their products.
    """

    lengths: Float32[ndarray, " n"]
    errors: Float32[ndarray, " n"]
    terms: Float32[ndarray, " n"]

    @classmethod
    def of(
        cls, rest: Float32[Tensor, "n d"], rounded: Float32[Tensor, "n d"], term: Float32[Tensor, " n"]
    ) -> Precision:
        """Measures it."""
        lengths = (
            torch.linalg.vector_norm(rounded, dim=1),
            torch.linalg.vector_norm(rest - rounded, dim=1),
            term.abs(),
        )
        return cls(*(length.cpu().numpy() for length in lengths))

    @classmethod
    def empty(cls, n: int) -> Precision:
        """Room for that of n vectors."""
        return cls(*(np.empty(n, np.float32) for _ in range(3)))

    def put(self, at: slice, other: Precision) -> None:
        """Takes note of that of some of the vectors."""
        self.lengths[at], self.errors[at], self.terms[at] = other.lengths, other.errors, other.terms

    def part(self, at: slice) -> Precision:
        """That of some of the vectors."""
        return Precision(self.lengths[at], self.errors[at], self.terms[at])

    def slack(self, other: Precision, width: int) -> Float32[ndarray, " n"]:
        """How far a similarity may be from its product with any of the other vectors, for each of these."""
        other_length = float((other.lengths + other.errors).max())
        rounding = self.errors * other_length + self.lengths * float(other.errors.max())
        largest = self.lengths * float(other.lengths.max()) + self.terms + float(other.terms.max())
        slack: Float32[ndarray, " n"] = rounding + (width + 8) * FLOAT32_STEP * largest
        return slack


def exact(
    x: Float32[ndarray, "n d"], y: Float32[ndarray, "m d"], rows: Int64[ndarray, " p"], columns: Int64[ndarray, " p"]
) -> Float32[ndarray, " p"]:
    """Inner products of pairs, in float64 and then rounded, some pairs at a time."""
    values = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), PAIRS_AT_ONCE):
        at = slice(start, start + PAIRS_AT_ONCE)
        left, right = x[rows[at]].astype(np.float64), y[columns[at]]
        values[at] = np.einsum("pd,pd->p", left, right)
    return values
