"""Readers of passages: lines of text, documents, tables, JSON, Parquet.

A line of a text file is a passage, and so is a section of a document (Markdown, HTML, Word,
OpenDocument, EPUB, PDF, subtitles). A record is a row of a
table (CSV, XLSX, TSV with a first row of names) or of Parquet, or an object of JSON Lines or of a
JSON array. It has a ``text``, and may have an ``id``, a ``title`` and a ``language``; everything
else in it is metadata, kept with the passage and usable in filters. All files except documents are
read as a stream, so their size does not matter.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from interlingua.config.languages import resolve_code
from interlingua.corpus.cleaning.language_evidence import LOOKED_AT, checked_language
from interlingua.corpus.documents.kinds import has_sections
from interlingua.corpus.documents.sections import joined_headings, read_sections
from interlingua.corpus.formats.json_stream import is_json_array, json_array_items
from interlingua.corpus.formats.monolingual import find_language, tell_words
from interlingua.corpus.formats.sentence_table import is_table, table_records
from interlingua.corpus.formats.table_columns import (
    SHOWN,
    distinct_names,
    named_column,
    places_called,
)
from interlingua.encoder.texts import check_text, is_blank
from interlingua.errors import ConfigError, DataError, MissingExtraError, count_of
from interlingua.storage.files import PathLike, open_text, stem_and_suffix, tab_rows
from interlingua.storage.json_text import json_lines

ID_KEYS = ("id", "_id", "docid")
TEXT_KEYS = ("text", "contents", "sentence")
LANGUAGE_KEYS = ("language", "lang")
USUAL_KEYS = {"text": TEXT_KEYS, "title": ("title",), "id": ID_KEYS, "language": LANGUAGE_KEYS}
"""Default names of the parts of a passage in a record."""
PARQUET_ROWS = 1024
"""Rows of a Parquet file that are in memory at a time."""


class PassageColumns(NamedTuple):
    """Columns of a table, or keys of objects, that hold the parts of a passage.

    Names match in capitals or small letters, and ``_`` matches a space. None means the usual names,
    see ``USUAL_KEYS``.
    """

    text: str | None = None
    title: str | None = None
    id: str | None = None
    language: str | None = None

    def named(self) -> list[str]:
        """Return the names that the user gave."""
        return [name for name in self if name is not None]


USUAL_COLUMNS = PassageColumns()


class Passage(NamedTuple):
    """A text that a search may find."""

    id: str
    """Id, unique in an index."""
    text: str
    title: str = ""
    language: str = ""
    """Language code, such as ``deu_Latn``; empty if unknown."""
    metadata: str = "{}"
    """All other fields, as JSON."""
    file: str = ""
    """Name of the file that the passage and its id belong to; empty if it has an id of its own."""
    document: str = ""
    """Document that contains this passage: the name of a file, or the id of the longer passage that
    was cut; the passage's own id if it was not cut; empty until it is added to an index."""
    offset: int = 0
    """Characters of the document's text before it."""
    heading: str = ""
    """Headings above it in the document, outermost first."""

    @property
    def context(self) -> str:
        """The title and the headings, if there are any."""
        return joined_headings(self.title, self.heading)

    @property
    def embedded_text(self) -> str:
        """The text that the encoder reads: title and headings, if there are any, and the text."""
        parts = (self.title, self.heading, self.text)
        return " ".join(part for part in parts if part)


def read_passages(
    path: PathLike,
    *,
    language: str | None = None,
    name: str | None = None,
    documents: bool = False,
    columns: PassageColumns = USUAL_COLUMNS,
) -> Iterator[Passage]:
    """Yield the passages of a file.

    Args:
        path: ``.jsonl`` or ``.ndjson``, ``.json`` (an array), ``.csv``, ``.xlsx``, ``.parquet``,
            a document of ``SECTION_SUFFIXES`` (one passage per section), or text (one passage per
            line); all kinds except Parquet, XLSX and binary documents may also be compressed (.gz,
            .xz, .zst).
        language: any code, for passages that name none; by default the one in the file's name
            (``de.txt``), otherwise the one that a document declares, if any.
        name: of the file, the prefix of its passages' ids; by default without its folder.
        documents: make one passage of a text file, instead of one passage per line.
        columns: of tables, Parquet and JSON.

    Raises:
        ConfigError: columns are named, and the file has none.
        DataError: the file is missing or damaged, a column is not there, a record has no text, or
            the texts are in another script than the language.
        MissingExtraError: Parquet without the extra ``search``.
    """
    code = find_language(Path(path), column=columns.text) or ""
    if language:
        code = resolve_code(language)
    if name is None:
        name = Path(path).name
    passages = _passages(path, name, code, documents, columns)
    if not code:
        tell_words(Path(path), "--language", column=columns.text)
        yield from passages
        return
    # Passages that name no language get the language of the file, and their texts must match it.
    first = list(islice(passages, LOOKED_AT))
    texts = [passage.text for passage in first if passage.language == code]
    found = checked_language(texts, code, path, "--language", is_given=bool(language))
    for passage in chain(first, passages):
        if passage.language == code:
            passage = passage._replace(language=str(found))
        yield passage


