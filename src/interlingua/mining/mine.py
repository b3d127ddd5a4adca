"""From vectors to pairs: margin scores of nearest neighbours both ways, and the four ways to retrieve pairs by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numpy import ndarray
from numpy.typing import NDArray

from interlingua.functional.margin import Margin, best_neighbour, score_neighbours
from interlingua.search.topk.exact import Neighbors, mutual_topk

Retrieval = Literal["forward", "backward", "intersection", "max"]
Refuses = Callable[[Int64[ndarray, " n"], Int64[ndarray, " n"]], Bool[ndarray, " n"]]
"""Marks pairs, by the rows of x and of y, that are no translations whatever their score."""


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
        y: (m, d), vectors of the target.
        k: neighbours scored, and averaged over in the margin; fewer where a side is smaller.
        margin: which score.

    Returns:
        A pair per row of x in its order, and one per row of y. Of equal scores the nearer neighbour is taken.

    Raises:
        DataError: a side is empty, widths differ, or a vector is not finite.
    """
    of_x, of_y = mutual_topk(x, y, k=k)
    forward_scores, ys = _best(of_x, of_y, margin)
    backward_scores, xs = _best(of_y, of_x, margin)
    return (
        Candidates(forward_scores, np.arange(len(ys)), ys),
        Candidates(backward_scores, xs, np.arange(len(xs))),
    )


def retrieve(
    forward: Candidates, backward: Candidates, retrieval: Retrieval = "max", *, refuses: Refuses | None = None
) -> Candidates:
    """Joins both directions, Artetxe & Schwenk (2019), section 3.2, as LASER's ``mine_bitexts.py`` does.

    Args:
        forward: the best y of every x.
        backward: the best x of every y.
        retrieval: ``forward`` or ``backward`` takes one direction as it is, ``intersection`` the pairs that are in
            both, ``max`` the pairs of both by descending score, each row of either side once.
        refuses: see ``greedy_matches``; with ``max``.
    """
    if retrieval == "forward":
        return forward
    if retrieval == "backward":
        return backward
    if retrieval == "intersection":
        return forward.take(backward.x[forward.y] == forward.x)
    backward = backward.take(forward.y[backward.x] != backward.y)  # what both directions agree on comes once
    both = (np.concatenate(sides) for sides in zip(forward, backward, strict=True))
    return greedy_matches(Candidates(*both), refuses=refuses)


def greedy_matches(candidates: Candidates, *, refuses: Refuses | None = None) -> Candidates:
    """Goes through the pairs by descending score and keeps those of which neither row was taken before.

    Of equal scores the earlier pair goes first. A pair that is refused is kept, but takes neither row.
    """
    order = np.argsort(-candidates.scores, kind="stable")
    taken = Taken(int(candidates.x.max(initial=-1)) + 1, int(candidates.y.max(initial=-1)) + 1, refuses)
    return candidates.take(order[taken.free(candidates.x[order], candidates.y[order])])


class Taken:
    """Rows that have found a partner.

    Args:
        n: rows of x.
        m: rows of y.
        refuses: see ``greedy_matches``.
    """

    def __init__(self, n: int, m: int, refuses: Refuses | None = None) -> None:
        self.x, self.y, self.refuses = bytearray(n), bytearray(m), refuses

    def free(self, xs: Int64[ndarray, " n"], ys: Int64[ndarray, " n"]) -> list[int]:
        """Places of the pairs of which neither row was taken before; they take them now, unless they are refused."""
        taken = np.frombuffer(self.x, np.uint8)[xs] | np.frombuffer(self.y, np.uint8)[ys]
        places = np.flatnonzero(taken == 0)
        marks = np.zeros(len(places), bool)
        if self.refuses is not None and len(places):
            marks = self.refuses(xs[places], ys[places])
        kept = []
        for place, x, y, refused in zip(*(c.tolist() for c in (places, xs[places], ys[places], marks)), strict=True):
            if self.x[x] or self.y[y]:
                continue
            kept.append(place)
            if not refused:
                self.x[x] = self.y[y] = 1
        return kept


def _best(of_x: Neighbors, of_y: Neighbors, margin: Margin) -> tuple[Float64[ndarray, " n"], Int64[ndarray, " n"]]:
    means = of_x.similarities.mean(dim=1), of_y.similarities.mean(dim=1)
    scores = score_neighbours(of_x.similarities, of_x.indices, *means, margin=margin)
    best = best_neighbour(scores, of_x.indices)
    return scores.amax(dim=1).double().numpy(), best.numpy()
