"""Results in rows: lists with a repr of one line, which convert to data frames."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from interlingua.errors import import_extra

if TYPE_CHECKING:
    import pandas

T = TypeVar("T")
_SHOWN_CHARACTERS = 120
"""Maximum number of characters of the first row in a line that summarizes all."""


class RowList(list[T]):
    """A list of results, each of which is a row of a table."""

    columns_if_empty: ClassVar[Sequence[str]] = ()
    """Columns of the data frame if there are no rows; other frames may have more columns."""

    def records(self) -> list[dict[str, Any]]:
        """Return each row as a dictionary by column name; the elements are named tuples."""
        rows: Iterable[Any] = self
        return [row._asdict() for row in rows]

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with a row for each element, in the same order.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return data_frame(self.records(), self.columns_if_empty)

    def __repr__(self) -> str:
        """Return a line with the number of rows and the first of them."""
        return shown_rows(type(self).__name__, self)


def data_frame(
    records: Iterable[Mapping[str, Any]], columns_if_empty: Sequence[str] = ()
) -> pandas.DataFrame:
    """Return records as a data frame of pandas.

    Args:
        records: rows by the names of their columns.
        columns_if_empty: columns of the frame if there is no row.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    library = import_extra("pandas", extra="pandas")
    rows = list(records)
    frame: pandas.DataFrame
    # pandas would make a frame without columns, on which table["text"] fails.
    if not rows:
        frame = library.DataFrame(columns=list(columns_if_empty))
    else:
        frame = library.DataFrame.from_records(rows)
    return frame


def shown_rows(name: str, rows: list[Any]) -> str:
    """Return a line that summarizes many rows."""
    first = ""
    if rows:
        first = textwrap.shorten(f": {rows[0]!r}", _SHOWN_CHARACTERS, placeholder=" ...")
    more = ", ..." if len(rows) > 1 else ""
    return f"<{name} of {len(rows):,}{first}{more}>"
