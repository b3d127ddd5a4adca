"""Bitexts out of spreadsheets: CSV, and the first sheet of an Excel workbook.

Workbooks (XLSX) need the extra ``xlsx``. Both are rows of cells. A first row that names its columns
is a header: ``source`` and ``target`` (or ``src``, ``tgt`` and the like) or the names of two
languages (``en``, ``en_text``), and optionally ``score``, ``source_language`` and
``target_language``; other columns are ignored. Without a header there are two columns, source and
target, or three, the score first.
"""

from __future__ import annotations

import contextlib
import csv
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple, TextIO

from interlingua import languages
from interlingua.corpus import workbook
from interlingua.corpus.bad_lines import BadLines
from interlingua.corpus.formats import TextPair, languages_from_name, peek
from interlingua.corpus.tabular import score_of_cell
from interlingua.corpus.workbook import Cell, WriteCells
from interlingua.errors import DataError
from interlingua.files import PathLike, open_text, open_text_writer

NAMES = {
    "source": ("source", "src", "source text", "source segment", "original"),
    "target": ("target", "tgt", "trg", "target text", "target segment", "translation"),
    "score": ("score", "probability"),
    "source_language": ("source language", "src lang", "source lang"),
    "target_language": ("target language", "tgt lang", "trg lang", "target lang"),
}
"""What the columns are called, see ``folded_name``."""
DELIMITERS = ",;\t"
LOOKED_AT = 50
"""Lines of a CSV file that tell its delimiter."""
BOM = "\ufeff"
"""Without it Excel takes UTF-8 for the character set of the country."""


class Columns(NamedTuple):
    """Which column holds what; -1 where there is none."""

    source: int
    target: int
    score: int = -1
    source_language: int = -1
    target_language: int = -1
    header: bool = False
    """Whether the first row names the columns."""
    languages: tuple[str, str] | None = None
    """Those that the columns are called by."""


class Csv:
    """Comma-separated values, also by semicolons or tabs.

    Cells in quotes may hold all of these, and line ends.
    """

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Streams the rows."""
        with open_text(path, errors=bad.errors) as lines:
            rows = csv_rows(lines, path, bad)
            yield from pairs_of_rows(rows, path, source_language, target_language, skipped, bad)

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Writes a header and any mixture of language pairs."""
        return _write(pairs, path, "csv")


class Xlsx:
    """An Excel workbook, of which the first sheet is read."""

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Streams the rows."""
        yield from pairs_of_rows(
            workbook.read_rows(path), path, source_language, target_language, skipped, bad
        )

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Writes a header and any mixture of language pairs."""
        return _write(pairs, path, "xlsx")


def pairs_of_rows(
    rows: Iterator[tuple[int, list[str]]],
    path: str,
    source_language: str | None,
    target_language: str | None,
    skipped: Counter[str],
    bad: BadLines,
) -> Iterator[TextPair]:
    """Turns numbered rows of cells into pairs.

    Raises:
        DataError: the columns or the languages are unknown, or a row has other columns than the
            first.
    """
    first = next(rows, None)
    if first is None:
        return
    columns = find_columns(first[1], path, source_language, target_language)
    named = columns.languages or languages_from_name(path) or (None, None)
    known_languages = (source_language or named[0], target_language or named[1])
    width = len(first[1])
    if not columns.header:
        rows = chain([first], rows)
    for number, cells in rows:
        if not any(map(str.strip, cells)):
            skipped["empty line"] += 1
            continue
        if not has_width(cells, width, path, number, bad):
            continue
        try:
            pair = _pair(cells, columns, known_languages)
        except ValueError as error:
            bad.reject(DataError(str(error), path=path, line=number), "\t".join(cells))
            continue
        yield pair


def has_width(cells: Sequence[str], width: int, path: PathLike, number: int, bad: BadLines) -> bool:
    """Whether a row has as many cells as the first one; one that has not is rejected."""
    if len(cells) == width:
        return True
    problem = (
        f"{len(cells)} columns, expected {width}; put quotes around a text that holds the delimiter"
    )
    bad.reject(DataError(problem, path=path, line=number), "\t".join(cells))
    return False


def folded_name(cell: str) -> str:
    """What a column is called, in small letters, with spaces for ``_`` and ``-``."""
    return re.sub(r"[\s_-]+", " ", cell.strip().casefold())


def find_columns(
    cells: Sequence[str], path: PathLike, source: str | None = None, target: str | None = None
) -> Columns:
    """Which column holds what, by the first row.

    Args:
        cells: of the first row.
        path: which errors name.
        source: language of the source, where it is known: it decides among columns called by
            languages.
        target: of the target.

    Raises:
        DataError: it is not a header, and the number of columns does not tell.
    """
    names = [folded_name(cell) for cell in cells]
    found = {column: _place(names, called) for column, called in NAMES.items()}
    if found["source"] >= 0 and found["target"] >= 0:
        return Columns(header=True, languages=None, **found)
    codes = [_language(cell) for cell in cells]
    # The requested languages among any number of columns, or the only two.
    pair = [code for code in (source, target) if code and code in codes]
    if len(pair) != 2:
        pair = _languages(names, codes)
    if len(pair) == 2:
        found |= {"source": codes.index(pair[0]), "target": codes.index(pair[1])}
        return Columns(header=True, languages=(pair[0], pair[1]), **found)
    # No header: the number of columns tells.
    if len(cells) == 2:
        return Columns(0, 1)
    if len(cells) == 3 and _is_number(cells[0]):
        return Columns(1, 2, 0)
    shown = ", ".join(cell[:20] for cell in cells[:6])
    raise DataError(
        f"its first row holds {len(cells)} cells ({shown}); name the columns source and target, or"
        " by their languages",
        path=path,
        line=1,
    )


