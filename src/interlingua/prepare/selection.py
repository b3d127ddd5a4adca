"""Second stage: decides the fate of every clean pair, from its keys alone where it can."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int64, UInt64
from numpy import ndarray

from interlingua.corpus.decontaminate import EvaluationKeys
from interlingua.corpus.dedup import ExactDeduplicator
from interlingua.corpus.keys import combine_keys, splitmix64
from interlingua.corpus.splits import hold_out
from interlingua.prepare.config import PrepareConfig, SourceConfig, SplitConfig
from interlingua.prepare.progress import Progress
from interlingua.prepare.shards import Fate, Shard
from interlingua.prepare.sources import ENGLISH


def select(shards: list[Shard], config: PrepareConfig, folder: Path, progress: Progress) -> dict[str, int]:
    """Gives every row of every shard its fate: trained on, held out, or dropped by a named rule.

    Args:
        shards: in order of preference; of equal pairs the first stays.
        config: the rules.
        folder: for the indexes of deduplication.
        progress: told about every shard.

    Returns:
        Pairs that touch an evaluation set, by set.
    """
    stage = progress.stage("duplicates, evaluation sets", total=len(shards), unit="pairs")
    seen = ExactDeduplicator(folder / "exact")
    for shard in shards:
        shard.fates = np.zeros(shard.rows, np.uint8)
        drop(shard, ~seen.first_seen(_pair_keys(shard)), Fate.duplicate)
    if config.deduplicate.near:
        from interlingua.prepare.near_duplicates import drop_near_duplicates

        drop_near_duplicates(shards, config.deduplicate.threshold, folder / "near", progress)
    evaluation = EvaluationKeys.from_folders(config.decontaminate, markup=config.clean.markup)
    for shard in shards:
        _drop_contaminated(shard, evaluation)
        _weigh_down(shard, config.sources[shard.source_index], config.seed)
        stage.count(shard.rows)
        stage.advance()
    stage.done()
    _split(shards, config, progress)
    return dict(evaluation.counts)


def drop(shard: Shard, rows: Bool[ndarray, " rows"], fate: Fate) -> None:
    """Gives the marked rows a fate, unless an earlier rule has."""
    shard.fates[rows & (shard.fates == Fate.train)] = fate


def _pair_keys(shard: Shard) -> UInt64[ndarray, " rows"]:
    return combine_keys(shard.source_keys, shard.target_keys, *shard.language_pair)


def _drop_contaminated(shard: Shard, evaluation: EvaluationKeys) -> None:
    left = np.flatnonzero(shard.fates == Fate.train)
    found = evaluation.contaminated_keys(shard.source_keys[left], shard.target_keys[left])
    shard.fates[left[found]] = Fate.in_evaluation_set


def _weigh_down(shard: Shard, source: SourceConfig, seed: int) -> None:
    """Keeps a random share of the rows, and of those at most ``max_pairs``: those of the smallest random numbers."""
    left = np.flatnonzero(shard.fates == Fate.train)
    weighted = len(left) if source.weight == 1 else round(source.weight * len(left))
    kept = min(weighted, source.max_pairs or weighted)
    if kept == len(left):
        return
    order = left[np.argsort(splitmix64(_pair_keys(shard)[left] ^ np.uint64(seed)), kind="stable")]
    shard.fates[order[weighted:]] = Fate.over_weight
    shard.fates[order[kept:weighted]] = Fate.over_max_pairs


class _Rows:
    """The rows still in training, of all shards, side by side."""

    def __init__(self, shards: list[Shard], config: PrepareConfig) -> None:
        self.shards = shards
        numbers = {pair: number for number, pair in enumerate(sorted({shard.language_pair for shard in shards}))}
        left = [np.flatnonzero(shard.fates == Fate.train) for shard in shards]
        self.place: list[Int64[ndarray, " r"]] = left
        self.sources = _concatenate([s.source_keys[rows] for s, rows in zip(shards, left, strict=True)], np.uint64)
        self.targets = _concatenate([s.target_keys[rows] for s, rows in zip(shards, left, strict=True)], np.uint64)
        self.words = _concatenate([s.words[rows] for s, rows in zip(shards, left, strict=True)], np.uint8)
        lengths = [len(rows) for rows in left]
        self.groups = np.repeat(np.array([numbers[s.language_pair] for s in shards], np.uint32), lengths)
        self.allowed = np.repeat([config.sources[s.source_index].heldout for s in shards], lengths).astype(bool)
        self.english = np.repeat([ENGLISH in s.language_pair for s in shards], lengths).astype(bool)

    def mark(self, rows: Bool[ndarray, " n"], fate: Fate) -> None:
        """Gives the marked rows their fate in their shards."""
        first = 0
        for shard, place in zip(self.shards, self.place, strict=True):
            shard.fates[place[rows[first : first + len(place)]]] = fate
            first += len(place)


def _split(shards: list[Shard], config: PrepareConfig, progress: Progress) -> None:
    stage = progress.stage("held-out and validation", total=4, unit="pairs")
    rows = _Rows(shards, config)
    train = np.ones(len(rows.sources), dtype=bool)
    for fate, split, salt in ((Fate.heldout, config.heldout, 1), (Fate.valid, config.validation, 2)):
        for number, eligible in _wanted(rows, split):
            if number:
                chosen = hold_out(
                    rows.sources,
                    rows.targets,
                    rows.groups,
                    per_group=number,
                    max_share=split.max_share,
                    eligible=eligible & train,  # so that validation shares no sentence with the test set
                    seed=config.seed + salt,
                )
                rows.mark(chosen.held_out, fate)
                stage.count(int(np.count_nonzero(chosen.held_out)))
                train &= chosen.train
            stage.advance()
    taken = _concatenate([shard.fates[place] for shard, place in zip(shards, rows.place, strict=True)], np.uint8)
    rows.mark(~train & (taken == Fate.train), Fate.in_heldout_or_valid)
    stage.done()


def _wanted(rows: _Rows, split: SplitConfig) -> list[tuple[int, Bool[ndarray, " n"]]]:
    eligible = rows.allowed & rows.english if split.english_only else rows.allowed
    long = rows.words >= split.min_words
    return [(split.pairs, eligible & long), (split.short_pairs, eligible & ~long)]


def _concatenate(parts: list[ndarray], dtype: type[np.generic]) -> ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)
