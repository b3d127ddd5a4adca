"""Second stage: decides the fate of every clean pair, from its keys alone where it can."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, UInt64
from numpy import ndarray

from interlingua.corpus.decontaminate import EvaluationKeys
from interlingua.corpus.dedup import ExactDeduplicator
from interlingua.corpus.keys import combine_keys, splitmix64
from interlingua.prepare.config import PrepareConfig, SourceConfig
from interlingua.prepare.progress import Progress
from interlingua.prepare.shards import Fate, Shard
from interlingua.prepare.splitting import split


class Decontaminated(NamedTuple):
    """What the evaluation sets had to do with the corpus."""

    pairs: dict[str, int]
    """Pairs that touch an evaluation set, by set; one may touch several."""
    skipped_files: tuple[str, ...]
    """Files below the evaluation sets' folders that hold no text and were not compared."""


def select(shards: list[Shard], config: PrepareConfig, folder: Path, progress: Progress) -> Decontaminated:
    """Gives every row of every shard its fate: trained on, held out, or dropped by a named rule.

    Args:
        shards: in order of preference; of equal pairs the first stays.
        config: the rules.
        folder: for the indexes of deduplication.
        progress: told about every shard.

    Returns:
        What decontamination found.
    """
    stage = progress.stage("exact duplicates", total=len(shards), unit="pairs")
    seen = ExactDeduplicator(folder / "exact")
    for shard in shards:
        shard.fates = np.zeros(shard.rows, np.uint8)
        drop(shard, ~seen.first_seen(_pair_keys(shard)), Fate.duplicate)
        stage.count(shard.rows)
        stage.advance()
    stage.done()
    if config.deduplicate.near:
        from interlingua.prepare.near_duplicates import drop_near_duplicates

        drop_near_duplicates(shards, config.deduplicate.threshold, folder / "near", progress)
    decontaminated = _decontaminate(shards, config, progress)
    for (_, source_index), group in groupby(shards, key=lambda shard: (shard.language_pair, shard.source_index)):
        _weigh_down(list(group), config.sources[source_index], config.seed)
    split(shards, config, progress)
    return decontaminated


def drop(shard: Shard, rows: Bool[ndarray, " rows"], fate: Fate) -> None:
    """Gives the marked rows a fate, unless an earlier rule has."""
    shard.fates[rows & (shard.fates == Fate.train)] = fate


def _pair_keys(shard: Shard) -> UInt64[ndarray, " rows"]:
    return combine_keys(shard.source_keys, shard.target_keys, *shard.language_pair)


def _decontaminate(shards: list[Shard], config: PrepareConfig, progress: Progress) -> Decontaminated:
    stage = progress.stage("evaluation sets", total=len(shards), unit="pairs removed")
    evaluation = EvaluationKeys.from_folders(config.decontaminate, markup=config.clean.markup)
    for shard in shards:
        left = np.flatnonzero(shard.fates == Fate.train)
        found = evaluation.contaminated_keys(shard.source_keys[left], shard.target_keys[left])
        shard.fates[left[found]] = Fate.in_evaluation_set
        stage.count(int(np.count_nonzero(found)))
        stage.advance()
    stage.done()
    return Decontaminated(dict(evaluation.counts), tuple(map(str, evaluation.skipped)))


def _weigh_down(shards: list[Shard], source: SourceConfig, seed: int) -> None:
    """Keeps a random share of a language pair's rows, and of those at most ``max_pairs``."""
    left = sum(shard.count(Fate.train) for shard in shards)
    weighted = round(source.weight * left)
    kept = min(weighted, source.max_pairs or weighted)
    if kept == left:
        return
    ranks = [splitmix64(_pair_keys(shard) ^ np.uint64(seed)) for shard in shards]
    in_order = np.sort(np.concatenate([rank[s.fates == Fate.train] for rank, s in zip(ranks, shards, strict=True)]))
    for rank, shard in zip(ranks, shards, strict=True):
        # The keys of one language pair are distinct by now, so that the limits fall between two rows.
        for limit, fate in ((weighted, Fate.over_weight), (kept, Fate.over_max_pairs)):
            if limit < left:
                drop(shard, rank >= in_order[limit], fate)
