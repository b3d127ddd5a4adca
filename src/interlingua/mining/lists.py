"""The k best neighbours of each vector, brought up to date with pairs in any order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int64
from numpy import ndarray


@dataclass(frozen=True, slots=True)
class Lists:
    """Of each vector its k best neighbours, best first, equal similarities by index.

    The order in which pairs come decides nothing, and a pair that comes twice stands there once: lists made of parts of
    the pairs can be joined, and a part can be done again.

    Attributes:
        values: similarities; -inf where there is no neighbour yet.
        indices: the neighbours; -1 where there is none yet.
    """

    values: Float32[ndarray, "n k"]
    indices: Int64[ndarray, "n k"]

    @classmethod
    def empty(cls, n: int, k: int) -> Lists:
        """Lists without any neighbour."""
        return cls(np.full((n, k), -np.inf, np.float32), np.full((n, k), -1, np.int64))

    @property
    def bars(self) -> Float32[ndarray, " n"]:
        """What the next neighbour of each has to reach."""
        return self.values[:, -1]

    def part(self, start: int, stop: int) -> Lists:
        """Those of some of the vectors, not copied."""
        return Lists(self.values[start:stop], self.indices[start:stop])

    def add(self, at: Int64[ndarray, " p"], values: Float32[ndarray, " p"], indices: Int64[ndarray, " p"]) -> None:
        """Takes note of pairs.

        Args:
            at: the vector whose neighbour it is.
            values: similarity of each pair.
            indices: the neighbour.
        """
        k = self.values.shape[1]
        touched = np.unique(at)
        at = np.concatenate([at, np.repeat(touched, k)])
        values = np.concatenate([values, self.values[touched].ravel()])
        indices = np.concatenate([indices, self.indices[touched].ravel()])
        order = np.lexsort((indices, -values, at))
        at, values, indices = at[order], values[order], indices[order]
        again = (at[1:] == at[:-1]) & (indices[1:] == indices[:-1]) & (indices[1:] >= 0)
        kept = np.concatenate([[True], ~again])[: len(at)]
        at, values, indices = at[kept], values[kept], indices[kept]
        place = np.arange(len(at)) - np.searchsorted(at, at)
        best = place < k
        self.values[at[best], place[best]] = values[best]
        self.indices[at[best], place[best]] = indices[best]

    def join(self, other: Lists) -> None:
        """Takes note of the neighbours in other lists of the same vectors."""
        there = np.flatnonzero((other.indices >= 0).any(axis=1))
        k = other.values.shape[1]
        found = other.indices[there].ravel()
        known = found >= 0
        at = np.repeat(there, k)[known]
        if len(at):
            self.add(at, other.values[there].ravel()[known], found[known])
