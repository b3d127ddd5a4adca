"""Readers of folders of translations, in the original layouts of the data.

These readers are not with the other evaluation sets, because the development data of training, of
``average`` and of the quickstart have the same layouts. Every error names the file and line.

- pairs: ``<a>-<b>.tsv`` (text TAB text), or LASER's own ``tatoeba.<a>-<b>.<a>`` next to
  ``tatoeba.<a>-<b>.<b>``;
- line-aligned languages: ``<lang>.txt``, or FLORES' own ``<lang>.devtest`` and ``<lang>.dev``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from interlingua.corpus.formats.monolingual import find_language
from interlingua.corpus.formats.sentence_table import is_table, read_column
from interlingua.errors import DataError, count_of
from interlingua.storage.files import files_in, open_text, tab_rows

# A language is two or three letters, maybe with a script: "de", "deu", "zho_Hans".
PAIR_FILE = re.compile(
    r"([A-Za-z]{2,3}(?:_[A-Za-z]{4})?)-([A-Za-z]{2,3}(?:_[A-Za-z]{4})?)\.tsv(?:\.(?:gz|xz|zst))?"
)
LASER_FILE = re.compile(r"tatoeba\.([a-z]{3})-([a-z]{3})\.\1")
ALIGNED_FILE = re.compile(
    r"([A-Za-z]{2,3}(?:_[A-Za-z]{4})?)\.(?:txt|devtest|dev)(?:\.(?:gz|xz|zst))?"
)


class PairFile(NamedTuple):
    """Location of the sentence pairs of two languages; languages as the file's name spells them."""

    source_language: str
    target_language: str
    source_path: Path
    target_path: Path | None

    @property
    def name(self) -> str:
        """The two languages with a hyphen between them, such as ``deu-eng``."""
        return f"{self.source_language}-{self.target_language}"


def pair_files(folder: Path) -> list[PairFile]:
    """Return the pair files of a folder by name, or an empty list if it has none."""
    found = []
    for path in files_in(folder):
        if match := PAIR_FILE.fullmatch(path.name):
            found.append(PairFile(match[1], match[2], path, None))
        elif match := LASER_FILE.fullmatch(path.name):
            other = path.with_name(f"tatoeba.{match[1]}-{match[2]}.{match[2]}")
            found.append(PairFile(match[1], match[2], path, other))
    return found


def aligned_files(folder: Path) -> dict[str, Path]:
    """Return the line-aligned files of a folder by language code, or an empty dict if it has none.

    Raises:
        DataError: two files are of one language.
    """
    found = []
    for path in files_in(folder):
        if match := ALIGNED_FILE.fullmatch(path.name):
            found.append((match[1], path))
    return one_each(found)


def read_pair_file(file: PairFile) -> tuple[list[str], list[str]]:
    """Read the two sides of a pair file, line by line.

    Raises:
        DataError: a file is missing or empty, a line does not have two non-empty columns, or the
            sides have unequal lengths.
    """
    if file.target_path is not None:
        return read_aligned([file.source_path, file.target_path])
    sources = []
    targets = []
    for number, columns in tab_rows(file.source_path):
        # An empty side is an error: without the line, it would be a different evaluation set.
        if len(columns) != 2 or not all(map(str.strip, columns)):
            filled = sum(bool(column.strip()) for column in columns)
            raise DataError(
                f"expected text TAB text, found {count_of(len(columns), 'columns')}, {filled} of"
                " them with text; correct the line",
                path=file.source_path,
                line=number,
            )
        sources.append(columns[0])
        targets.append(columns[1])
    if not sources:
        raise DataError("the file is empty; expected one pair per line", path=file.source_path)
    return sources, targets


def read_aligned(paths: Sequence[Path]) -> tuple[list[str], list[str]]:
    """Read two files with lines that translate each other.

    Raises:
        DataError: a file is missing or empty, a line is blank, or the lengths differ.
    """
    first, second = (read_evaluation_lines(path) for path in paths)
    if len(first) != len(second):
        raise DataError(
            f"has {count_of(len(first), 'lines')}, but {paths[1].name} next to it has"
            f" {len(second)}; aligned files must have the same number of lines",
            path=paths[0],
        )
    return first, second


def read_evaluation_lines(path: Path) -> list[str]:
    """Read the lines of a file, or the sentences of a table.

    The sentences of a table (CSV, XLSX) are in the column named after the language in the file's
    name, or ``text``.

    Raises:
        DataError: the file is missing or empty, a line is blank, or a table has no such column.
    """
    if is_table(path):
        texts = list(read_column(path, language=find_language(path)))
    else:
        with open_text(path) as lines:
            texts = [line.rstrip("\r\n") for line in lines]
    if not texts:
        raise DataError("the file is empty; expected one sentence per line", path=path)
    for number, text in enumerate(texts, 1):
        if not text.strip():
            raise DataError(
                "the line is blank; expected one sentence per line", path=path, line=number
            )
    return texts


def one_each(files: Iterable[tuple[str, Path]], what: str = "language") -> dict[str, Path]:
    """Return the files by language, or by another distinguishing key.

    Raises:
        DataError: two files have the same language or key.
    """
    found: dict[str, Path] = {}
    for language, path in files:
        if language in found:
            raise DataError(
                f"{found[language].name} in the same folder has the same {what}; remove one of"
                " the two files",
                path=path,
            )
        found[language] = path
    return found
