"""The feed of sentences without translations: normalized and decontaminated as pairs are.

A file is read once and in chunks, whatever its size; a seeded reservoir samples the sentences that
are kept.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from interlingua.batches.table import TokenColumn
from interlingua.corpus.cleaning.decontaminate import EvaluationKeys
from interlingua.corpus.cleaning.keys import text_keys
from interlingua.corpus.cleaning.normalize import normalize_texts
from interlingua.corpus.formats.monolingual import language_of, read_sentences
from interlingua.corpus.samples.reservoir import reservoir
from interlingua.errors import DataError
from interlingua.runtime.portions import portions
from interlingua.training.feeds.columns import token_column
from interlingua.training.feeds.data_config import MonolingualConfig
from interlingua.vocabulary.vocabulary import Vocabulary

log = logging.getLogger("interlingua")
CHUNK = 10_000
"""Sentences worked on at once."""


def open_monolingual(section: MonolingualConfig, vocabulary: Vocabulary) -> TokenColumn:
    """Read the sentences of all files.

    Args:
        section: says where they are, how many to draw, and what is to be left out.
        vocabulary: makes their tokens.

    Raises:
        DataError: a file or an evaluation folder can't be used, or nothing of a file is left.
    """
    # One for all files: it counts what is left out of each evaluation set.
    evaluation = EvaluationKeys.from_folders(section.decontaminate)
    texts: list[str] = []
    languages: list[str] = []
    for path in section.paths:
        found = drawn_sentences(path, section, evaluation)
        texts += found
        languages += [language_of(path)] * len(found)
    for name, count in evaluation.counts.items():
        if count:
            log.warning(
                "data.monolingual: left out %d sentences of the evaluation set %s", count, name
            )
    return token_column(texts, languages, vocabulary, section.max_tokens)


def drawn_sentences(
    path: Path, section: MonolingualConfig, evaluation: EvaluationKeys
) -> list[str]:
    """Up to ``max_sentences`` of a file's sentences, every one as likely as any other.

    Raises:
        DataError: none is left.
    """
    clean = _clean_sentences(path, section.column, evaluation)
    if section.max_sentences:
        texts = reservoir(clean, section.max_sentences, seed=section.seed)
    else:
        texts = list(clean)
    if not texts:
        raise DataError("no sentences in it, or all of them are in evaluation sets", path=path)
    return texts


def _clean_sentences(path: Path, column: str | None, evaluation: EvaluationKeys) -> Iterator[str]:
    for chunk in portions(read_sentences(path, column=column), CHUNK):
        texts = normalize_texts(chunk)
        # which sentences are in evaluation sets; hashing is spared where there are none
        known = np.zeros(len(texts), bool)
        if len(evaluation):
            known = evaluation.contaminated_keys(text_keys(texts))
        for text, is_known in zip(texts, known, strict=True):
            if text and not is_known:
                yield text
