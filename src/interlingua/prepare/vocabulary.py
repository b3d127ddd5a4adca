"""The corpus's vocabulary: trained on its pairs, taken over from a model, or a model's trimmed to the pairs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from interlingua.corpus.manifest import TRIMMED_FOLDER
from interlingua.prepare.config import PrepareConfig
from interlingua.prepare.progress import Progress
from interlingua.prepare.sampling import balanced_sentences
from interlingua.prepare.shards import Fate, Shard

if TYPE_CHECKING:
    from interlingua.encoder.vocabulary import Vocabulary


log = logging.getLogger("interlingua")
SMALL_CORPUS = 100_000
"""Pairs, below which their words are far from all words of their languages."""


def make_vocabulary(
    shards: list[Shard], config: PrepareConfig, folder: Path, work: Path, progress: Progress
) -> Vocabulary:
    """Makes ``folder/vocabulary``, and with ``trim`` also ``folder/backbone``, the model that goes with it.

    Args:
        shards: the cleaned pairs.
        config: which vocabulary.
        folder: the corpus's.
        work: for temporary files.
        progress: called with how far it is.

    Raises:
        ConfigError: a vocabulary that is no model's is to be trimmed with it, or can't be.
        DataError: nothing is left to train on, or there is no tokenizer where the configuration says.
    """
    from interlingua.encoder.vocabulary import Vocabulary

    if config.vocabulary.trim:
        vocabulary = _trimmed(shards, config, folder, progress)
    elif config.vocabulary.path:
        vocabulary = Vocabulary.of_model(config.vocabulary.path)
    else:
        vocabulary = _trained(shards, config, work, progress)
    vocabulary.save(folder / "vocabulary")
    return vocabulary


def _trimmed(shards: list[Shard], config: PrepareConfig, folder: Path, progress: Progress) -> Vocabulary:
    from interlingua.encoder.encoder import Encoder
    from interlingua.encoder.vocabulary_trimming import ids_in_use

    encoder = Encoder.load(config.vocabulary.path)
    rows = sum(shard.count(fate) for shard in shards for fate in (Fate.train, Fate.valid))
    stage = progress.stage("vocabulary", total=2 * rows, unit="pieces")
    used: set[int] = set()
    for shard in shards:
        for language, texts in _texts(shard):
            prompted = ((config.prompt or "") + text for text in texts)
            used |= ids_in_use(encoder.vocabulary, prompted, language=language)
            stage.advance(len(texts))
    stage.count(len(used))
    small = encoder.trim(used)
    if rows < SMALL_CORPUS:
        log.warning(
            "trimming keeps %s of %s pieces, those of %s pairs: other text will be cut into smaller pieces or lost;"
            " remove trim unless the model is for such texts alone",
            *(f"{number:,}" for number in (small.vocabulary.size, encoder.vocabulary.size, rows)),
        )
    small.save(folder / TRIMMED_FOLDER)
    stage.done()
    return small.vocabulary


def _texts(shard: Shard) -> Iterator[tuple[str, list[str]]]:
    for fate in (Fate.train, Fate.valid):
        for sides in shard.blocks(shard.fates == fate):
            yield from zip(shard.language_pair, sides, strict=True)


def _trained(shards: list[Shard], config: PrepareConfig, work: Path, progress: Progress) -> Vocabulary:
    from interlingua.encoder.vocabulary_training import train_vocabulary

    settings = config.vocabulary
    stage = progress.stage("vocabulary", total=1, unit="sentences")
    vocabulary = train_vocabulary(
        balanced_sentences(
            shards,
            work,
            sentences=settings.sample_sentences,
            temperature=settings.temperature,
            seed=config.seed,
            count=stage.count,
        ),
        size=settings.size,
        languages=sorted({code for shard in shards for code in shard.language_pair}),
        model_type=settings.model_type,
        lowercase=settings.lowercase,
        byte_fallback=settings.byte_fallback,
        character_coverage=settings.character_coverage,
        temperature=1.0,  # the sample is balanced already
        sample_sentences=2 * settings.sample_sentences,
        pre_tokenizer=settings.pre_tokenizer,
        seed=config.seed,
    )
    stage.done()
    return vocabulary
