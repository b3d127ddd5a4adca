"""Texts with a label each, in the layouts in which they are published.

- tables with tabs: a label and a text, also with an id (SIB-200) or further columns;
- ``.jsonl`` with ``label`` and ``text``, or other keys (the Multilingual Amazon Reviews Corpus);
- Webis-CLS-10's ``.review`` in XML.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from interlingua.corpus.formats.xml_stream import xml_events
from interlingua.errors import DataError, count_of
from interlingua.storage.files import tab_rows
from interlingua.storage.json_text import json_lines

_PYTHON_BYTES = re.compile(r"b(['\"]).*\1")
_REVIEW = "expected <item> with <rating> and <text>"


class LabeledTexts(NamedTuple):
    """Texts and the label of each."""

    texts: list[str]
    labels: list[str]


def read_labeled_texts(path: Path) -> LabeledTexts:
    """Read a table of label TAB text, or JSON lines with ``text`` and ``label``, by the suffix.

    Raises:
        DataError: the file is missing or empty, or a row is not of the layout.
    """
    if ".jsonl" in path.name:  # also in .jsonl.gz, which is not a suffix of Path
        return read_labeled_json(path)
    return read_labeled_table(path)


def read_labeled_table(
    path: Path, *, label: int = 0, text: int = 1, columns: int = 2, has_ids: bool = False
) -> LabeledTexts:
    """Read a table with a label and a text in each row.

    Args:
        path: the file, its columns separated by tabs.
        label: column of the label.
        text: column of the text.
        columns: number of columns.
        has_ids: the first column holds ids, each once, and may have SIB-200's header.

    Raises:
        DataError: the file is missing or empty, a row has another number of columns, an id is
            repeated, or a label or text is empty.
    """
    rows = list(_rows_of_width(path, columns))
    if has_ids:
        if rows and rows[0][1][:2] == ["index_id", "category"]:
            del rows[0]
        _refuse_repeated_ids(rows, path)
    return _collected(((line, cells[label], cells[text]) for line, cells in rows), path)


def read_labeled_json(path: Path, *, label: str = "label", text: str = "text") -> LabeledTexts:
    """Read the label and the text of each object of a file of JSON lines, by their keys.

    Raises:
        DataError: the file is missing or empty, an object lacks a key, or a value is empty.
    """
    rows = []
    for line, record in json_lines(path):
        if absent := [key for key in (label, text) if key not in record]:
            raise DataError(
                f"the key {absent[0]} is missing; expected an object with {label}, {text}",
                path=path,
                line=line,
            )
        rows.append((line, str(record[label]), str(record[text])))
    return _collected(rows, path)


def read_reviews(path: Path) -> list[tuple[str, float]]:
    """Read all reviews with a text from a file of Webis-CLS-10, each with its stars.

    Raises:
        DataError: the file is missing or of another form, or has no reviews.
    """
    reviews: list[tuple[str, float]] = []
    try:
        for event, item in xml_events(path, "item"):
            if event == "end" and item.tag == "item":
                text, rating = (item.findtext(tag) or "" for tag in ("text", "rating"))
                reviews.append((" ".join(text.split()), float(rating)))
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"is not a review file of CLS ({error}); {_REVIEW}", path=path) from error
    # A review without a text can't be classified.
    reviews = [(text, rating) for text, rating in reviews if text]
    if not reviews:
        raise DataError(f"the file contains no review; {_REVIEW}", path=path)
    return reviews


def decoded_bytes(text: str) -> str:
    """Return the text that a Python literal of bytes represents, or the text itself."""
    if not _PYTHON_BYTES.fullmatch(text):
        return text
    return str(ast.literal_eval(text).decode("utf-8"))


def _rows_of_width(path: Path, columns: int) -> Iterator[tuple[int, list[str]]]:
    for line, cells in tab_rows(path):
        if len(cells) != columns:
            raise DataError(
                f"expected {count_of(columns, 'columns')} with tabs between them, found"
                f" {count_of(len(cells), 'columns')}; correct the line",
                path=path,
                line=line,
            )
        yield line, cells


def _refuse_repeated_ids(rows: Iterable[tuple[int, list[str]]], path: Path) -> None:
    first: dict[str, int] = {}
    for line, (key, *_) in rows:
        if first.setdefault(key, line) != line:
            raise DataError(
                f"the id {key!r} is already used in line {first[key]}; use each id once",
                path=path,
                line=line,
            )


def _collected(rows: Iterable[tuple[int, str, str]], path: Path) -> LabeledTexts:
    found = LabeledTexts([], [])
    for line, label, text in rows:
        if not label.strip() or not text.strip():
            what = "text" if label.strip() else "label"
            raise DataError(
                f"the {what} is empty; fill it in or remove the line", path=path, line=line
            )
        found.texts.append(text)
        found.labels.append(label.strip())
    if not found.texts:
        raise DataError("the file is empty; expected a label and a text per line", path=path)
    return found
