"""A sheet of an Excel workbook (XLSX), the first by default: its rows of texts, and a writer.

Needs the extra ``xlsx``.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import unicodedata
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from interlingua.errors import DataError, InterlinguaError, import_extra
from interlingua.storage.files import PathLike, atomic_write, open_raw
from interlingua.storage.limits import FREE_EXPANSION_BYTES, max_expansion

CellValue = str | float | int
WriteCells = Callable[[Sequence[CellValue]], None]
MAX_ROWS = 1_048_576
"""Maximum number of rows of Excel's sheets."""
MAX_COLUMNS = 100
"""Maximum number of columns that are read."""
_MAX_CHARACTERS = 32_767
"""Maximum number of characters of Excel's cells."""
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
FORMULA_SIGNS = ("=", "+", "-", "@")
"""First characters by which spreadsheets recognize a formula."""


class SheetForm(NamedTuple):
    """Form of a sheet for people to fill in: wrapped texts, a frozen header with filters.

    Attributes:
        widths: widths of the columns, in characters.
        choices: number of a column, from 0 -> the values that its cells may have.
    """

    widths: Sequence[int]
    choices: dict[int, Sequence[str]]


def read_rows(
    path: str, *, sheet: str | None = None, first_row: int = 1
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with their numbers, without empty rows before the first filled row.

    Shorter rows are filled with empty cells.

    Args:
        path: path of the workbook.
        sheet: its name, or its number from 1.
        first_row: number of the first row that is read, from 1.

    Raises:
        DataError: it is not a workbook, grows too large, or has no such sheet.
        MissingExtraError: openpyxl is not installed.
    """
    library = _openpyxl()
    with open_raw(path) as file:
        try:
            _refuse_bomb(file, path)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of styles and the like, which are not read
                # As values, not formulas, and without holding the sheet in memory.
                book = library.load_workbook(file, read_only=True, data_only=True)
            chosen = _sheet_of(book, sheet, path)
            chosen.reset_dimensions()  # some programs write wrong dimensions
            rows = chosen.iter_rows(max_col=MAX_COLUMNS, min_row=first_row, values_only=True)
            width = 0  # of the first row that is not empty
            for number, cells in enumerate(rows, first_row):
                if number > MAX_ROWS:
                    raise DataError(
                        f"the sheet has more than {MAX_ROWS:,} rows; save it as .csv", path=path
                    )
                texts = [_text_of(cell) for cell in cells]
                # Formatted cells without a content make a row longer than its texts.
                while len(texts) > width and not texts[-1]:
                    texts.pop()
                width = width or len(texts)
                if width:
                    yield number, texts + [""] * (width - len(texts))
        except InterlinguaError:
            raise
        except Exception as error:  # the library raises a dozen kinds of errors
            reason = " ".join(str(error).split())[:100]
            message = f"cannot be read as an Excel workbook ({reason}); save it again as .xlsx"
            raise DataError(message, path=path) from error


def _sheet_of(book: Any, name: str | None, path: str) -> Any:
    """Return a sheet by its name, else by its number.

    Raises:
        DataError: there is no such sheet.
    """
    sheets = book.worksheets
    for sheet in sheets:
        if name is not None and sheet.title.strip().casefold() == name.strip().casefold():
            return sheet
    number = 0
    if name is None:
        number = 1
    elif name.isascii() and name.isdecimal() and len(name) < 10:
        number = int(name)
    if not 1 <= number <= len(sheets):
        shown = ", ".join(sheet.title[:40] for sheet in sheets[:10])
        raise DataError(f"unknown sheet {name!r}; use one of: {shown}", path=path)
    return sheets[number - 1]


def _refuse_bomb(file: Any, path: str) -> None:
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
    packed = max(1, sum(member.compress_size for member in members))
    unpacked = sum(member.file_size for member in members)
    if unpacked > max(FREE_EXPANSION_BYTES, max_expansion() * packed):
        raise DataError(
            f"its {packed:,} bytes expand to {unpacked:,}, too many for a workbook; save it as"
            " .csv if you trust it",
            path=path,
        )
    file.seek(0)


def _text_of(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float) and not cell.is_integer():
        return repr(cell)
    return str(cell)


@contextlib.contextmanager
def open_writer(path: PathLike, form: SheetForm | None = None) -> Iterator[WriteCells]:
    """Return a function that writes one row; the file appears when it is complete.

    Args:
        path: path of the file.
        form: how the sheet looks; the first row is its header. None = like an empty sheet of Excel.

    Raises:
        DataError: a text or the number of rows exceeds Excel's limits.
        MissingExtraError: openpyxl is not installed.
    """
    library = _openpyxl()
    write_only_cell = importlib.import_module("openpyxl.cell").WriteOnlyCell
    workbook = library.Workbook(write_only=True)
    sheet = workbook.create_sheet("pairs")
    rows = 0
    if form is not None:
        # Only the settings that precede the rows in the file; the filter follows the rows.
        sheet.freeze_panes = "A2"
        for number, width in enumerate(form.widths):
            sheet.column_dimensions[_letter(number)].width = width

    def write(cells: Sequence[CellValue]) -> None:
        nonlocal rows
        rows += 1
        if rows > MAX_ROWS:
            raise DataError(
                f"an Excel sheet has at most {MAX_ROWS:,} rows; write .csv or .tsv", path=path
            )
        made = []
        for value in cells:
            cell = write_only_cell(sheet, _in_xlsx(value, path))
            if isinstance(value, str):
                cell.data_type = "s"  # a text that starts with = is not a formula
                # Even if someone edits the cell, the text does not become a formula.
                cell.quotePrefix = value.startswith(FORMULA_SIGNS)
            if form is not None:
                _style(cell, value, is_header=rows == 1)
            made.append(cell)
        sheet.append(made)

    with atomic_write(path, "wb") as file:
        try:
            yield write
        except BaseException:
            sheet.close()  # else its temporary file stays open
            raise
        if form is not None:
            _add_choices(sheet, form, rows)
        workbook.save(file)


def _letter(column: int) -> str:
    letter: str = importlib.import_module("openpyxl.utils").get_column_letter(column + 1)
    return letter


def _style(cell: Any, value: CellValue, *, is_header: bool) -> None:
    """Wrap a cell's text, and align text of Arabic or Hebrew letters to the right."""
    styles = importlib.import_module("openpyxl.styles")
    direction: dict[str, Any] = {}
    if isinstance(value, str) and is_right_to_left(value):
        direction = {"horizontal": "right", "readingOrder": 2}
    cell.alignment = styles.Alignment(wrap_text=True, vertical="top", **direction)
    if is_header:
        cell.font = styles.Font(bold=True)


def _add_choices(sheet: Any, form: SheetForm, rows: int) -> None:
    """Add the filters of the header and the lists of values below it."""
    validation = importlib.import_module("openpyxl.worksheet.datavalidation").DataValidation
    sheet.auto_filter.ref = f"A1:{_letter(len(form.widths) - 1)}{max(rows, 1)}"
    for column, values in form.choices.items():
        choice = validation(type="list", formula1=f'"{",".join(values)}"', allow_blank=True)
        # A list is offered and not forced: any word that the reader knows may be typed.
        choice.showErrorMessage = False
        choice.add(f"{_letter(column)}2:{_letter(column)}{max(rows, 2)}")
        sheet.data_validations.append(choice)


def is_right_to_left(text: str) -> bool:
    """Return whether the first letter of a text is of a script written from right to left."""
    for character in text:
        direction = unicodedata.bidirectional(character)
        if direction in ("R", "AL"):
            return True
        if direction == "L":
            return False
    return False


def _in_xlsx(value: CellValue, path: PathLike) -> CellValue:
    if not isinstance(value, str):
        return value
    if len(value) > _MAX_CHARACTERS:
        raise DataError(
            f"a text has {len(value):,} characters, but an Excel cell has at most"
            f" {_MAX_CHARACTERS:,}; write .csv or .tsv",
            path=path,
        )
    return _NOT_XML.sub("", value)


def _openpyxl() -> Any:
    return import_extra("openpyxl", extra="xlsx")
