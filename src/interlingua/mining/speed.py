"""How long the steps of mining take here, by short trials: before a run, and for the time that is left of one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.mining.knn import check_sides, make_frame, make_scanner, read_block
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
        """Of all neighbours both ways.

        Of vectors in any order, the i-th is among the k best so far with probability k / i; so k (1 + ln(m / k)) of m
        find their way into a list.
        """
        places = sum(a * k * (1 + math.log(max(b / k, 1))) for a, b in ((n, m), (m, n)))
        ready = n + m * -(-n // rows)
        return self.pair * n * m + self.place * places + self.vector * ready


def search_speed(
    x: Float32[ndarray, "a d"],
    y: Float32[ndarray, "b d"],
    k: int,
    sizes: tuple[int, int],
    device: str = "cpu",
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> SearchSpeed:
    """Tries the search on vectors drawn from between those of a sample.

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
    k, tile = min(k, TRIED_NEIGHBOURS), TRIED_VECTORS
    rng = np.random.default_rng(0)
    sides = [_between(rng, side, tile) for side in (x, y)]
    scanner = make_scanner(make_frame(sides[0], sides[1], pairs=math.prod(sizes)), device=device)
    scanner.prepare(Block(sides[0], 0), of_x=True)  # the first time is slower
    start = clock()
    left, right = (scanner.prepare(read_block(side, 0, tile), of_x=side is sides[0]) for side in sides)
    ready = (clock() - start) / (2 * tile)
    times = [math.inf, math.inf]
    for _ in range(3):
        lists = Lists.empty(tile, k), Lists.empty(tile, k)
        for turn, size in enumerate((tile, max(tile, round(min(sizes) / math.e)))):
            if turn:
                for of in lists:
                    of.values[:] = _bars(of, size)[:, None]
            start = clock()
            scanner.scan(left, right, *lists)
            times[turn] = min(times[turn], clock() - start)
    place = max(0.0, (times[0] - times[1]) / (2 * tile * k * (1 + math.log(tile / k))))
    return SearchSpeed(times[1] / tile**2, place, ready)


def _bars(lists: Lists, size: int) -> Float32[ndarray, " n"]:
    """What the k-th neighbour will reach among so many vectors.

    The nearest of n vectors is as near as the k-th of k n; on to more it goes in equal steps for each doubling.
    """
    n, k = lists.values.shape
    step = float((lists.values[:, 0] - lists.values[:, -1]).mean()) / math.log2(k) if k > 1 else 0.0
    bars: Float32[ndarray, " n"] = lists.bars + np.float32(step * math.log2(size / n))
    return bars


def _between(rng: np.random.Generator, vectors: Float32[ndarray, "n d"], count: int) -> Float32[ndarray, "count d"]:
    """Vectors half-way between two of a sample."""
    known = np.nan_to_num(vectors)  # the run itself tells which one is broken
    a, b = (known[rng.integers(len(known), size=count)] for _ in range(2))
    return unit(a + b + 1e-3 * rng.standard_normal(a.shape).astype(np.float32))
