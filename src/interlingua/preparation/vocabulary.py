"""The vocabulary of the corpus: trained, trimmed, or a model's.

It is trained on the pairs of the corpus, taken from a model without a change, or taken from a model
and trimmed to the pairs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int64
from numpy import ndarray

from interlingua.corpus.manifest import TRIMMED_FOLDER
from interlingua.preparation.config import PrepareConfig, VocabularyConfig
from interlingua.preparation.progress import StageProgress
from interlingua.preparation.sampling import balanced_sentences
from interlingua.preparation.shards import Fate, Shard, split_lines, total
from interlingua.preparation.tokenizing import (
    MODEL_VOCABULARY,
    PairBlock,
    pair_blocks,
    saved_vocabulary,
)
from interlingua.runtime.workers import Workers

if TYPE_CHECKING:
    from interlingua.vocabulary.vocabulary import Vocabulary


log = logging.getLogger("interlingua")
SMALL_CORPUS = 100_000
"""Number of pairs below which a corpus lacks many words of its languages."""
_SHOWN_LANGUAGES = 5
"""Maximum number of languages in a log line."""


def make_vocabulary(
    shards: list[Shard],
    config: PrepareConfig,
    folder: Path,
    work: Path,
    progress: StageProgress,
    workers: Workers | None = None,
    model_vocabulary: Vocabulary | None = None,
) -> Vocabulary:
    """Make ``folder/vocabulary``, and with ``trim`` also ``folder/backbone``.

    The latter is the model that belongs to a trimmed vocabulary.

    Args:
        shards: the cleaned pairs.
        config: which vocabulary.
        folder: folder of the corpus.
        work: for temporary files.
        progress: shows the progress.
        workers: the processes that count pieces; default: this one.
        model_vocabulary: the vocabulary at ``config.vocabulary.path``, if it is saved in the folder
            ``MODEL_VOCABULARY`` of ``work``; default: it is read.

    Raises:
        ConfigError: there is no model to trim along with its vocabulary, or it can't be trimmed.
        DataError: nothing is left to train on, or there is no tokenizer at the configured path.
    """
    from interlingua.vocabulary.vocabulary import Vocabulary

    if config.vocabulary.trim:
        workers = workers or Workers()
        vocabulary = _trimmed(shards, config, folder, work, progress, workers, model_vocabulary)
    elif config.vocabulary.path:
        vocabulary = (
            model_vocabulary
            if model_vocabulary is not None
            else Vocabulary.of_model(config.vocabulary.path)
        )
    else:
        vocabulary = _trained(shards, config, work, progress)
    vocabulary.save(folder / "vocabulary")
    return vocabulary


def _trimmed(
    shards: list[Shard],
    config: PrepareConfig,
    folder: Path,
    work: Path,
    progress: StageProgress,
    workers: Workers,
    model_vocabulary: Vocabulary | None,
) -> Vocabulary:
    from interlingua.encoder.encoder import Encoder

    encoder = Encoder.load(config.vocabulary.path)
    # Both sides of all pairs that are stored as tokens.
    rows = total(shards, Fate.train) + total(shards, Fate.valid)
    progress.stage("vocabulary", total=rows, unit="pieces")
    blocks = chain.from_iterable(pair_blocks(shards, fate) for fate in (Fate.train, Fate.valid))
    saved = work / MODEL_VOCABULARY
    if model_vocabulary is None or model_vocabulary.digest() != encoder.vocabulary.digest():
        saved = work / "untrimmed"
        encoder.vocabulary.save(saved)
    # Where this process counts, the folder may have been that of an earlier corpus.
    saved_vocabulary.cache_clear()
    tasks = ((str(saved), config.prompt or "", block) for block in blocks)
    if config.vocabulary.max_size is None:
        used: set[int] = set()
        for found, pairs in workers.run(_ids_of_block, tasks):
            used |= found
            progress.advance(pairs)
    else:
        # An array with a count per id for each language: the temperature balances the languages.
        counts: dict[str, Int64[ndarray, " vocabulary"]] = {}
        for sides, pairs in workers.run(_counts_of_block, tasks):
            for language, ids, numbers in sides:
                if language not in counts:
                    counts[language] = np.zeros(encoder.vocabulary.size, np.int64)
                counts[language][ids] += numbers
            progress.advance(pairs)
        used = _frequent_ids(config.vocabulary, encoder.vocabulary, counts)
    saved_vocabulary.cache_clear()
    progress.count(len(used))
    small = encoder.trim(used)
    if rows < SMALL_CORPUS:
        log.warning(
            "trimming keeps %s of %s pieces, taken from the texts of %s pairs; other text will be"
            " split into smaller pieces or lost; remove trim unless the model is only for texts"
            " like these pairs",
            f"{small.vocabulary.size:,}",
            f"{encoder.vocabulary.size:,}",
            f"{rows:,}",
        )
    small.save(folder / TRIMMED_FOLDER)
    progress.done()
    return small.vocabulary


def _ids_of_block(folder: str, prompt: str, block: PairBlock) -> tuple[set[int], int]:
    """Return every id that a block needs, and the number of its pairs."""
    from interlingua.vocabulary.trimming import ids_in_use

    used: set[int] = set()
    pairs = 0
    for language, texts in _prompted(prompt, block):
        used |= ids_in_use(saved_vocabulary(folder), texts, language=language)
        pairs = len(texts)
    return used, pairs


def _counts_of_block(
    folder: str, prompt: str, block: PairBlock
) -> tuple[list[tuple[str, Int64[ndarray, " k"], Int64[ndarray, " k"]]], int]:
    """Return language, ids and their counts of each side, and the number of pairs."""
    from interlingua.vocabulary.trimming import id_counts

    found = []
    pairs = 0
    for language, texts in _prompted(prompt, block):
        counts = id_counts(saved_vocabulary(folder), texts, language=language)
        ids = np.flatnonzero(counts)
        found.append((language, ids, counts[ids]))
        pairs = len(texts)
    return found, pairs


def _frequent_ids(
    settings: VocabularyConfig,
    vocabulary: Vocabulary,
    counts: Mapping[str, Int64[ndarray, " vocabulary"]],
) -> set[int]:
    """Return the ``max_size`` ids that are most frequent in the pairs."""
    from interlingua.vocabulary.trimming import most_frequent_ids

    kept = most_frequent_ids(
        vocabulary, counts, settings.max_size or 0, temperature=settings.temperature
    )
    _log_lost_tokens(counts, kept)
    return kept


def _log_lost_tokens(counts: Mapping[str, Any], kept: set[int]) -> None:
    """Log the share of tokens that are not kept, and the languages with the largest share."""
    rows = sorted(kept)
    total = 0
    total_lost = 0
    percentages = {}
    for language, of_language in counts.items():
        tokens = int(of_language.sum())
        lost = tokens - int(of_language[rows].sum())
        total += tokens
        total_lost += lost
        if tokens:
            percentages[language] = 100 * lost / tokens
    worst = sorted(percentages, key=percentages.__getitem__, reverse=True)[:_SHOWN_LANGUAGES]
    log.info(
        "%.2f %% of all tokens will be spelled by shorter pieces; most in %s",
        100 * total_lost / max(1, total),
        ", ".join(f"{language} ({percentages[language]:.2f} %)" for language in worst),
    )


def _prompted(prompt: str, block: PairBlock) -> Iterator[tuple[str, list[str]]]:
    """Yield language and texts of both sides of a block, with the prompt in front."""
    for language, texts in zip(block.language_pair, split_lines(block.lines), strict=True):
        yield language, [prompt + text for text in texts]


def _trained(
    shards: list[Shard], config: PrepareConfig, work: Path, progress: StageProgress
) -> Vocabulary:
    from interlingua.vocabulary.sentencepiece_training import train_vocabulary

    settings = config.vocabulary
    progress.stage("vocabulary", total=1, unit="sentences")
    sample = balanced_sentences(
        shards,
        work,
        sentences=settings.sample_sentences,
        temperature=settings.temperature,
        seed=config.seed,
        count=progress.count,
    )
    vocabulary = train_vocabulary(
        sample,
        size=settings.size,
        languages=sorted({code for shard in shards for code in shard.language_pair}),
        model_type=settings.model_type,
        lowercase=settings.lowercase,
        byte_fallback=settings.byte_fallback,
        character_coverage=settings.character_coverage,
        temperature=1.0,  # the sample is balanced already
        sample_sentences=2 * settings.sample_sentences,  # more than the sample has
        pre_tokenizer=settings.pre_tokenizer,
        seed=config.seed,
    )
    progress.done()
    return vocabulary
