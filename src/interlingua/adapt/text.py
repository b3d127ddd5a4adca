"""Texts for ``extend``: pairs of the new language, and sentences of other languages to replay."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

from interlingua.adapt.settings import ExtendSettings
from interlingua.config.languages import resolve_language
from interlingua.corpus.cleaning.decontaminate import EvaluationKeys
from interlingua.corpus.cleaning.keys import text_keys
from interlingua.corpus.formats.bitext import (
    TextPair,
    guess_format,
    languages_from_name,
    read_pairs,
)
from interlingua.corpus.formats.monolingual import find_language, language_of, read_sentences
from interlingua.corpus.formats.sentence_table import has_sentences
from interlingua.errors import DataError
from interlingua.preparation.config import (
    PrepareConfig,
    SourceConfig,
    SplitConfig,
    VocabularyConfig,
)
from interlingua.preparation.ingest import clean_blocks
from interlingua.storage.files import PathLike, stem_and_suffix

SELF_DESCRIBING = ("tmx", "jsonl", "huggingface", "gettext")
"""Formats in which pairs carry their languages."""
_VALIDATED = 2
"""Minimum number of validation pairs: the loss compares a pair with the others of its batch."""


class PairSentences(NamedTuple):
    """The sentences of both languages of the pairs."""

    language: list[str]
    pivot: list[str]


def read_sides(settings: ExtendSettings) -> PairSentences:
    """Read all pairs of the new language and the pivot, not cleaned.

    Raises:
        DataError: there are no such pairs, or a file is broken.
    """
    language = resolve_language(settings.language).code
    pivot = resolve_language(settings.pivot).code
    sides = PairSentences([], [])
    others: set[str] = set()
    for path in settings.pairs:
        for pair in read_pairs_of(path, language, pivot):
            codes = {pair.source_language, pair.target_language}
            if codes != {language, pivot}:
                others.add("-".join(sorted(codes)))
                continue
            # A file may have the languages the other way round.
            if pair.source_language != language:
                pair = pair.swapped()
            sides.language.append(pair.source)
            sides.pivot.append(pair.target)
    if not sides.language:
        found = "the files contain no pairs"
        if others:
            found = f"the files contain pairs of {', '.join(sorted(others))}"
        raise DataError(
            f"no pairs of {language} and {pivot}: {found}; check --lang and --pivot",
            path=settings.pairs[0],
        )
    return sides


def read_pairs_of(path: PathLike, language: str, pivot: str) -> list[TextPair]:
    """Read the pairs of a file.

    Its first side is ``language`` if neither content nor name specifies the languages.
    """
    first, second = _languages(path, language, pivot)
    return list(read_pairs(path, source_language=first, target_language=second))


def _languages(path: PathLike, language: str, pivot: str) -> tuple[str | None, str | None]:
    """Return the languages to read a file with; None if the file names them."""
    if guess_format(path) in SELF_DESCRIBING or languages_from_name(path) is not None:
        return None, None
    return language, pivot


def adaptation_corpus_config(
    settings: ExtendSettings, vocabulary: Path | str, prompt: str
) -> PrepareConfig:
    """Return the config of cleaning, splitting and tokenizing the pairs.

    Sentences of the check sets stay out of training.

    Args:
        settings: the user's options.
        vocabulary: the model with the vocabulary.
        prompt: put in front of every text.
    """
    language = resolve_language(settings.language).code
    pivot = resolve_language(settings.pivot).code
    sources = []
    for path in settings.pairs:
        first, second = _languages(path, language, pivot)
        languages = None
        if first is not None and second is not None:
            languages = (first, second)
        sources.append(SourceConfig(paths=(path,), languages=languages))
    return PrepareConfig(
        output=Path(settings.output) / "corpus",
        sources=tuple(sources),
        languages=(language, pivot),
        decontaminate=settings.check,
        heldout=SplitConfig(pairs=settings.heldout, min_words=3, max_share=0.1, english_only=False),
        validation=SplitConfig(pairs=100, min_words=3, max_share=0.02, english_only=False),
        vocabulary=VocabularyConfig(path=str(vocabulary)),
        prompt=prompt,
        max_tokens=settings.max_tokens,
        seed=settings.seed,
        processes=1,
    )


def check_pair_count(settings: ExtendSettings) -> None:
    """Check that the pairs suffice to hold out some of them for measurement and for validation.

    The pairs are cleaned as for training, and reading stops as soon as there are enough.

    Raises:
        DataError: there are too few pairs, or a file is broken.
    """
    config = adaptation_corpus_config(settings, str(settings.model), "")
    checked = EvaluationKeys.from_folders(settings.check) if settings.check else None
    pairs: set[tuple[int, int]] = set()
    sources: set[int] = set()
    targets: set[int] = set()
    # Pairs that can be held out: long enough, and neither sentence is in an earlier one.
    eligible = 0
    for block in clean_blocks(config):
        is_kept = np.ones(len(block.words), bool)
        if checked is not None:
            is_kept = ~checked.contaminated_keys(block.source_keys)
            is_kept &= ~checked.contaminated_keys(block.target_keys)
        is_long = block.words >= config.heldout.min_words
        for row in np.flatnonzero(is_kept).tolist():
            source, target = int(block.source_keys[row]), int(block.target_keys[row])
            pairs.add((source, target))
            if is_long[row] and source not in sources and target not in targets:
                sources.add(source)
                targets.add(target)
                eligible += 1
        # At most ``heldout`` pairs are held out, so more pairs cannot be too few again.
        if eligible >= config.heldout.pairs + _VALIDATED and _suffice(config, len(pairs), eligible):
            return
    if _suffice(config, len(pairs), eligible):
        return
    # If there are no pairs at all, this error names the languages that were found.
    read_sides(settings)
    expected = next(number for number in count(1) if _suffice(config, number, number))
    held_out = min(config.heldout.pairs, int(config.heldout.max_share * len(pairs)))
    raise DataError(
        f"too few pairs of {settings.language} and {settings.pivot}: {len(pairs):,} remain after"
        f" cleaning, {eligible:,} of them with at least {config.heldout.min_words} words and new"
        f" sentences on both sides, expected at least {max(expected, held_out + _VALIDATED):,};"
        " name further files with --pairs",
        path=settings.pairs[0],
    )


def _suffice(config: PrepareConfig, pairs: int, eligible: int) -> bool:
    """Return whether there are pairs to hold out, and enough others for validation.

    Args:
        config: specifies the shares that may be held out.
        pairs: number of all pairs.
        eligible: number of pairs that can be held out.
    """
    held_out = min(config.heldout.pairs, int(config.heldout.max_share * pairs), eligible)
    validated = min(int(config.validation.max_share * (pairs - held_out)), eligible - held_out)
    return held_out > 0 and validated >= _VALIDATED


def read_replay(settings: ExtendSettings) -> dict[str, list[str]]:
    """Read sentences of other languages by their code, without those of the check sets.

    Text files, and tables with a column of sentences, are named by their language (``ru.txt``).
    Both sides of bitexts are read.

    Raises:
        DataError: a file is broken or has no language, or nothing is left.
    """
    # The inner dicts have no values: they keep each sentence once, in the order of reading.
    found: dict[str, dict[str, None]] = {}
    for path in settings.replay:
        for code, text in _sentences(path):
            own = found.setdefault(code, {})
            if len(own) < settings.replay_sentences:
                own[text] = None
    replay = {code: list(texts) for code, texts in sorted(found.items())}
    # Text that measures forgetting must not be trained on.
    if settings.check and replay:
        checked = EvaluationKeys.from_folders(settings.check)
        for code, texts in replay.items():
            known = checked.contaminated_keys(text_keys(texts))
            replay[code] = [texts[row] for row in np.flatnonzero(~known).tolist()]
    if settings.replay and not any(replay.values()):
        raise DataError(
            "no sentences to replay remain; name other files with --replay", path=settings.replay[0]
        )
    return {code: texts for code, texts in replay.items() if texts}


def _sentences(path: Path) -> list[tuple[str, str]]:
    """Read the sentences of a text, table or bitext, each with the code of its language."""
    # A text that names two languages (de-en.txt) is a bitext.
    is_text = stem_and_suffix(path)[1] == ".txt" and languages_from_name(path) is None
    if is_text or has_sentences(path, language=find_language(path)):
        code = language_of(path)
        return [(code, text) for text in read_sentences(path)]
    sentences: list[tuple[str, str]] = []
    for pair in read_pairs(path):
        sentences.append((pair.source_language, pair.source))
        sentences.append((pair.target_language, pair.target))
    return sentences


def write_replay(folder: Path, replay: dict[str, list[str]], prompt: str) -> list[Path]:
    """Write ``<code>.txt`` files as the monolingual feed reads them.

    A line holds a sentence, with the prompt in front.

    Returns:
        the files.
    """
    files = []
    for code, texts in replay.items():
        # A line break inside a sentence would split it into two sentences.
        lines = [f"{prompt}{' '.join(text.split())}\n" for text in texts]
        files.append(folder / f"{code}.txt")
        files[-1].write_text("".join(lines), encoding="utf-8")
    return files
