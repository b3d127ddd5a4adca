"""``interlingua prepare``: read, clean, deduplicate, decontaminate, split, tokenize.

Texts stay on the disk, in shards of one source and language pair. Decisions about them need only a
few numbers per pair: keys, lengths and scores. The stages after the first read these numbers and
give every pair a fate (``shards.Fate``); the last stages write the pairs of each fate.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import logging
import os
import platform
import shutil
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

from interlingua import __version__
from interlingua.config import to_mapping
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.manifest import (
    CORPUS_ENTRIES,
    LanguagePairRecord,
    Manifest,
    SourceRecord,
    is_corpus,
)
from interlingua.preparation.config import PrepareConfig, known_languages
from interlingua.preparation.ingest import SourceCounts, cleaner_of, ingest
from interlingua.preparation.output import check_not_empty, write_store, write_texts
from interlingua.preparation.progress import StageProgress
from interlingua.preparation.prompt import with_prompt
from interlingua.preparation.selection import select
from interlingua.preparation.shards import DROPPED_FATES, Fate, Shard, total
from interlingua.preparation.sources import check_sources
from interlingua.preparation.tokenizing import MODEL_VOCABULARY, PairTokenizer, saved_vocabulary
from interlingua.preparation.vocabulary import make_vocabulary
from interlingua.runtime.progress import Progress, progress_of
from interlingua.runtime.workers import Workers, in_processes
from interlingua.storage.files import atomic_directory
from interlingua.storage.limits import line_limit
from interlingua.storage.locks import exclusive
from interlingua.vocabulary.vocabulary import Vocabulary

REJECTED_LINES = "rejected_lines.tsv"
log = logging.getLogger("interlingua")


def prepare_corpus(
    config: PrepareConfig, *, overwrite: bool = False, progress: bool | Progress = False
) -> Manifest:
    """Prepare a training corpus; its folder appears only when it is complete.

    The folder holds ``manifest.json``, ``vocabulary/`` (and ``backbone/`` if trimmed), the token
    stores ``train/`` and ``valid/``, the texts ``valid_text/`` and ``heldout/``, and
    ``rejected_lines.tsv`` if lines were skipped.

    Args:
        config: sources, limits and output folder.
        overwrite: replace the folder if a prepared corpus is in it.
        progress: True shows bars on standard error, or a line a minute if that is no terminal.

    Raises:
        DataError: a file is missing or broken (with its line), nothing is left, there is no
            vocabulary to take, or the output exists.
        ConfigError: another run is making the same folder.
    """
    output = Path(os.path.realpath(config.output))  # one lock for all names of a folder
    lock = exclusive(
        output.parent,
        name=f".{output.name}.lock",
        what=config.output,
        remedy="name another folder with --output",
    )
    with (
        lock,
        line_limit(config.max_line_characters),
        atomic_directory(
            config.output, overwrite=overwrite, ours=is_corpus, entries=CORPUS_ENTRIES
        ) as folder,
        progress_of(progress) as shown,
        in_processes(config.used_processes, "try again with --set processes=1") as workers,
    ):
        stages = StageProgress(shown)
        work = folder / "work"
        work.mkdir()
        config, model_vocabulary = _checked(config, work, workers)
        with BadLines(config.on_error, folder / REJECTED_LINES) as bad:
            shards, counts = ingest(config, work, stages, bad, workers)
        bad.path = config.output / REJECTED_LINES  # the final place of the file
        _warn_of(config, counts, bad)
        decontaminated = select(shards, config, work, stages, workers, model_vocabulary)
        _check_what_is_left(config, shards, counts)
        # Only now, because the vocabulary is made from the pairs that are left.
        vocabulary = make_vocabulary(
            shards, config, folder, work, stages, workers, model_vocabulary
        )
        tokenizer = PairTokenizer(
            vocabulary,
            # The processes have read a vocabulary that stays as it is.
            work / MODEL_VOCABULARY if vocabulary is model_vocabulary else folder / "vocabulary",
            prompt=config.prompt or "",
            max_tokens=config.max_tokens,
        )
        tokens = write_store(folder / "train", shards, Fate.train, tokenizer, stages, workers)
        write_store(folder / "valid", shards, Fate.valid, tokenizer, stages, workers)
        write_texts(folder / "valid_text", shards, Fate.valid)
        write_texts(folder / "heldout", shards, Fate.heldout)
        shutil.rmtree(work)
        records = [_source_record(config, i, found, shards) for i, found in enumerate(counts)]
        manifest = Manifest(
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            versions=_versions(),
            config=to_mapping(config),
            sources=tuple(records),
            language_pairs=_language_pair_records(shards, counts),
            dropped=dict(_lost(shards, counts)),
            decontaminated=decontaminated.pairs,
            skipped_evaluation_files=decontaminated.skipped_files,
            vocabulary={"size": vocabulary.size, "digest": vocabulary.digest()},
            tokens=tokens,
            seconds=stages.seconds,
        )
        manifest.save(folder)
    return manifest


def _checked(
    config: PrepareConfig, work: Path, workers: Workers
) -> tuple[PrepareConfig, Vocabulary | None]:
    """Find errors of the user before hours of reading, and start the processes.

    Returns:
        The configuration with the text of its prompt, and the model's vocabulary, if there is one.

    Raises:
        DataError: a source or the vocabulary can't be read.
        ConfigError: the model does not have the prompt.
    """
    # The processes import the library and build the cleaner's tables meanwhile.
    workers.warm_up(cleaner_of, config.clean)
    config = with_prompt(config)
    model_vocabulary = _read_model_vocabulary(config, work, workers)
    check_sources(config)
    return config, model_vocabulary


def _read_model_vocabulary(
    config: PrepareConfig, work: Path, workers: Workers
) -> Vocabulary | None:
    """Read the model's vocabulary and save it for the processes, if there is one.

    Raises:
        DataError: there is no such vocabulary.
    """
    if not config.vocabulary.path:
        return None
    model_vocabulary = Vocabulary.of_model(config.vocabulary.path)
    model_vocabulary.save(work / MODEL_VOCABULARY)
    workers.warm_up(saved_vocabulary, str(work / MODEL_VOCABULARY))
    return model_vocabulary


def _warn_of(config: PrepareConfig, counts: list[SourceCounts], bad: BadLines) -> None:
    for line in bad.lines():
        log.warning("%s", line.removeprefix("warning: "))
    for source, found in zip(config.sources, counts, strict=True):
        if found.read:
            continue
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in found.skipped.items())
        if reasons:
            reasons = f" (skipped: {reasons})"
        log.warning("source %s: no pairs%s; check its files", source.label, reasons)


def _check_what_is_left(
    config: PrepareConfig, shards: list[Shard], counts: list[SourceCounts]
) -> None:
    """Refuse an empty corpus, and warn of requested languages without training pairs."""
    check_not_empty(shards)
    read: Counter[str] = Counter()
    for found in counts:
        for language_pair, pairs in found.read.items():
            for code in language_pair:
                read[code] += pairs
    trained = {code for shard in shards if shard.count(Fate.train) for code in shard.language_pair}
    for code in known_languages(config.languages):
        if code not in trained:
            log.warning(
                "language %s: no training pairs (%s read); add a source in this language, or"
                " remove it from languages",
                code,
                f"{read[code]:,}",
            )


def _lost(shards: list[Shard], counts: list[SourceCounts]) -> Counter[str]:
    """Count dropped pairs by rule: from the counts of cleaning, and by their fate."""
    lost: Counter[str] = Counter()
    for found in counts:
        for dropped in found.dropped.values():
            lost.update(dropped)
    for shard in shards:
        lost.update({fate.name: count for fate in DROPPED_FATES if (count := shard.count(fate))})
    return lost


def _source_record(
    config: PrepareConfig, index: int, counts: SourceCounts, shards: list[Shard]
) -> SourceRecord:
    # Cleaning has counted the pairs of the source; fates are counted in the source's own shards.
    own = [shard for shard in shards if shard.source_index == index]
    return SourceRecord(
        name=config.sources[index].label,
        license=config.sources[index].license,
        files=tuple(counts.files),
        read=counts.read.total(),
        skipped=dict(counts.skipped),
        dropped=dict(_lost(own, [counts])),
        **_kept(own),
    )


def _kept(shards: list[Shard]) -> dict[str, int]:
    """Count the pairs in each of the corpus's three sets, by the field names of the records."""
    return {fate.name: total(shards, fate) for fate in (Fate.train, Fate.valid, Fate.heldout)}


def _language_pair_records(
    shards: list[Shard], counts: list[SourceCounts]
) -> tuple[LanguagePairRecord, ...]:
    records = []
    # The shards are in the order of their language pairs, which groupby needs.
    for language_pair, group in groupby(shards, key=lambda shard: shard.language_pair):
        own = list(group)
        lost = _lost(own, [])
        for found in counts:
            lost.update(found.dropped.get(language_pair, {}))
        records.append(
            LanguagePairRecord(
                source=language_pair[0],
                target=language_pair[1],
                dropped=dict(lost),
                **_kept(own),
            )
        )
    return tuple(records)


def _versions() -> dict[str, str]:
    packages = ("numpy", "sentencepiece", "tokenizers")
    found: dict[str, Any] = {package: importlib.metadata.version(package) for package in packages}
    return {"interlingua": __version__, "python": platform.python_version(), **found}
