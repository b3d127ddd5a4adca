"""From nearest neighbors to scored pairs, best first; Artetxe & Schwenk (2019), section 3.

The candidates of a text are its k nearest on the other side. Each of them has a margin score, and
the best one is kept: one pair for every text of x (forward) and one for every text of y (backward).
A retrieval then chooses among these: one direction as it is, the pairs that both agree on, or the
pairs of both by descending score, each text once (``max``).

Neighbors come in blocks, from memory or from disk. Arrays with one entry per text are in memory, or
in mapped files of a folder. With mapped files, memory holds a block of either side, and a byte per
text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64, Int32, Int64
from numpy import ndarray
from numpy.typing import NDArray

from interlingua.functional.margin import MarginKind, best_neighbor, score_neighbors
from interlingua.mining.defaults import Retrieval
from interlingua.mining.texts import zeros
from interlingua.retrieval.topk.exact import Neighbors, mutual_topk
from interlingua.runtime.portions import ceil_div

Refuses = Callable[[Int64[ndarray, " n"], Int64[ndarray, " n"]], Bool[ndarray, " n"]]
"""A test that takes the rows of pairs in x and in y, and marks the pairs that are not translations,
whatever their score."""
CANDIDATE = np.dtype([("score", "<f8"), ("cosine", "<f4"), ("x", "<i8"), ("y", "<i8")])
FOUND = np.dtype([*CANDIDATE.descr, ("hub_x", "<i4"), ("hub_y", "<i4")])
"""A pair: its score, its cosine, the numbers of both texts, and for each text how many texts of the
other side have it as their nearest."""
BYTES_TO_SORT = 40
"""Bytes of memory per pair for sorting a list."""
_CHUNK = 65_536
"""Pairs worked on at once."""
NeighborBlocks = Callable[[Any], Iterator[tuple[int, Neighbors]]]
"""Neighbors of side ``x`` or ``y``, a block at a time, with the number of its first text."""
_OTHER = {"x": "y", "y": "x"}


class Candidates(NamedTuple):
    """Pairs of rows of x and of y with their scores."""

    scores: Float64[ndarray, " n"]
    x: Int64[ndarray, " n"]
    y: Int64[ndarray, " n"]

    def take(self, kept: NDArray[np.integer] | NDArray[np.bool_]) -> Candidates:
        """Return some of the candidates, by row numbers or a mask."""
        return Candidates(self.scores[kept], self.x[kept], self.y[kept])

    @classmethod
    def of_records(cls, pairs: NDArray[np.void]) -> Candidates:
        """Return ``CANDIDATE`` or ``FOUND`` records as plain arrays."""
        return cls(np.array(pairs["score"]), np.array(pairs["x"]), np.array(pairs["y"]))


def best_both_ways(
    x: NDArray[np.floating], y: NDArray[np.floating], *, k: int = 4, margin: MarginKind = "ratio"
) -> tuple[Candidates, Candidates]:
    """Return the best-scored of the k nearest neighbors for every x, and for every y.

    Args:
        x: (n, d), rows of length 1, in memory or mapped.
        y: (m, d), vectors of the target.
        k: number of neighbors that are scored and that the margin averages over; fewer if a side
            is smaller.
        margin: which score.

    Returns:
        A pair per row of x in its order, and one per row of y. Of equal scores the nearer neighbor
        is chosen.

    Raises:
        DataError: a side is empty, widths differ, or a vector is not finite.
    """
    found = CandidatePairs.of_neighbors(*mutual_topk(x, y, k=k), margin=margin)
    forward = Candidates.of_records(found.pairs[: found.n])
    backward = Candidates.of_records(found.pairs[found.n :])
    return forward, backward


def retrieve(
    forward: Candidates,
    backward: Candidates,
    retrieval: Retrieval = "max",
    *,
    refuses: Refuses | None = None,
) -> Candidates:
    """Join both directions, Artetxe & Schwenk (2019), section 3.2.

    The result is that of LASER's ``mine_bitexts.py``.

    Args:
        forward: the best y of every x, in the order of x.
        backward: the best x of every y, in the order of y.
        retrieval: ``forward`` or ``backward`` takes one direction as it is, ``intersection`` the
            pairs that are in both, ``max`` the pairs of both by descending score, each row of
            either side once.
        refuses: used with ``max``: a refused pair is kept, but other pairs may use its rows.
    """
    pairs = np.zeros(len(forward.x) + len(backward.x), CANDIDATE)
    for start, side in ((0, forward), (len(forward.x), backward)):
        part = pairs[start : start + len(side.x)]
        part["score"] = side.scores
        part["x"] = side.x
        part["y"] = side.y
    # Hubs are not requested here, and cosines not known: both stay zero.
    hubs = {"x": np.zeros(len(forward.x), np.int32), "y": np.zeros(len(backward.x), np.int32)}
    found = CandidatePairs(pairs, len(forward.x), hubs).retrieved(
        retrieval, ordered=False, refuses=refuses
    )
    return Candidates.of_records(np.concatenate([np.zeros(0, FOUND), *found]))


class OneToOneMatcher:
    """Matcher that accepts pairs in order if no earlier pair has one of their rows.

    Args:
        n: rows of x.
        m: rows of y.
        refuses: marks pairs that are accepted but take neither row.
    """

    def __init__(self, n: int, m: int, refuses: Refuses | None = None) -> None:
        self.x = bytearray(n)
        self.y = bytearray(m)
        self.refuses = refuses

    def accept(self, xs: Int64[ndarray, " n"], ys: Int64[ndarray, " n"]) -> list[int]:
        """Return the indices of the pairs that are accepted.

        An accepted pair takes its two rows immediately, unless it is refused.
        """
        # Earlier chunks have taken a row of most pairs; numpy removes all these pairs at once. The
        # remaining pairs are examined one by one, because a pair may take the row of a later pair
        # of the same chunk.
        is_taken = np.frombuffer(self.x, np.uint8)[xs] | np.frombuffer(self.y, np.uint8)[ys]
        places = np.flatnonzero(is_taken == 0)
        marks = np.zeros(len(places), bool)
        if self.refuses is not None and len(places):
            marks = self.refuses(xs[places], ys[places])
        columns = (places, xs[places], ys[places], marks)
        accepted = []
        for place, x, y, is_refused in zip(*(column.tolist() for column in columns), strict=True):
            if self.x[x] or self.y[y]:
                continue
            accepted.append(place)
            if not is_refused:
                self.x[x] = 1
                self.y[y] = 1
        return accepted


class CandidatePairs:
    """The best pair of every text of both sides, and the selection that a retrieval makes.

    Args:
        pairs: ``CANDIDATE`` records, one of each x and behind them one of each y.
        n: texts of x.
        hubs: for each text of both sides, how many texts of the other side have it as nearest.

    Attributes:
        looked_at: pairs that ``retrieved`` has gone through.
    """

    def __init__(
        self, pairs: NDArray[np.void], n: int, hubs: Mapping[str, Int32[ndarray, " n"]]
    ) -> None:
        self.pairs = pairs
        self.n = n
        self.m = len(pairs) - n
        self.hubs = hubs
        self.looked_at = 0

    @classmethod
    def of_neighbors(
        cls,
        of_x: Neighbors,
        of_y: Neighbors,
        *,
        margin: MarginKind,
        means: Mapping[str, Float32[ndarray, " n"]] | None = None,
    ) -> CandidatePairs:
        """Build candidate pairs from neighbors in memory; see ``of_blocks``."""
        near = {"x": of_x, "y": of_y}
        sizes = {side: len(neighbors.indices) for side, neighbors in near.items()}
        return cls.of_blocks(
            lambda side: iter([(0, near[side])]), sizes, margin=margin, means=means
        )

    @classmethod
    def of_blocks(
        cls,
        blocks: NeighborBlocks,
        sizes: Mapping[str, int],
        *,
        margin: MarginKind,
        folder: Path | None = None,
        means: Mapping[str, Float32[ndarray, " n"]] | None = None,
    ) -> CandidatePairs:
        """Score all candidates.

        Args:
            blocks: the neighbors; read twice.
            sizes: texts of ``x`` and ``y``.
            margin: which score.
            folder: for mapped files; everything is in memory by default.
            means: mean similarity of each text to its neighbors; by default it is computed from
                ``blocks``.
        """

        def zeros_of(name: str, dtype: Any, size: int) -> np.ndarray:
            return zeros(dtype, size, folder / name if folder is not None else None)

        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        # A score needs the means of both texts, so a first pass computes the means of all texts.
        own_means = {
            side: zeros_of(f"means-{side}.f32", np.float32, size) for side, size in sizes.items()
        }
        hubs = {side: zeros_of(f"hubs-{side}.i32", np.int32, size) for side, size in sizes.items()}
        for side in sizes:
            for start, (similarities, indices) in blocks(side):
                part = own_means[side][start : start + len(similarities)]
                part[:] = similarities.mean(dim=1).numpy()
                # Equal indices are counted first: adding in place counts each index only once.
                nearest, times = np.unique(indices[:, 0].numpy(), return_counts=True)
                hubs[_OTHER[side]][nearest] += times.astype(np.int32)
        # The second pass scores. The pairs of all x come first, those of all y behind them.
        pairs = zeros_of("pairs.bin", CANDIDATE, sum(sizes.values()))
        for side, offset in (("x", 0), ("y", sizes["x"])):
            for start, neighbors in blocks(side):
                part = pairs[offset + start : offset + start + len(neighbors.indices)]
                part[side] = np.arange(start, start + len(part))
                _score_block(part, side, neighbors, means or own_means, margin)
        return cls(pairs, sizes["x"], hubs)

    def retrieved_count(self, retrieval: Retrieval) -> int:
        """Return the number of pairs that a retrieval examines."""
        return {"max": self.n + self.m, "backward": self.m}.get(retrieval, self.n)

    def retrieved(
        self,
        retrieval: Retrieval,
        *,
        memory: int = 2**30,
        ordered: bool = True,
        refuses: Refuses | None = None,
    ) -> Iterator[NDArray[np.void]]:
        """Yield the pairs of a retrieval as ``FOUND`` records in chunks, by descending score.

        See ``retrieve``.

        Args:
            retrieval: forward, backward, intersection or max.
            memory: bytes that sorting may take.
            ordered: whether to sort by score; otherwise pairs are in the order of the texts whose
                neighbors were searched. ``max`` always sorts by score.
            refuses: see ``retrieve``.
        """
        first = self.n if retrieval == "backward" else 0
        stop = first + self.retrieved_count(retrieval)
        self.looked_at = 0
        matcher = OneToOneMatcher(self.n, self.m, refuses)
        # ``max`` is greedy: its result depends on the order of the scores.
        parts = iter([np.arange(stop - first)])
        if ordered or retrieval == "max":
            parts = descending(self.pairs["score"][first:stop], memory)
        for part in parts:
            for start in range(0, len(part), _CHUNK):
                places = part[start : start + _CHUNK] + first
                self.looked_at += len(places)
                yield self._with_hubs(self._chosen(places, retrieval, matcher))

    def _chosen(
        self, places: Int64[ndarray, " p"], retrieval: Retrieval, matcher: OneToOneMatcher
    ) -> NDArray[np.void]:
        """Return the pairs that belong to a retrieval."""
        pairs = np.asarray(self.pairs[places])
        if retrieval == "intersection":
            # A forward pair (x, y) stays if the best of y is x: row n + y is the pair of y.
            return np.asarray(pairs[self.pairs["x"][self.n + pairs["y"]] == pairs["x"]])
        if retrieval == "max":
            is_backward = places >= self.n
            # A pair of both directions occurs once, as the forward pair.
            pairs = pairs[~is_backward | (self.pairs["y"][pairs["x"]] != pairs["y"])]
            return np.asarray(pairs[matcher.accept(pairs["x"], pairs["y"])])
        return pairs

    def _with_hubs(self, pairs: NDArray[np.void]) -> NDArray[np.void]:
        """Convert ``CANDIDATE`` records to ``FOUND`` records."""
        found = np.empty(len(pairs), FOUND)
        for name in CANDIDATE.names or ():
            found[name] = pairs[name]
        found["hub_x"] = self.hubs["x"][pairs["x"]]
        found["hub_y"] = self.hubs["y"][pairs["y"]]
        return found


def _score_block(
    part: NDArray[np.void],
    side: str,
    neighbors: Neighbors,
    means: Mapping[str, Float32[ndarray, " n"]],
    margin: MarginKind,
) -> None:
    """Fill the records of a block's texts with the best candidate of each."""
    own = torch.from_numpy(np.array(means[side][part[side]]))
    others = torch.from_numpy(means[_OTHER[side]])
    scores = score_neighbors(*neighbors, own, others, margin=margin)
    # Vectors of zeros have the ratio 0 / 0.
    scores = torch.nan_to_num(scores)
    # Of equal scores the first is taken, the nearer neighbor.
    place = torch.argmax(scores, dim=1, keepdim=True)
    part["score"] = scores.amax(dim=1).double().numpy()
    part["cosine"] = neighbors.similarities.gather(1, place)[:, 0].numpy()
    part[_OTHER[side]] = best_neighbor(scores, neighbors.indices).numpy()


