"""Character shingles and MinHash (Broder 1997) of many texts at once, in numpy.

Texts are flat arrays of 16-bit codes, each text followed by one separator; a text shorter than a
shingle is filled up with separators. Codes beyond the basic plane are folded into 16 bits, which
only ever confuses rare symbols.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float64, Int64, UInt16, UInt32, UInt64
from numpy import ndarray

from interlingua.corpus.codepoints import segment
from interlingua.corpus.keys import key_codes, splitmix64


def shingle_codes(
    texts: Sequence[str], size: int
) -> tuple[UInt16[ndarray, " c"], Int64[ndarray, " n"]]:
    """The `text_key` of every text as 16-bit codes, and where each text starts."""
    codes, starts = points = segment(key_codes(texts))
    lacking = np.maximum(size - (points.spans - 1), 0)
    if lacking.any():
        repeats = np.ones(len(codes), np.int64)
        repeats[starts + points.spans - 1] += lacking
        codes = np.repeat(codes, repeats)
        starts = starts + np.cumsum(lacking) - lacking
    return (codes ^ (codes >> np.uint32(16))).astype(np.uint16), starts


def shingle_hashes(
    codes: UInt16[ndarray, " c"], starts: Int64[ndarray, " n"], size: int
) -> UInt32[ndarray, " c"]:
    """Hashes of all runs of ``size`` characters, as many as codes.

    Text i has those from ``starts[i]`` on.

    Where a run would leave its text, the text's first shingle is repeated: sets of shingles, and
    minima over them, are the same with or without the repetition.
    """
    values = _code_values()[codes]
    windows = len(codes) - size + 1
    hashes = np.zeros(len(codes), np.uint32)
    for place, factor in enumerate(_odd_numbers(size, seed=0)):
        hashes[:windows] += values[place : place + windows] * factor
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):  # MurmurHash3's last mix
        hashes ^= hashes >> np.uint32(shift)
        hashes *= np.uint32(factor)
    ends = np.append(starts[1:], len(codes))
    for back in range(1, size + 1):
        hashes[ends - back] = hashes[starts]
    return hashes


def band_keys(
    hashes: UInt32[ndarray, " c"], starts: Int64[ndarray, " n"], *, bands: int, rows: int
) -> Iterator[UInt32[ndarray, " n"]]:
    """For each band, a key per text that two texts share with probability J^rows (J their shingles'
    Jaccard index).
    """
    for band in range(bands):
        key = np.zeros(len(starts), np.uint64)
        for number in range(band * rows, (band + 1) * rows):
            key = splitmix64(key ^ minima(hashes, starts, number))
        yield (key >> np.uint64(32)).astype(np.uint32)


def minima(
    hashes: UInt32[ndarray, " c"], starts: Int64[ndarray, " n"], number: int
) -> UInt32[ndarray, " n"]:
    """MinHash ``number`` of every text: the least of its shingles after the permutation a h + b mod
    2^32, a odd.
    """
    (factor,), (shift,) = _odd_numbers(1, seed=2 * number + 1), _odd_numbers(1, seed=2 * number + 2)
    permuted = hashes * factor
    permuted += shift
    return np.asarray(np.minimum.reduceat(permuted, starts))


def jaccard(
    a: tuple[UInt32[ndarray, " c"], Int64[ndarray, " n"]],
    b: tuple[UInt32[ndarray, " d"], Int64[ndarray, " n"]],
) -> Float64[ndarray, " n"]:
    """Exact Jaccard index |A & B| / |A | B| of the shingle sets of n texts with those of n
    others.
    """
    marked = [_marked(hashes, starts, side) for side, (hashes, starts) in enumerate((a, b))]
    shingles = np.sort(np.concatenate(marked))
    shingles = shingles[np.append(True, shingles[1:] != shingles[:-1])]
    shared = shingles[1:][(shingles[1:] ^ shingles[:-1]) == 1]  # the same but for the side
    n = len(a[1])
    total, common = (
        np.bincount((part >> np.uint64(33)).astype(np.int64), minlength=n)
        for part in (shingles, shared)
    )
    return np.asarray(common / (total - common))


def banding(threshold: float, permutations: int, recall: float = 0.99) -> tuple[int, int]:
    """Bands b and rows per band r: the most rows for which a pair at the threshold t shares a band
    often enough.

    It does with probability 1 - (1 - t^r)^b, at least ``recall``; more rows mean fewer candidates
    to verify.
    """
    rows = 1
    while (
        rows < permutations
        and 1 - (1 - threshold ** (rows + 1)) ** (permutations // (rows + 1)) >= recall
    ):
        rows += 1
    return permutations // rows, rows


def _marked(
    hashes: UInt32[ndarray, " c"], starts: Int64[ndarray, " n"], side: int
) -> UInt64[ndarray, " c"]:
    """Text number (31 bits), shingle (32 bits) and side (1 bit) in one integer each."""
    numbers = np.repeat(
        np.arange(len(starts), dtype=np.uint64), np.diff(starts, append=len(hashes))
    )
    return np.asarray(
        (numbers << np.uint64(33)) | (hashes.astype(np.uint64) << np.uint64(1)) | np.uint64(side)
    )


@functools.cache
def _code_values() -> UInt32[ndarray, " codes"]:
    return (splitmix64(np.arange(1 << 16, dtype=np.uint64)) >> np.uint64(32)).astype(np.uint32)


@functools.cache
def _odd_numbers(count: int, *, seed: int) -> UInt32[ndarray, " k"]:
    drawn = splitmix64(np.arange(count, dtype=np.uint64) + np.uint64((seed + 1) << 20))
    return (drawn >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
