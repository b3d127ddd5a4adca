"""Third stage: the test set and the validation set; none of their sentences occurs in training.

Four draws in turn: the test set's pairs and its short pairs, then those of the validation set. Each
draw uses only keys, and only rows that are still training rows (``corpus.samples.splits`` describes
how to draw). At the end every training row that shares a sentence with a drawn row is dropped.
"""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int64, UInt64
from numpy import ndarray

from interlingua.corpus.cleaning.dedup import is_in
from interlingua.corpus.cleaning.keys import splitmix64
from interlingua.corpus.samples.splits import hold_out
from interlingua.preparation.config import PrepareConfig, SplitConfig
from interlingua.preparation.progress import StageProgress
from interlingua.preparation.shards import Fate, Shard, total
from interlingua.preparation.sources import ENGLISH

CANDIDATES = 100_000
"""Number of pairs from which a set is drawn, if a language pair has that many; limits memory."""


class _Candidates(NamedTuple):
    """Training rows of a shard that take part in the draw."""

    shard: Shard
    rows: Int64[ndarray, " n"]
    source_keys: UInt64[ndarray, " n"]
    target_keys: UInt64[ndarray, " n"]
    eligible: Bool[ndarray, " n"]
    """True for pairs that may be drawn; the others only count for ``max_share``."""


def split_rows(shards: list[Shard], config: PrepareConfig, progress: StageProgress) -> None:
    """Give rows the fate ``heldout`` or ``valid``.

    Rows that share a sentence with one of them get ``in_heldout_or_valid``.

    Args:
        shards: in the order of their language pairs; every other rule has been applied.
        config: how many pairs of which kind.
        progress: shows the progress.
    """
    progress.stage("held-out and validation", total=2 + len(shards), unit="pairs")
    set_keys = np.zeros(0, np.uint64)  # sorted keys of all sentences of the sets so far
    for fate, settings, salt in (
        (Fate.heldout, config.heldout, 1),
        (Fate.valid, config.validation, 2),
    ):
        for number, is_short in ((settings.pairs, False), (settings.short_pairs, True)):
            if not number:
                continue
            seed = config.seed + salt
            for part, chosen in _draw(shards, config, settings, number, is_short, seed, set_keys):
                part.shard.fates[part.rows[chosen]] = fate
                # A drawn pair is not a candidate again, so that validation shares no sentence with
                # the test set.
                keys = (set_keys, part.source_keys[chosen], part.target_keys[chosen])
                set_keys = np.unique(np.concatenate(keys))
                progress.count(int(np.count_nonzero(chosen)))
        progress.advance()
    for shard in shards:
        shares = is_in(set_keys, shard.source_keys) | is_in(set_keys, shard.target_keys)
        shard.drop(shares, Fate.in_heldout_or_valid)
        progress.advance()
    progress.done()


def _draw(
    shards: list[Shard],
    config: PrepareConfig,
    settings: SplitConfig,
    number: int,
    is_short: bool,
    seed: int,
    set_keys: UInt64[ndarray, " k"],
) -> list[tuple[_Candidates, Bool[ndarray, " n"]]]:
    """Draw a set: return the candidates of every shard, with the mask of those in the set."""
    parts: list[_Candidates] = []
    groups: list[ndarray] = []  # number of the language pair of each candidate
    language_pairs = groupby(shards, key=lambda shard: shard.language_pair)
    for group, (language_pair, members) in enumerate(language_pairs):
        if settings.english_only and ENGLISH not in language_pair:
            continue
        own = list(members)
        share = _share(total(own, Fate.train), number, settings.max_share)
        for shard in own:
            allowed = config.sources[shard.source_index].heldout
            words = settings.min_words
            part = _candidates(shard, share, seed, set_keys, words, is_short, allowed)
            parts.append(part)
            groups.append(np.full(len(part.rows), group, np.uint32))
    if not parts:
        return []
    chosen = hold_out(
        np.concatenate([part.source_keys for part in parts]),
        np.concatenate([part.target_keys for part in parts]),
        np.concatenate(groups),
        per_group=number,
        max_share=settings.max_share,
        eligible=np.concatenate([part.eligible for part in parts]),
        seed=seed,
    )
    ends = np.cumsum([len(part.rows) for part in parts])
    return list(zip(parts, np.split(chosen, ends[:-1]), strict=True))


def _share(rows: int, number: int, max_share: float) -> float:
    """Compute the share of a language pair's rows that takes part.

    It is 1, or large enough that ``max_share`` does not limit the draw.
    """
    if not rows or not max_share:
        return 0.0
    # Of n candidates n * max_share may be held out. With n = 2 * number / max_share this limit is
    # twice the requested number.
    enough = max(CANDIDATES, 2 * number / max_share)
    return min(1.0, enough / rows)


def _candidates(
    shard: Shard,
    share: float,
    seed: int,
    set_keys: UInt64[ndarray, " k"],
    min_words: int,
    is_short: bool,
    allowed: bool,
) -> _Candidates:
    is_candidate = shard.fates == Fate.train
    target_keys = shard.target_keys
    if share < 1:
        # Chosen by the random number that `hold_out` gives the target sentence: the candidates
        # are the rows that it prefers.
        ranks = splitmix64(target_keys ^ splitmix64(np.array([seed], np.uint64)))
        is_candidate &= ranks < np.uint64(int(share * 2**64))
    rows = np.flatnonzero(is_candidate)
    sources = shard.source_keys[rows]
    targets = target_keys[rows]
    has_length = (shard.words[rows] < min_words) == is_short
    is_in_set = is_in(set_keys, sources) | is_in(set_keys, targets)
    return _Candidates(shard, rows, sources, targets, has_length & ~is_in_set & allowed)