def _passages(
    path: PathLike, name: str, code: str, documents: bool, columns: PassageColumns
) -> Iterator[Passage]:
    """Yield the passages of a file; those that name no language get the language ``code``."""
    is_sections = has_sections(path)
    records = None if is_sections else _records(path, columns.named())
    if records is None:
        if named := columns.named():
            raise ConfigError(
                f"{path}: the column {named[0]!r} requires a table, Parquet or JSON; remove the"
                " option, or index this file separately"
            )
        read = _document_sections if is_sections or documents else _lines
        yield from read(path, name, code)
        return
    for number, record in records:
        try:
            yield passage_of(record, name, number, code, columns)
        except DataError as error:
            # ``passage_of`` reports errors without the path and the line, so they are added here.
            raise DataError(str(error), path=path, line=number) from error


def _records(path: PathLike, columns: Sequence[str]) -> Iterator[tuple[int, Any]] | None:
    """Return the numbered records of a file; None if it is text with one passage per line.

    Args:
        path: of the file.
        columns: names that it must have.
    """
    suffix = stem_and_suffix(path)[1]
    if suffix == ".json" and is_json_array(path):
        # Several items may start in one line, so the items are numbered, not the lines.
        items = enumerate((item for _, item in json_array_items(Path(path))), 1)
        return _objects_with_keys(items, path, columns)
    if suffix in (".jsonl", ".ndjson", ".json"):
        return _objects_with_keys(json_lines(path), path, columns)
    if suffix == ".parquet":
        return _parquet_records(path, columns)
    if is_table(path):
        return table_records(path, columns)
    if suffix == ".tsv" and (columns or _has_header(path)):
        return _tsv_records(path, columns)
    return None


def _objects_with_keys(
    items: Iterable[tuple[int, Any]], path: PathLike, keys: Sequence[str]
) -> Iterator[tuple[int, Any]]:
    """Yield objects of JSON as they are.

    Raises:
        DataError: one of the keys is in none of the objects.
    """
    missing = set(keys)
    seen: dict[str, None] = {}
    number = 0
    for number, item in items:
        if missing and isinstance(item, Mapping):
            seen |= dict.fromkeys(item)
            missing -= {key for key in missing if places_called(key, [*item])}
        yield number, item
    for key in keys:
        if number and key in missing:
            named_column(key, [*seen], kind="key", path=path)  # raises the error


def _has_header(path: PathLike) -> bool:
    """Return whether the first line of a text with tabs names a column of passages."""
    _, cells = next(tab_rows(path), (1, []))
    return len(cells) > 1 and bool({cell.strip().casefold() for cell in cells} & set(TEXT_KEYS))


