"""Results in rows: lists that are shown in a line and become data frames."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from interlingua.errors import import_extra

if TYPE_CHECKING:
    import pandas

T = TypeVar("T")
_SHOWN_CHARACTERS = 120
"""Of the first row, in a line that stands for all."""


class RowList(list[T]):
    """A list of results, each of which is a row of a table."""

    def records(self) -> list[dict[str, Any]]:
        """Return the rows by the names of their columns; an element is a named tuple."""
        rows: Iterable[Any] = self
        return [row._asdict() for row in rows]

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with a row for each element, in the same order.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return data_frame(self.records())

    def __repr__(self) -> str:
        """Return a line with the number of rows and the first of them."""
        return shown_rows(type(self).__name__, self)


def data_frame(records: Iterable[Mapping[str, Any]]) -> pandas.DataFrame:
    """Return records as a data frame of pandas.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    library = import_extra("pandas", extra="pandas")
    frame: pandas.DataFrame = library.DataFrame.from_records(list(records))
    return frame


def shown_rows(name: str, rows: list[Any]) -> str:
    """Return a line that stands for many rows."""
    first = ""
    if rows:
        first = textwrap.shorten(f": {rows[0]!r}", _SHOWN_CHARACTERS, placeholder=" ...")
    more = ", ..." if len(rows) > 1 else ""
    return f"<{name} of {len(rows):,}{first}{more}>"
