"""The k best neighbors of each vector, brought up to date with pairs in any order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int64
from numpy import ndarray


@dataclass(frozen=True, slots=True)
class NeighborLists:
    """Of each vector its k best neighbors, best first, equal similarities by index.

    The order in which pairs come decides nothing, and a pair that comes twice stands there once:
    lists made of parts of the pairs can be joined, and a part can be done again.

    Attributes:
        values: similarities; -inf where there is no neighbor yet.
        indices: the neighbors; -1 where there is none yet.
    """

    values: Float32[ndarray, "n k"]
    indices: Int64[ndarray, "n k"]

    @classmethod
    def empty(cls, n: int, k: int) -> NeighborLists:
        """NeighborLists without any neighbor."""
        return cls(np.full((n, k), -np.inf, np.float32), np.full((n, k), -1, np.int64))

    @property
    def kth_best(self) -> Float32[ndarray, " n"]:
        """What the next neighbor of each has to reach."""
        return self.values[:, -1]

    def part(self, start: int, stop: int) -> NeighborLists:
        """Those of some of the vectors, not copied."""
        return NeighborLists(self.values[start:stop], self.indices[start:stop])

    def add(
        self,
        at: Int64[ndarray, " p"],
        values: Float32[ndarray, " p"],
        indices: Int64[ndarray, " p"],
    ) -> None:
        """Takes note of pairs.

        Args:
            at: the vector that it is a neighbor of.
            values: similarity of each pair.
            indices: the neighbor.
        """
        if not len(at):
            return
        k = self.values.shape[1]
        touched = np.unique(at)
        known = self.indices[touched] >= 0
        at = np.concatenate([at, np.repeat(touched, known.sum(axis=1))])
        values = np.concatenate([values, self.values[touched][known]])
        indices = np.concatenate([indices, self.indices[touched][known]])
        order = _order(at, values, indices)
        at = at[order]
        values = values[order]
        indices = indices[order]
        new = np.append(True, (at[1:] != at[:-1]) | (indices[1:] != indices[:-1]))
        at = at[new]
        values = values[new]
        indices = indices[new]
        first = np.append(True, at[1:] != at[:-1])
        place = np.arange(len(at)) - np.flatnonzero(first)[first.cumsum() - 1]
        best = place < k
        self.values[at[best], place[best]] = values[best]
        self.indices[at[best], place[best]] = indices[best]

    def join(self, other: NeighborLists) -> None:
        """Takes note of the neighbors in other lists of the same vectors."""
        there = np.flatnonzero((other.indices >= 0).any(axis=1))
        k = other.values.shape[1]
        found = other.indices[there].ravel()
        known = found >= 0
        at = np.repeat(there, k)[known]
        if len(at):
            self.add(at, other.values[there].ravel()[known], found[known])


def _order(
    at: Int64[ndarray, " p"], values: Float32[ndarray, " p"], indices: Int64[ndarray, " p"]
) -> Int64[ndarray, " p"]:
    """Of pairs: by vector, larger values first, equal ones by index; sooner than by three keys."""
    bits = (values + np.float32(0)).view(np.int32)  # without a negative zero
    keys = (at << 32) - np.where(
        bits < 0, bits ^ np.int32(2**31 - 1), bits
    )  # the bits of floats are in their order
    order = np.argsort(keys)
    again = np.concatenate([[False], keys[order[1:]] == keys[order[:-1]], [False]])
    tied = np.flatnonzero(again[1:] | again[:-1])
    order[tied] = order[tied][np.lexsort((indices[order[tied]], keys[order[tied]]))]
    return order