def _tsv_records(path: PathLike, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the lines after the first one as records; the names in the first line are the keys."""
    rows = tab_rows(path)
    number, cells = next(rows, (0, []))
    if not number:
        return
    names = distinct_names(cells, path)
    for column in columns:
        named_column(column, names, path=path, line=number)
    for number, cells in rows:
        if len(cells) > len(names):
            raise DataError(
                f"expected {len(names)} columns, found {count_of(len(cells), 'columns')}; remove"
                " tabs inside texts",
                path=path,
                line=number,
            )
        if any(cells):
            record = zip(names, cells, strict=False)
            yield number, {key: cell for key, cell in record if cell}


def _lines(path: PathLike, name: str, language: str) -> Iterator[Passage]:
    """Yield a passage for each line that is not blank; blank lines count in the numbering."""
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            if not is_blank(text := line.strip()):
                yield Passage(f"{name}:{number}", text, language=language, file=name)


def _document_sections(path: PathLike, name: str, language: str) -> Iterator[Passage]:
    """Yield a passage for each section of a document, named by its place in the text."""
    for section in read_sections(path):
        text = section.text.rstrip()
        bare = text.lstrip()
        offset = section.offset + len(text) - len(bare)
        if is_blank(bare):
            continue
        yield Passage(
            f"{name}:{offset}",
            bare,
            section.title,
            language or section.language,
            file=name,
            document=name,
            offset=offset,
            heading=joined_headings(*section.headings),
        )


def _parquet_records(
    path: PathLike, columns: Sequence[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a Parquet file, each with its number, from 1."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtraError("pyarrow", "search") from error
    if not Path(path).is_file():
        raise DataError("file not found; check the path", path=path)
    number = 0
    try:
        with ParquetFile(path) as file:
            names = file.schema_arrow.names
            for column in (*columns, *names):
                named_column(column, names, path=path)
            for batch in file.iter_batches(PARQUET_ROWS):
                for record in batch.to_pylist():
                    number += 1
                    yield number, record
    except (ArrowException, OSError) as error:
        raise DataError(
            f"cannot be read as Parquet ({error}); check the file", path=path
        ) from error


def passage_of(
    record: Any,
    file: str,
    number: int,
    default_language: str,
    columns: PassageColumns = USUAL_COLUMNS,
) -> Passage:
    """Convert a record to a passage; ``file`` and ``number`` identify a record without an id.

    Raises:
        DataError: the text is missing, a field has a wrong type, or two keys have the same name.
    """
    if not isinstance(record, Mapping):
        raise DataError(f"expected an object with a text, found {type(record).__name__}")
    # An empty cell of a table counts as a missing field. The parts of the passage are removed from
    # the fields; the remaining fields are metadata.
    fields = {key: value for key, value in record.items() if value is not None}
    parts = _take_parts(fields, columns)
    text = parts["text"]
    if not isinstance(text, str) or is_blank(text):
        key = _key_of_text(record, columns)
        if isinstance(text, str) or (text is None and key is not None):
            raise DataError(
                f"the field {key!r} is missing or blank; remove such rows, or add a text"
            )
        called = columns.text or ", ".join(TEXT_KEYS)
        there = ", ".join(str(key)[:30] for key in [*record][:SHOWN])
        got = "" if text is None else f", found {type(text).__name__}"
        named = "" if columns.text else ", or another name passed as text_column"
        raise DataError(
            f"the text is missing{got}; expected a string in the field {called}{named}; the fields"
            f" are: {there}"
        )
    own_id = parts["id"]
    if own_id is not None and (isinstance(own_id, bool) or not isinstance(own_id, str | int)):
        raise DataError(f"the id: expected a string or an integer, found {type(own_id).__name__}")
    own_language = parts["language"]
    title = parts["title"]
    if title is None:
        title = ""
    if not isinstance(title, str):
        raise DataError(f"the title: expected a string, found {type(title).__name__}")
    # A passage with an id of its own belongs to no file: it is the same passage in any file.
    name = f"{file}:{number}"
    if own_id is not None:
        name = check_text(str(own_id), 0, "id")
        file = ""
    text = str(check_text(text, 0, "text"))  # no numpy.str_, which prints its type
    title = check_text(title, 0, "title")
    language = default_language
    if own_language:
        language = str(resolve_code(str(own_language)))
    metadata = json.dumps(_plain(fields), ensure_ascii=False, sort_keys=True)
    return Passage(id=name, text=text, title=title, language=language, metadata=metadata, file=file)


def _key_of_text(record: Mapping[Any, Any], columns: PassageColumns) -> str | None:
    """Return the key that a record has for its text, whatever the value."""
    for name in (columns.text,) if columns.text else TEXT_KEYS:
        keys = [*map(str, record)]
        if places := places_called(name, keys):
            return keys[places[0]]
    return None


def _take_parts(fields: dict[str, Any], columns: PassageColumns) -> dict[str, Any]:
    """Remove the parts of a passage from the fields of its record and return them, None if missing.

    One column may be named for two parts, such as id and title.

    Raises:
        DataError: several keys match the name of one column.
    """
    parts: dict[str, Any] = {}
    used: set[str] = set()
    for part, name in columns._asdict().items():
        if name is None:
            continue
        keys = [*fields]
        parts[part] = None
        # The part stays None if its cell is empty or if only other records have the key.
        if places_called(name, keys):
            key = keys[named_column(name, keys, kind="key")]
            parts[part] = fields[key]
            used.add(key)
    for key in used:
        del fields[key]
    for part, usual in USUAL_KEYS.items():
        if part not in parts:
            parts[part] = _take_first(fields, usual)
    return parts


def _take_first(fields: dict[str, Any], keys: tuple[str, ...]) -> Any:
    """Remove the first of the keys that is there, maybe in capitals, and return its value."""
    for key in keys:
        if key in fields:
            return fields.pop(key)
    for key in keys:
        for name in fields:
            if str(name).casefold() == key:
                return fields.pop(name)
    return None


def _plain(value: Any) -> Any:
    """Convert a value of Parquet to its JSON form: dates in ISO 8601, and no NaN."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str | int | float | bool | None):
        return value
    return str(value)
