"""Texts in one language: a sentence per line or table row, the language in the file's name."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from interlingua.config.languages import (
    LanguageCode,
    find_in_name,
    languages_of_region,
    resolve_code,
    resolve_language,
)
from interlingua.corpus.cleaning.named_languages import is_word
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.sentence_table import (
    ColumnChoice,
    is_table,
    read_column,
    refuse_column,
)
from interlingua.errors import DataError, InterlinguaError, LanguageError
from interlingua.storage.files import PathLike, open_text, stem_and_suffix

log = logging.getLogger("interlingua")
_OPTIONS = "--source-language, --target-language or --language"
"""Options that name the language of a text; which one exists depends on the command."""


def read_sentences(path: PathLike, *, column: ColumnChoice = None) -> Iterator[str]:
    """Yield the non-blank lines of a text file (.gz, .xz or .zst too), or the sentences of a table.

    Args:
        path: a text file, or a table (CSV, XLSX).
        column: column of a table; by default the column named after the language in the file's
            name, or ``text``.

    Raises:
        ConfigError: a column is named, and the file is not a table.
        DataError: the file is missing, has a byte that is not UTF-8, or is a table without such a
            column.
    """
    refuse_column(column, path)
    if is_table(path):
        texts = read_column(path, column=column, language=find_language(Path(path)))
        yield from filter(None, texts)
        return
    with open_text(path) as lines:
        for line in lines:
            if text := line.strip():
                yield text


def find_language(path: Path, *, column: ColumnChoice = None) -> LanguageCode | None:
    """Return the language that a file's name gives, or None; see ``language_of``.

    A part of the name that is also a word (``is.txt``) is a language only if the text supports it.

    Args:
        path: the file.
        column: column of a table.
    """
    for code in _codes_in_name(path):
        if not is_word(code) or not path.is_file() or _is_meant(path, code, column):
            return code
    return None


def tell_words(path: Path, option: str, *, column: ColumnChoice = None) -> None:
    """Log once the words in a file's name that could be languages, but are not used as such."""
    words = [code for code in _codes_in_name(path) if is_word(code)]
    if words and find_language(path, column=column) is None:
        _tell_words_once(os.fspath(path), tuple(words), option)


@functools.cache
def _tell_words_once(path: str, words: tuple[LanguageCode, ...], option: str) -> None:
    for code in words:
        log.warning(
            "%s: %s in the file name is also a word, and the text does not look like %s; pass %s"
            " %s if the text is in this language",
            *(path, code.name, resolve_language(code).name, option, code),
        )


def _codes_in_name(path: Path) -> list[LanguageCode]:
    """Return the languages that the parts of a name may represent."""
    stem, suffix = stem_and_suffix(path)
    # The parts at the end come first: in "news.ru.txt" the first part may also be the name of a
    # language. The whole stem comes before its parts.
    parts = (suffix.removeprefix("."), stem, *reversed(stem.split(".")))
    return [code for code in map(find_in_name, dict.fromkeys(parts)) if code is not None]


def _is_meant(path: Path, code: str, column: ColumnChoice) -> bool:
    """Return whether the texts of a file support a language; True if it can't be read."""
    from interlingua.corpus.cleaning.language_evidence import is_meant, sampled

    try:
        if is_table(path):
            # Rows that are left out are reported when the file is read.
            texts = read_column(path, column=column, language=code, bad=BadLines())
            return is_meant(texts, code)
        with open_text(path, errors="surrogateescape") as lines:
            return is_meant(sampled(lines), code)
    except (InterlinguaError, OSError):
        # Errors of a file are reported when it is read.
        return True


def language_of(
    path: Path,
    given: str | None = None,
    *,
    column: ColumnChoice = None,
    option: str = _OPTIONS,
) -> str:
    """Return the code of a file's language, such as ``rus_Cyrl``, after a check against its texts.

    The language is ``given``, or is in the name: ``ru.txt``, ``news.swh_Latn.txt.gz``, ``dev.zh``.

    Args:
        path: the file; if it does not exist, there is no comparison with its texts.
        given: the language in any spelling.
        column: column of a table.
        option: option that names the language, for messages.

    Raises:
        DataError: no part of the name is a language, or the texts are in another script.
    """
    if given:
        return _compared(path, resolve_code(given), column, option, is_given=True)
    found = find_language(path, column=column)
    if found is None:
        stem = stem_and_suffix(path)[0]
        meant = ""
        for part in reversed(stem.split(".")):
            word = find_in_name(part)
            spoken = [word, *(language.code for language in languages_of_region(part))]
            if any(spoken):
                named = " or ".join(code for code in spoken[:3] if code)
                meant = f"; if {part} means {named}, use that code"
        raise DataError(
            "the file name contains no language; rename the file, for example to ru.txt or"
            f" news.swh_Latn.txt, or pass {option}{meant}",
            path=path,
        )
    return _compared(path, found, column, option, is_given=False)


def _compared(path: Path, code: str, column: ColumnChoice, option: str, *, is_given: bool) -> str:
    """Return the code, or the code that the first texts of the file indicate instead."""
    if not path.is_file():
        return code
    from interlingua.corpus.cleaning.language_evidence import checked_language, sampled

    # Unreadable lines are reported when the whole file is read.
    try:
        if is_table(path):
            texts = read_column(path, column=column, language=code, bad=BadLines())
            texts = _with_warnings_of_first(texts, path)
            return checked_language(texts, code, path, option, is_given=is_given)
        with open_text(path, errors="surrogateescape") as lines:
            texts = _with_warnings_of_first(sampled(lines), path)
            return checked_language(texts, code, path, option, is_given=is_given)
    except LanguageError:
        raise
    except (InterlinguaError, OSError):
        return code


def _with_warnings_of_first(texts: Iterator[str], path: Path) -> Iterator[str]:
    """Return the same texts, after a warning if the first ones were misread."""
    from interlingua.corpus.cleaning.language_evidence import LOOKED_AT
    from interlingua.corpus.inspection.faults import warn_of_first_texts

    first = list(islice(texts, LOOKED_AT))
    warn_of_first_texts(first, path)
    return chain(first, texts)
