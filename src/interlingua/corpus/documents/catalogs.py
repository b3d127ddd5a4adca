"""Blocks of translators' files, gettext (.po) and XLIFF: one side of their pairs is a document."""

from __future__ import annotations

import os
from collections import Counter

from interlingua.config.languages import accepts, written_tag
from interlingua.corpus.documents.kinds import GETTEXT_SUFFIXES
from interlingua.corpus.documents.units import PARAGRAPH, BlockDocument, TextBlock
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import TextPair
from interlingua.corpus.formats.gettext import Gettext
from interlingua.corpus.formats.localization.xliff import Xliff
from interlingua.errors import DataError, LanguageAbsentError, count_of
from interlingua.storage.files import PathLike, stem_and_suffix


def read_catalog_side(path: PathLike, language: str | None = None) -> BlockDocument:
    """Read the translations, or, if a language is passed, the side in this language.

    Raises:
        DataError: it is broken, or nothing in it is translated.
        LanguageAbsentError: neither side is in the language.
    """
    name = os.fspath(path)
    skipped: Counter[str] = Counter()
    bad = BadLines()
    reader: Gettext | Xliff = Xliff()
    if stem_and_suffix(path)[1] in GETTEXT_SUFFIXES:
        reader = Gettext()
    pairs = list(reader.read(name, None, None, skipped, bad))
    if not pairs:
        raise DataError("the file contains no translated entry; leave it out", path=path)
    texts, code = _side(pairs, language, path)
    # The plus sign drops reasons with a count of 0.
    notes = [
        f"{count_of(count, 'entries')} left out: {reason}" for reason, count in (+skipped).items()
    ]
    if bad.count:
        notes.append(f"{count_of(bad.count, 'entries')} cannot be read: {bad.first[0]}")
    return BlockDocument(
        [TextBlock(text, PARAGRAPH) for text in texts], language=code, notes=tuple(notes)
    )


def _side(pairs: list[TextPair], language: str | None, path: PathLike) -> tuple[list[str], str]:
    """Return the texts of the side in a language, by default of the targets, and their language."""
    first = pairs[0]
    if language is None or accepts(language, first.target_language):
        return [pair.target for pair in pairs], first.target_language
    if accepts(language, first.source_language):
        return [pair.source for pair in pairs], first.source_language
    codes = (first.source_language, first.target_language)
    there = " and ".join(written_tag(code) for code in codes)
    raise LanguageAbsentError(
        f"the languages are {there}, expected {written_tag(language)}; use one of these languages",
        item=language,
        path=os.fspath(path),
    )