@contextlib.contextmanager
def open_sheet(path: PathLike, format: str) -> Iterator[WriteCells]:
    """Gives what writes one row of cells to a CSV or XLSX file.

    The file appears when it is complete.
    """
    if format == "xlsx":
        with workbook.open_writer(path) as write:
            yield write
        return
    with open_text_writer(path) as file:
        file.write(BOM)
        yield csv_writer(file)


def csv_writer(file: TextIO) -> WriteCells:
    """Gives what writes one row of cells as CSV; quotes stand where they are needed."""
    writer = csv.writer(file, lineterminator="\n")

    def write(cells: Sequence[Cell]) -> None:
        writer.writerow(cells)

    return write


def _write(pairs: Iterable[TextPair], path: str, format: str) -> int:
    # The first pair decides on the columns, which stand before all rows.
    first, pairs = peek(pairs)
    columns = ["source", "target"]
    if first is not None and first.score is not None:
        columns.insert(0, "score")
    if first is not None and first.source_language and first.target_language:
        columns += ["source_language", "target_language"]
    count = 0
    with open_sheet(path, format) as write:
        write(columns)
        for pair in pairs:
            values = pair._asdict()
            write(["" if values[column] is None else values[column] for column in columns])
            count += 1
    return count


def _pair(
    cells: Sequence[str], columns: Columns, known_languages: tuple[str | None, str | None]
) -> TextPair:
    # What a row says of its languages comes before what holds for the whole file.
    source_code = _cell(cells, columns.source_language) or known_languages[0]
    target_code = _cell(cells, columns.target_language) or known_languages[1]
    if not source_code or not target_code:
        raise ValueError(
            "its languages are unknown; name both, call the columns or the file by them, or add"
            " the columns source_language and target_language"
        )
    source = languages.resolve(source_code).code
    target = languages.resolve(target_code).code
    score = None
    if cell := _cell(cells, columns.score):
        score = score_of_cell(cell)
    return TextPair(cells[columns.source], cells[columns.target], source, target, score)


def _cell(cells: Sequence[str], place: int) -> str:
    """A cell without white space around it; empty where there is no such column."""
    if place < 0:
        return ""
    return cells[place].strip()


def _place(names: Sequence[str], called: Sequence[str]) -> int:
    return next((names.index(name) for name in called if name in names), -1)


def _language(cell: str) -> str | None:
    """The language that a column is called by, or None.

    For example by ``en``, ``English``, or ``en_text`` as in the Thai-English SCB set.
    """
    return languages.find_code(re.sub(r"[\s_-]text$", "", cell.strip(), flags=re.IGNORECASE))


def _languages(names: Sequence[str], codes: Sequence[str | None]) -> list[str]:
    """The languages that columns are called by.

    Of more than two those that can't mean a number of the row.
    """
    found = list(dict.fromkeys(filter(None, codes)))
    if len(found) <= 2:
        return found
    # id, no and nr are also the codes of Indonesian, Norwegian and South Ndebele.
    numbers = {code for name, code in zip(names, codes, strict=True) if name in ("id", "no", "nr")}
    return [code for code in found if code not in numbers]


def _is_number(cell: str) -> bool:
    try:
        score_of_cell(cell)
    except ValueError:
        return False
    return True


class _Rewindable:
    """Lines of which those since a mark can be read again."""

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
        """Forgets the lines so far."""
        self.since = []

    def rewind(self) -> str:
        """Goes back to the line behind the first since the mark, which it returns."""
        first = self.since[0]
        self.again.extendleft(reversed(self.since[1:]))
        self.number -= len(self.since) - 1
        return first


def csv_rows(lines: Iterator[str], path: str, bad: BadLines) -> Iterator[tuple[int, list[str]]]:
    """The rows with the number of the line that each begins in.

    Of a row with a quotation mark too many or too few one line is rejected; such a row would else
    swallow those behind.
    """
    head = list(islice(lines, LOOKED_AT))
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
                f"{error}, in the row that begins here; is a quotation mark missing or too many?"
            )
            # The reader has taken lines up to the next quotation mark; they are read again.
            bad.reject(DataError(problem, path=path, line=number), source.rewind())
            continue
        if all(bad.is_text(cell, path, number) for cell in cells):
            yield number, cells


def _delimiter(lines: Sequence[str]) -> str:
    """The one that parts the first lines into equally many cells; of several the one with most."""
    best = ","
    most = 1
    for delimiter in DELIMITERS:
        rows: list[int] = []
        with contextlib.suppress(csv.Error):  # it is reported when the rows are read
            rows += [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        if len(lines) == LOOKED_AT and len(rows) > 1:  # the last row may go on in the next line
            rows.pop()
        if rows and min(rows) == max(rows) > most:
            best = delimiter
            most = rows[0]
    if most == 1 and lines:  # a row is bad, so that no delimiter fits all
        best = max(DELIMITERS, key=lines[0].count)
    return best
