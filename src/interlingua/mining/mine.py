"""From vectors to pairs: margin scores of nearest neighbours both ways, and the four ways to retrieve pairs by them."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray
from numpy.typing import NDArray

from interlingua.functional.margin import Margin, best_neighbour, score_neighbours
from interlingua.mining.knn import Neighbours, mutual_neighbours

Retrieval = Literal["forward", "backward", "intersection", "max"]


class Candidates(NamedTuple):
    """Pairs of rows of x and of y with their scores."""

    scores: Float64[ndarray, " n"]
    x: Int64[ndarray, " n"]
    y: Int64[ndarray, " n"]

    def take(self, kept: NDArray[np.integer] | NDArray[np.bool_]) -> Candidates:
        """Some of them: places, or a mask."""
        return Candidates(self.scores[kept], self.x[kept], self.y[kept])


def best_both_ways(
    x: NDArray[np.floating], y: NDArray[np.floating], *, k: int = 4, margin: Margin = "ratio"
) -> tuple[Candidates, Candidates]:
    """The best-scored of its k nearest neighbours for every x, and for every y; Artetxe & Schwenk (2019), section 3.

    Args:
        x: (n, d), rows of length 1, in memory or mapped.
        y: (m, d), likewise.
        k: neighbours scored, and averaged over in the margin; fewer where a side is smaller.
        margin: which score.

    Returns:
        A pair per row of x in its order, and one per row of y. Of equal scores the nearer neighbour is taken.

    Raises:
        DataError: a side is empty, widths differ, or a vector is not finite.
    """
    of_x, of_y = mutual_neighbours(x, y, k=k)
    forward_scores, ys = _best(of_x, of_y, margin)
    backward_scores, xs = _best(of_y, of_x, margin)
    return (
        Candidates(forward_scores, np.arange(len(ys)), ys),
        Candidates(backward_scores, xs, np.arange(len(xs))),
    )


def retrieve(forward: Candidates, backward: Candidates, retrieval: Retrieval = "max") -> Candidates:
    """Joins both directions, Artetxe & Schwenk (2019), section 3.2, as LASER's ``mine_bitexts.py`` does.

    Args:
        forward: the best y of every x.
        backward: the best x of every y.
        retrieval: ``forward`` or ``backward`` takes one direction as it is, ``intersection`` the pairs that are in
            both, ``max`` the pairs of both by descending score, each row of either side once.
    """
    if retrieval == "forward":
        return forward
    if retrieval == "backward":
        return backward
    if retrieval == "intersection":
        return forward.take(backward.x[forward.y] == forward.x)
    both = (np.concatenate(sides) for sides in zip(forward, backward, strict=True))
    return greedy_matches(Candidates(*both))


def greedy_matches(candidates: Candidates) -> Candidates:
    """Goes through the pairs by descending score and keeps those of which neither row was taken before.

    Of equal scores the earlier pair goes first.
    """
    order = np.argsort(-candidates.scores, kind="stable")
    taken_x: set[int] = set()
    taken_y: set[int] = set()
    kept = []
    for place, x, y in zip(order.tolist(), candidates.x[order].tolist(), candidates.y[order].tolist(), strict=True):
        if x not in taken_x and y not in taken_y:
            taken_x.add(x)
            taken_y.add(y)
            kept.append(place)
    return candidates.take(np.array(kept, dtype=np.int64))


def _best(of_x: Neighbours, of_y: Neighbours, margin: Margin) -> tuple[Float64[ndarray, " n"], Int64[ndarray, " n"]]:
    means = of_x.similarities.mean(dim=1), of_y.similarities.mean(dim=1)
    scores = score_neighbours(of_x.similarities, of_x.indices, *means, margin=margin)
    best = best_neighbour(scores, of_x.indices)
    return scores.amax(dim=1).double().numpy(), best.numpy()
