"""Columns of a table that hold the texts of pairs, and the pairs in its rows.

A table is CSV, TSV, a sheet of a workbook, or JSON objects with keys for columns. Columns are
found by the names in the first row, or are named by the user, or follow from their number. All
other columns are kept with the pair.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from interlingua.config import languages
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import (
    OTHER_LANGUAGES,
    SCORE,
    ChosenColumns,
    PairOfTable,
    TableChoice,
    TextPair,
    languages_from_name,
    requested_pair,
)
from interlingua.errors import DataError, count_of
from interlingua.storage.files import PathLike

_NAMES = {
    "source": ("source", "src", "source text", "source segment", "original", "sentence1", "anchor"),
    "target": (
        *("target", "tgt", "trg", "target text", "target segment", "translation", "sentence2"),
        "positive",
    ),
    "score": ("score", "probability"),
    "source_language": ("source language", "src lang", "source lang"),
    "target_language": ("target language", "tgt lang", "trg lang", "target lang"),
}
"""Names of the columns, see ``folded_name``."""
NON_ENGLISH = "non english"
"""Column of sentence-transformers' parallel sentences, next to one called ``english``."""
SHOWN = 20
"""Maximum number of columns that an error names."""
OPTION = (
    "choose two with --source-column and --target-column, by name or by number from 1 (in a"
    ' config: columns = ["3", "4"])'
)


ALL_FOUND = TableChoice()
"""The user chooses nothing: columns and their names are found."""
_TITLE_ROWS = 10
"""Maximum number of rows before the row with the names of the columns."""


class TableColumns(NamedTuple):
    """Positions of the columns; -1 if there is none."""

    source: int
    target: int
    score: int = -1
    source_language: int = -1
    target_language: int = -1
    header: bool = False
    """True if the first row names the columns."""
    languages: tuple[str, str] | None = None
    """Languages after which the columns of the texts are named."""


def pairs_of_rows(
    rows: Iterator[tuple[int, list[str]]],
    path: str,
    source_language: str | None,
    target_language: str | None,
    skipped: Counter[str],
    bad: BadLines,
    choice: TableChoice = ALL_FOUND,
) -> Iterator[TextPair]:
    """Turn numbered rows of cells into pairs.

    Raises:
        DataError: the columns or the languages are unknown, or the number of columns differs from
            that of the first row.
    """
    rows = _without_titles(rows, path, choice, source_language, target_language)
    first = next(rows, None)
    if first is None:
        return
    columns = find_columns(first[1], path, source_language, target_language, choice.columns)
    columns = columns._replace(header=columns.header or choice.header_row is not None)
    named = columns.languages or languages_from_name(path) or (None, None)
    known_languages = (source_language or named[0], target_language or named[1])
    width = len(first[1])
    names = [f"column {number}" for number in range(1, width + 1)]
    if columns.header:
        names = [cell.strip() for cell in first[1]]
    else:
        rows = chain([first], rows)
    extra = _extra_columns(columns, names)
    if columns.score >= 0:
        extra.insert(0, (SCORE, columns.score))
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
        found = requested_pair(pair, source_language, target_language)
        if found is None:
            skipped[OTHER_LANGUAGES] += 1
        elif extra:
            yield PairOfTable.of(found, {name: cells[place] for name, place in extra})
        else:
            yield found


def _without_titles(
    rows: Iterator[tuple[int, list[str]]],
    path: str,
    choice: TableChoice,
    source: str | None,
    target: str | None,
) -> Iterator[tuple[int, list[str]]]:
    """Return the row with the names of the columns and all rows below it.

    This row has the passed number. By default, it is the first row that names the columns, if all
    rows before it are titles: they have fewer cells with a text, and the first of them has only one
    such cell. People write such sheets by hand, so shorter rows are filled with empty cells.

    Raises:
        DataError: there is no row of the specified number.
    """
    if choice.header_row is not None:
        for number, cells in rows:
            if number >= choice.header_row and any(map(str.strip, cells)):
                return chain([(number, cells)], rows)
        raise DataError(
            f"row {choice.header_row} does not exist; choose the row with the names of the columns",
            path=path,
        )
    head = list(islice(rows, 1))
    # The first title is the only cell of its row; other tables are not read ahead.
    if head and sum(map(bool, map(str.strip, head[0][1]))) <= 1:
        head += islice(rows, _TITLE_ROWS - 1)
    filled = [sum(map(bool, map(str.strip, cells))) for _, cells in head]
    for place, (_, cells) in enumerate(head):
        is_longest = all(count < filled[place] for count in filled[:place])
        if is_longest and _names_columns(cells, choice.columns, source, target):
            rest = chain(head[place:], rows)
            if not place:
                return rest
            return _filled(rest, len(cells))
    return chain(head, rows)


