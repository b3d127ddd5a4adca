"""Scored pairs to files: here ``score`` and ``mine`` write what they keep and what they reject.

A row is a pair with named values. Formats that have columns hold these values, the others hold the
two texts and, where they can, the score.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TextIO

from interlingua.corpus.formats import (
    PairWithFields,
    TextPair,
    guess_format,
    one_line,
    text_of,
    write_pairs,
)
from interlingua.corpus.spreadsheet import csv_writer, open_sheet
from interlingua.errors import ConfigError
from interlingua.files import PathLike, open_text_writer
from interlingua.languages import written_code
from interlingua.mining.checks import CheckPlan
from interlingua.registry import CHECKS, did_you_mean

log = logging.getLogger("interlingua")
DEFAULT_COLUMNS = ("score", "source", "target")
"""LASER's."""
LANGUAGE_COLUMNS = ("source_language", "target_language")
SHEETS = ("csv", "xlsx")
"""Formats that name their columns in a first row."""
WITH_COLUMNS = ("tsv", "jsonl", *SHEETS)
"""Formats that have columns."""
ON_STDOUT = ("tsv", "jsonl", "csv")
Digits = Callable[[float], str]
SHORT: Digits = "{:.6g}".format
"""How numbers are written in text, unless all their digits are wanted."""


class PairRow(NamedTuple):
    """A pair as it is written and shown.

    Attributes:
        pair: with its score.
        columns: name -> value.
        reasons: why it is rejected; empty where it is kept.
        lines: numbers, from 0, of the first line of the source and of the target, where both are
            texts to mine.
        measured: values of the checks, which are columns too.
        extra: columns that the input has besides.
    """

    pair: TextPair
    columns: Mapping[str, Any]
    reasons: list[str]
    lines: tuple[int, int] = (-1, -1)
    measured: Mapping[str, float] = {}
    extra: tuple[str, ...] = ()

    def extra_columns(self, format: str) -> tuple[str, ...]:
        """Return the columns of the input that a file of a format has behind its own.

        A plain TSV has them only if they were columns or keys there as well.
        """
        if format == "tsv" and not isinstance(self.pair, PairWithFields):
            return ()
        return tuple(name for name in self.extra if name not in LANGUAGE_COLUMNS)

    @property
    def values(self) -> dict[str, Any]:
        """All columns, the languages too."""
        languages = (
            written_code(self.pair.source_language),
            written_code(self.pair.target_language),
        )
        return {**self.columns, **dict(zip(LANGUAGE_COLUMNS, languages, strict=True))}


def columns_of(format: str, columns: Sequence[str] | None) -> Sequence[str]:
    """The columns of a file: those that are wanted, or else the format's.

    A spreadsheet has the languages too: a file that goes from hand to hand keeps its content, and
    not its name.
    """
    if columns is not None:
        return columns
    if format in SHEETS:
        return (*DEFAULT_COLUMNS, *LANGUAGE_COLUMNS)
    return DEFAULT_COLUMNS


def check_columns(columns: Sequence[str] | None, known: Sequence[str], checks: CheckPlan) -> None:
    """Refuses a column that will not be there.

    Args:
        columns: that are wanted; None = the format's own.
        known: those that the verb always has.
        checks: of which each has a column.

    Raises:
        ConfigError: there is no such column, or none is named.
    """
    known = (*known, *LANGUAGE_COLUMNS, *checks.names)
    if columns is None:
        return
    if not columns:
        raise ConfigError(f"no column is named; choose some of {', '.join(known)}")
    for column in columns:
        if column not in known:
            hint = did_you_mean(column, known)
            # There is such a check, and it is not one of those that are measured.
            if column in CHECKS:
                hint = "; name it in --check too"
            raise ConfigError(f"unknown column {column!r}{hint}")


def format_with_columns(path: PathLike, what: str) -> str:
    """The format of a file that must have columns.

    Raises:
        ConfigError: its name is of another format.
    """
    found = guess_format(path)
    if found not in WITH_COLUMNS:
        raise ConfigError(f"{path}: {what} are written as .tsv, .jsonl, .csv or .xlsx; choose one")
    return found


