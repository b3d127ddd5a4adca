"""Texts in one language: one sentence a line, the language in the file's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from interlingua.errors import DataError
from interlingua.files import PathLike, open_text, stem_and_suffix
from interlingua.languages import resolve


def read_sentences(path: PathLike) -> Iterator[str]:
    """The lines of a text file (.gz, .xz or .zst too) that are not blank.

    Raises:
        DataError: the file is missing, or has a byte that is no UTF-8.
    """
    with open_text(path) as lines:
        for line in lines:
            if text := line.strip():
                yield text


def language_of(path: Path) -> str:
    """The language that a file is called by: ``ru.txt``, ``news.swh_Latn.txt.gz``, ``dev.zh``; as ``rus_Cyrl``.

    Raises:
        DataError: no part of the name is a language.
    """
    stem, suffix = stem_and_suffix(path)
    for part in (suffix.removeprefix("."), stem, *reversed(re.split(r"[.]", stem))):
        try:
            return resolve(part).code
        except DataError:
            continue
    raise DataError("no language in its name; call it by one, such as ru.txt or news.swh_Latn.txt", path=path)
