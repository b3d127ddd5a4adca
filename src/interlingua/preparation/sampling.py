"""The balanced sample for the training of a vocabulary, drawn from the shards in bounded memory.

There are two passes over the keys. The first marks where each distinct sentence of a language first
occurs, and counts these sentences. The second takes the sentences whose hash is below the share of
their language. So the order of the shards does not change which sentences are in the sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Bool, UInt64
from numpy import ndarray

from interlingua.corpus.cleaning.dedup import ExactDeduplicator
from interlingua.corpus.cleaning.keys import language_value, splitmix64
from interlingua.corpus.samples.sampling import quotas
from interlingua.preparation.shards import Fate, Shard


def balanced_sentences(
    shards: list[Shard],
    folder: Path,
    *,
    sentences: int,
    temperature: float,
    seed: int,
    count: Callable[[int], None],
) -> Iterator[tuple[str, str]]:
    """Yield about ``sentences`` distinct training sentences as (language, text).

    They are balanced by the temperature. A sentence is taken with the probability quota / number of
    sentences of its language; the key of the sentence decides.

    Args:
        shards: with their fates.
        folder: for the index of sentences seen.
        sentences: number to draw over all languages; all if there are fewer.
        temperature: languages are weighted by n^(1/temperature), with n distinct sentences.
        seed: another seed gives another sample.
        count: called with the number of sentences read.
    """
    fresh = _first_occurrences(shards, folder)
    available: Counter[str] = Counter()
    for shard, masks in zip(shards, fresh, strict=True):
        for language, packed in zip(shard.language_pair, masks, strict=True):
            available[language] += int(np.count_nonzero(_unpacked(packed, shard)))
    share = dict.fromkeys(available, 1.0)
    if available.total() > sentences:
        numbers = quotas(available, sentences, temperature, held=available)
        share |= {code: number / available[code] for code, number in numbers.items() if number}
    for shard, masks in zip(shards, fresh, strict=True):
        for side, keys in enumerate((shard.source_keys, shard.target_keys)):
            language = shard.language_pair[side]
            chosen = _unpacked(masks[side], shard)
            if share[language] < 1:  # else the bound would be 2^64, too large for uint64
                bound = np.uint64(int(share[language] * 2**64))
                chosen &= splitmix64(_keys(keys, language) + np.uint64(seed)) < bound
            for block in shard.blocks(chosen):
                count(len(block[side]))
                for text in block[side]:
                    yield language, text


def _first_occurrences(shards: list[Shard], folder: Path) -> list[tuple[ndarray, ndarray]]:
    """Return which training rows contain the first occurrence of a sentence in its language.

    There are two masks for every shard, of sources and of targets, packed with one bit per row.
    """
    seen = ExactDeduplicator(folder / "sentences")
    found = []
    for shard in shards:
        train = shard.fates == Fate.train
        sides = []
        both_keys = (shard.source_keys, shard.target_keys)
        for keys, language in zip(both_keys, shard.language_pair, strict=True):
            fresh = train.copy()
            fresh[train] = seen.first_seen(_keys(keys[train], language))
            sides.append(np.packbits(fresh))
        found.append((sides[0], sides[1]))
    return found


def _keys(keys: UInt64[ndarray, " n"], language: str) -> UInt64[ndarray, " n"]:
    """Combine the keys of texts with their language.

    The same text has another key in each language.
    """
    mixed: UInt64[ndarray, " n"] = keys ^ language_value(language)
    return mixed


def _unpacked(packed: ndarray, shard: Shard) -> Bool[ndarray, " rows"]:
    bits: Bool[ndarray, " rows"] = np.unpackbits(packed, count=shard.rows).astype(bool)
    return bits