def write_rows(
    rows: Iterable[PairRow],
    path: PathLike | None,
    *,
    format: str,
    columns: Sequence[str] | None = None,
    languages: tuple[str, str] | None = None,
    stdout: TextIO | None = None,
    digits: Digits = SHORT,
) -> None:
    """Writes all rows, in their order, to a file that appears when it is complete.

    Args:
        rows: any number.
        path: of the file; None = standard output.
        format: of the file.
        columns: of TSV, CSV and XLSX; JSONL has all, other formats hold texts and, TMX, the score.
        languages: of the pairs, for a file without rows.
        stdout: standard output.
        digits: writes a number as text.
    """
    if format not in WITH_COLUMNS:
        pairs = (row.pair for row in rows)
        write_pairs(pairs, str(path), format=format, languages=languages)
        return
    with open_rows(path, format=format, columns=columns, stdout=stdout, digits=digits) as write:
        for row in rows:
            write(row)


@contextlib.contextmanager
def open_rows(
    path: PathLike | None,
    *,
    format: str,
    columns: Sequence[str] | None = None,
    stdout: TextIO | None = None,
    digits: Digits = SHORT,
) -> Iterator[Callable[[PairRow], None]]:
    """Gives what writes one row to a file with columns; see ``write_rows``.

    The first row tells which further columns the input has; they are written unless columns are
    chosen, and then a first line of a TSV names all of them.
    """
    own_columns = list(columns_of(format, columns))
    is_begun = False
    late: set[str] = set()

    def begin(row: PairRow | None) -> bool:
        """Complete the columns with those of the first row; whether it is that row's turn."""
        nonlocal is_begun
        if is_begun:
            if row is not None and row.extra and columns is None and format != "jsonl":
                late.update(set(row.extra_columns(format)) - set(own_columns))
            return False
        is_begun = True
        if columns is None and row is not None:
            own_columns.extend(row.extra_columns(format))
        return True

    if format in SHEETS:
        with _open_sheet(path, format, own_columns, stdout, digits, begin) as write_row:
            yield write_row
        _tell_late(late, path)
        return
    with contextlib.ExitStack() as stack:
        file = stdout
        if path is not None:
            file = stack.enter_context(open_text_writer(path))
        assert file is not None

        def write(row: PairRow) -> None:
            if begin(row) and format == "tsv" and row.extra_columns(format) and columns is None:
                file.write("\t".join(map(one_line, own_columns)) + "\n")
            file.write(line_of(row, format, own_columns, digits))

        yield write
        # Standard output stays open: a full disk or a closed pipe must be noticed here.
        file.flush()
    _tell_late(late, path)


def _tell_late(columns: set[str], path: PathLike | None) -> None:
    """Log the columns that the first row did not have, which are not in the file."""
    if columns:
        log.warning(
            "%s: the first row lacks %s, so these columns are left out; write .jsonl to keep them",
            path or "standard output",
            ", ".join(sorted(columns)),
        )


@contextlib.contextmanager
def _open_sheet(
    path: PathLike | None,
    format: str,
    columns: Sequence[str],
    stdout: TextIO | None,
    digits: Digits,
    begin: Callable[[PairRow | None], bool],
) -> Iterator[Callable[[PairRow], None]]:
    """Gives what writes one row to a spreadsheet, behind a first row of the columns' names."""
    with contextlib.ExitStack() as stack:
        if path is None:
            # Of the spreadsheets CSV alone can go to standard output, see ``ON_STDOUT``.
            assert stdout is not None
            write_cells = csv_writer(stdout)
        else:
            write_cells = stack.enter_context(open_sheet(path, format))

        def write(row: PairRow) -> None:
            if begin(row):
                write_cells(columns)
            values = row.values
            cells = [_cell(column, values.get(column, ""), format, digits) for column in columns]
            write_cells(cells)

        yield write
        if begin(None):
            write_cells(columns)


def _cell(column: str, value: Any, format: str, digits: Digits) -> str | float:
    """A value of a spreadsheet; texts keep their line ends."""
    if isinstance(value, str):
        return value
    # A workbook knows numbers, and can sort and sum them; CSV has text alone.
    if format == "xlsx" and isinstance(value, int | float):
        return value
    return cell_text(column, value, digits)


def line_of(row: PairRow, format: str, columns: Sequence[str], digits: Digits = SHORT) -> str:
    """A row as TSV, in these columns, or as JSON with all."""
    if format == "jsonl":
        return json.dumps(row.values, ensure_ascii=False) + "\n"
    values = row.values
    return "\t".join(cell_text(column, values.get(column, ""), digits) for column in columns) + "\n"


def cell_text(column: str, value: Any, digits: Digits = SHORT) -> str:
    """A value as text on one line; lists of texts are joined, reasons by commas."""
    if isinstance(value, float):
        return digits(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        separator = " "
        if column == "reasons":
            separator = ", "
        value = separator.join(value)
    return one_line(text_of(value))
