"""Texts in one language: a sentence per line or table row, the language in the file's name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from interlingua.corpus.sentence_table import is_table, read_column, refuse_column
from interlingua.errors import DataError
from interlingua.files import PathLike, open_text, stem_and_suffix
from interlingua.languages import find_code


def read_sentences(path: PathLike, *, column: str | None = None) -> Iterator[str]:
    """The lines of a text file (.gz, .xz or .zst too) that are not blank, or a table's sentences.

    Args:
        path: a text file, or a table (CSV, XLSX).
        column: of a table; by default the one called by the language of the file's name, or
            ``text``.

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


def find_language(path: Path) -> str | None:
    """The language that a file is called by, or None; see ``language_of``."""
    stem, suffix = stem_and_suffix(path)
    # The parts nearest the end first: in "news.ru.txt" the first part may be called as a language,
    # too. The whole stem comes before its parts.
    parts = (suffix.removeprefix("."), stem, *reversed(stem.split(".")))
    return next(filter(None, map(find_code, parts)), None)


def language_of(path: Path) -> str:
    """The code, such as ``rus_Cyrl``, of the language that a file is called by.

    For example by ``ru.txt``, ``news.swh_Latn.txt.gz`` or ``dev.zh``.

    Raises:
        DataError: no part of the name is a language.
    """
    found = find_language(path)
    if found is None:
        raise DataError(
            "no language in its name; call it by one, such as ru.txt or news.swh_Latn.txt",
            path=path,
        )
    return found
