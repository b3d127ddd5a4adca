"""Lists of the k best neighbors of each vector, updated with pairs in any order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int64
from numpy import ndarray


@dataclass(frozen=True, slots=True)
class NeighborLists:
    """The k best neighbors of each vector, best first, equal similarities by index.

    The result does not depend on the order of pairs, and a repeated pair is listed once: lists made
    of parts of the pairs can be joined, and a part can be done again.

    Attributes:
        values: similarities; -inf where there is no neighbor yet.
        indices: the neighbors; -1 where there is none yet.
    """

    values: Float32[ndarray, "n k"]
    indices: Int64[ndarray, "n k"]

    @classmethod
    def empty(cls, n: int, k: int) -> NeighborLists:
        """Return lists without any neighbor."""
        return cls(np.full((n, k), -np.inf, np.float32), np.full((n, k), -1, np.int64))

    @property
    def kth_best(self) -> Float32[ndarray, " n"]:
        """The similarity that the next neighbor of each vector has to reach."""
        return self.values[:, -1]

    def part(self, start: int, stop: int) -> NeighborLists:
        """Return the lists of some of the vectors, without copying."""
        return NeighborLists(self.values[start:stop], self.indices[start:stop])

    def add(
        self,
        at: Int64[ndarray, " p"],
        values: Float32[ndarray, " p"],
        indices: Int64[ndarray, " p"],
    ) -> None:
        """Add pairs.

        Args:
            at: for each pair, the vector whose list it is added to.
            values: similarity of each pair.
            indices: the neighbor.
        """
        if not len(at):
            return
        k = self.values.shape[1]
        # Merge the new pairs with the current neighbors of the same vectors.
        touched = np.unique(at)
        is_known = self.indices[touched] >= 0
        at = np.concatenate([at, np.repeat(touched, is_known.sum(axis=1))])
        values = np.concatenate([values, self.values[touched][is_known]])
        indices = np.concatenate([indices, self.indices[touched][is_known]])
        order = _order(at, values, indices)
        at = at[order]
        values = values[order]
        indices = indices[order]
        # Copies of a pair have the same value, so they are next to each other now: only one of them
        # is kept.
        is_new = np.append(True, (at[1:] != at[:-1]) | (indices[1:] != indices[:-1]))
        at = at[is_new]
        values = values[is_new]
        indices = indices[is_new]
        # The place of a pair in its list: its number less that of the first pair of its vector.
        is_first = np.append(True, at[1:] != at[:-1])
        place = np.arange(len(at)) - np.flatnonzero(is_first)[is_first.cumsum() - 1]
        is_best = place < k
        self.values[at[is_best], place[is_best]] = values[is_best]
        self.indices[at[is_best], place[is_best]] = indices[is_best]

    def join(self, other: NeighborLists) -> None:
        """Add the neighbors in other lists of the same vectors."""
        filled = np.flatnonzero((other.indices >= 0).any(axis=1))
        k = other.values.shape[1]
        found = other.indices[filled].ravel()
        is_known = found >= 0
        at = np.repeat(filled, k)[is_known]
        if len(at):
            self.add(at, other.values[filled].ravel()[is_known], found[is_known])


def _order(
    at: Int64[ndarray, " p"], values: Float32[ndarray, " p"], indices: Int64[ndarray, " p"]
) -> Int64[ndarray, " p"]:
    """Return the order of pairs: by vector, larger values first, equal ones by index.

    Vector and value are combined into one integer, because sorting by one key is much faster than
    by three. The few pairs that are equal in both are sorted by index afterwards.
    """
    # Adding 0 makes a negative zero a positive one: the two are equal, but their bits differ.
    bits = (values + np.float32(0)).view(np.int32)
    # The bits of positive floats are in the order of the floats. Those of negative floats are in
    # the reverse order; flipping all bits except the sign corrects it.
    ranks = np.where(bits < 0, bits ^ np.int32(2**31 - 1), bits)
    # The rank is subtracted, so that larger values come first.
    keys = (at << 32) - ranks
    order = np.argsort(keys)
    is_repeated = np.concatenate([[False], keys[order[1:]] == keys[order[:-1]], [False]])
    tied = np.flatnonzero(is_repeated[1:] | is_repeated[:-1])
    order[tied] = order[tied][np.lexsort((indices[order[tied]], keys[order[tied]]))]
    return order
