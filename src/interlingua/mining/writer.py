"""Writers of scored pairs, with which ``score`` and ``mine`` write kept and rejected pairs.

A row is a pair with named values. Formats that have columns hold these values, the others hold the
two texts and, if they can, the score.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TextIO

from interlingua.config.languages import written_code, written_tag
from interlingua.config.registry import CHECKS, did_you_mean
from interlingua.corpus.formats.bitext import (
    PairWithFields,
    PairWithOrigin,
    TextPair,
    field_text,
    guess_format,
    one_line,
    write_pairs,
)
from interlingua.corpus.formats.spreadsheet import csv_writer, open_sheet
from interlingua.corpus.formats.workbook import CellValue, WriteCells
from interlingua.errors import ConfigError
from interlingua.mining.checks import CheckPlan
from interlingua.storage.files import PathLike, Spool, open_text_writer

log = logging.getLogger("interlingua")
DEFAULT_COLUMNS = ("score", "source", "target")
"""Columns of the output of LASER's script."""
LANGUAGE_COLUMNS = ("source_language", "target_language")
SHEETS = ("csv", "xlsx")
"""Formats that name their columns in a first row."""
WITH_COLUMNS = ("tsv", "jsonl", *SHEETS)
"""Formats that have columns."""
ON_STDOUT = ("tsv", "jsonl", "csv")
Digits = Callable[[float], str]
SHORT: Digits = "{:.6g}".format
"""Format of numbers in text, unless all their digits are requested."""


class PairRow(NamedTuple):
    """A pair in the form in which it is written and shown.

    Attributes:
        pair: with its score.
        columns: name -> value.
        reasons: why it is rejected; empty where it is kept.
        lines: numbers, from 0, of the first line of the source and of the target, if both are
            texts to mine.
        measured: values of the checks, which are columns too.
        extra: columns that the input has besides.
        findings: names of the checks with a value beyond their limits, rejecting or not.
        has_tags: languages are written as tags (``de``, ``de-CH``). Otherwise only languages with a
            region are written as tags, and one output for several bitexts would mix tags and codes
            (``deu_Latn``).
    """

    pair: TextPair
    columns: Mapping[str, Any]
    reasons: list[str]
    lines: tuple[int, int] = (-1, -1)
    measured: Mapping[str, float] = {}
    extra: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    has_tags: bool = False

    def extra_columns(self, format: str) -> tuple[str, ...]:
        """Return the columns of the input that a file of a format has after its own.

        A plain TSV has them only if the pairs of the input have named fields (columns or keys).
        """
        if format == "tsv" and not isinstance(self.pair, PairWithFields):
            return ()
        return tuple(name for name in self.extra if name not in LANGUAGE_COLUMNS)

    def names_of_file(self, format: str) -> tuple[str, ...] | None:
        """Return all further columns that the pairs of the input file may have, behind the others.

        The result is None if only the whole file determines them.
        """
        if not isinstance(self.pair, PairWithOrigin):
            return ()
        if format == "tsv" and not isinstance(self.pair, PairWithFields):
            return ()
        names = self.pair.names
        if names is None:
            return None
        own = {*self.columns, *LANGUAGE_COLUMNS} - set(self.extra)
        return tuple(name for name in names if name not in own)

    @property
    def values(self) -> dict[str, Any]:
        """All columns, the languages too."""
        written = written_tag if self.has_tags else written_code
        languages = (written(self.pair.source_language), written(self.pair.target_language))
        return {**self.columns, **dict(zip(LANGUAGE_COLUMNS, languages, strict=True))}


def choose_columns(format: str, columns: Sequence[str] | None) -> Sequence[str]:
    """Return the columns of a file: the requested ones, or those of the format.

    A spreadsheet also has columns with the languages, because a file that is passed on may lose its
    name, but keeps its content.
    """
    if columns is not None:
        return columns
    if format in SHEETS:
        return (*DEFAULT_COLUMNS, *LANGUAGE_COLUMNS)
    return DEFAULT_COLUMNS


