"""64-bit keys of texts and of pairs.

Deduplication, decontamination and held-out splits compare them. The hash is written here, in numpy,
rather than taken from a library: it hashes a whole batch at once, adds no dependency, and does not
change from one machine or run to the next. It is the multilinear hash sum_i r(i) x(c_i) mod 2^64
with r and x drawn by SplitMix64; two different texts collide with a probability of at most about
2^-58, so 10 million texts hold a collision with a probability below 0.0002.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from jaxtyping import UInt32, UInt64
from numpy import ndarray

from interlingua.corpus.cleaning.codepoints import (
    PLANES,
    SEPARATOR,
    decode,
    encode_codepoints,
    find_text_bounds,
    in_categories,
    join_lines,
)
from interlingua.corpus.cleaning.normalize import folded_texts

EMPTY_KEY = np.uint64(0)
"""The key of a text in which nothing counts (only punctuation, spaces or control characters)."""
_DIGIT = re.compile(r"\d")
_THOUSANDS = re.compile(
    r"(?<!\d)(?<!\d[.,])\d{1,3}([.,'٬])\d{3}(?:\1\d{3})*(?=(?!\1)[.,]\d+(?![.,]?\d)|(?![.,]?\d))"
)
_SIGN = re.compile(
    r"(?<=\d)(?:(?P<point>[.,٫])|(?P<colon>:)|(?P<slash>[/⁄])|\s*(?P<dash>[-–])\s*)(?=\d)"
    r"|(?<=\d)\s*(?P<percent>[%٪])|(?<=\d)\s*(?P<permille>‰)|(?<![\w)\]])(?P<minus>[-–])(?=\d)"
)
_KEPT = {
    "point": "∙",
    "colon": "∶",
    "slash": "∕",
    "dash": "∸",
    "minus": "∸",
    "percent": "⁒",
    "permille": "⁒⁒",
}
"""Mathematical symbols for the signs of numbers: symbols count in keys, punctuation does not."""


def text_key(text: str) -> str:
    """Return a text without case, compatibility forms, punctuation and white space.

    Letters, marks, digits, symbols and the signs of numbers stay: ``"It's 3!"`` and ``"it’s 3"``
    share the key ``"its3"``; ``"3 %"``, ``"-3"``, ``"1.5"`` and ``"15"`` have four keys.
    """
    return decode(key_codes([text])[:-1])


def text_keys(texts: Sequence[str]) -> UInt64[ndarray, " n"]:
    """Compute 64-bit hashes of the `text_key` of every text; `EMPTY_KEY` if the key is empty."""
    codes, starts = points = find_text_bounds(key_codes(texts))
    spans = points.spans
    if not len(starts):
        return np.zeros(0, np.uint64)
    # Place i of each code point in its own text.
    place = np.arange(len(codes)) - np.repeat(starts, spans)
    # r(i) x(c_i), the terms of the hash. The size of the table of r is a power of two, so that few
    # tables serve all lengths; the first entries do not depend on the size.
    terms = _code_values()[codes]
    terms *= _place_values(1 << int(spans.max()).bit_length())[place]
    terms[codes == SEPARATOR] = 0
    # The length is added, and a final mix spreads every bit of the sum over the whole key.
    keys = splitmix64(np.add.reduceat(terms, starts) + spans.astype(np.uint64))
    keys[keys == EMPTY_KEY] = 1  # 0 is kept for texts in which nothing counts
    keys[spans == 1] = EMPTY_KEY
    return keys


def combine_keys(
    sources: UInt64[ndarray, " n"],
    targets: UInt64[ndarray, " n"],
    source_language: str,
    target_language: str,
) -> UInt64[ndarray, " n"]:
    """Compute 64-bit keys of pairs from the text keys of their sides.

    Keys are equal for the same two sentences in the same two languages, in either order.
    """
    left = splitmix64(sources ^ language_value(source_language))
    right = splitmix64(targets ^ language_value(target_language))
    # A sum, because it does not change when the sides are swapped.
    return splitmix64(left + right)


def key_codes(texts: Sequence[str]) -> UInt32[ndarray, " c"]:
    """Return the code points of the `text_key` of every text, each key followed by a line feed."""
    folded = [_with_number_signs(text) for text in folded_texts(texts)]
    codes = encode_codepoints(join_lines(folded))
    kept: UInt32[ndarray, " c"] = codes[_counts_in_keys()[codes]]
    return kept


def _with_number_signs(folded: str) -> str:
    """Replace the signs of numbers, such as decimal points, by symbols that count in keys.

    Both decimal points are the same, and marks of thousands are dropped: ``1,5`` is ``1.5`` and
    ``1.500`` is ``1500``, but neither is ``15``.

    Args:
        folded: a text in the spelling of ``folded_texts``.
    """
    if not _DIGIT.search(folded):
        return folded
    folded = _THOUSANDS.sub(lambda found: found[0].replace(found[1], ""), folded)
    return _SIGN.sub(lambda found: _KEPT[found.lastgroup or ""], folded)


def splitmix64(values: UInt64[ndarray, "*s"]) -> UInt64[ndarray, "*s"]:
    """Compute SplitMix64's output function (Steele et al. 2014).

    It is a bijection of 64-bit integers that scatters them: two different ones stay different.
    """
    z = values + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@functools.cache
def language_value(language: str) -> np.uint64:
    """Return a number for a language code, so that keys of different languages differ."""
    value: np.uint64 = splitmix64(np.array([crc32(language.encode())], np.uint64))[0]
    return value


@functools.cache
def _counts_in_keys() -> ndarray:
    kept = ~in_categories(("P", "Z", "Cc", "Cf", "Cs", "Co", "Sk"))
    kept[SEPARATOR] = True  # a control character that ends each text
    return kept


@functools.cache
def _code_values() -> UInt64[ndarray, " planes"]:
    return splitmix64(np.arange(PLANES, dtype=np.uint64))


@functools.lru_cache(maxsize=4)
def _place_values(count: int) -> UInt64[ndarray, " p"]:
    # The inputs start at 2^32, above all code points; odd factors do not lose bits.
    return splitmix64(np.arange(count, dtype=np.uint64) + np.uint64(1 << 32)) | np.uint64(1)
