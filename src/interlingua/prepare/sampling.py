"""The balanced sample a vocabulary is trained on, drawn from the shards in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import numpy as np
from jaxtyping import Bool, UInt64
from numpy import ndarray

from interlingua.corpus.dedup import ExactDeduplicator
from interlingua.corpus.keys import splitmix64
from interlingua.corpus.sampling import quotas
from interlingua.prepare.shards import Fate, Shard


def balanced_sentences(
    shards: list[Shard],
    folder: Path,
    *,
    sentences: int,
    temperature: float,
    seed: int,
    count: Callable[[int], None],
) -> Iterator[tuple[str, str]]:
    """Streams about ``sentences`` distinct training sentences as (language, text),
    temperature-balanced.

    A language gives a sentence with the probability quota / sentences it has, decided by the
    sentence's key.

    Args:
        shards: with their fates.
        folder: for the index of sentences seen.
        sentences: how many to draw over all languages; all where there are fewer.
        temperature: languages are weighted by n^(1/temperature), n distinct sentences each.
        seed: another seed, another sample.
        count: called with how many sentences have passed.
    """
    fresh = _first_occurrences(shards, folder)
    there: Counter[str] = Counter()
    for shard, masks in zip(shards, fresh, strict=True):
        for language, packed in zip(shard.language_pair, masks, strict=True):
            there[language] += int(np.count_nonzero(_unpacked(packed, shard)))
    share = dict.fromkeys(there, 1.0)
    if there.total() > sentences:
        share |= {
            code: n / there[code]
            for code, n in quotas(there, sentences, temperature, held=there).items()
            if n
        }
    for shard, masks in zip(shards, fresh, strict=True):
        for side, keys in enumerate((shard.source_keys, shard.target_keys)):
            language = shard.language_pair[side]
            chosen = _unpacked(masks[side], shard)
            if share[language] < 1:
                chosen &= splitmix64(_keys(keys, language) + np.uint64(seed)) < np.uint64(
                    int(share[language] * 2**64)
                )
            for block in shard.blocks(chosen):
                count(len(block[side]))
                for text in block[side]:
                    yield language, text


def _first_occurrences(shards: list[Shard], folder: Path) -> list[tuple[ndarray, ndarray]]:
    """For both sides of every shard, which training rows hold a sentence of the language for the
    first time; packed.
    """
    seen = ExactDeduplicator(folder / "sentences")
    found = []
    for shard in shards:
        train = shard.fates == Fate.train
        sides = []
        for keys, language in zip(
            (shard.source_keys, shard.target_keys), shard.language_pair, strict=True
        ):
            fresh = train.copy()
            fresh[train] = seen.first_seen(_keys(keys[train], language))
            sides.append(np.packbits(fresh))
        found.append((sides[0], sides[1]))
    return found


def _keys(keys: UInt64[ndarray, " n"], language: str) -> UInt64[ndarray, " n"]:
    """The texts' keys, apart by language."""
    apart: UInt64[ndarray, " n"] = keys ^ splitmix64(
        np.array([crc32(language.encode())], np.uint64)
    )
    return apart


def _unpacked(packed: ndarray, shard: Shard) -> Bool[ndarray, " rows"]:
    bits: Bool[ndarray, " rows"] = np.unpackbits(packed, count=shard.rows).astype(bool)
    return bits