def without_partners(neighbors: Neighbors, partners: Int64[ndarray, " n"]) -> Neighbors:
    """Remove the partner of each text from its neighbors, and repeat the last remaining neighbor.

    Args:
        neighbors: of n texts, the nearest first.
        partners: number of the text to remove for each of them, -1 for none.
    """
    if neighbors.indices.shape[1] < 2:
        return neighbors
    is_partner = neighbors.indices == torch.from_numpy(partners)[:, None]
    # A stable sort moves the partner behind all others and leaves these in their order.
    order = torch.argsort(is_partner.int(), dim=1, stable=True)
    similarities = neighbors.similarities.gather(1, order)
    indices = neighbors.indices.gather(1, order)
    rows = is_partner.any(dim=1)
    similarities[rows, -1] = similarities[rows, -2]
    indices[rows, -1] = indices[rows, -2]
    return Neighbors(similarities, indices)


def descending(scores: NDArray[np.floating], memory: int) -> Iterator[Int64[ndarray, " p"]]:
    """Yield indices of scores in parts that fit into memory, highest first.

    Of equal scores the earlier one comes first.

    Args:
        scores: finite, in memory or mapped.
        memory: bytes.
    """
    parts = ceil_div(len(scores) * BYTES_TO_SORT, memory)
    edges = [-np.inf]
    # The quantiles of a sample divide the scores into ranges of about equal size. If many scores
    # are equal, two quantiles may be equal too, and there are fewer ranges.
    if parts > 1:
        sample = np.sort(scores[:: max(1, len(scores) // (64 * parts))])
        edges += sorted(set(sample[:: ceil_div(len(sample), parts)].tolist()[1:]))
    # The ranges (low, high], from the highest down: equal scores are always in one range.
    for low, high in zip(edges[::-1], [np.inf, *edges[:0:-1]], strict=True):
        found = []
        for start in range(0, len(scores), _CHUNK):
            chunk = scores[start : start + _CHUNK]
            found.append(start + np.flatnonzero((chunk > low) & (chunk <= high)))
        if found:
            places = np.concatenate(found)
            yield places[np.argsort(-scores[places], kind="stable")]
