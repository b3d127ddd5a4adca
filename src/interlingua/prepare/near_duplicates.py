"""Drops pairs that nearly repeat an earlier one, both sides taken together."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from interlingua.corpus.near_duplicates import NearDuplicates
from interlingua.prepare.progress import Stages
from interlingua.prepare.shards import Fate, Shard


def drop_near_duplicates(
    shards: list[Shard], threshold: float, folder: Path, progress: Stages
) -> None:
    """Gives ``Fate.near_duplicate`` to the later one of each two near-duplicate pairs.

    Args:
        shards: in order of preference, exact duplicates already dropped.
        threshold: Jaccard index of character shingles, 0 to 1.
        folder: for the index.
        progress: called after every shard.
    """
    stage = progress.stage("near duplicates", total=len(shards), unit="pairs")
    with NearDuplicates(folder, threshold=threshold) as index:
        for shard in shards:
            for sources, targets in shard.blocks(shard.fates == Fate.train):
                pairs = zip(sources, targets, strict=True)
                index.add([f"{source}\n{target}" for source, target in pairs])
                stage.count(len(sources))
            stage.advance()
        found = index.duplicates()
    # The index numbers the training rows of all shards through; ``first`` is a shard's first one.
    first = 0
    for shard in shards:
        rows = np.flatnonzero(shard.fates == Fate.train)
        shard.fates[rows[found[first : first + len(rows)]]] = Fate.near_duplicate
        first += len(rows)
    stage.done()
