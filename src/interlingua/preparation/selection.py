"""Second stage: selection of the clean pairs to keep, which reads only their keys if possible.

The rules are applied in the order of ``select``, and each rule ignores the rows that an earlier one
has dropped. So a limit on the number of pairs counts only pairs that no earlier rule has dropped.
Held-out pairs are drawn last, from the pairs for training.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt64
from numpy import ndarray

from interlingua.corpus.cleaning.decontaminate import EvaluationKeys
from interlingua.corpus.cleaning.dedup import ExactDeduplicator
from interlingua.corpus.cleaning.keys import combine_keys, splitmix64
from interlingua.corpus.cleaning.near_duplicates import HashedTexts, NearDuplicates, hash_texts
from interlingua.preparation.config import PrepareConfig, SourceConfig
from interlingua.preparation.progress import StageProgress
from interlingua.preparation.shards import Fate, Shard, total
from interlingua.preparation.splitting import split_rows
from interlingua.preparation.tokenizing import (
    MODEL_VOCABULARY,
    PairBlock,
    PairTokenizer,
    pair_blocks,
)
from interlingua.runtime.workers import Workers
from interlingua.vocabulary.vocabulary import Vocabulary


class Decontaminated(NamedTuple):
    """The overlap of the evaluation sets with the corpus."""

    pairs: dict[str, int]
    """Pairs that share a sentence with an evaluation set, by set; a pair may count for several."""
    skipped_files: tuple[str, ...]
    """Files below the evaluation sets' folders that hold no text and were not compared."""


def select(
    shards: list[Shard],
    config: PrepareConfig,
    folder: Path,
    progress: StageProgress,
    workers: Workers | None = None,
    model_vocabulary: Vocabulary | None = None,
) -> Decontaminated:
    """Give every row of every shard its fate: trained on, held out, or dropped by a named rule.

    Args:
        shards: in order of preference; of equal pairs the first stays.
        config: the rules.
        folder: for the indexes of deduplication.
        progress: shows the progress.
        workers: the processes that compute; default: this one.
        model_vocabulary: the vocabulary at ``config.vocabulary.path``, if it is saved in the folder
            ``MODEL_VOCABULARY`` of ``folder``; default: it is read if it is needed.

    Returns:
        The findings of decontamination.
    """
    workers = workers or Workers()
    # Of equal pairs the first stays, so the shards come in the order of preference.
    progress.stage("exact duplicates", total=len(shards), unit="pairs")
    seen = ExactDeduplicator(folder / "exact")
    for shard in shards:
        shard.fates = np.zeros(shard.rows, np.uint8)
        shard.drop(~seen.first_seen(_pair_keys(shard)), Fate.duplicate)
        progress.count(shard.rows)
        progress.advance()
    progress.done()
    if config.deduplicate.near:
        threshold = config.deduplicate.threshold
        drop_near_duplicates(shards, threshold, folder / "near", progress, workers)
    decontaminated = _decontaminate(shards, config, progress, workers)
    if config.long_pairs == "drop":
        if model_vocabulary is None:
            model_vocabulary = Vocabulary.of_model(config.vocabulary.path)
            model_vocabulary.save(folder / MODEL_VOCABULARY)
        # Texts are tokenized as the corpus will store them: with the prompt and special tokens.
        tokenizer = PairTokenizer(
            model_vocabulary, folder / MODEL_VOCABULARY, prompt=config.prompt or "", max_tokens=None
        )
        _drop_long(shards, config.max_tokens, tokenizer, progress, workers)
    for _, of_pair in groupby(shards, key=lambda shard: shard.language_pair):
        # Number of training pairs from the sources before this one, in the order of preference.
        earlier = 0
        for source_index, group in groupby(of_pair, key=lambda shard: shard.source_index):
            own = list(group)
            _limit(own, config.sources[source_index], config.seed, earlier)
            earlier += total(own, Fate.train)
    split_rows(shards, config, progress)
    return decontaminated


def _pair_keys(shard: Shard) -> UInt64[ndarray, " rows"]:
    return combine_keys(shard.source_keys, shard.target_keys, *shard.language_pair)


def drop_near_duplicates(
    shards: list[Shard],
    threshold: float,
    folder: Path,
    progress: StageProgress,
    workers: Workers,
) -> None:
    """Give ``Fate.near_duplicate`` to the later pair of every two near-duplicates.

    Args:
        shards: in order of preference, exact duplicates already dropped.
        threshold: Jaccard index of character shingles, 0 to 1.
        folder: for the index.
        progress: shows the progress.
        workers: the processes that hash, sort and compare.
    """
    progress.stage("near duplicates", total=total(shards, Fate.train), unit="pairs")
    with NearDuplicates(folder, threshold=threshold) as index:
        tasks = ((block, threshold) for block in pair_blocks(shards, Fate.train))
        for hashed in workers.run(_hash_pairs, tasks):
            index.append(hashed)
            pairs = sum(len(part.starts) for part in hashed)
            progress.count(pairs)
            progress.advance(pairs)
        found = index.duplicates(workers)
    # The index numbers the training rows of all shards in one sequence; ``first`` is the number of
    # the first row of a shard.
    first = 0
    for shard in shards:
        rows = np.flatnonzero(shard.fates == Fate.train)
        shard.fates[rows[found[first : first + len(rows)]]] = Fate.near_duplicate
        first += len(rows)
    progress.done()


