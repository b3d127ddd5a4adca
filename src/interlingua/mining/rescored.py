"""Search among vectors in bytes or bits, and exactly among the best that it finds.

Vectors in bits take a 32nd of the memory of float32, but their similarities are rough. So a search has two stages. The
first one compares each query with what all codes stand for (signs, or the lower ends of int8's steps) and keeps more
candidates than are wanted. The second one reads the full vectors of these candidates alone, which may stay on disk, and
ranks them by their exact inner products. Queries stay in float32 in both stages: rounding them too would lose more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float32, Int64
from numpy import ndarray
from numpy.typing import NDArray

from interlingua.encoder.vector_format import Int8Ranges, Precision, dequantize_vectors, quantize_vectors
from interlingua.errors import DataError
from interlingua.mining.knn import BLOCK, Neighbours, nearest_neighbours, neighbours_of
from interlingua.mining.lists import Lists
from interlingua.mining.scan import exact


class CodedVectors:
    """A table of vectors in bytes or bits that reads as what they stand for, some rows at a time.

    Args:
        codes: int8 of the vectors' width, or bits, in memory or mapped; see ``encoder/vector_format.py``.
        width: elements of a vector.
        ranges: for int8.

    Raises:
        DataError: the codes are not of vectors of this width.
        ConfigError: int8 has no ranges.
    """

    def __init__(self, codes: NDArray[np.integer], width: int, ranges: Int8Ranges | None = None) -> None:
        if codes.ndim != 2:
            raise DataError(f"expected a table of codes, got shape {codes.shape}; give a row per vector")
        dequantize_vectors(codes[:0], width, ranges)  # refuses what can't be read
        self.codes = codes
        self.ranges = ranges
        self.shape = (len(codes), width)
        self.ndim = 2

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice) -> Float32[ndarray, "n d"]:
        """The vectors that some of the codes stand for."""
        return dequantize_vectors(np.asarray(self.codes[rows]), self.shape[1], self.ranges)

    @classmethod
    def of(cls, vectors: NDArray[np.floating], precision: Precision) -> CodedVectors:
        """The codes of vectors, which are read some at a time.

        Args:
            vectors: (n, d), in memory or mapped.
            precision: int8, with the ranges of these vectors, binary or ubinary.
        """
        blocks = [slice(start, start + BLOCK) for start in range(0, len(vectors), BLOCK)]
        ranges: Int8Ranges | None = None
        if precision == "int8":
            for block in blocks:
                found = Int8Ranges.of(np.asarray(vectors[block], np.float32))
                ranges = found if ranges is None else ranges.joined(found)
        codes = [quantize_vectors(np.asarray(vectors[block], np.float32), precision, ranges) for block in blocks]
        return cls(np.concatenate(codes), vectors.shape[1], ranges)


def rescored_topk(
    queries: NDArray[np.floating],
    candidates: CodedVectors | NDArray[np.integer],
    vectors: NDArray[np.floating] | None,
    *,
    k: int,
    rescore: int = 0,
    signs: bool = False,
    ranges: Int8Ranges | None = None,
    device: str | torch.device = "cpu",
) -> Neighbours:
    """The k candidates of largest inner product for every query, searched among codes.

    Args:
        queries: (n, d).
        candidates: codes of m vectors.
        vectors: (m, d), the vectors themselves, in memory or mapped; unread where nothing is rescored.
        k: neighbours per query; m where there are fewer.
        rescore: candidates per query that are ranked by their exact inner products, at least k; 0 = none, and the
            similarities are those of queries with what the codes stand for.
        signs: look among bits with the queries' signs alone, which ranks them by their Hamming distance.
        ranges: of int8 codes.
        device: where the codes are searched.

    Raises:
        DataError: codes or vectors do not go with the queries, or with each other.
    """
    table: Any = candidates
    if not isinstance(candidates, CodedVectors):
        table = CodedVectors(candidates, queries.shape[1], ranges)
    coded_queries = queries
    if signs:
        coded_queries = dequantize_vectors(
            quantize_vectors(np.asarray(queries, np.float32), "ubinary"), queries.shape[1]
        )
    found = nearest_neighbours(coded_queries, table, k=max(k, rescore), device=device)
    if not rescore:
        return found
    if vectors is None or vectors.shape != table.shape:
        shape = None if vectors is None else vectors.shape
        raise DataError(f"rescoring needs the {table.shape} vectors of the codes, got {shape}; give them, or rescore=0")
    return neighbours_of(best_of_found(np.asarray(queries, np.float32), vectors, found.indices.numpy(), k))


def best_of_found(
    queries: Float32[ndarray, "n d"], vectors: NDArray[np.floating], found: Int64[ndarray, "n c"], k: int
) -> Lists:
    """The k of the candidates found that are nearest by their exact inner products; equal ones by index.

    Args:
        queries: one per row of ``found``.
        vectors: of all candidates, in memory or mapped.
        found: rows of ``vectors`` for each query; -1 where there is none.
        k: neighbours per query.
    """
    lists = Lists.empty(len(queries), min(k, len(vectors)))
    at, place = np.nonzero(found >= 0)
    columns = found[at, place]
    lists.add(at, exact(queries, vectors, at, columns), columns)
    return lists
