"""Strings by number, in a file: as many as the disk holds, any of them at hand."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

ZEROS = 65_536
"""Numbers written at once."""


class StringsWriter:
    """Appends strings to ``NAME.text`` and where each ends to ``NAME.ends``; what was there goes.

    Args:
        folder: which is there.
        name: of the strings.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._texts: BinaryIO = open(folder / f"{name}.text", "wb")  # noqa: SIM115 - closed with the block
        self._ends: BinaryIO = open(folder / f"{name}.ends", "wb")  # noqa: SIM115
        self._size = 0

    def extend(self, strings: Iterable[str]) -> None:
        """Adds some."""
        encoded = [string.encode("utf-8") for string in strings]
        ends = self._size + np.cumsum([len(one) for one in encoded], dtype=np.int64)
        self._texts.write(b"".join(encoded))
        self._ends.write(ends.tobytes())
        self._size = int(ends[-1]) if len(ends) else self._size

    def __enter__(self) -> StringsWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for file in (self._texts, self._ends):
            file.flush()
            os.fsync(file.fileno())
            file.close()


class Strings(Sequence[str]):
    """Strings that a ``StringsWriter`` wrote, read as needed.

    Args:
        folder: with its two files.
        name: of the strings.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._ends = mapped(folder / f"{name}.ends", np.dtype(np.int64))
        self._bytes = mapped(folder / f"{name}.text", np.dtype(np.uint8))

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204 - one, or a list of some
        if isinstance(number, slice):
            return self.part(*number.indices(len(self))[:2])
        start = int(self._ends[number - 1]) if number else 0
        return self._bytes[start : int(self._ends[number])].tobytes().decode("utf-8")

    def part(self, start: int, stop: int) -> list[str]:
        """Some that stand one behind the other, in one read."""
        if stop <= start:
            return []
        first = int(self._ends[start - 1]) if start else 0
        ends = (self._ends[start:stop] - first).tolist()
        whole = self._bytes[first : first + ends[-1]].tobytes()
        return [whole[a:b].decode("utf-8") for a, b in zip([0, *ends[:-1]], ends, strict=True)]

    @property
    def total_bytes(self) -> int:
        """Of all of them, in UTF-8."""
        return len(self._bytes)


def mapped(path: Path, dtype: np.dtype[np.generic], *, mode: str = "r") -> np.ndarray:
    """A file of numbers as a memory map; an empty one, which can't be mapped, as an empty array."""
    if not path.stat().st_size:
        return np.zeros(0, dtype)
    return np.memmap(path, dtype, mode)  # type: ignore[call-overload,no-any-return]


def mapped_zeros(path: Path, dtype: np.dtype[np.generic], size: int) -> np.ndarray:
    """A new file of zeros as a memory map, to be filled.

    All of it is written first: a map of a file with holes ends the process where the disk is full.

    Raises:
        OSError: there is no room.
    """
    zeros = np.zeros(min(size, ZEROS), dtype)
    with open(path, "wb") as file:
        for start in range(0, size, ZEROS):
            file.write(zeros[: size - start].tobytes())
    return mapped(path, dtype, mode="r+")
