"""Bitexts out of spreadsheets: CSV, and a sheet of an Excel workbook, the first by default.

Workbooks (XLSX) need the extra ``xlsx``. Both kinds are rows of cells. A first row that names its
columns is a header: ``source`` and ``target`` (or ``src``, ``tgt`` and the like) or the names of
two languages (``en``, ``en_text``), and optionally ``score``, ``source_language`` and
``target_language``; other columns are kept with the pair, see ``table_columns``. Without a header
there are two columns, source and target, or three, the score first.
"""

from __future__ import annotations

import contextlib
import csv
import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, TextIO

from interlingua.config import languages
from interlingua.corpus.formats import workbook
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import (
    SCORE,
    TableChoice,
    TextPair,
    pair_fields,
    peek,
    with_names,
)
from interlingua.corpus.formats.table_columns import ALL_FOUND, pairs_of_rows
from interlingua.corpus.formats.workbook import CellValue, SheetForm, WriteCells
from interlingua.errors import DataError
from interlingua.storage.files import PathLike, open_text, open_text_writer

_DELIMITERS = ",;\t"
_LOOKED_AT = 50
"""Number of lines of a CSV file from which its delimiter is found."""
BOM = "\ufeff"
"""Without it, Excel reads UTF-8 as if it were in the character set of the country."""


class Csv:
    """Values separated by commas, semicolons or tabs.

    Cells in quotes may contain these separators and line ends.

    Args:
        choice: columns, sheet and header row, if the user names them.
    """

    def __init__(self, choice: TableChoice = ALL_FOUND) -> None:
        self.choice = choice

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Stream the rows."""
        with open_text(path, errors=bad.errors) as lines:
            rows = csv_rows(lines, path, bad)
            yield from pairs_of_rows(
                rows, path, source_language, target_language, skipped, bad, self.choice
            )

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Write a header and any mixture of language pairs."""
        return _write(pairs, path, "csv")


class Xlsx:
    """An Excel workbook; its first sheet is read, or the one that is named.

    Args:
        choice: columns, sheet and header row, if the user names them.
    """

    def __init__(self, choice: TableChoice = ALL_FOUND) -> None:
        self.choice = choice

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Stream the rows."""
        rows = workbook.read_rows(
            path, sheet=self.choice.sheet, first_row=self.choice.header_row or 1
        )
        yield from pairs_of_rows(
            rows, path, source_language, target_language, skipped, bad, self.choice
        )

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Write a header and any mixture of language pairs."""
        return _write(pairs, path, "xlsx")


@contextlib.contextmanager
def open_sheet(path: PathLike, format: str, form: SheetForm | None = None) -> Iterator[WriteCells]:
    """Return a function that writes one row of cells to a CSV or XLSX file.

    The file appears when it is complete.

    Args:
        path: path of the file.
        format: csv or xlsx.
        form: how a sheet of a workbook looks.
    """
    if format == "xlsx":
        with workbook.open_writer(path, form) as write:
            yield write
        return
    with open_text_writer(path) as file:
        file.write(BOM)
        yield csv_writer(file)


def csv_writer(file: TextIO) -> WriteCells:
    """Return a function that writes one row of cells as CSV, with quotes only if needed."""
    writer = csv.writer(file, lineterminator="\n")

    def write(cells: Sequence[CellValue]) -> None:
        writer.writerow(cells)

    return write


def _write(pairs: Iterable[TextPair], path: str, format: str) -> int:
    names, pairs = with_names(pairs)
    first, pairs = peek(pairs)
    columns = ["source", "target"]
    if SCORE in names:
        columns.insert(0, SCORE)
    if first is None or (first.source_language and first.target_language):
        columns += ["source_language", "target_language"]
    extra = [name for name in names if name not in columns]
    count = 0
    with open_sheet(path, format) as write:
        write([*columns, *extra])
        for pair in pairs:
            values = {**pair_fields(pair), **pair._asdict()}
            for key in ("source_language", "target_language"):
                values[key] = languages.written_code(values[key])
            write([cell_of(values.get(column)) for column in (*columns, *extra)])
            count += 1
    return count


def cell_of(value: Any) -> CellValue:
    """Return a value as a cell: texts and numbers as they are, others as JSON."""
    if value is None:
        return ""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return value
    return json.dumps(value, ensure_ascii=False)


class _Rewindable:
    """Lines that can be read again, starting at a mark."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = iter(lines)
        self.since: list[str] = []
        self.again: deque[str] = deque()
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self.again.popleft() if self.again else next(self.lines)
        self.since.append(line)
        self.number += 1
        return line

    def mark(self) -> None:
        """Forget the lines so far."""
        self.since = []

    def rewind(self) -> str:
        """Return to the second line since the mark, and return the first one."""
        first = self.since[0]
        self.again.extendleft(reversed(self.since[1:]))
        self.number -= len(self.since) - 1
        return first


def csv_rows(lines: Iterator[str], path: str, bad: BadLines) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows, each with the number of its first line.

    If a row has a quotation mark too many or too few, only one line is rejected. Without
    this rule, such a row would include the lines that follow it.
    """
    head = list(islice(lines, _LOOKED_AT))
    delimiter = _delimiter(head)
    source = _Rewindable(chain(head, lines))
    # Excel's own way to name the delimiter is a first line such as "sep=;".
    if head and head[0].startswith("sep=") and len(head[0].strip()) == 5:
        delimiter = next(source)[4]
    reader = csv.reader(source, delimiter=delimiter, strict=True)
    while True:
        source.mark()
        number = source.number + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problem = (
                f"{error} in the row that begins here; check for a missing or an extra quotation"
                " mark"
            )
            # The reader has taken lines up to the next quotation mark; they are read again.
            bad.reject(DataError(problem, path=path, line=number), source.rewind())
            continue
        if all(bad.is_text(cell, path, number) for cell in cells):
            yield number, cells


def _delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter that splits the first lines into equal numbers of cells.

    If several delimiters do so, the one with the most cells is returned.
    """
    best = ","
    most = 1
    for delimiter in _DELIMITERS:
        rows: list[int] = []
        with contextlib.suppress(csv.Error):  # it is reported when the rows are read
            rows += [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        if len(lines) == _LOOKED_AT and len(rows) > 1:  # the last row may continue in the next line
            rows.pop()
        if rows and min(rows) == max(rows) > most:
            best = delimiter
            most = rows[0]
    if most == 1 and lines:  # a row is bad, so that no delimiter fits all
        best = max(_DELIMITERS, key=lines[0].count)
    return best
