"""How long the steps of mining take here, by short trials: before a run, and for the time that is left of one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.mining.knn import check_sides, make_frame, make_scanner, nearest_neighbours, read_block
from interlingua.mining.lists import Lists
from interlingua.mining.scan import Block
from interlingua.mining.vectors import unit

TRIED_VECTORS, TRIED_NEIGHBOURS = 4096, 64
CHOICE_SECONDS, PAIR_SECONDS, DOCUMENT_SECONDS = 5e-6, 2e-5, 3e-5
"""Of a candidate that is looked at, of a pair that is checked and written, and of a text compared within documents; on
one core of a server. They are little beside the model."""


class SearchSpeed(NamedTuple):
    """What the search takes here, in seconds.

    Attributes:
        pair: of a similarity.
        place: of a vector that finds its way into a list.
        vector: of making a vector ready.
    """

    pair: float
    place: float
    vector: float

    def seconds(self, n: int, m: int, k: int, rows: int) -> float:
        """Of all neighbours both ways."""
        ready = n + m * -(-n // rows)
        return self.pair * n * m + self.place * _places(n, m, k) + self.vector * ready


def search_speed(
    x: Float32[ndarray, "a d"],
    y: Float32[ndarray, "b d"],
    k: int,
    sizes: tuple[int, int],
    device: str = "cpu",
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> SearchSpeed:
    """Tries the search on the vectors of a sample, over and over.

    A tile is done with empty lists, and again with lists as good as half-way through: a pair is passed over the faster
    the more a neighbour has to reach.

    Args:
        x: of length 1, at least one.
        y: likewise.
        k: neighbours; of ever so many the trial itself would take minutes.
        sizes: vectors of either side that are to be searched.
        device: where the products are made.
        clock: what tells seconds, those of the processor for instance.

    Raises:
        DataError: their widths differ.
    """
    check_sides(x, y, k)
    k, tile, rng = min(k, TRIED_NEIGHBOURS), TRIED_VECTORS, np.random.default_rng(0)
    known = [np.nan_to_num(side, posinf=0, neginf=0) for side in (x, y)]  # the run itself tells which one is broken
    drawn = [rng.permutation(np.resize(np.arange(len(side)), tile)) for side in (x, y)]
    half_way = max(tile, round(min(sizes) / math.e))
    bars = [_bars(known[side], known[1 - side], k, half_way)[drawn[side]] for side in range(2)]
    sides = [_beside(rng, side[at]) for side, at in zip(known, drawn, strict=True)]
    scanner = make_scanner(make_frame(sides[0], sides[1], pairs=math.prod(sizes)), device=device)
    scanner.prepare(Block(sides[0], 0), of_x=True)  # the first time is slower
    start = clock()
    left, right = (scanner.prepare(read_block(side, 0, tile), of_x=side is sides[0]) for side in sides)
    ready = (clock() - start) / (2 * tile)
    times = [math.inf, math.inf]
    for _ in range(3):
        lists = Lists.empty(tile, k), Lists.empty(tile, k)
        for turn in range(2):
            if turn:
                for of, bar in zip(lists, bars, strict=True):
                    of.values[:] = bar[:, None]
            start = clock()
            scanner.scan(left, right, *lists)
            times[turn] = min(times[turn], clock() - start)
    place = max(0.0, (times[0] - times[1]) / _places(tile, tile, k))
    return SearchSpeed(times[1] / tile**2, place, ready)


def _places(n: int, m: int, k: int) -> float:
    """How many vectors find their way into the lists of n and of m others.

    Of vectors in any order, the i-th is among the k best so far with probability k / i; so k (1 + ln(m / k)) of m.
    """
    return sum(a * k * (1 + math.log(max(b / k, 1))) for a, b in ((n, m), (m, n)))


def _bars(
    queries: Float32[ndarray, "n d"], candidates: Float32[ndarray, "m d"], k: int, size: int
) -> Float32[ndarray, " n"]:
    """What the k-th neighbour of each query will reach among so many candidates.

    The squared distance to it goes by a power of their number, as in a space of some dimension; of which is seen where
    a quarter of the candidates become all of them.
    """
    m, part = len(candidates), len(candidates) // 4
    whole = nearest_neighbours(queries, candidates, k=k).similarities[:, -1].numpy()
    if part < k or size <= m:
        return whole
    few = nearest_neighbours(queries, candidates[:part], k=k).similarities[:, -1].numpy()
    far, before = (np.maximum(1 - of, 0) for of in (whole, few))  # half the squared distance, as the length is 1
    if not before.any():  # copies of each other
        return whole
    shrinks = float(far.mean() / before.mean())
    bars: Float32[ndarray, " n"] = 1 - far * np.float32(shrinks ** (math.log(size / m) / math.log(m / part)))
    return bars


def _beside(rng: np.random.Generator, vectors: Float32[ndarray, "n d"]) -> Float32[ndarray, "n d"]:
    """Vectors a little beside others, so that those of one are not equal."""
    return unit(vectors + 1e-3 * rng.standard_normal(vectors.shape).astype(np.float32))