def _hash_pairs(block: PairBlock, threshold: float) -> list[HashedTexts]:
    # Both sides of a pair, joined, are one text.
    texts = block.lines.replace("\t", "\n").split("\n")[:-1]
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return hash_texts([f"{source}\n{target}" for source, target in pairs], threshold)


def _decontaminate(
    shards: list[Shard], config: PrepareConfig, progress: StageProgress, workers: Workers
) -> Decontaminated:
    progress.stage("evaluation sets", total=len(shards), unit="pairs removed")
    evaluation = EvaluationKeys.from_folders(
        config.decontaminate, markup=config.clean.markup, workers=workers
    )
    # Only rows that are not dropped yet: the counts are of pairs that would be trained on.
    for shard in shards:
        rows = np.flatnonzero(shard.fates == Fate.train)
        found = evaluation.contaminated_keys(shard.source_keys[rows], shard.target_keys[rows])
        shard.fates[rows[found]] = Fate.in_evaluation_set
        progress.count(int(np.count_nonzero(found)))
        progress.advance()
    progress.done()
    return Decontaminated(dict(evaluation.counts), tuple(map(str, evaluation.skipped)))


def _drop_long(
    shards: list[Shard],
    max_tokens: int,
    tokenizer: PairTokenizer,
    progress: StageProgress,
    workers: Workers,
) -> None:
    """Give ``over_max_tokens`` to the rows with a side that would have to be cut."""
    progress.stage("lengths in tokens", total=len(shards), unit="pairs removed")
    for shard in shards:
        rows = np.flatnonzero(shard.fates == Fate.train)
        blocks = ((block,) for block in pair_blocks([shard], Fate.train))
        lengths = [np.zeros(0, np.int64), *workers.run(tokenizer.longest, blocks)]
        is_long = np.concatenate(lengths) > max_tokens
        shard.fates[rows[is_long]] = Fate.over_max_tokens
        progress.count(int(np.count_nonzero(is_long)))
        progress.advance()
    progress.done()


def _limit(shards: list[Shard], source: SourceConfig, seed: int, earlier: int) -> None:
    """Keep the rows of a source that its weight and its limits allow.

    First ``weight`` keeps a random share of the rows. Of this share ``max_pairs`` and ``fill_to``
    keep either random rows or those with the best scores, see ``max_pairs_by``.

    Args:
        shards: of one source and one language pair.
        source: its limits.
        seed: of the draws.
        earlier: training pairs that earlier sources have for this language pair.
    """
    by_score = source.max_pairs_by == "score"
    if source.only_missing and earlier:
        _keep_first(shards, 0, Fate.in_earlier_source, seed)
    weighted = round(source.weight * total(shards, Fate.train))
    _keep_first(shards, weighted, Fate.over_weight, seed)
    if source.max_pairs:
        _keep_first(shards, source.max_pairs, Fate.over_max_pairs, seed, by_score=by_score)
    if source.fill_to:
        lacking = max(0, source.fill_to - earlier)
        _keep_first(shards, lacking, Fate.over_fill_to, seed, by_score=by_score)


def _keep_first(
    shards: list[Shard], limit: int, fate: Fate, seed: int, *, by_score: bool = False
) -> None:
    """Give the fate to all training rows except the first ``limit`` ones.

    Rows are in the order of a draw, or of their scores, with a draw among equal scores.
    """
    rows = [np.flatnonzero(shard.fates == Fate.train) for shard in shards]
    if sum(map(len, rows)) <= limit:
        return
    # The keys of one language pair are distinct by now, so that no two rows are equal in the draw.
    draws = []
    for shard, own in zip(shards, rows, strict=True):
        draws.append(splitmix64(_pair_keys(shard)[own] ^ np.uint64(seed)))
    # lexsort sorts by the last key first: by descending score, then by the draw.
    keys: list[ndarray] = [np.concatenate(draws)]
    if by_score:
        scores = [shard.scores[own] for shard, own in zip(shards, rows, strict=True)]
        keys.append(-np.concatenate(scores))
    over = np.ones(len(keys[0]), bool)
    over[np.lexsort(keys)[:limit]] = False
    # The marks of all shards, cut into those of each.
    ends = np.cumsum([len(own) for own in rows])
    for shard, own, marks in zip(shards, rows, np.split(over, ends[:-1]), strict=True):
        shard.fates[own[marks]] = fate
