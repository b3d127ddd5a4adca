"""Character shingles and MinHash (Broder 1997) of many texts at once, in numpy.

A shingle is a run of ``size`` characters, a text the set of its shingles, and two texts are near
when the Jaccard index J of the sets is high. For a random permutation h of all shingles, the
minimum of h over the one set equals that over the other with probability J; so a few minima per
text are enough to find candidates. ``rows`` minima together are a band's key, which two texts share
with probability J^rows; several bands make it likely that a near pair shares at least one.

Texts are flat arrays of 16-bit codes, each text followed by one separator; a text shorter than a
shingle is filled up with separators. Codes beyond the basic plane are folded into 16 bits, which
can confuse only rare symbols.

datasketch makes a sketch per text in Python: 6,000 texts of 90 characters a second with 128
permutations. Here, where all texts of a block are hashed at once, it is 28,500 texts, and a test
shows that the estimates are as good.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float64, Int64, UInt16, UInt32, UInt64
from numpy import ndarray

from interlingua.corpus.cleaning.codepoints import find_text_bounds
from interlingua.corpus.cleaning.keys import key_codes, splitmix64

RECALL = 0.99
"""Minimum probability that a pair at the threshold shares a band."""


def shingle_codes(
    texts: Sequence[str], size: int
) -> tuple[UInt16[ndarray, " c"], Int64[ndarray, " n"]]:
    """Return the `text_key` of every text as 16-bit codes, and the start of each text."""
    codes, starts = points = find_text_bounds(key_codes(texts))
    lacking = np.maximum(size - (points.spans - 1), 0)
    if lacking.any():
        # Each short text has its own separator repeated, which moves the texts behind it.
        repeats = np.ones(len(codes), np.int64)
        repeats[starts + points.spans - 1] += lacking
        codes = np.repeat(codes, repeats)
        starts = starts + np.cumsum(lacking) - lacking
    # The upper half is zero within the basic plane, so that its codes do not change.
    return (codes ^ (codes >> np.uint32(16))).astype(np.uint16), starts


def shingle_hashes(
    codes: UInt16[ndarray, " c"], starts: Int64[ndarray, " n"], size: int
) -> UInt32[ndarray, " c"]:
    """Hash all runs of ``size`` characters; there are as many hashes as codes.

    The hashes of text i start at ``starts[i]``. If a run would leave its text, the text's first
    shingle is repeated: sets of shingles, and minima over them, are the same with or without the
    repetition.
    """
    values = _code_values()[codes]
    windows = len(codes) - size + 1
    hashes = np.zeros(len(codes), np.uint32)
    # sum_j r_j x(c_j) mod 2^32 over the characters of each run, one character's place at a time.
    for place, factor in enumerate(_odd_numbers(size, seed=0)):
        hashes[:windows] += values[place : place + windows] * factor
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):  # MurmurHash3's last mix
        hashes ^= hashes >> np.uint32(shift)
        hashes *= np.uint32(factor)
    # A run at one of a text's last ``size`` places contains the separator, or continues behind it.
    ends = np.append(starts[1:], len(codes))
    for back in range(1, size + 1):
        hashes[ends - back] = hashes[starts]
    return hashes


def band_keys(
    hashes: UInt32[ndarray, " c"], starts: Int64[ndarray, " n"], *, bands: int, rows: int
) -> Iterator[UInt32[ndarray, " n"]]:
    """Yield a key per text for each band.

    Two texts share it with probability J^rows, where J is the Jaccard index of their shingles.
    """
    for band in range(bands):
        key = np.zeros(len(starts), np.uint64)
        for number in range(band * rows, (band + 1) * rows):
            key = splitmix64(key ^ minima(hashes, starts, number))
        yield (key >> np.uint64(32)).astype(np.uint32)


def minima(
    hashes: UInt32[ndarray, " c"], starts: Int64[ndarray, " n"], number: int
) -> UInt32[ndarray, " n"]:
    """Compute MinHash ``number`` of every text.

    This is the minimum of the hashes h of the text's shingles after the permutation
    a h + b mod 2^32, where a is odd.
    """
    (factor,) = _odd_numbers(1, seed=2 * number + 1)
    (shift,) = _odd_numbers(1, seed=2 * number + 2)
    permuted = hashes * factor
    permuted += shift
    return np.asarray(np.minimum.reduceat(permuted, starts))


def jaccard(
    a: tuple[UInt32[ndarray, " c"], Int64[ndarray, " n"]],
    b: tuple[UInt32[ndarray, " d"], Int64[ndarray, " n"]],
) -> Float64[ndarray, " n"]:
    """Compute the exact Jaccard index |A & B| / |A | B| of the shingle sets of n pairs of texts."""
    marked = [_marked(hashes, starts, side) for side, (hashes, starts) in enumerate((a, b))]
    # Sorted by text, then shingle, then side: a shingle of both sides occurs twice in a row.
    shingles = np.sort(np.concatenate(marked))
    shingles = shingles[np.append(True, shingles[1:] != shingles[:-1])]  # each once per side
    shared = shingles[1:][(shingles[1:] ^ shingles[:-1]) == 1]  # equal except for the side
    n = len(a[1])

    def count(marks: UInt64[ndarray, " s"]) -> Int64[ndarray, " n"]:
        numbers = (marks >> np.uint64(33)).astype(np.int64)  # of the texts
        return np.bincount(numbers, minlength=n)

    total = count(shingles)
    common = count(shared)
    # |A | B| = |A| + |B| - |A & B|
    return np.asarray(common / (total - common))


def banding(threshold: float, permutations: int) -> tuple[int, int]:
    """Return the number of bands b and of rows per band r.

    r is the largest number for which a pair at the threshold t shares a band with a probability of
    at least ``RECALL``; the probability is 1 - (1 - t^r)^b. More rows mean fewer candidates to
    verify.
    """

    def shares_a_band(rows: int) -> float:
        return 1 - (1 - threshold**rows) ** (permutations // rows)

    rows = 1
    while rows < permutations and shares_a_band(rows + 1) >= RECALL:
        rows += 1
    return permutations // rows, rows


def _marked(
    hashes: UInt32[ndarray, " c"], starts: Int64[ndarray, " n"], side: int
) -> UInt64[ndarray, " c"]:
    """Pack text number (31 bits), shingle (32 bits) and side (1 bit) into one integer each."""
    lengths = np.diff(starts, append=len(hashes))
    numbers = np.repeat(np.arange(len(starts), dtype=np.uint64), lengths)
    shingles = hashes.astype(np.uint64)
    return np.asarray((numbers << np.uint64(33)) | (shingles << np.uint64(1)) | np.uint64(side))


@functools.cache
def _code_values() -> UInt32[ndarray, " codes"]:
    return (splitmix64(np.arange(1 << 16, dtype=np.uint64)) >> np.uint64(32)).astype(np.uint32)


@functools.cache
def _odd_numbers(count: int, *, seed: int) -> UInt32[ndarray, " k"]:
    drawn = splitmix64(np.arange(count, dtype=np.uint64) + np.uint64((seed + 1) << 20))
    return (drawn >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
