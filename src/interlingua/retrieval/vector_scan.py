"""Exact search over the vectors of an index, mapped from a file next to LanceDB's table.

LanceDB's exact scan decodes the vector column again for every question. Here the vectors are one
plain array on the disk, and a question costs one product of a matrix with a vector. The array is
mapped, so its pages are shared by all processes and released when memory is short.

``DIR/scan`` holds ``vectors.npy``, ``rows.npy`` (the table's row ids), ``ranks.npy`` (the place of
each id among all ids) and ``record.json``. The record names the version of the table that was read,
and the CRC-32 of each array. The scan is used only for this version: after a change of the table,
LanceDB itself searches the table, until the next ``finish`` writes the folder again.

Vectors are ordered by language, then by id, so a search in some languages reads only their part.

**Exactness.** The product in float32 is within ``product_error`` of the true cosine, whatever the
order of its sums. If the product of a vector is within twice that error of the k-th best product,
or above it, the cosine is computed again in float64, as ``exact_topk`` does it. Of equal cosines,
the one with the smaller id comes first.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int64, UInt64
from numpy import ndarray

from interlingua.storage.arrays import map_array
from interlingua.storage.files import PathLike, atomic_directory
from interlingua.storage.formats import VECTOR_SCAN
from interlingua.storage.record import RecordError, read_record, write_record

SCAN_FOLDER = "scan"
SCAN_RECORD = "record.json"
ARRAYS = ("vectors", "rows", "ranks")
READ_BYTES = 2**23
"""Bytes of a file read at once, while its checksum is computed."""


class ScanHits(NamedTuple):
    """The results of a scan, best first.

    Attributes:
        positions: of the vectors in the scan.
        rows: row ids of LanceDB's table.
        scores: cosines.
    """

    positions: Int64[ndarray, " k"]
    rows: UInt64[ndarray, " k"]
    scores: Float32[ndarray, " k"]


class VectorScan:
    """The mapped vectors of one version of a table.

    Args:
        vectors: of all passages, ordered by language, then by id.
        rows: row ids of the table.
        ranks: places of the passages' ids among all ids in order.
        languages: first position of each language, and the position after its last one.
        longest: length of the longest vector.
    """

    def __init__(
        self,
        vectors: Float32[ndarray, "n d"],
        rows: UInt64[ndarray, " n"],
        ranks: Int64[ndarray, " n"],
        *,
        languages: dict[str, tuple[int, int]],
        longest: float,
    ) -> None:
        self.vectors = vectors
        self.rows = rows
        self.ranks = ranks
        self.languages = languages
        self.longest = longest

    def nearest(
        self, question: Float32[ndarray, " d"], top: int, languages: Sequence[str] = ()
    ) -> ScanHits:
        """Return the vectors of largest cosine.

        Args:
            question: of length 1.
            top: maximum number of hits.
            languages: codes to search in; () = all.
        """
        # Imported here, because it imports torch: errors about the path and the options of an index
        # are reported before that.
        from interlingua.retrieval.topk.bounds import dot_float64, product_error

        question = np.ascontiguousarray(question, dtype=np.float32)
        positions, products = self._products(question, languages)
        if len(products) > top:
            length = float(np.linalg.norm(question))
            error = product_error(length, self.longest, len(question))
            kth_best = np.partition(products, len(products) - top)[len(products) - top]
            # The k-th best true cosine is at least kth_best - error, so a vector that reaches it
            # has a product of at least kth_best - 2 * error.
            near = np.flatnonzero(products >= kth_best - 2 * error)
            positions = near if positions is None else positions[near]
        elif positions is None:
            positions = np.arange(len(products))
        first = np.zeros(len(positions), dtype=np.int64)
        scores = dot_float64(question[None], self.vectors, first, positions)
        best = np.lexsort((self.ranks[positions], -scores))[:top]
        found = positions[best]
        return ScanHits(found, self.rows[found], scores[best])

    def _products(
        self, question: Float32[ndarray, " d"], languages: Sequence[str]
    ) -> tuple[Int64[ndarray, " m"] | None, Float32[ndarray, " m"]]:
        """Return positions and products in float32; positions are None if all are searched."""
        if not languages:
            return None, _inner_products(self.vectors, question)
        spans = [
            self.languages[code] for code in dict.fromkeys(languages) if code in self.languages
        ]
        positions = [np.arange(start, stop) for start, stop in spans]
        products = [_inner_products(self.vectors[start:stop], question) for start, stop in spans]
        # Start with an empty array: it is possible that the index has none of the languages.
        return (
            np.concatenate([np.arange(0), *positions]),
            np.concatenate([np.zeros(0, np.float32), *products]),
        )


def _inner_products(
    vectors: Float32[ndarray, "m d"], question: Float32[ndarray, " d"]
) -> Float32[ndarray, " m"]:
    # Not ``vectors @ question``: BLAS starts threads that continue to spin after the product, and
    # the spinning takes more processor time than the product. BLAS is not faster either, because
    # memory is the limit.
    return np.asarray(np.einsum("md,d->m", vectors, question))


def scan_version(folder: PathLike) -> int | None:
    """Return the version of the table that an index's scan belongs to; None if there is no scan."""
    try:
        version = read_record(Path(folder) / SCAN_FOLDER / SCAN_RECORD, VECTOR_SCAN).get("version")
    except RecordError:
        return None
    return version if isinstance(version, int) else None


