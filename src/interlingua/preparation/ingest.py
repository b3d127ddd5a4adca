"""First stage: reading and cleaning of every source into shards of clean pairs and their keys.

One process reads the files in order and cuts them into chunks, the workers clean chunks.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, UInt8, UInt64
from numpy import ndarray

from interlingua.config import languages
from interlingua.corpus.cleaning.clean import CleanConfig, Cleaner
from interlingua.corpus.cleaning.keys import text_keys
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.manifest import SourceFile
from interlingua.preparation.config import PrepareConfig
from interlingua.preparation.progress import StageProgress
from interlingua.preparation.shards import Shard
from interlingua.preparation.sources import (
    ENGLISH,
    Chunk,
    LanguagePair,
    describe_file,
    find_files,
    read_chunks,
    read_errors,
)
from interlingua.runtime.workers import Workers

SHARD_ROWS = 1_000_000  # later stages hold the keys of one shard in memory at a time
UNREADABLE = "unreadable line"
BELOW_MIN_SCORE = "below_min_score"


@dataclasses.dataclass(slots=True)
class SourceCounts:
    """The counts of reading and cleaning one source."""

    files: list[SourceFile] = dataclasses.field(default_factory=list)
    read: Counter[LanguagePair] = dataclasses.field(default_factory=Counter)
    skipped: Counter[str] = dataclasses.field(default_factory=Counter)
    dropped: dict[LanguagePair, Counter[str]] = dataclasses.field(default_factory=dict)


class CleanBlock(NamedTuple):
    """A cleaned chunk, and the number of pairs that each rule has dropped."""

    source_index: int
    language_pair: LanguagePair
    read: int
    text: bytes
    source_keys: UInt64[ndarray, " n"]
    target_keys: UInt64[ndarray, " n"]
    words: UInt8[ndarray, " n"]
    scores: Float64[ndarray, " n"]
    dropped: dict[str, int]


@functools.lru_cache(maxsize=1)
def cleaner_of(config: CleanConfig) -> Cleaner:
    """Return the cleaner of this process, which reads its tables once."""
    return Cleaner(config)


def clean_chunk(config: CleanConfig, chunk: Chunk) -> CleanBlock:
    """Clean one chunk of pairs."""
    cleaner = cleaner_of(config)
    # The cleaner counts over all chunks; this chunk's counts are the difference.
    before = dict(cleaner.counts)
    pairs = cleaner.clean(chunk.pairs())
    sources = [pair.source for pair in pairs]
    targets = [pair.target for pair in pairs]
    dropped = {
        rule: count - before[rule] for rule, count in cleaner.counts.items() if count > before[rule]
    }
    if chunk.below:
        dropped[BELOW_MIN_SCORE] = chunk.below
    # A cleaned text holds neither a tab nor a line end.
    lines = [f"{source}\t{target}\n" for source, target in zip(sources, targets, strict=True)]
    scores = [np.nan if pair.score is None else pair.score for pair in pairs]
    return CleanBlock(
        chunk.source_index,
        chunk.language_pair,
        chunk.read,
        "".join(lines).encode(),
        text_keys(sources),
        text_keys(targets),
        _words(sources, targets, chunk.language_pair),
        np.array(scores, np.float64),
        dropped,
    )


def clean_blocks(config: PrepareConfig) -> Iterator[CleanBlock]:
    """Read and clean all sources lazily, chunk by chunk, and write nothing.

    Raises:
        DataError: a file is missing or broken.
    """
    wanted = _kept_languages(config)
    for index, source in enumerate(config.sources):
        for path in find_files(source):
            bad = BadLines(config.on_error)
            chunks = read_chunks(path, source, index, skipped=Counter(), wanted=wanted, bad=bad)
            for chunk in chunks:
                yield clean_chunk(config.clean, chunk)


def ingest(
    config: PrepareConfig,
    folder: Path,
    progress: StageProgress,
    bad: BadLines,
    workers: Workers | None = None,
) -> tuple[list[Shard], list[SourceCounts]]:
    """Read and clean all sources.

    Args:
        config: sources and cleaning.
        folder: where to write the shards.
        progress: shows the progress.
        bad: how to handle unreadable lines.
        workers: the processes that clean; default: this one.

    Returns:
        The shards, in the order of language pair and source, and the counts of every source.
    """
    counts = [SourceCounts() for _ in config.sources]
    shards: dict[tuple[LanguagePair, int], list[Shard]] = {}
    numbers = count()
    workers = workers or Workers()
    tasks = ((config.clean, chunk) for chunk in _chunks(config, counts, progress, bad))
    for block in workers.run(clean_chunk, tasks):
        found = counts[block.source_index]
        found.read[block.language_pair] += block.read
        found.dropped.setdefault(block.language_pair, Counter()).update(block.dropped)
        # Blocks of a language pair go into its last shard, until that is full.
        parts = shards.setdefault((block.language_pair, block.source_index), [])
        if not parts or parts[-1].rows >= SHARD_ROWS:
            parts.append(Shard(folder, next(numbers), block.source_index, block.language_pair))
        parts[-1].append(
            block.text, block.source_keys, block.target_keys, block.words, block.scores
        )
    return [shard for place in sorted(shards) for shard in shards[place]], counts


def _kept_languages(config: PrepareConfig) -> frozenset[str]:
    return frozenset(languages.resolve_language(code).code for code in config.languages)


def _chunks(
    config: PrepareConfig, counts: list[SourceCounts], progress: StageProgress, bad: BadLines
) -> Iterator[Chunk]:
    kept_languages = _kept_languages(config)
    # All files are found before the first is read: the progress bar needs their number.
    files = []
    for index, source in enumerate(config.sources):
        files += [(index, path) for path in find_files(source)]
    progress.stage("reading and cleaning", total=len(files), unit="pairs")
    for index, path in files:
        source = config.sources[index]
        before = bad.count  # of all files before this one
        skipped = counts[index].skipped
        with read_errors(path):
            counts[index].files.append(describe_file(path, source))
            for chunk in read_chunks(
                path, source, index, skipped=skipped, wanted=kept_languages, bad=bad
            ):
                progress.count(chunk.read)
                yield chunk
        if bad.count > before:
            skipped[UNREADABLE] += bad.count - before
        progress.advance()
    progress.done()


def _words(
    sources: list[str], targets: list[str], language_pair: LanguagePair
) -> UInt8[ndarray, " n"]:
    # Cleaned text has single spaces only.
    target = [min(text.count(" ") + 1, 255) for text in targets]
    if language_pair[1] == ENGLISH:
        return np.array(target, np.uint8)
    source = [min(text.count(" ") + 1, 255) for text in sources]
    return np.maximum(np.array(source, np.uint8), np.array(target, np.uint8))
