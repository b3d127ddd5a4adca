"""Vectors of the texts of a side in one .npy file, made a portion at a time.

A killed run resumes where it stopped, and shards of one job write into one file. A portion's
vectors depend only on its texts: if they are computed again, even on another machine of the same
kind, they are the same bytes. A journal of each shard names the portions that are on the disk, each
with a checksum; ``drop_damaged`` compares them at the start of a run, and portions that differ are
embedded again.
"""

from __future__ import annotations

import functools
import io
import itertools
import logging
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Int64
from numpy import ndarray
from numpy.typing import NDArray

from interlingua.encoder.finite_vectors import check_finite, warn_of_zeros
from interlingua.encoder.protocol import Encode
from interlingua.errors import ConfigError, DataError, count_of
from interlingua.mining.texts import NumberedTexts
from interlingua.runtime.progress import SILENT, Progress
from interlingua.runtime.workers import Workers
from interlingua.storage.arrays import map_array, unit_rows
from interlingua.storage.files import PathLike
from interlingua.storage.journal import Journal
from interlingua.storage.temporary import sync_folder

log = logging.getLogger("interlingua")
PORTION = 2048
"""Texts embedded together."""
JOURNALS = "vectors-*of*.journal"
VECTOR_FILES = r"vectors\.npy|vectors-\d+of\d+\.journal"
"""Names of the files of a folder of vectors."""
_REMEDY = "choose another --work folder or remove it"
_PART = 1 << 24
"""Bytes read at once."""


class Portion(NamedTuple):
    """A line of a journal.

    Attributes:
        start: first row.
        width: of a vector.
        crc: CRC-32 of the bytes of its vectors.
    """

    start: int
    width: int
    crc: int


def portion_of(start: int, vectors: Float32[ndarray, "n d"]) -> Portion:
    """Return the line of a journal for vectors that are on the disk."""
    return Portion(start, vectors.shape[1], zlib.crc32(np.ascontiguousarray(vectors, "<f4").data))


def journaled(folder: Path) -> dict[Path, list[Portion]]:
    """Return the finished portions of each journal; truncated or altered lines are ignored."""
    found: dict[Path, list[Portion]] = {}
    for path in sorted(folder.glob(JOURNALS)):
        found[path] = [Portion(*values) for values in Journal(path).read() if _is_portion(values)]
    return found


def _is_portion(values: Any) -> bool:
    """Return whether a value of a journal has the types of a portion.

    The CRC of a value does not show which program wrote it.
    """
    return isinstance(values, list) and [type(value) for value in values] == [int, int, int]


def header_of(rows: int, width: int) -> bytes:
    """Return the header of the file of all vectors."""
    head = io.BytesIO()
    description = {"descr": np.dtype("<f4").str, "fortran_order": False, "shape": (rows, width)}
    np.lib.format.write_array_header_1_0(head, description)
    return head.getvalue()


def rewrite(path: Path, header: bytes) -> None:
    """Replace the header of a file with the right one.

    The vectors behind it are not touched: they have checksums of their own, the header has none.
    """
    with path.open("r+b") as file:
        if file.read(len(header)) != header:
            file.seek(0)
            file.write(header)
            file.flush()
            os.fsync(file.fileno())


def read_crc(path: Path, start: int, rows: int, width: int) -> int | None:
    """Compute the CRC-32 of some vectors of a file, or return None if not all of them exist."""
    left = rows * width * 4
    crc = 0
    try:
        with path.open("rb") as file:
            # The header's length depends on the shape that is written in it.
            file.seek(len(header_of(rows, width)) + start * width * 4)
            while left > 0 and (part := file.read(min(left, _PART))):
                crc = zlib.crc32(part, crc)
                left -= len(part)
    except OSError:
        return None
    # The file was cut off, or there are no such rows.
    if left != 0 or rows <= 0:
        return None
    return crc


def put(file: int, content: bytes, at: int) -> None:
    """Write bytes at a position of a file, all of them."""
    # One call may write less than all: Linux takes 2 GiB at most.
    while content:
        written = os.pwrite(file, content, at)
        content = content[written:]
        at += written


