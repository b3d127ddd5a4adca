"""Sentences of one column of a table, for readers of plain text.

A table is CSV, the first sheet of an Excel workbook, or subtitles with the columns text, start
and end. The first row names the columns. The sentence in the i-th row below it is sentence i, even
if the cell is empty, so that results for the sentences can be written back into the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile
from typing import NamedTuple

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
    places_called,
)
from interlingua.errors import ConfigError, DataError
from interlingua.storage.files import PathLike, open_text, stem_and_suffix

WORKBOOK_SUFFIXES = (".xlsx", ".xlsm")
SUFFIXES = (".csv", *WORKBOOK_SUFFIXES, *SUBTITLE_SUFFIXES)
_WORDS = ("column", "sheet", "header row")
_NAMES = ("text", "sentence", "sentences", "texts")
"""Names of the columns that are used if the user names none, in this order."""


class SentenceColumn(NamedTuple):
    """The place of sentences in a table.

    Attributes:
        name: name of the column, or its number from 1; by default the reader finds it.
        sheet: name or number of a sheet of an Excel workbook; the first by default.
        header_row: number of the row that names the columns, from 1; the first by default.
    """

    name: str | None = None
    sheet: str | None = None
    header_row: int | None = None


FOUND_COLUMN = SentenceColumn()
ColumnChoice = str | SentenceColumn | None
"""A column, by its name only or with its sheet and header row; None: the reader finds it."""


def is_table(path: PathLike) -> bool:
    """Return whether a file's name is that of a table."""
    return stem_and_suffix(path)[1] in SUFFIXES


def read_column(
    path: PathLike,
    *,
    column: ColumnChoice = None,
    language: str | None = None,
    bad: BadLines | None = None,
) -> Iterator[str]:
    """Yield the sentences of a table, each as one line, in the order of its rows.

    An empty cell is a blank sentence. Empty lines of a CSV file and empty rows at the end of a
    sheet are no rows. The rows of subtitles are the lines of their speakers.

    Args:
        path: a file for which ``is_table`` holds.
        column: the column; by default the one named after the language, otherwise the one called
            text, sentence, sentences or texts, even if the table has a single column.
        language: language of the sentences, as any code.
        bad: how to handle unreadable rows. A skipped row with too few or too many cells is yielded
            as a blank sentence. A row of a CSV file that is not UTF-8 or has an odd quotation
            mark, and a cue that can't be read, have no sentence. Without ``bad``, the first
            unreadable row stops, and a warning reports unreadable cues.

    Raises:
        DataError: the table is empty, there is no such column, the number of columns differs from
            that of the first row, or the file can't be read.
    """
    is_reported = bad is not None
    bad = bad or BadLines()
    choice = _place_of(column)
    rows = _rows(path, bad, choice)
    first = next(rows, None)
    if first is None:
        raise DataError(
            "the table is empty; expected a first row with the names of the columns", path=path
        )
    header = first[1]
    place = find_column(header, path, column=choice.name, language=language)
    for number, cells in rows:
        if not has_width(cells, len(header), path, number, bad):
            yield ""  # so that sentence i is still the sentence of row i
            continue
        yield one_line(cells[place]).strip()
    if not is_reported:
        bad.log_report(path)


def table_records(
    path: PathLike, columns: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number of each row of a table, and its cells by the names in the first row.

    Args:
        path: a file for which ``is_table`` holds.
        columns: names that the first row must have.

    Raises:
        DataError: a column is missing, two have the same name, the number of columns differs from
            that of the first row, or the file can't be read.
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


def _place_of(column: ColumnChoice) -> SentenceColumn:
    if isinstance(column, SentenceColumn):
        return column
    return SentenceColumn(column)


def refuse_column(column: ColumnChoice, path: PathLike) -> None:
    """Refuse the choice of a column for a file without columns.

    Raises:
        ConfigError: a column, a sheet or a header row is named, and the file has none.
    """
    choice = _place_of(column)
    suffix = stem_and_suffix(path)[1]
    if choice.sheet is not None and suffix not in WORKBOOK_SUFFIXES:
        raise ConfigError(
            f"{path}: the sheet {choice.sheet!r} is named, but only workbooks"
            f" ({', '.join(WORKBOOK_SUFFIXES)}) have sheets; remove this choice"
        )
    named = [f"{word} {value!r}" for word, value in zip(_WORDS, choice, strict=True) if value]
    if named and suffix not in SUFFIXES:
        raise ConfigError(
            f"{path}: the {named[0]} is named, but only tables ({', '.join(SUFFIXES)}) have"
            " columns; remove this choice"
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
        has_number = column.strip().isdecimal() and 1 <= int(column) <= len(cells)
        # A name takes precedence over a number: the name of a column may be 2.
        if has_number and not places_called(column, cells):
            return int(column) - 1
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
        f"the column with the sentences is unknown; choose a column of the first row ({shown})"
        " with --column (mine, align: --source-column, --target-column; in a config: column ="
        " ...), or rename it to text",
        path=path,
        line=1,
    )


def _rows(
    path: PathLike, bad: BadLines, choice: SentenceColumn = FOUND_COLUMN
) -> Iterator[tuple[int, list[str]]]:
    """Yield the row with the column names and the rows below it, numbered as in other programs.

    Empty lines of a CSV file are not rows, and neither are empty rows at the end of a sheet.

    Raises:
        DataError: the table ends before the specified header row.
    """
    rows = _all_rows(path, bad, choice)
    if choice.header_row is None:
        yield from rows
        return
    first = choice.header_row
    below = dropwhile(lambda row: row[0] < first, rows)
    header = next(below, None)
    if header is None:
        raise DataError(
            f"row {first} does not exist; choose the row with the names of the columns", path=path
        )
    yield header
    yield from below


def _all_rows(
    path: PathLike, bad: BadLines, choice: SentenceColumn
) -> Iterator[tuple[int, list[str]]]:
    """Yield all rows of a table with their numbers."""
    if stem_and_suffix(path)[1] == ".csv":
        with open_text(path, errors=bad.errors) as lines:
            yield from (row for row in csv_rows(lines, str(path), bad) if row[1])
        return
    if stem_and_suffix(path)[1] in SUBTITLE_SUFFIXES:
        yield from _rows_of_cues(path, bad)
        return
    # Empty rows are yielded only if a filled row follows: sheets often end with empty rows that
    # are formatted.
    empty: list[tuple[int, list[str]]] = []
    first_row = choice.header_row or 1
    for row in workbook.read_rows(str(path), sheet=choice.sheet, first_row=first_row):
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