def _filled(rows: Iterator[tuple[int, list[str]]], width: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with at least ``width`` cells."""
    for number, cells in rows:
        yield number, cells + [""] * (width - len(cells))


def _names_columns(
    cells: Sequence[str], chosen: ChosenColumns | None, source: str | None, target: str | None
) -> bool:
    """Return whether a row has the names of the columns that are looked for."""
    if chosen is None:
        return header_columns(cells, source, target) is not None
    return all(len(places_called(name, cells)) == 1 for name in chosen)


def has_width(cells: Sequence[str], width: int, path: PathLike, number: int, bad: BadLines) -> bool:
    """Return whether a row has as many cells as the first one, and reject it if it has not."""
    if len(cells) == width:
        return True
    problem = (
        f"expected {width} columns, found {count_of(len(cells), 'columns')}; put quotation marks"
        " around a text that contains the delimiter"
    )
    bad.reject(DataError(problem, path=path, line=number), "\t".join(cells))
    return False


def folded_name(cell: str) -> str:
    """Return the name of a column in lowercase, with spaces for ``_`` and ``-``."""
    return re.sub(r"[\s_-]+", " ", cell.strip().casefold())


def find_columns(
    cells: Sequence[str],
    path: PathLike,
    source: str | None = None,
    target: str | None = None,
    chosen: ChosenColumns | None = None,
) -> TableColumns:
    """Find the columns of the texts and of the other fields, by the first row.

    Args:
        cells: cells of the first row.
        path: path that errors name.
        source: language of the source, if it is known; it decides among columns named after
            languages.
        target: language of the target, in the same way.
        chosen: columns that the user names.

    Raises:
        DataError: the row is not a header, and the number of columns is ambiguous.
    """
    if chosen is not None:
        return _chosen_columns(cells, path, chosen)
    found = header_columns(cells, source, target)
    if found is not None:
        return found
    # No header: the number of columns decides.
    if len(cells) == 2:
        return TableColumns(0, 1)
    if len(cells) == 3 and _is_number(cells[0]):
        return TableColumns(1, 2, 0)
    raise DataError(
        f"the columns of the texts are unknown, the first row has {count_of(len(cells), 'cells')}"
        f" ({shown_cells(cells)}); {OPTION}, or add a first row with the columns source and"
        " target, or with their languages",
        path=path,
        line=1,
    )


def shown_cells(cells: Sequence[str]) -> str:
    """Return the first cells as an error names them."""
    return ", ".join(cell[:20] for cell in cells[:6])


def header_columns(
    cells: Sequence[str], source: str | None = None, target: str | None = None
) -> TableColumns | None:
    """Return the positions of the columns if the cells name them; None if they are no header.

    Args:
        cells: cells of the first row.
        source: requested language of the source, which decides among columns named after languages.
        target: requested language of the target, in the same way.
    """
    names = [folded_name(cell) for cell in cells]
    found = {column: _place(names, called) for column, called in _NAMES.items()}
    if found["source"] >= 0 and found["target"] >= 0:
        return TableColumns(header=True, languages=None, **found)
    if NON_ENGLISH in names and "english" in names:
        found |= {"source": names.index("english"), "target": names.index(NON_ENGLISH)}
        return TableColumns(header=True, languages=None, **found)
    codes = [_language(cell) for cell in cells]
    pair = _requested_places(codes, source, target) or _language_places(names, codes)
    if pair is None:
        return None
    found |= {"source": pair[0], "target": pair[1]}
    named = (codes[pair[0]] or "", codes[pair[1]] or "")
    return TableColumns(header=True, languages=named, **found)


def _requested_places(
    codes: Sequence[str | None], source: str | None, target: str | None
) -> tuple[int, int] | None:
    """Return the columns that are named after the requested languages."""
    if source is None or target is None:
        return None
    first = languages.choose_code(source, codes)
    if first is None:
        return None
    # Two regions of one language are two columns.
    others = [None if place == first else code for place, code in enumerate(codes)]
    second = languages.choose_code(target, others)
    if second is None:
        return None
    return first, second


def _language_places(names: Sequence[str], codes: Sequence[str | None]) -> tuple[int, int] | None:
    """Return the two columns that are named after languages.

    If there are more than two, columns that may hold row numbers are ignored.
    """
    places: dict[str, int] = {}
    for place, code in enumerate(codes):
        if code is not None:
            places.setdefault(languages.written_tag(code), place)
    found = list(places.values())
    if len(found) > 2:
        # id, no and nr are also the codes of Indonesian, Norwegian and South Ndebele.
        found = [place for place in found if names[place] not in ("id", "no", "nr")]
    if len(found) != 2:
        return None
    return found[0], found[1]


def _chosen_columns(cells: Sequence[str], path: PathLike, chosen: ChosenColumns) -> TableColumns:
    """Return the columns that the user names; a first row with one of these names is a header."""
    names = [folded_name(cell) for cell in cells]
    places = [chosen_place(name, cells) for name in chosen]
    if -1 in places or places[0] == places[1]:
        wrong = chosen[places.index(-1)] if -1 in places else chosen.source
        raise DataError(
            f"no separate column found for {wrong!r}; the first row is: {shown_cells(cells)}; use"
            f" names of this row, or numbers from 1 to {len(cells)}",
            path=path,
            line=1,
        )
    header = header_columns(cells) is not None or any(folded_name(name) in names for name in chosen)
    if not header:
        return TableColumns(places[0], places[1])
    score, source, target = (
        _place(names, _NAMES[column]) for column in ("score", "source_language", "target_language")
    )
    return TableColumns(places[0], places[1], score, source, target, header=True)


def chosen_place(name: str, names: Sequence[str]) -> int:
    """Return a column's place by its name or its number from 1; -1 if it is not exactly one."""
    found = places_called(name, names)
    if found:
        return found[0] if len(found) == 1 else -1
    if name.strip().isdecimal() and 1 <= int(name) <= len(names):
        return int(name) - 1
    return -1


def places_called(name: str, names: Sequence[str]) -> list[int]:
    """Return the numbers of the columns with a name.

    The exact name takes precedence over names that are equal only by ``folded_name``.
    """
    exact = [place for place, other in enumerate(names) if other.strip() == name.strip()]
    if exact:
        return exact
    folded = folded_name(name)
    return [place for place, other in enumerate(names) if folded_name(other) == folded]


def named_column(
    name: str,
    names: Sequence[str],
    *,
    kind: str = "column",
    path: PathLike | None = None,
    line: int | None = None,
) -> int:
    """Return the number of the column that the user names, see ``places_called``.

    Args:
        name: name of the column.
        names: names of all columns.
        kind: word for a column in errors.
        path: path that an error names.
        line: line that an error names.

    Raises:
        DataError: no column has this name, or several have it.
    """
    found = places_called(name, names)
    if len(found) == 1:
        return found[0]
    count = f"no {kind} is"
    if found:
        count = f"{len(found)} {kind}s are"
    shown = ", ".join(other.strip()[:30] or "(no name)" for other in names[:SHOWN])
    if len(names) > SHOWN:
        shown += f" and {len(names) - SHOWN} more"
    raise DataError(f"{count} called {name!r}; use one of: {shown}", path=path, line=line)


def distinct_names(cells: Sequence[str], path: PathLike) -> list[str]:
    """Return the names in a first row; a column without one is called by its number.

    Raises:
        DataError: two columns have the same name, so that one of them would be lost.
    """
    names = [cell.strip() for cell in cells]
    for name in names:
        if name and names.count(name) > 1:
            named_column(name, names, path=path, line=1)  # which refuses it
    return [name or f"column {number}" for number, name in enumerate(names, 1)]


def _extra_columns(columns: TableColumns, names: Sequence[str]) -> list[tuple[str, int]]:
    """Return names and numbers of the columns that are kept with a pair as they are."""
    used = set(columns[:5])
    return [(name, place) for place, name in enumerate(names) if place not in used and name]


def other_fields(item: Mapping[str, Any], used: Iterable[str]) -> dict[str, Any]:
    """Return the values of an object except those of the used keys."""
    taken = set(used)
    return {key: value for key, value in item.items() if key not in taken}


def score_of_cell(cell: str) -> float:
    """Return the score in a cell.

    Raises:
        ValueError: it is not a finite number.
    """
    try:
        score = float(cell)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise ValueError(f"invalid score {cell[:40]!r}; expected a number")
    return score


def _pair(
    cells: Sequence[str], columns: TableColumns, known_languages: tuple[str | None, str | None]
) -> TextPair:
    # A row's languages take precedence over those of the whole file.
    source_code = _cell(cells, columns.source_language) or known_languages[0]
    target_code = _cell(cells, columns.target_language) or known_languages[1]
    if not source_code or not target_code:
        raise ValueError(
            "the languages are unknown; pass both, name the columns or the file after them, or add"
            " the columns source_language and target_language"
        )
    source = languages.as_code(source_code)
    target = languages.as_code(target_code)
    score = None
    if cell := _cell(cells, columns.score):
        score = score_of_cell(cell)
    return TextPair(cells[columns.source], cells[columns.target], source, target, score)


def _cell(cells: Sequence[str], place: int) -> str:
    """Return a cell without surrounding white space; it is empty if there is no such column."""
    if place < 0:
        return ""
    return cells[place].strip()


def _place(names: Sequence[str], called: Sequence[str]) -> int:
    return next((names.index(name) for name in called if name in names), -1)


def _language(cell: str) -> languages.LanguageCode | None:
    """Return the language that a column is named after, or None.

    Examples are ``en``, ``English``, and ``en_text`` as in the Thai-English SCB set.
    """
    name = re.sub(r"[\s_-]text$", "", cell.strip(), flags=re.IGNORECASE)
    return languages.as_named(languages.find_code(name))


def _is_number(cell: str) -> bool:
    try:
        score_of_cell(cell)
    except ValueError:
        return False
    return True
