"""Keyed permutations of [0, n) in constant memory: one position of a shuffle, without shuffling.

A Feistel network is a permutation of all numbers of b bits, whatever its round function is: it
splits a number into two halves and changes each in turn by a hash of the other. Each step can be
undone. If the size is not a power of two, a result that is too large is permuted again until it is
inside; as the network is a permutation, two positions never get the same result.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64, UInt64

from interlingua.corpus.cleaning.keys import splitmix64

_ROUNDS = 6
"""Rounds of the network, half of them for each of the two halves."""


def keys(base: int, *parts: Int64[np.ndarray, " n"]) -> UInt64[np.ndarray, " n"]:
    """Derive one key per element from a base key and integers, e.g. a language pair and a pass."""
    key = np.full(parts[0].shape, base & (2**64 - 1), dtype=np.uint64)
    for part in parts:
        key = splitmix64(key ^ splitmix64(part.astype(np.uint64)))
    return key


def permute(
    positions: Int64[np.ndarray, " n"],
    sizes: Int64[np.ndarray, " n"],
    key: UInt64[np.ndarray, " n"],
) -> Int64[np.ndarray, " n"]:
    """Return the image of each position under the permutation of [0, size) specified by the key.

    A Feistel network permutes the smallest [0, 2^bits) that holds the size; a result outside [0,
    size) is permuted again until it is inside (cycle walking). On average this takes at most one
    more permutation.

    Args:
        positions: each in [0, its size).
        sizes: of each position's domain.
        key: of each position's permutation.
    """
    # The exponent of frexp is the number of bits of size - 1; each half needs at least one bit.
    bits = np.maximum(2, np.frexp(np.maximum(sizes - 1, 1))[1]).astype(np.uint64)
    bounds = sizes.astype(np.uint64)
    result = _feistel(positions.astype(np.uint64), bits, key)
    outside = np.flatnonzero(result >= bounds)
    while outside.size:
        result[outside] = _feistel(result[outside], bits[outside], key[outside])
        outside = outside[result[outside] >= bounds[outside]]
    return result.astype(np.int64)


def _feistel(
    values: UInt64[np.ndarray, " n"], bits: UInt64[np.ndarray, " n"], key: UInt64[np.ndarray, " n"]
) -> UInt64[np.ndarray, " n"]:
    """Permute [0, 2^bits): change each half in turn by a hash of the other."""
    # If the number of bits is odd, the high half has one bit more.
    low = bits >> np.uint64(1)
    low_mask = (np.uint64(1) << low) - np.uint64(1)
    high_mask = (np.uint64(1) << (bits - low)) - np.uint64(1)
    left = values >> low
    right = values & low_mask
    # The round number goes into the top bits of the key, far from the bits of the hashed half.
    for turn in range(0, _ROUNDS, 2):
        left = left ^ (splitmix64(right ^ key ^ np.uint64(turn << 56)) & high_mask)
        right = right ^ (splitmix64(left ^ key ^ np.uint64((turn + 1) << 56)) & low_mask)
    return np.asarray((left << low) | right)
