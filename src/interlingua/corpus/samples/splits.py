"""Held-out sentences that occur nowhere in training, on either side, in any language pair."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Integer, UInt32, UInt64
from numpy import ndarray

from interlingua.corpus.cleaning.keys import EMPTY_KEY, splitmix64

FREQUENCY_BINS = 1 << 24  # 64 MiB of counters


def hold_out(
    sources: UInt64[ndarray, " n"],
    targets: UInt64[ndarray, " n"],
    groups: Integer[ndarray, " n"],
    *,
    per_group: int,
    max_share: float = 0.1,
    eligible: Bool[ndarray, " n"] | None = None,
    seed: int = 0,
) -> Bool[ndarray, " n"]:
    """Choose held-out rows per language pair; none of their sentences may be trained on.

    The choice is drawn by sentence, not by row. Of a row's two sentences, the one that occurs in
    more rows (English, in most corpora) receives a random number, and each language pair takes the
    rows with the smallest numbers. So the language pairs hold out translations of the same
    sentences, and far fewer training rows are lost than if each language pair drew separately.
    Within a language pair, every held-out sentence occurs only once, on either side, so that
    retrieval has one right answer.

    Args:
        sources: text keys of the one side.
        targets: text keys of the other side.
        groups: number of the language pair of each row.
        per_group: maximum number of rows to hold out of each language pair.
        max_share: maximum share (0 to 1) of a language pair's rows to hold out.
        eligible: rows that may be held out (for example, long enough ones); all if missing.
        seed: of the random numbers; another seed gives another choice.

    Returns:
        A mask over the rows, which depends only on the arguments.
    """
    allowed = (sources != EMPTY_KEY) & (targets != EMPTY_KEY)
    if eligible is not None:
        allowed &= eligible
    frequencies = _frequencies(sources, targets)
    held_out = np.zeros(len(sources), dtype=bool)
    # Rows sorted by language pair, cut at the start of the next one.
    by_group = np.argsort(groups, kind="stable")
    bounds = np.flatnonzero(groups[by_group[1:]] != groups[by_group[:-1]]) + 1
    for rows in np.split(by_group, bounds):
        limit = min(per_group, int(max_share * len(rows)))
        candidates = rows[allowed[rows]]
        pivots = _pivots(sources[candidates], targets[candidates], frequencies)
        # The random number of a sentence is a hash of its key and the seed: the same in every
        # language pair.
        random_numbers = splitmix64(pivots ^ splitmix64(np.array([seed], np.uint64)))
        drawn = candidates[np.argsort(random_numbers, kind="stable")]
        for side in (sources, targets):
            # The first row of each sentence, still in drawn order.
            drawn = drawn[np.sort(np.unique(side[drawn], return_index=True)[1])]
        held_out[drawn[:limit]] = True
    return held_out


def _frequencies(*sides: UInt64[ndarray, " n"]) -> UInt32[ndarray, " bins"]:
    """Count the rows of each key, by the key's low bits.

    The counts are exact enough to find the side of the pivot language.
    """
    counts = np.zeros(FREQUENCY_BINS, np.uint32)
    for keys in sides:
        # In portions, as the masked keys are a copy.
        for first in range(0, len(keys), 1 << 19):
            bins = keys[first : first + (1 << 19)] & np.uint64(FREQUENCY_BINS - 1)
            np.add.at(counts, bins, np.uint32(1))
    return counts


def _pivots(
    sources: UInt64[ndarray, " m"],
    targets: UInt64[ndarray, " m"],
    frequencies: UInt32[ndarray, " bins"],
) -> UInt64[ndarray, " m"]:
    """Return the more frequent key of each row."""
    mask = np.uint64(FREQUENCY_BINS - 1)
    return np.where(frequencies[sources & mask] > frequencies[targets & mask], sources, targets)
