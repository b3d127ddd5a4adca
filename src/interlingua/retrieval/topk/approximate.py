"""Approximate nearest neighbors, used only on request; the neighbors found are scored exactly.

``ivf`` and ``hnsw`` are indexes of FAISS, which look at a part of the other side. ``binary`` and
``int8`` look at all of it, but in bits or bytes, so that memory holds 32 or 4 times as many
vectors.

Similarities of codes are rough, so a search among codes has two stages. The first one compares each
query with the vectors that the codes represent (signs, or the lower ends of int8's steps) and keeps
more candidates than are requested. The second one reads the full vectors of only these candidates
and ranks them by their exact inner products; the full vectors may stay on disk. Queries stay in
float32 in both stages: rounding them too would lose more.

``find_approximately`` measures the recall of what it found, by searching some of the vectors
exactly as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float32, Int64
from numpy import ndarray
from numpy.typing import NDArray

from interlingua.encoder.vector_format import (
    Int8Ranges,
    VectorPrecision,
    dequantize_vectors,
    quantize_vectors,
)
from interlingua.errors import ConfigError, DataError, import_extra
from interlingua.retrieval.topk.bounds import dot_float64
from interlingua.retrieval.topk.exact import BLOCK, Neighbors, exact_topk, neighbors_of, read_block
from interlingua.retrieval.topk.lists import NeighborLists
from interlingua.retrieval.topk.tiles import Side, TileLists, TilePlan, tile_lists_in
from interlingua.runtime.portions import ceil_div
from interlingua.runtime.progress import SILENT, Progress

ApproximateKind = Literal["ivf", "hnsw", "binary", "int8"]
EFFORTS: Mapping[ApproximateKind, int] = {"ivf": 32, "hnsw": 64, "binary": 32, "int8": 2}
"""Default efforts."""
_MEASURED = 1000
"""Number of vectors of a side that are also searched exactly."""
_SPARE = 2
"""Multiple of k that is retrieved by rounded vectors, so that the k nearest are among them."""
LEAST_IN_A_CELL = 39
"""Minimum mean number of vectors per cell, as FAISS learns the center of a cell from them."""
LINKS = 32
"""Links of a vector in the graph of HNSW."""


class CodedVectors:
    """A table of vectors in bytes or bits, decoded when read, some rows at a time.

    Args:
        codes: int8 of the vectors' width, or bits, in memory or mapped; see
            ``encoder/vector_format.py``.
        width: elements of a vector.
        ranges: for int8.

    Raises:
        DataError: the codes are not of vectors of this width.
        ConfigError: int8 has no ranges.
    """

    def __init__(
        self, codes: NDArray[np.integer], width: int, ranges: Int8Ranges | None = None
    ) -> None:
        if codes.ndim != 2:
            raise DataError(
                f"expected one row of codes per vector, found an array of shape {codes.shape}"
            )
        # Decoding zero rows raises an error if the codes can't be decoded.
        dequantize_vectors(codes[:0], width, ranges)
        self.codes = codes
        self.ranges = ranges
        self.shape = (len(codes), width)
        self.ndim = 2

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice) -> Float32[ndarray, "n d"]:
        """Return the vectors that some of the codes represent."""
        return dequantize_vectors(np.asarray(self.codes[rows]), self.shape[1], self.ranges)

    @classmethod
    def of(cls, vectors: NDArray[np.floating], precision: VectorPrecision) -> CodedVectors:
        """Encode vectors, which are read in parts.

        Args:
            vectors: (n, d), in memory or mapped.
            precision: int8 (with the ranges of these vectors), binary or ubinary.
        """
        blocks = [slice(start, start + BLOCK) for start in range(0, len(vectors), BLOCK)]
        ranges: Int8Ranges | None = None
        # A first pass over all vectors: the steps of int8 lie between the least and the largest
        # value of each element.
        if precision == "int8":
            for block in blocks:
                found = Int8Ranges.of(np.asarray(vectors[block], np.float32))
                if ranges is not None:
                    found = ranges.joined(found)
                ranges = found
        codes = [
            quantize_vectors(np.asarray(vectors[block], np.float32), precision, ranges)
            for block in blocks
        ]
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
    device: str | torch.device | None = None,
) -> Neighbors:
    """Return the k candidates of largest inner product for every query, searched among codes.

    Args:
        queries: (n, d).
        candidates: codes of m vectors.
        vectors: (m, d), the vectors themselves, in memory or mapped; not read if nothing is
            rescored.
        k: neighbors per query; m if there are fewer.
        rescore: candidates per query that are ranked by their exact inner products, at least k; 0 =
            none, and the similarities are those of queries with the decoded vectors.
        signs: compare only the signs of queries with bits: the ranking is by Hamming distance.
        ranges: of int8 codes.
        device: for a large search, see ``search_device``.

    Raises:
        DataError: codes or vectors do not match the queries, or each other.
    """
    table: Any = candidates
    if not isinstance(candidates, CodedVectors):
        table = CodedVectors(candidates, queries.shape[1], ranges)
    # The inner product of two vectors of signs is the width less twice their Hamming distance.
    coded_queries = queries
    if signs:
        bits = quantize_vectors(np.asarray(queries, np.float32), "ubinary")
        coded_queries = dequantize_vectors(bits, queries.shape[1])
    # The first stage, among codes.
    found = exact_topk(coded_queries, table, k=max(k, rescore), device=device)
    if not rescore:
        return found
    # The second one, by the vectors.
    if vectors is None or vectors.shape != table.shape:
        shape = None
        if vectors is not None:
            shape = vectors.shape
        raise DataError(
            f"rescoring requires the vectors of the codes: expected shape {table.shape}, found"
            f" {shape}; pass the vectors, or rescore=0"
        )
    best = best_of_found(np.asarray(queries, np.float32), vectors, found.indices.numpy(), k)
    return neighbors_of(best)


def best_of_found(
    queries: Float32[ndarray, "n d"],
    vectors: NDArray[np.floating],
    found: Int64[ndarray, "n c"],
    k: int,
) -> NeighborLists:
    """Return the k candidates found that are nearest by their exact inner products.

    Of equal products the lower index comes first.

    Args:
        queries: one per row of ``found``.
        vectors: of all candidates, in memory or mapped.
        found: rows of ``vectors`` for each query; -1 if there is none.
        k: neighbors per query.
    """
    lists = NeighborLists.empty(len(queries), min(k, len(vectors)))
    at, place = np.nonzero(found >= 0)
    columns = found[at, place]
    lists.add(at, dot_float64(queries, vectors, at, columns), columns)
    return lists


@dataclass(frozen=True, slots=True)
class Approximate:
    """Settings of an approximate search.

    Attributes:
        kind: ``ivf`` looks at some cells of the other side, ``hnsw`` walks along a graph,
            ``binary`` and ``int8`` compare with all of it in bits or bytes.
        effort: for ``ivf``, the number of cells looked at, out of 4 sqrt(n); for ``hnsw``, the
            number of vectors kept as candidates during the walk; for ``binary`` and ``int8``, the
            number of candidates that are scored exactly for each of the k neighbors. A larger
            effort finds more neighbors.
    """

    kind: ApproximateKind
    effort: int

    @classmethod
    def parse(cls, text: str) -> Approximate:
        """Parse ``ivf``, ``hnsw``, ``binary``, ``int8`` or, for example, ``ivf:64``.

        Raises:
            ConfigError: it is none of these.
        """
        kind, colon, effort = text.partition(":")
        if kind not in get_args(ApproximateKind) or (
            colon and not (effort.isdecimal() and int(effort))
        ):
            raise ConfigError(
                f"unknown approximate search {text!r}; use one of: {', '.join(EFFORTS)}, with an"
                " effort if needed, such as ivf:64 or binary:32"
            )
        found: Any = kind
        if not colon:
            return cls(found, EFFORTS[found])
        return cls(found, int(effort))

    @property
    def coded(self) -> bool:
        """True if it compares codes, and needs no FAISS."""
        return self.kind in ("binary", "int8")

    def candidates(self, k: int) -> int:
        """Return the number of vectors to retrieve so that the k nearest are among them."""
        if self.coded:
            return k * self.effort
        # The effort of FAISS's indexes has another meaning, and is passed to the index itself.
        return k * _SPARE

    def index_bytes(self, size: int, width: int) -> int:
        """Return the memory of the index of one side, in bytes."""
        if self.kind == "int8":
            return size * width
        if self.kind == "binary":
            return size * ceil_div(width, 8)
        # A vector takes float16, its number, and in HNSW twice LINKS numbers of 4 bytes.
        bytes_of_vector = 2 * width + 8
        if self.kind == "hnsw":
            bytes_of_vector += 8 * LINKS
        return size * bytes_of_vector


def find_approximately(
    x: NDArray[np.float32],
    y: NDArray[np.float32],
    plan: TilePlan,
    folder: Path | None,
    approximate: Approximate,
    *,
    memory: int,
    device: str | None = None,
    progress: Progress = SILENT,
) -> tuple[TileLists, str]:
    """Search neighbors in both directions, and store them in the lists of ``search_tiles``.

    Blocks whose lists are there already are not searched again.

    Args:
        x: (n, d), in memory or mapped.
        y: (m, d), vectors of the target.
        plan: how they are cut.
        folder: of lists and journal, created; None = all lists stay in memory.
        approximate: how to search.
        memory: bytes that the indexes of both sides may take.
        device: see ``search_device``; FAISS itself stays on the CPU.
        progress: shows how far the work is.

    Returns:
        The lists, and the recall of both sides in a sentence.

    Raises:
        ConfigError: the indexes take more memory, or the folder holds another plan.
        MissingExtraError: FAISS is not installed.
    """
    needed = approximate.index_bytes(plan.n + plan.m, plan.width)
    if needed > memory:
        raise ConfigError(
            f"the approximate indexes require {needed / 2**20:,.0f} MiB, but the memory is limited"
            f" to {memory / 2**20:,.0f} MiB; increase --memory, or search exactly"
        )
    journal = tile_lists_in(folder, plan, progress=progress)
    indexes = dict[str, Any]()
    sides: dict[Side, tuple[NDArray[np.float32], NDArray[np.float32], int]] = {
        "x": (x, y, plan.rows),
        "y": (y, x, plan.columns),
    }
    for tile in list(journal.left):
        lists = []
        for name, start, known in zip(sides, tile, journal.read(tile), strict=True):
            own, other, size = sides[name]
            # The first tile of a block searches all of the other side at once; later tiles find the
            # block's lists full. Indexes are made when they are needed.
            if (known.indices < 0).all():
                indexes[name] = indexes.get(name) or _index(other, approximate, device)
                queries = read_block(own, start, size).vectors
                count = approximate.candidates(plan.k)
                known = _search(indexes[name], queries, other, plan.k, count, device)
            lists.append(known)
        journal.write(tile, *lists)
    shares = [
        recall(own, other, plan.k, journal.blocks(name), device)
        for name, (own, other, _) in sides.items()
    ]
    note = (
        f"approximate neighbors ({approximate.kind}:{approximate.effort}): recall@{plan.k}"
        f" {shares[0]:.4f} of source and {shares[1]:.4f} of target texts, measured on {_MEASURED:,}"
        " of each"
    )
    return journal, note


def recall(
    own: NDArray[np.float32],
    other: NDArray[np.float32],
    k: int,
    found: Iterable[tuple[int, Neighbors]],
    device: str | None = None,
) -> float:
    """Measure the share of the k nearest that were found, for some vectors drawn at random.

    Args:
        own: the vectors whose neighbors were searched.
        other: the vectors among which the neighbors were searched.
        k: number of neighbors of each vector.
        found: in blocks, with the number of the first vector of each.
        device: see ``search_device``.
    """
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(len(own), min(_MEASURED, len(own)), replace=False))
    # By similarity and not by index: of several equal neighbors any may be found.
    kth_best = exact_topk(own[rows], other, k=k, device=device).similarities[:, -1:]
    hits = 0
    for start, near in found:
        is_here = (rows >= start) & (rows < start + len(near.indices))
        hits += int((near.similarities[rows[is_here] - start] >= kth_best[is_here]).sum())
    return hits / (len(rows) * min(k, len(other)))


def _search(
    index: Any,
    queries: Float32[ndarray, "n d"],
    other: NDArray[np.float32],
    k: int,
    count: int,
    device: str | None,
) -> NeighborLists:
    """Search the index and rank its results by exact similarities.

    Queries for which it finds fewer than k are searched exactly.
    """
    _, found = index.search(queries, min(count, len(other)))
    lists = best_of_found(queries, other, found, k)
    # FAISS gives -1 where the cells looked at hold too few vectors.
    short = np.flatnonzero(lists.indices[:, -1] < 0)
    if len(short):
        near = exact_topk(queries[short], other, k=k, device=device)
        lists.values[short], lists.indices[short] = near.similarities.numpy(), near.indices.numpy()
    return lists


class CodedIndex:
    """Index of all vectors of a side, stored as bits or bytes.

    Args:
        vectors: in memory or mapped.
        kind: binary or int8.
        device: see ``search_device``.
    """

    def __init__(
        self,
        vectors: NDArray[np.float32],
        kind: Literal["binary", "int8"],
        device: str | None = None,
    ) -> None:
        self.device = device
        precision: VectorPrecision = "int8"
        if kind == "binary":
            precision = "ubinary"
        self.table = CodedVectors.of(vectors, precision)

    def search(
        self, queries: Float32[ndarray, "n d"], count: int
    ) -> tuple[Float32[ndarray, "n c"], Int64[ndarray, "n c"]]:
        """Return similarities with the decoded vectors, and the vectors' numbers.

        The format is that of a FAISS index.
        """
        table: Any = self.table
        found = exact_topk(queries, table, k=count, device=self.device)
        return found.similarities.numpy(), found.indices.numpy()


def _index(vectors: NDArray[np.float32], approximate: Approximate, device: str | None) -> Any:
    """Build an index of vectors as bits or bytes, or rounded to float16."""
    if approximate.kind == "binary" or approximate.kind == "int8":
        return CodedIndex(vectors, approximate.kind, device)
    faiss = import_extra("faiss", package="faiss-cpu", extra="faiss")
    faiss.omp_set_num_threads(torch.get_num_threads())
    size, width = vectors.shape
    rounded = faiss.ScalarQuantizer.QT_fp16
    if approximate.kind == "hnsw":
        # Neither float16 nor the graph has anything to learn, so any vector is sufficient.
        index = faiss.IndexHNSWSQ(width, rounded, LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efSearch = approximate.effort
        trained = vectors[:1]
    else:
        # 4 sqrt(n) cells, fewer where there are few vectors for each.
        cells = max(1, min(int(4 * math.sqrt(size)), size // LEAST_IN_A_CELL))
        middles = faiss.IndexFlatIP(width)
        index = faiss.IndexIVFScalarQuantizer(
            middles, width, cells, rounded, faiss.METRIC_INNER_PRODUCT
        )
        index.nprobe = min(approximate.effort, cells)
        rng = np.random.default_rng(0)
        sample = rng.choice(size, min(size, 2 * LEAST_IN_A_CELL * cells), replace=False)
        trained = vectors[np.sort(sample)]
    index.train(np.ascontiguousarray(trained, np.float32))
    # Block by block, as the vectors may be a memory map larger than memory.
    for start in range(0, size, BLOCK):
        index.add(np.ascontiguousarray(vectors[start : start + BLOCK], np.float32))
    return index
