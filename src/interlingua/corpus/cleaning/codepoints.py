"""Many texts as one array of code points, so that numpy can work on a whole batch at once.

Every text is followed by a line feed, so no segment is ever empty and ``ufunc.reduceat`` needs no
special case.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int64, UInt32
from numpy import ndarray

SEPARATOR = 10  # the line feed
PLANES = 0x110000  # number of code points in Unicode


class CodePoints(NamedTuple):
    """The code points of many texts, each text followed by a line feed."""

    codes: UInt32[ndarray, " c"]
    """Code points, separators included."""
    starts: Int64[ndarray, " n"]
    """The start of each text in ``codes``."""

    @property
    def spans(self) -> Int64[ndarray, " n"]:
        """Code points of each text, its separator included (so at least 1)."""
        return np.diff(self.starts, append=len(self.codes))


def join_lines(texts: Sequence[str]) -> str:
    """Join texts with a line feed after each; a line feed inside a text becomes a space."""
    if not texts:
        return ""
    joined = "\n".join(texts)
    # Counting is far cheaper than replacing, and few chunks hold a line feed.
    if joined.count("\n") != len(texts) - 1:
        joined = "\n".join([text.replace("\n", " ") for text in texts])
    return joined + "\n"


def encode_codepoints(joined: str) -> UInt32[ndarray, " c"]:
    """Turn a string into its code points; lone surrogates pass through."""
    return np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.dtype("<u4"))


def decode(codes: UInt32[ndarray, " c"]) -> str:
    """Turn code points into a string, the inverse of `encode_codepoints`."""
    return codes.astype("<u4", copy=False).tobytes().decode("utf-32-le", "surrogatepass")


def find_text_bounds(codes: UInt32[ndarray, " c"]) -> CodePoints:
    """Find the texts in code points that end with a separator."""
    ends = np.flatnonzero(codes == SEPARATOR)
    starts = np.empty_like(ends)
    starts[:1] = 0
    starts[1:] = ends[:-1] + 1
    return CodePoints(codes, starts)


@functools.cache
def in_categories(prefixes: tuple[str, ...]) -> Bool[ndarray, " planes"]:
    """Mark the code points with a Unicode general category that starts with a prefix.

    Args:
        prefixes: whole categories (``"Sk"``) or their first letters (``"L"``).
    """
    marks = np.zeros(PLANES, dtype=bool)
    low = 0x20000  # planes 0 and 1; above them are ideographs, tags and private use
    in_low_planes = (unicodedata.category(chr(c)).startswith(prefixes) for c in range(low))
    marks[:low] = np.fromiter(in_low_planes, bool, low)
    # Above these planes, whole blocks have one category, which saves a million look-ups.
    marks[0x20000:0x40000] = "Lo".startswith(prefixes)
    marks[0xE0000:0xE0080] = "Cf".startswith(prefixes)
    marks[0xE0100:0xE01F0] = "Mn".startswith(prefixes)
    marks[0xF0000:] = "Co".startswith(prefixes)
    return marks
