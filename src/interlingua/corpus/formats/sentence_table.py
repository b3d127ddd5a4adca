"""Sentences of one column of a table, for readers of plain text.

A table is CSV, the first sheet of an Excel workbook, or subtitles, of which the columns are text,
start and end. The first row names the columns. The
sentence of row i below it is sentence i, also where its cell is empty, so that what is computed
from the sentences can be put back into the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interlingua.config import languages
from interlingua.corpus.formats import workbook
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import SUBTITLE_SUFFIXES, one_line, resolved_code
from interlingua.corpus.formats.spreadsheet import csv_rows
from interlingua.corpus.formats.table_columns import (
    SHOWN,
    distinct_names,
    folded_name,
    has_width,
    named_column,
)
from interlingua.errors import ConfigError, DataError
from interlingua.storage.files import PathLike, open_text, stem_and_suffix

SUFFIXES = (".csv", ".xlsx", ".xlsm", *SUBTITLE_SUFFIXES)
_NAMES = ("text", "sentence", "sentences", "texts")
"""Columns that are taken where none is named, in this order."""


def is_table(path: PathLike) -> bool:
    """Return whether a file's name is that of a table."""
    return stem_and_suffix(path)[1] in SUFFIXES


def read_column(
    path: PathLike,
    *,
    column: str | None = None,
    language: str | None = None,
    bad: BadLines | None = None,
) -> Iterator[str]:
    """Yield the sentences of a table, one per line; empty rows at its end are omitted.

    Args:
        path: a file for which ``is_table`` holds.
        column: name of the column; by default the one named after the language, otherwise one of
            ``_NAMES``, otherwise the only one.
        language: of the sentences, in any code.
        bad: how to handle unreadable rows; skipped ones are yielded as blank sentences.

    Raises:
        DataError: there is no such column, a row has other columns than the first, or the file
            can't be read.
    """
    bad = bad or BadLines()
    rows = _rows(path, bad)
    first = next(rows, None)
    if first is None:
        raise DataError(
            "the table is empty; expected a first row that names the columns", path=path
        )
    header = first[1]
    place = find_column(header, path, column=column, language=language)
    for number, cells in rows:
        if not has_width(cells, len(header), path, number, bad):
            yield ""  # sentence i stays that of row i
            continue
        yield one_line(cells[place]).strip()


def table_records(
    path: PathLike, columns: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a table by the names in its first row, each with its number.

    Args:
        path: a file for which ``is_table`` holds.
        columns: names that the first row must have.

    Raises:
        DataError: a column is not there, two have the same name, a row has other columns than the
            first, or the file can't be read.
    """
    bad = BadLines()
    rows = _rows(path, bad)
    number, cells = next(rows, (0, []))
    if not number:
        return
    names = distinct_names(cells, path)
    for column in columns:
        named_column(column, names, path=path, line=number)
    for number, cells in rows:
        if has_width(cells, len(names), path, number, bad) and any(cells):
            record = zip(names, cells, strict=True)
            yield number, {name: cell for name, cell in record if cell}


def has_sentences(path: PathLike, *, language: str | None = None) -> bool:
    """Return whether a file is a table with a column that is known to hold the sentences."""
    if not is_table(path):
        return False
    _, cells = next(_rows(path, BadLines()), (0, []))
    try:
        find_column(cells, path, language=language)
    except DataError:
        return False
    return True


def refuse_column(column: str | None, path: PathLike) -> None:
    """Refuse a column of a file that has none.

    Raises:
        ConfigError: a column is named, and the file is not a table.
    """
    if column is not None and not is_table(path):
        raise ConfigError(
            f"{path}: the column {column!r} is named, but only tables ({', '.join(SUFFIXES)}) have"
            " columns; drop it"
        )


def find_column(
    cells: Sequence[str], path: PathLike, *, column: str | None = None, language: str | None
) -> int:
    """Return the number of the column with the sentences, by the first row; see ``read_column``.

    Raises:
        DataError: there is no such column, or several have this name.
    """
    names = [folded_name(cell) for cell in cells]
    if column is not None:
        return named_column(column, cells, path=path, line=1)
    code = resolved_code(language)
    if code is not None:
        codes = [languages.find_code(cell.strip()) for cell in cells]
        place = languages.choose_code(code, codes)
        is_regional = languages.region_of(code) is not None
        if place is not None and (is_regional or codes.count(codes[place]) == 1):
            return place
    for name in _NAMES:
        if names.count(name) == 1:
            return names.index(name)
    shown = ", ".join(cell.strip()[:30] or "(no name)" for cell in cells[:SHOWN])
    raise DataError(
        "a table, and which column holds the sentences is not known; name one of its first row"
        f" ({shown}) with --column (mine, align: --source-column, --target-column; in a config"
        " column = ...), or call it text",
        path=path,
        line=1,
    )


def _rows(path: PathLike, bad: BadLines) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows as other programs count them.

    Empty lines of a CSV file are not rows, and neither are empty rows at the end of a sheet.
    """
    if stem_and_suffix(path)[1] == ".csv":
        with open_text(path, errors=bad.errors) as lines:
            yield from (row for row in csv_rows(lines, str(path), bad) if row[1])
        return
    if stem_and_suffix(path)[1] in SUBTITLE_SUFFIXES:
        yield from _rows_of_cues(path, bad)
        return
    # Empty rows are held back until a row follows that is not: sheets often end in formatted ones.
    empty: list[tuple[int, list[str]]] = []
    for row in workbook.read_rows(str(path)):
        if not any(row[1]):
            empty.append(row)
            continue
        yield from empty
        empty.clear()
        yield row


def _rows_of_cues(path: PathLike, bad: BadLines) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of speakers in subtitles, below the names of the columns."""
    from interlingua.corpus.formats.localization.subtitle_pairs import cue_time
    from interlingua.corpus.formats.localization.subtitles import read_cues

    yield 0, ["text", "start", "end"]
    for cue in read_cues(path, bad=bad):
        for text in cue.speeches:
            yield cue.line, [text, cue_time(cue.start), cue_time(cue.end)]
