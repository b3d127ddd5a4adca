"""Tables in memory: frames of pandas and polars, tables of Arrow, data sets of ``datasets``.

They are recognized by attributes, so that none of these packages is imported. Each column converts
itself to a list, because the elements of Arrow's arrays are not plain strings, and the numbers of
pandas are numpy objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from interlingua.corpus.formats.table_columns import header_columns, shown_cells
from interlingua.errors import ConfigError, DataError, did_you_mean, with_article

_PORTION = 16_384
"""Elements of an Arrow array that are converted at once."""
CONVERSIONS = ("to_pylist", "to_list", "tolist")
"""Methods that convert a column to a list: in Arrow, in polars and pandas, and in numpy."""


def column_names(frame: Any) -> list[str]:
    """Return the names of a table's columns.

    Raises:
        ConfigError: it is a query that was not run, or several tables.
    """
    kind = type(frame).__name__
    if kind == "LazyFrame":
        raise ConfigError("a LazyFrame contains no rows yet; call collect() first")
    # In Arrow, ``columns`` contains the arrays and not their names.
    names = getattr(frame, "column_names", None)
    if names is None:
        names = frame.columns
    if isinstance(names, dict):
        raise ConfigError(
            f"expected one table, found {with_article(kind)} of {', '.join(names)}; choose one"
        )
    return [str(name) for name in names]


def column_values(frame: Any, name: str) -> list[Any]:
    """Return the values of a column, in the order of the rows.

    Raises:
        DataError: there is no such column, or several columns have this name.
    """
    names = column_names(frame)
    if names.count(name) != 1:
        problem = "several columns" if name in names else "no column"
        raise DataError(f"the table has {problem} named {name!r}{did_you_mean(name, names)}")
    # The name of a column may be something other than text, for example a number.
    key = name
    if not hasattr(frame, "column_names"):
        key = list(frame.columns)[names.index(name)]
    return list(plain_values(frame[key]))


def plain_values(column: Iterable[Any]) -> Iterable[Any]:
    """Return the elements of a column as plain values; other objects unchanged."""
    if is_arrow(column):
        return arrow_values(column)
    for name in CONVERSIONS:
        if hasattr(column, name):
            found: Iterable[Any] = getattr(column, name)()
            return found
    return column


def is_arrow(column: Any) -> bool:
    """Return whether a value is an array of Arrow, whose elements are not plain values."""
    return hasattr(column, "to_pylist") and hasattr(column, "slice")


def arrow_values(array: Any) -> Iterator[Any]:
    """Yield the elements of an Arrow array, in one part or in several."""
    for start in range(0, len(array), _PORTION):
        yield from array.slice(start, _PORTION).to_pylist()


class FramePairs(NamedTuple):
    """The pairs of a table."""

    pairs: Iterable[tuple[Any, Any]]
    languages: tuple[str, str] | None = None
    """Codes of the languages that are the names of the two columns; None if they are not."""


def frame_pairs(
    frame: Any, source_column: str | None = None, target_column: str | None = None
) -> FramePairs:
    """Return the pairs of a table.

    Args:
        frame: the table.
        source_column: the column of the sources; by default found by the names of all columns, as
            in a file with a header. Otherwise the first, if there are two columns.
        target_column: the column of the targets.

    Raises:
        DataError: there are no such columns, or it is not known which they are.
        ConfigError: only one column is named.
    """
    names = column_names(frame)
    if (source_column is None) != (target_column is None):
        raise ConfigError(
            "source_column requires target_column and the reverse; pass both or neither"
        )
    chosen = [source_column, target_column]
    if None in chosen:
        found = header_columns(names)
        if found is not None:
            chosen = [names[found.source], names[found.target]]
        elif len(names) == 2:
            chosen = [*names]
        else:
            raise DataError(
                f"no source and target columns found among {shown_cells(names)}; pass for example"
                " source_column='de', target_column='en'"
            )
    source, target = (str(name) for name in chosen)
    codes = header_columns([source, target])
    pairs = zip(column_values(frame, source), column_values(frame, target), strict=True)
    return FramePairs(pairs, codes.languages if codes is not None else None)


def frame_records(frame: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table by the names of its columns; a missing value is None."""
    names = column_names(frame)
    columns = [column_values(frame, name) for name in names]
    for row in zip(*columns, strict=True):
        yield {name: _known(value) for name, value in zip(names, row, strict=True)}


def _known(value: Any) -> Any:
    """Return a value, or None for a missing value of pandas."""
    is_missing = isinstance(value, float) and value != value
    if is_missing or type(value).__name__ in ("NAType", "NaTType"):
        return None
    return value
