"""From nearest neighbours on disk to scored pairs on disk, best first: margins, the four retrievals, hubs.

What is as long as the corpora lies in mapped files; memory holds a block of either side, and a byte per text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32, Int32, Int64
from numpy import ndarray
from numpy.typing import NDArray

from interlingua.functional.margin import Margin, best_neighbour, score_neighbours
from interlingua.mining.mine import Refuses, Retrieval, Taken
from interlingua.mining.strings import mapped_zeros
from interlingua.search.topk.exact import Neighbors

CANDIDATE = np.dtype([("score", "<f8"), ("cosine", "<f4"), ("x", "<i8"), ("y", "<i8")])
FOUND = np.dtype([*CANDIDATE.descr, ("hub_x", "<i4"), ("hub_y", "<i4")])
"""A pair: its score, the cosine, both texts' numbers, and how many texts of the other side have each for nearest."""
BYTES_TO_SORT = 40
"""Memory that a pair takes while a list is put in order."""
CHUNK = 65_536
Blocks = Callable[[str], Iterator[tuple[int, Neighbors]]]
"""Neighbors of side ``x`` or ``y``, a block at a time, with the number of its first text."""


class Scored:
    """The best pair of every text of both sides, in mapped files; see ``best_both_ways`` for what they hold.

    Args:
        folder: for the files.
        blocks: the neighbours.
        n: texts of x.
        m: texts of y.
        margin: which score.

    Attributes:
        pairs: ``CANDIDATE`` records, one of each x and behind them one of each y.
        hubs: of both sides, how many texts of the other one have each text for their nearest.
        looked_at: pairs that ``retrieved`` has gone through.
    """

    def __init__(self, folder: Path, blocks: Blocks, n: int, m: int, *, margin: Margin) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        sizes = {"x": n, "y": m}
        means: dict[str, Float32[ndarray, " n"]] = {}
        self.n, self.m, self.hubs, self.looked_at = n, m, dict[str, Int32[ndarray, " n"]](), 0
        for side, size in sizes.items():
            means[side] = mapped_zeros(folder / f"means-{side}.f32", np.dtype(np.float32), size)
            self.hubs[side] = mapped_zeros(folder / f"hubs-{side}.i32", np.dtype(np.int32), size)
        for side, other in (("x", "y"), ("y", "x")):
            for start, (similarities, indices) in blocks(side):
                means[side][start : start + len(similarities)] = similarities.mean(dim=1).numpy()
                nearest, times = np.unique(indices[:, 0].numpy(), return_counts=True)
                self.hubs[other][nearest] += times.astype(np.int32)
        self.pairs = mapped_zeros(folder / "pairs.bin", CANDIDATE, n + m)
        for side, other, offset in (("x", "y", 0), ("y", "x", n)):
            all_means = torch.from_numpy(means[other])
            for start, (similarities, indices) in blocks(side):
                stop = start + len(similarities)
                own = torch.from_numpy(np.array(means[side][start:stop]))
                scores = score_neighbours(similarities, indices, own, all_means, margin=margin)
                scores = torch.nan_to_num(scores)  # vectors of zeros have ratios of nothing to nothing
                best = best_neighbour(scores, indices)
                place = torch.argmax(scores, dim=1, keepdim=True)
                part = self.pairs[offset + start : offset + stop]
                part["score"] = scores.amax(dim=1).double().numpy()
                part["cosine"] = similarities.gather(1, place)[:, 0].numpy()
                part[side], part[other] = np.arange(start, stop), best.numpy()

    def retrieved_count(self, retrieval: Retrieval) -> int:
        """Pairs that a retrieval goes through."""
        return {"max": self.n + self.m, "backward": self.m}.get(retrieval, self.n)

    def retrieved(
        self,
        retrieval: Retrieval,
        *,
        memory: int = 2**30,
        ordered: bool = True,
        refuses: Refuses | None = None,
    ) -> Iterator[NDArray[np.void]]:
        """The pairs of a retrieval, as ``FOUND`` records in chunks, by descending score; see ``retrieve``.

        Args:
            retrieval: forward, backward, intersection or max.
            memory: bytes that putting them in order may take.
            ordered: whether by score, or else by the number of the text that was searched for; ``max`` is by score.
            refuses: see ``greedy_matches``; with ``max``.
        """
        first = self.n if retrieval == "backward" else 0
        stop = first + self.retrieved_count(retrieval)
        self.looked_at = 0
        taken = Taken(self.n, self.m, refuses)
        by_score = descending(self.pairs["score"][first:stop], memory)
        parts = by_score if ordered or retrieval == "max" else iter([np.arange(stop - first)])
        for part in parts:
            for start in range(0, len(part), CHUNK):
                places = part[start : start + CHUNK] + first
                pairs = self.pairs[places]
                self.looked_at += len(pairs)
                if retrieval == "intersection":
                    pairs = pairs[self.pairs["x"][self.n + pairs["y"]] == pairs["x"]]
                elif retrieval == "max":
                    pairs = pairs[(places < self.n) | (self.pairs["y"][pairs["x"]] != pairs["y"])]  # as ``retrieve``
                    pairs = pairs[taken.free(pairs["x"], pairs["y"])]
                found = np.empty(len(pairs), FOUND)
                for name in CANDIDATE.names or ():
                    found[name] = pairs[name]
                found["hub_x"], found["hub_y"] = self.hubs["x"][pairs["x"]], self.hubs["y"][pairs["y"]]
                yield found


def descending(scores: NDArray[np.floating], memory: int) -> Iterator[Int64[ndarray, " p"]]:
    """Places of mapped scores, the highest first, of equal ones the earlier; in parts that fit into memory.

    Args:
        scores: finite.
        memory: bytes.
    """
    parts = -(-len(scores) * BYTES_TO_SORT // memory)
    edges = [-np.inf]
    if parts > 1:
        sample = np.sort(scores[:: max(1, len(scores) // (64 * parts))])
        edges += sorted(set(sample[:: -(-len(sample) // parts)].tolist()[1:]))
    for low, high in zip(edges[::-1], [np.inf, *edges[:0:-1]], strict=True):
        found = []
        for start in range(0, len(scores), CHUNK):
            chunk = scores[start : start + CHUNK]
            found.append(start + np.flatnonzero((chunk > low) & (chunk <= high)))
        if found:
            places = np.concatenate(found)
            yield places[np.argsort(-scores[places], kind="stable")]