def columns_of_checks_line(
    format: str, columns: Sequence[str] | None, names: Sequence[str]
) -> list[str]:
    """Return a line if the requested checks are no columns of a file, otherwise none.

    Args:
        format: of the file.
        columns: that are wanted; None = the format's own.
        names: of the checks that were requested.
    """
    if columns is not None or not names or format == "jsonl":
        return []
    if format in WITH_COLUMNS:
        wanted = ",".join([*choose_columns(format, None), *names])
        return [f"the checks are no columns of {format} by default; pass --columns {wanted}"]
    return [f"{format} has no columns for the checks; write .jsonl, .tsv, .csv or .xlsx"]


def check_columns(columns: Sequence[str] | None, known: Sequence[str], checks: CheckPlan) -> None:
    """Refuse a column that will not exist.

    Args:
        columns: that are wanted; None = the format's own.
        known: those that the verb always has.
        checks: each of them has a column.

    Raises:
        ConfigError: there is no such column, or none is named.
    """
    known = (*known, *LANGUAGE_COLUMNS, *checks.names)
    if columns is None:
        return
    if not columns:
        raise ConfigError(f"--columns: no column is named; use one or more of: {', '.join(known)}")
    for column in columns:
        if column not in known:
            hint = did_you_mean(column, known)
            # There is such a check, and it is not one of those that are measured.
            if column in CHECKS:
                hint = "; add it to --check too"
            raise ConfigError(f"unknown column {column!r}{hint}")


def format_with_columns(path: PathLike, what: str) -> str:
    """Return the format of a file that must have columns.

    Raises:
        ConfigError: its name is of another format.
    """
    found = guess_format(path)
    if found not in WITH_COLUMNS:
        raise ConfigError(
            f"{path}: {what} cannot be written in this format; use .tsv, .jsonl, .csv or .xlsx"
        )
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
    """Write all rows, in their order, to a file that appears when it is complete.

    Args:
        rows: any number.
        path: of the file; None = standard output.
        format: of the file.
        columns: of TSV, CSV and XLSX; JSONL has all; other formats hold the texts,
            and TMX also holds the score.
        languages: of the pairs, for a file without rows.
        stdout: standard output.
        digits: writes a number as text.
    """
    if format not in WITH_COLUMNS:
        pairs = map(_measured_pair, rows)
        write_pairs(pairs, str(path), format=format, languages=languages)
        return
    with open_rows(path, format=format, columns=columns, stdout=stdout, digits=digits) as write:
        for row in rows:
            write(row)


def _measured_pair(row: PairRow) -> TextPair:
    """Return the pair of a row, with its columns if its file takes them."""
    if isinstance(row.pair, PairWithOrigin):
        return row.pair.with_measures(row.columns)
    return row.pair


@contextlib.contextmanager
def open_rows(
    path: PathLike | None,
    *,
    format: str,
    columns: Sequence[str] | None = None,
    takes_extra: bool | None = None,
    stdout: TextIO | None = None,
    digits: Digits = SHORT,
) -> Iterator[Callable[[PairRow], None]]:
    """Return a function that writes one row to a file with columns; see ``write_rows``.

    Further columns of the input follow; if there are any, the first line of a TSV names all
    columns.

    Args:
        path: of the file; None = standard output.
        format: of the file.
        columns: see ``write_rows``.
        takes_extra: whether further columns of the input are written; None = only if no columns are
            chosen.
        stdout: standard output.
        digits: writes a number as text.
    """
    if takes_extra is None:
        takes_extra = columns is None
    own_columns = choose_columns(format, columns)
    with contextlib.ExitStack() as stack:
        if format in SHEETS and path is not None:
            write_cells = stack.enter_context(open_sheet(path, format))
            file = None
        else:
            file = stdout
            if path is not None:
                file = stack.enter_context(open_text_writer(path))
            assert file is not None
            write_cells = csv_writer(file) if format == "csv" else tsv_writer(file)
        if format == "jsonl":
            assert file is not None
            yield functools.partial(_write_line, file, own_columns, digits)
        else:
            table = _Table(write_cells, format, own_columns, digits, takes_extra=takes_extra)
            # Standard output is read while it is written.
            table.can_wait = path is not None
            stack.callback(table.close)
            yield table.write
            table.finish()
            table.tell_lost(path)
        # Standard output stays open: a full disk or a closed pipe must be noticed here.
        if file is not None:
            file.flush()


def _write_line(file: TextIO, columns: Sequence[str], digits: Digits, row: PairRow) -> None:
    file.write(format_row(row, "jsonl", columns, digits))