def open_scan(folder: PathLike, version: int) -> VectorScan | None:
    """Map the scan of an index.

    Args:
        folder: of the index.
        version: of the table.

    Returns:
        None if there is no scan of this version.

    Raises:
        RecordError: the scan is damaged.
    """
    place = Path(folder) / SCAN_FOLDER
    # The folder may be replaced while it is read: then its checksums or versions differ.
    try:
        record = read_record(place / SCAN_RECORD, VECTOR_SCAN)
    except RecordError as error:
        if error.is_missing:
            return None
        raise
    if record.get("version") != version:
        return None
    arrays = []
    for name in ARRAYS:
        path = place / f"{name}.npy"
        if _crc32(path) != record["crc32"][name]:
            fault = "damaged: the checksum is wrong"
            raise RecordError(fault, VECTOR_SCAN.remedy, path=path)
        # A plain view: numpy's memmap class costs time in each operation.
        arrays.append(np.asarray(map_array(path)))
    spans = {code: (start, stop) for code, start, stop in record["languages"]}
    return VectorScan(*arrays, languages=spans, longest=record["longest"])


def write_scan(folder: PathLike, table: Any, width: int) -> None:
    """Write the vectors of a table for ``open_scan``, and replace those of another version.

    Memory: some hundred bytes for each passage, and one batch of vectors.

    Args:
        folder: of the index.
        table: LanceDB's, with columns ``id``, ``language`` and ``vector``.
        width: of the vectors.

    Raises:
        DataError: the disk is full.
    """
    version = table.version
    rows, ranks, languages = _order(table)
    place = Path(folder) / SCAN_FOLDER
    with atomic_directory(place, overwrite=True) as temporary:
        vectors = np.lib.format.open_memmap(
            temporary / "vectors.npy", mode="w+", dtype=np.float32, shape=(len(rows), width)
        )
        longest = _fill(vectors, table, rows)
        vectors.flush()
        np.save(temporary / "rows.npy", rows)
        np.save(temporary / "ranks.npy", ranks)
        content = {
            "version": version,
            "languages": languages,
            "longest": longest,
            "crc32": {name: _crc32(temporary / f"{name}.npy") for name in ARRAYS},
        }
        write_record(temporary / SCAN_RECORD, VECTOR_SCAN, content)


def _order(
    table: Any,
) -> tuple[UInt64[ndarray, " n"], Int64[ndarray, " n"], list[tuple[str, int, int]]]:
    """Return row ids and ranks by language and id, and the span of each language."""
    found: list[tuple[str, str, int]] = []
    for batch in table.search().with_row_id(True).select(["id", "language"]).to_batches():
        columns = (batch.column(name).to_pylist() for name in ("language", "id", "_rowid"))
        found += zip(*columns, strict=True)
    found.sort()
    rows = np.array([row for _, _, row in found], dtype=np.uint64)
    by_id = sorted(range(len(found)), key=lambda position: found[position][1])
    ranks = np.empty(len(found), dtype=np.int64)
    ranks[by_id] = np.arange(len(found))
    starts = [
        position
        for position, (language, _, _) in enumerate(found)
        if not position or language != found[position - 1][0]
    ]
    stops = [*starts[1:], len(found)]
    spans = [(found[start][0], start, stop) for start, stop in zip(starts, stops, strict=False)]
    return rows, ranks, spans


def _fill(vectors: Float32[ndarray, "n d"], table: Any, rows: UInt64[ndarray, " n"]) -> float:
    """Read the vectors of a table into their places, and return the largest of their lengths."""
    place_of = np.argsort(rows)
    ordered = rows[place_of]
    longest = 0.0
    for batch in table.search().with_row_id(True).select(["vector"]).to_batches():
        part = np.asarray(batch.column("vector").flatten()).reshape(-1, vectors.shape[1])
        places = place_of[np.searchsorted(ordered, np.asarray(batch.column("_rowid")))]
        vectors[places] = part
        longest = max(longest, float(np.linalg.norm(part, axis=1).max(initial=0.0)))
    return longest


def _crc32(path: Path) -> int:
    """Return the CRC-32 of a file; 0 if it can't be read."""
    found = 0
    try:
        with open(path, "rb") as file:
            while block := file.read(READ_BYTES):
                found = zlib.crc32(block, found)
    except OSError:
        return 0
    return found
