"""A .npy file of vectors that is written in portions, and the journals that name the finished ones with a checksum."""

from __future__ import annotations

import io
import os
import re
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

JOURNALS = "vectors-*of*.journal"
PART = 1 << 24
"""Bytes read at once."""
_LINE = re.compile(r"(\d{1,18}) (\d{1,9}) ([0-9a-f]{8})")


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

    def __str__(self) -> str:
        return f"{self.start} {self.width} {self.crc:08x}\n"


def portion_line(start: int, vectors: Float32[ndarray, "n d"]) -> str:
    """The line of a journal for vectors that are on the disk."""
    return str(Portion(start, vectors.shape[1], zlib.crc32(np.ascontiguousarray(vectors, "<f4").data)))


def journaled(folder: Path) -> dict[Path, list[Portion]]:
    """The finished portions of each journal; a line that was cut or changed names none."""
    found: dict[Path, list[Portion]] = {}
    for path in sorted(folder.glob(JOURNALS)):
        lines = path.read_text(encoding="ascii", errors="replace").split("\n")[:-1]
        matches = [match for match in map(_LINE.fullmatch, lines) if match]
        found[path] = [Portion(int(match[1]), int(match[2]), int(match[3], 16)) for match in matches]
    return found


def end_line(journal: Path) -> None:
    """Takes away the last line of a journal if it was cut."""
    content = journal.read_bytes()
    if not content.endswith(b"\n"):
        os.truncate(journal, content.rfind(b"\n") + 1)


def header_of(rows: int, width: int) -> bytes:
    """The header of the file of all vectors."""
    head = io.BytesIO()
    description = {"descr": np.dtype("<f4").str, "fortran_order": False, "shape": (rows, width)}
    np.lib.format.write_array_header_1_0(head, description)
    return head.getvalue()


def rewrite(path: Path, header: bytes) -> None:
    """Puts the right header into a file where another is; the vectors are checked for themselves."""
    with path.open("r+b") as file:
        if file.read(len(header)) != header:
            file.seek(0)
            file.write(header)
            file.flush()
            os.fsync(file.fileno())


def read_crc(path: Path, start: int, rows: int, width: int) -> int | None:
    """CRC-32 of some vectors of a file; none where they are not all there."""
    left = rows * width * 4
    crc = 0
    try:
        with path.open("rb") as file:
            file.seek(len(header_of(rows, width)) + start * width * 4)
            while left > 0 and (part := file.read(min(left, PART))):
                crc = zlib.crc32(part, crc)
                left = left - len(part)
    except OSError:
        return None
    return crc if left == 0 and rows > 0 else None


def put(file: int, content: bytes, at: int) -> None:
    """Writes all of some bytes at a place of a file."""
    while content:
        written = os.pwrite(file, content, at)
        content = content[written:]
        at = at + written