def embed_side(
    side: NumberedTexts,
    encode: Encode,
    folder: Path,
    *,
    identity: Mapping[str, Any] | None = None,
    known: KnownVectors | None = None,
    path: PathLike | None = None,
    shard: tuple[int, int] = (1, 1),
    workers: Workers | None = None,
    label: str = "embedding",
    progress: Progress = SILENT,
) -> int:
    """Write the vectors that are not there yet.

    Args:
        side: the texts.
        encode: gives the vectors of a portion.
        folder: of ``vectors.npy`` and its journals, made if it is missing.
        identity: settings that determine the vectors; they are the head of the journal.
        known: vectors of the first lines of the side, in their order, which are scaled to length 1
            and not computed.
        path: name of the side in errors; default: none.
        shard: which portions, ``(2, 8)`` every eighth from the second on.
        workers: who embeds, a portion a task; this process by default.
        label: of the progress.
        progress: counts the texts of this shard.

    Returns:
        Portions that no process has done so far.

    Raises:
        DataError: a vector is not finite.
        ConfigError: the folder holds vectors of another width, or the journal belongs to vectors
            of another identity.
    """
    number, shards = shard
    folder.mkdir(parents=True, exist_ok=True)
    portions = range(0, len(side), PORTION)
    own = portions[number - 1 :: shards]
    known = known or KnownVectors([])
    done = finished(folder)
    # Texts of each portion; the last one of the side may have fewer.
    texts = {start: min(PORTION, len(side) - start) for start in own}
    count = sum(size for start, size in texts.items() if start in done)
    progress.start(sum(texts.values()), "texts", label, done=count)
    left = [start for start in own if start not in done]
    made = _portions(side, encode, left, known=known, path=path, workers=workers)
    journal = Journal(folder / f"vectors-{number}of{shards}.journal")
    # No mode of ``open`` creates a missing file and keeps the content of an existing one, and other
    # shards may write to it at this moment.
    with open(os.open(folder / "vectors.npy", os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
        journal.resume(identity or {}, remedy=_REMEDY)
        # The names of both files must outlive a power cut too.
        sync_folder(folder)
        for start, vectors in made:
            _write(file.fileno(), vectors, start, len(side))
            # First the vectors, then the line that says they are there.
            os.fdatasync(file.fileno())
            journal.add(portion_of(start, vectors))
            progress.advance(len(vectors))
    return len(set(portions) - finished(folder))


def side_vectors(
    side: NumberedTexts,
    encode: Encode,
    *,
    path: PathLike | None = None,
    workers: Workers | None = None,
    label: str = "embedding",
    progress: Progress = SILENT,
) -> Float32[ndarray, "n d"]:
    """Return the vectors of all texts of a side in memory; see ``embed_side``."""
    progress.start(len(side), "texts", label)
    starts = range(0, len(side), PORTION)
    parts = []
    for _, vectors in _portions(
        side, encode, starts, known=KnownVectors([]), path=path, workers=workers
    ):
        parts.append(vectors)
        progress.advance(len(vectors))
    return np.concatenate(parts)


def _portions(
    side: NumberedTexts,
    encode: Encode,
    starts: Sequence[int],
    *,
    known: KnownVectors,
    path: PathLike | None,
    workers: Workers | None,
) -> Iterator[tuple[int, Float32[ndarray, "n d"]]]:
    """Yield the first text and the vectors of some portions, in their order.

    Raises:
        DataError: a vector is not finite.
    """
    ends = {start: min(start + PORTION, len(side)) for start in starts}
    # A generator: texts of a portion are read when a worker is about to take them.
    tasks = ((encode, _without_vector(side, start, ends[start], known)) for start in starts)
    results = (workers or Workers()).run(encoded, tasks, encodes=True)
    for start, new in zip(starts, results, strict=True):
        yield start, _vectors(side, start, ends[start], new, known, path)


def check_identity(folder: Path, identity: Mapping[str, Any]) -> None:
    """Refuse a folder of other vectors.

    Args:
        folder: see ``embed_side``.
        identity: settings that decide the vectors.

    Raises:
        ConfigError: portions of another identity are finished there.
    """
    for path in sorted(folder.glob(JOURNALS)):
        Journal(path).parts(identity, remedy=_REMEDY)


def finished(folder: Path) -> set[int]:
    """Return the first texts of the portions that are on disk, written by any process."""
    return {portion.start for portions in journaled(folder).values() for portion in portions}


def drop_damaged(folder: Path, rows: int, shard: tuple[int, int] = (1, 1)) -> None:
    """Compare finished vectors with their checksums; remove damaged portions from the journal.

    All vectors are read once: about 1 GB per second, plus the time of the disk.

    Args:
        folder: see ``embed_side``.
        rows: texts of the side.
        shard: with the portions that this run embeds again; ``(1, 1)`` for all.

    Raises:
        DataError: vectors that another shard made are damaged.
    """
    found = journaled(folder)
    portions = [portion for of_journal in found.values() for portion in of_journal]
    if not portions:
        return
    path = folder / "vectors.npy"
    width = portions[0].width
    # The header's contents are known, so that a damaged one costs no vectors.
    if path.is_file():
        rewrite(path, header_of(rows, width))
    number, shards = shard
    damaged = set()
    for portion in portions:
        size = min(PORTION, rows - portion.start)
        if portion.width != width or read_crc(path, portion.start, size, width) != portion.crc:
            damaged.add(portion.start)
    # This run embeds its own portions again and nothing else, see ``embed_side``.
    foreign = [start for start in damaged if start // PORTION % shards != number - 1]
    if foreign:
        raise DataError(
            f"other shards wrote {count_of(len(foreign), 'damaged portions')} of vectors; run"
            " those shards again, or run without --shard",
            path=path,
        )
    if damaged:
        log.warning(
            "%s: %d portions of vectors are damaged or incomplete, and are embedded again",
            path,
            len(damaged),
        )
    for journal, of_journal in found.items():
        if any(portion.start in damaged for portion in of_journal):
            values = Journal(journal).read()
            Journal(journal).write(
                [value for value in values if not _is_portion(value) or value[0] not in damaged]
            )


def load_vectors(folder: Path) -> Float32[ndarray, "n d"]:
    """Map the vectors that ``embed_side`` wrote."""
    vectors: Float32[ndarray, "n d"] = np.load(folder / "vectors.npy", mmap_mode="r")
    return vectors


def count_zeros(vectors: Float32[ndarray, "n d"]) -> int:
    """Count the vectors of length 0, in memory or mapped."""
    parts = (vectors[start : start + PORTION] for start in range(0, len(vectors), PORTION))
    return sum(int(np.count_nonzero(~part.any(axis=1))) for part in parts)


def embed_texts(
    encode: Callable[[Sequence[str]], Float32[ndarray, "n d"]],
    texts: Sequence[str],
    progress: Progress = SILENT,
) -> Float32[ndarray, "n d"]:
    """Compute the vectors of texts in memory, one portion at a time.

    Args:
        encode: computes the vectors of a portion.
        texts: at least one.
        progress: counts the texts.

    Raises:
        DataError: a vector is not finite; the error names its text.
    """
    parts = []
    for start in range(0, len(texts), PORTION):
        portion = texts[start : start + PORTION]
        parts.append(encode(portion))
        check_finite(parts[-1], lambda row, portion=portion: repr(portion[row][:60]))  # type: ignore[misc]
        progress.advance(len(portion))
    return np.concatenate(parts)


def no_model(texts: Sequence[str]) -> Float32[ndarray, "n d"]:
    """Raise an error; this function replaces a model if all vectors are provided."""
    raise DataError(f"no vector found for {texts[0][:60]!r}; add one, or pass a model")


class KnownVectors:
    """The vectors that a user has: the rows of a table, or of several one behind the other.

    Args:
        parts: in memory or mapped, all of one width.
        paths: their files, which errors name.
        last: a text of several lines has the vector of its last one, in place of the first.
    """

    def __init__(
        self,
        parts: Sequence[NDArray[np.floating]],
        paths: Sequence[PathLike] = (),
        *,
        last: bool = False,
    ) -> None:
        self.parts = parts
        self.paths = paths
        self.last = last
        self.ends = np.cumsum([len(part) for part in parts])

    @property
    def name(self) -> str:
        """Name of the vectors in messages: their first file."""
        return os.fspath(self.paths[0]) if self.paths else "the vectors"

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def rows_of(self, side: NumberedTexts, start: int, stop: int) -> Int64[ndarray, " n"]:
        """Return the row of each text; a text whose row is behind the table's end has no vector."""
        return side.first_lines(start, stop, last=self.last)

    def __getitem__(self, rows: NDArray[np.integer]) -> NDArray[np.floating]:
        """Return some rows, by their numbers."""
        found = np.empty((len(rows), self.parts[0].shape[1]), np.result_type(*self.parts))
        # A row is in the first table that ends behind it. This is never an empty table, because an
        # empty table ends where it starts.
        which = np.searchsorted(self.ends, rows, side="right")
        for number in np.unique(which).tolist():
            at = which == number
            part = self.parts[number]
            # The rows of all earlier tables are subtracted to get a row number within a table.
            found[at] = part[rows[at] - (self.ends[number] - len(part))]
        return found

    def scaled(self, rows: NDArray[np.integer]) -> Float32[ndarray, "n d"]:
        """Return some rows scaled to length 1; rows of zeros are unchanged.

        Raises:
            DataError: a row is not finite, or its length overflows float32.
        """
        found = unit_rows(self[rows])
        # A row that is not finite or too long comes back as NaN.
        is_broken = np.isnan(found).any(axis=1)
        if is_broken.any():
            self._refuse(int(rows[np.flatnonzero(is_broken)[0]]))
        return found

    def _refuse(self, row: int) -> None:
        """Raise the error of a row that is not finite or too long, with its number in its file."""
        number = int(np.searchsorted(self.ends, row, side="right"))
        part = self.parts[number]
        row -= int(self.ends[number]) - len(part)
        what = "exceeds the range of float32; scale it to length 1"
        if not np.isfinite(part[row]).all():
            what = "contains NaN or infinity; embed its text again"
        path = None
        if self.paths:
            path = self.paths[number]
        raise DataError(f"row {row} (counted from 0) {what}", path=path)


def check_known(side: NumberedTexts, known: KnownVectors) -> None:
    """Check all known vectors that texts will have in ``embed_side``, before it starts.

    Raises:
        DataError: one is not finite, or its length overflows float32.
    """
    has_warned = False
    for start in range(0, len(side), PORTION):
        rows = known.rows_of(side, start, min(start + PORTION, len(side)))
        # The known vectors are those of the first lines of the side; later lines are embedded.
        rows = rows[rows < len(known)]
        found = known.scaled(rows)
        if not has_warned:
            name = functools.partial(_row_name, rows)
            has_warned = warn_of_zeros(found, name, origin=known.name)


class VectorsOfTexts(KnownVectors):
    """The vectors of the first texts of a side, of length 1, one per text.

    Args:
        vectors: in memory or mapped.
    """

    def __init__(self, vectors: Float32[ndarray, "n d"]) -> None:
        super().__init__([vectors])

    def rows_of(self, side: NumberedTexts, start: int, stop: int) -> Int64[ndarray, " n"]:
        """Return the numbers of the texts, which are their rows."""
        return np.arange(start, stop)

    def scaled(self, rows: NDArray[np.integer]) -> Float32[ndarray, "n d"]:
        """Return rows as they are: scaling them again could change their last digits."""
        return np.asarray(self[rows], np.float32)


def _row_name(rows: Int64[ndarray, " n"], at: int) -> str:
    """Return the name of a known vector for messages."""
    return f"row {rows[at]} (counted from 0)"


def open_vectors(paths: Sequence[PathLike], rows: int, *, last: bool = False) -> KnownVectors:
    """Map the vectors of a file: ``.npy``, or LASER's plain float32 numbers.

    The width of plain numbers follows from the number of rows.

    Args:
        paths: the file, or several, which must be ``.npy``.
        rows: that they must have together, one per line of the text.
        last: see ``KnownVectors``.

    Raises:
        DataError: a file is missing, or they have another number of rows.
    """
    # With several files, the number of rows of each file is known only after it is open.
    rows_of_file = rows if len(paths) == 1 else None
    tables = [_open_table(path, rows_of_file) for path in paths]
    found = sum(map(len, tables))
    shapes = {table.shape[1:] for table in tables}
    if found != rows or len(shapes) != 1:
        shape = " and ".join(str((found, *rest)) for rest in sorted(shapes))
        raise DataError(
            f"expected {count_of(rows, 'rows')} of floating-point numbers, one per line of the"
            f" text, found shape {shape} of {tables[0].dtype}",
            path=paths[0],
        )
    return KnownVectors(tables, paths, last=last)


def _open_table(path: PathLike, rows: int | None) -> NDArray[np.floating]:
    """Open one file; a plain one can't be read without its number of rows."""
    try:
        with open(path, "rb") as file:
            is_npy = file.read(6) == b"\x93NUMPY"
        size = os.path.getsize(path)
        if is_npy:
            vectors: NDArray[Any] = map_array(path)
        elif rows and size and not size % (4 * rows):
            vectors = np.memmap(path, np.float32, "r", shape=(rows, size // (4 * rows)))
        else:
            lines = "(with several files, every file must be .npy)"
            if rows:
                lines = f"for {count_of(rows, 'lines')}"
            raise DataError(
                f"this is not an .npy file, and its {size} bytes are not float32 rows {lines}",
                path=path,
            )
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror or error}); check the path", path=path
        ) from error
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise DataError(
            f"expected rows of floating-point numbers, found shape {vectors.shape} of"
            f" {vectors.dtype}",
            path=path,
        )
    found: NDArray[np.floating] = vectors
    return found


def _without_vector(side: NumberedTexts, start: int, stop: int, known: KnownVectors) -> list[str]:
    """Return the texts of a portion without a known vector."""
    is_new = known.rows_of(side, start, stop) >= len(known)
    if not is_new.any():
        return []
    return list(itertools.compress(side.texts[start:stop], is_new))


def encoded(encode: Encode, texts: Sequence[str]) -> Float32[ndarray, "n d"] | None:
    """Return the vectors of texts, or None if there are no texts; a task of ``Workers``."""
    if not texts:
        return None
    # Values beyond float32 become infinite, and are refused later.
    with np.errstate(over="ignore"):
        return np.asarray(encode(texts), dtype=np.float32)


def _vectors(
    side: NumberedTexts,
    start: int,
    stop: int,
    new: Float32[ndarray, "k d"] | None,
    known: KnownVectors,
    path: PathLike | None,
) -> Float32[ndarray, "n d"]:
    """Return all vectors of a portion, known and new, in its order."""
    rows = known.rows_of(side, start, stop)
    is_known = rows < len(known)
    # Each part is a mask of its texts, and their vectors.
    parts: list[tuple[Bool[ndarray, " n"], Float32[ndarray, "k d"]]] = []
    if is_known.any():
        parts.append((is_known, known.scaled(rows[is_known])))
    if new is not None:
        parts.append((~is_known, new))
    widths = {part.shape[1] for _, part in parts}
    if len(widths) > 1:
        raise ConfigError(
            f"the vectors have the widths {sorted(widths)}, expected one width; use the model"
            " that made the files of vectors"
        )
    vectors = np.empty((stop - start, widths.pop()), np.float32)
    for at, part in parts:
        vectors[at] = part
    check_finite(
        vectors,
        lambda row: f"line {side.origins(start + row)[0]!r}, {side.texts[start + row][:60]!r}",
        error=functools.partial(DataError, path=path),
    )
    return vectors


def _write(file: int, vectors: Float32[ndarray, "n d"], start: int, rows: int) -> None:
    """Write vectors at their position of a .npy file of all rows."""
    width = vectors.shape[1]
    header = header_of(rows, width)
    # A new file is empty, or holds less than a header.
    found = os.pread(file, len(header), 0)
    if len(found) == len(header) and found != header:
        raise ConfigError(
            "vectors of another shape are in the folder; choose another --work folder or remove it"
        )
    os.pwrite(file, header, 0)
    # The full length from the first portion on: portions that are not written yet are zeros.
    size = len(header) + rows * width * 4
    if os.fstat(file).st_size != size:
        os.ftruncate(file, size)
    put(file, vectors.tobytes(), len(header) + start * width * 4)
