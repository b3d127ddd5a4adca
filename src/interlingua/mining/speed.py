"""How long the steps of mining take here, by short trials: before a run, and for the time that is left of one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.mining.knn import centre, check_sides, make_scanner, read_block
from interlingua.mining.lists import Lists
from interlingua.mining.scan import Block, Centres
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
    device: str = "cpu",
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> SearchSpeed:
    """Tries the search on vectors drawn from between those of a sample.

    Two tiles of the same x are done, the second when x has its lists already: what differs is the places found.

    Args:
        x: of length 1, at least one.
        y: likewise.
        k: neighbours; of ever so many the trial itself would take minutes.
        device: where the products are made.
        clock: what tells seconds, those of the processor for instance.

    Raises:
        DataError: their widths differ.
    """
    check_sides(x, y, k)
    k = min(k, TRIED_NEIGHBOURS)
    rng = np.random.default_rng(0)
    sides = [_between(rng, side, TRIED_VECTORS * times) for side, times in ((x, 1), (y, 2))]
    scanner = make_scanner(Centres(centre(sides[0]), centre(sides[1])), device=device)
    tile = TRIED_VECTORS
    scanner.prepare(Block(sides[0], 0), of_x=True)  # the first time is slower
    start = clock()
    left = scanner.prepare(read_block(sides[0], 0, tile), of_x=True)
    right = [scanner.prepare(read_block(sides[1], at, tile), of_x=False) for at in (0, tile)]
    ready = (clock() - start) / (3 * tile)
    times = [math.inf, math.inf]
    for _ in range(3):
        of_x = Lists.empty(tile, k)
        for turn in (0, 1):
            of_y = Lists.empty(tile, k)
            start = clock()
            scanner.scan(left, right[turn], of_x, of_y)
            times[turn] = min(times[turn], clock() - start)
    fresh = tile * k * (1 + math.log(tile / k))
    place = max(0.0, (times[0] - times[1]) / (fresh - tile * k * math.log(2)))
    return SearchSpeed(max(times[0] - place * 2 * fresh, 0.1 * times[0]) / tile**2, place, ready)


def _between(rng: np.random.Generator, vectors: Float32[ndarray, "n d"], count: int) -> Float32[ndarray, "count d"]:
    """Vectors half-way between two of a sample."""
    known = np.nan_to_num(vectors)  # the run itself tells which one is broken
    a, b = (known[rng.integers(len(known), size=count)] for _ in range(2))
    return unit(a + b + 1e-3 * rng.standard_normal(a.shape).astype(np.float32))