def tsv_writer(file: TextIO) -> WriteCells:
    """Return a function that writes one row of cells as a line."""

    def write(cells: Sequence[CellValue]) -> None:
        file.write("\t".join(one_line(str(cell)) for cell in cells) + "\n")

    return write


class _Table:
    """A table that is written row by row below a header of column names.

    Either the first pair shows the further columns of the input, or they are known only after the
    last row. In the second case, all rows are kept until then.

    Args:
        write_cells: writes one row.
        format: of the file.
        columns: that it has in any case.
        digits: writes a number as text.
        takes_extra: columns of the input follow.
    """

    def __init__(
        self,
        write_cells: WriteCells,
        format: str,
        columns: Sequence[str],
        digits: Digits,
        *,
        takes_extra: bool,
    ) -> None:
        self.write_cells = write_cells
        self.format = format
        self.columns = list(columns)
        self.digits = digits
        self.takes_extra = takes_extra
        self.can_wait = True
        self.is_begun = False
        self.kept: Spool[dict[str, Any]] | None = None
        self.late: dict[str, None] = {}

    def write(self, row: PairRow) -> None:
        """Write a row, or keep it."""
        extra = row.extra_columns(self.format) if self.takes_extra else ()
        if not self.is_begun and self.kept is None:
            self._begin(row)
        if self.kept is not None:
            self.kept.add(row.values)
            self.late.update(dict.fromkeys(extra))
            return
        # If the input has further columns, the missing ones are noted; all rows of a table
        # have the same columns.
        if row.extra and self.takes_extra:
            self.late.update(dict.fromkeys(set(row.extra) - set(self.columns)))
        self._write_values(row.values)

    def finish(self) -> None:
        """Write the kept rows."""
        if self.kept is not None:
            self._write_header(tuple(self.late))
            for values in self.kept.replay():
                self._write_values(values)
            self.late.clear()
        elif not self.is_begun:
            self._write_header(())

    def close(self) -> None:
        """Remove the kept rows, which are left if writing was interrupted."""
        if self.kept is not None:
            self.kept.close()

    def tell_lost(self, path: PathLike | None) -> None:
        """Log the columns of the input that are not in the file."""
        lost = [name for name in self.late if name not in LANGUAGE_COLUMNS]
        if lost:
            log.warning(
                "%s: columns of the input are left out: %s; write .jsonl to keep them",
                path or "standard output",
                ", ".join(sorted(lost)),
            )

    def _begin(self, row: PairRow) -> None:
        """Write the header if the first row determines all columns, or else start to keep rows."""
        if not self.takes_extra:
            self._write_header(())
            return
        extra = row.extra_columns(self.format)
        names = row.names_of_file(self.format)
        if names is None and self.can_wait:
            self.kept = Spool()
            return
        self._write_header(extra if names is None else names)

    def _write_header(self, extra: Sequence[str]) -> None:
        self.is_begun = True
        self.columns += [name for name in extra if name not in self.columns]
        if self.format in SHEETS or extra:
            self.write_cells(self.columns)

    def _write_values(self, values: Mapping[str, Any]) -> None:
        cells = [
            _cell(column, values.get(column, ""), self.format, self.digits)
            for column in self.columns
        ]
        self.write_cells(cells)


def _cell(column: str, value: Any, format: str, digits: Digits) -> str | float:
    """Return a value of a spreadsheet; texts keep their line ends."""
    if isinstance(value, str):
        return value
    # A workbook knows numbers, and can sort and sum them; CSV has only text.
    if format == "xlsx" and isinstance(value, int | float):
        return value
    return cell_text(column, value, digits)


def format_row(row: PairRow, format: str, columns: Sequence[str], digits: Digits = SHORT) -> str:
    """Format a row as TSV with these columns, or as JSON with all of them."""
    if format == "jsonl":
        return json.dumps(row.values, ensure_ascii=False) + "\n"
    values = row.values
    return "\t".join(cell_text(column, values.get(column, ""), digits) for column in columns) + "\n"


def cell_text(column: str, value: Any, digits: Digits = SHORT) -> str:
    """Return a value as text on one line; lists of texts are joined, reasons by commas."""
    if isinstance(value, float):
        return digits(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        separator = " "
        if column == "reasons":
            separator = ", "
        value = separator.join(value)
    return one_line(field_text(value))
