"""Estimates of the time of a search on this machine, by short trials before it.

The time of a search is nearly linear in three counts: the pairs (a bound is computed for each), the
insertions into lists (each needs an exact similarity and is sorted in), and the vectors that are
prepared. The trials measure the seconds that each takes. The number of insertions is known without
a search, from k and the sizes (``_places``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.retrieval.topk.bounds import Block
from interlingua.retrieval.topk.exact import (
    check_sides,
    exact_topk,
    make_frame,
    make_scanner,
    read_block,
)
from interlingua.retrieval.topk.lists import NeighborLists
from interlingua.runtime.portions import ceil_div
from interlingua.storage.arrays import unit_rows

TRIED_VECTORS = 4096
"""Vectors of a side in the largest trial."""
TRIED_NEIGHBORS = 64
"""Maximum number of neighbors of each vector in a trial."""
FEWEST_TRIED = 256
"""Vectors of the first trial; its time decides how many can be tried."""
_TRIAL_SECONDS = 2.0
"""Maximum seconds of one pass over the tile. If most vectors are equal, as those of a corpus of
a few lines or of a broken model, no pair can be skipped, and a pass takes a hundred times as long
as usual."""


class SearchSpeed(NamedTuple):
    """The estimated time of the search on this machine, in seconds.

    Attributes:
        pair: seconds of a similarity.
        place: seconds of an insertion into a list.
        vector: seconds of the preparation of a vector.
    """

    pair: float
    place: float
    vector: float

    def seconds(self, n: int, m: int, k: int, rows: int) -> float:
        """Estimate the time of finding all neighbors both ways, in seconds."""
        # Blocks of y are made ready anew for each block of x.
        ready = n + m * ceil_div(n, rows)
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
    """Measure the search repeatedly on the vectors of a sample.

    A tile is searched with empty lists, and again with lists as they are half-way through a search:
    the higher the similarity that a neighbor has to reach, the faster pairs are skipped.

    Args:
        x: of length 1, at least one.
        y: vectors of the target.
        k: neighbors; the trial limits k, because a trial with a very large k would take minutes.
        sizes: number of vectors of x and of y in the whole search.
        device: where the products are made.
        clock: returns seconds, for instance of processor time.

    Raises:
        DataError: their widths differ.
    """
    check_sides(x, y, k)
    k = min(k, TRIED_NEIGHBORS)
    rng = np.random.default_rng(0)
    # The run itself reports which vector is not finite.
    known = [np.nan_to_num(side, posinf=0, neginf=0) for side in (x, y)]
    kth_best = _kth_best_of(known, k, sizes)
    # No more than the run itself will search.
    most = min(TRIED_VECTORS, max(FEWEST_TRIED, *sizes))
    tile = min(most, FEWEST_TRIED)
    # Larger tiles give better measurements; the time of a tile grows with the square of its size.
    while True:
        trial = _Trial(known, kth_best, k, tile, rng, math.prod(sizes), device, clock)
        first = trial.pass_seconds(turn=0)
        larger = min(most, 4 * tile)
        if larger == tile or first * (larger / tile) ** 2 > _TRIAL_SECONDS:
            break
        tile = larger
    # Measure both passes in turn, and keep the least of several times, because other processes can
    # only increase a time. The pass with empty lists fills them; its additional time is the cost of
    # the insertions.
    times = [first, math.inf]
    for turn in (1, 0, 1, 0, 1):
        times[turn] = min(times[turn], trial.pass_seconds(turn=turn))
    place = max(0.0, (times[0] - times[1]) / _places(tile, tile, k))
    return SearchSpeed(times[1] / tile**2, place, trial.ready)


class _Trial:
    """A tile of vectors like those of a sample, searched again and again.

    Attributes:
        ready: seconds of the preparation of a vector.
    """

    def __init__(
        self,
        known: Sequence[Float32[ndarray, "n d"]],
        kth_best: Sequence[Float32[ndarray, " n"]],
        k: int,
        tile: int,
        rng: np.random.Generator,
        pairs: int,
        device: str,
        clock: Callable[[], float],
    ) -> None:
        self._k = k
        self._tile = tile
        self._clock = clock
        # Repeat the sample, in random order, until the tile is full.
        drawn = [rng.permutation(np.resize(np.arange(len(side)), tile)) for side in known]
        self._kth_best = [of[at] for of, at in zip(kth_best, drawn, strict=True)]
        sides = [_with_noise(rng, side[at]) for side, at in zip(known, drawn, strict=True)]
        frame = make_frame(sides[0], sides[1], pairs=pairs)
        # The same scanner as in the search itself, which takes the fastest one.
        self._scanner = make_scanner(frame, device=device, pairs=pairs)
        # The first time is slower, and is not measured.
        self._scanner.prepare(Block(sides[0], 0), of_x=True)
        start = clock()
        self._left = self._scanner.prepare(read_block(sides[0], 0, tile), of_x=True)
        self._right = self._scanner.prepare(read_block(sides[1], 0, tile), of_x=False)
        self.ready = (clock() - start) / (2 * tile)

    def pass_seconds(self, *, turn: int) -> float:
        """Measure the seconds of the tile: empty lists in turn 0, half-way lists in turn 1."""
        lists = NeighborLists.empty(self._tile, self._k), NeighborLists.empty(self._tile, self._k)
        if turn:
            for of, bar in zip(lists, self._kth_best, strict=True):
                of.values[:] = bar[:, None]
        start = self._clock()
        self._scanner.scan(self._left, self._right, *lists)
        return self._clock() - start


def _kth_best_of(
    known: Sequence[Float32[ndarray, "n d"]], k: int, sizes: tuple[int, int]
) -> list[Float32[ndarray, " n"]]:
    """Return the values that neighbors of both sides have to reach half-way through a search."""
    # The mean of ln t for t from 0 to n is ln n - 1: half-way, by the logarithm, is n / e.
    half_way = max(TRIED_VECTORS, round(min(sizes) / math.e))
    return [_kth_best(known[side], known[1 - side], k, half_way) for side in range(2)]


def _places(n: int, m: int, k: int) -> float:
    """Estimate how many neighbors enter the lists of n and of m vectors, in a search both ways.

    For vectors in random order, the i-th is among the k best so far with probability k / i; so
    k (1 + ln(m / k)) of m vectors enter a list.
    """
    return sum(a * k * (1 + math.log(max(b / k, 1))) for a, b in ((n, m), (m, n)))


def _kth_best(
    queries: Float32[ndarray, "n d"], candidates: Float32[ndarray, "m d"], k: int, size: int
) -> Float32[ndarray, " n"]:
    """Estimate the similarity of the k-th neighbor of each query among ``size`` candidates.

    The squared distance to it follows a power of the number of candidates, as in a space of some
    dimension. The power is estimated from a quarter of the candidates and all of them.
    """
    m = len(candidates)
    part = len(candidates) // 4
    kth_of_all = exact_topk(queries, candidates, k=k).similarities[:, -1].numpy()
    if part < k or size <= m:
        return kth_of_all
    kth_of_part = exact_topk(queries, candidates[:part], k=k).similarities[:, -1].numpy()
    # Half the squared distance to the k-th neighbor, as vectors have length 1: |x - y|^2 =
    # 2 - 2 x . y.
    distance = np.maximum(1 - kth_of_all, 0)
    distance_in_part = np.maximum(1 - kth_of_part, 0)
    # The vectors are copies of each other.
    if not distance_in_part.any():
        return kth_of_all
    # From a part to all candidates, the distance shrinks by this factor. From all to ``size`` it
    # shrinks by a power of this factor; the exponent is the ratio of both logarithms.
    shrinks = float(distance.mean() / distance_in_part.mean())
    power = math.log(size / m) / math.log(m / part)
    kth_best: Float32[ndarray, " n"] = 1 - distance * np.float32(shrinks**power)
    return kth_best


def _with_noise(
    rng: np.random.Generator, vectors: Float32[ndarray, "n d"]
) -> Float32[ndarray, "n d"]:
    """Add a little noise to vectors, so that copies of one are not equal."""
    return unit_rows(vectors + 1e-3 * rng.standard_normal(vectors.shape).astype(np.float32))
