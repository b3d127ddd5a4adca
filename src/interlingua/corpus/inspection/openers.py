"""Choice of the reader of a file, by its name and its first lines, and the stream of its units.

If no reader accepts a file, the error is that of the reader to which the file's name belongs.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal

from interlingua.corpus.documents.kinds import has_sections
from interlingua.corpus.documents.reading import read_document
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import (
    TextPair,
    guess_format,
    languages_from_name,
    read_pairs_as_named,
    resolved_code,
)
from interlingua.corpus.formats.labeled_pairs import LabeledPairKind, labeled_rows
from interlingua.corpus.formats.monolingual import find_language
from interlingua.corpus.formats.moses import moses_files
from interlingua.corpus.formats.questions import read_questions
from interlingua.corpus.formats.sentence_table import (
    has_sentences,
    is_table,
    read_column,
    table_records,
)
from interlingua.corpus.formats.table_columns import header_columns
from interlingua.errors import DamagedFileError, DataError
from interlingua.storage.files import is_special, open_text, stem_and_suffix
from interlingua.storage.json_text import json_values

Kind = Literal["pairs", "texts", "document", "questions", "passages", "labeled pairs"]
UNKNOWN = ("eng_Latn", "fra_Latn")
"""Placeholder for the languages of a file that names none, until its texts show them."""
_LOOKED_AT = 200
"""Number of first lines that are examined to distinguish pairs from texts."""
_BAD_KEPT = 200
"""Maximum number of lines that are not UTF-8 and whose bytes are kept."""
_QUESTION_KEYS = ({"question", "positive_ctxs"}, {"query", "positive_passages"}, {"paragraphs"})
_TEXT_KEYS = ("text", "contents", "passage", "sentence")


class CountedBadLines(BadLines):
    """Counts of the lines that can't be read, with the bytes of some that are not UTF-8.

    Attributes:
        undecoded: lines that are not UTF-8.
        contents: bytes of some of these lines.
        error: error of the first line that can't be read.
        most: reading stops once this many lines can't be read; None = no limit.
    """

    def __init__(self) -> None:
        super().__init__("skip")
        self.undecoded = 0
        self.contents: list[bytes] = []
        self.error: DataError | None = None
        self.most: int | None = None

    def leave_out(self, error: DataError, content: str = "") -> None:
        """Count a line; a file is read once, so that no line comes twice."""
        self.count += 1
        if self.error is None:
            self.error = error
            self.first.append(str(error))
        if self.most is not None and self.count >= self.most:
            raise self.error
        if content.isascii() or not any("\udc80" <= letter <= "\udcff" for letter in content):
            return
        self.undecoded += 1
        if len(self.contents) < _BAD_KEPT:
            self.contents.append(content.encode("utf-8", "surrogateescape"))


@dataclass
class Opened:
    """A file with the stream of its units.

    Attributes:
        kind: of the units.
        format: name of the format.
        pairs: of a bitext.
        texts: of any other kind.
        languages: codes that the file or the caller names; empty if neither does.
        bad: lines that can't be read.
        skipped: number of units that the reader leaves out, by reason.
    """

    kind: Kind
    format: str
    pairs: Iterator[TextPair] = field(default_factory=lambda: iter(()))
    texts: Iterator[str] = field(default_factory=lambda: iter(()))
    languages: tuple[str, ...] = ()
    bad: CountedBadLines = field(default_factory=CountedBadLines)
    skipped: Counter[str] = field(default_factory=Counter)


def open_units(
    path: str,
    *,
    format: str | None = None,
    languages: tuple[str | None, str | None] = (None, None),
    columns: Sequence[str] | None = None,
) -> Opened:
    """Open a file, whatever it holds.

    Args:
        path: a file, the prefix of two files, or data of a hub.
        format: of a bitext; by default the file's name and content decide.
        languages: in any code.
        columns: of source and target.

    Raises:
        DataError: no reader accepts the file; to find this out, its first unit is read.
    """
    if format is not None or columns is not None or _is_read_once(path):
        return open_pairs(path, format, languages, columns)
    suffix = stem_and_suffix(path)[1]
    is_file = Path(path).is_file()
    if is_file and has_sections(path):
        return _open_document(path, languages[0])
    if is_file and suffix in (".json", ".jsonl", ".ndjson"):
        return _open_json(path, languages)
    if is_file and is_table(path):
        return _open_table(path, languages)
    if (is_file and suffix in (".tsv", ".txt")) or not _is_bitext(path):
        return _open_lines(path, languages)
    return open_pairs(path, None, languages)


def _is_read_once(path: str) -> bool:
    """Return whether a path is standard input or a pipe, which can be read only once."""
    return path == "-" or (not Path(path).is_dir() and is_special(path))


def _is_bitext(path: str) -> bool:
    """Return whether the name is that of a bitext; a plain text may have any suffix."""
    try:
        if guess_format(path) == "moses" and Path(path).is_file():
            moses_files(path, None, None)
    except DataError:
        return False
    return True


def open_pairs(
    path: str,
    format: str | None,
    languages: tuple[str | None, str | None],
    columns: Sequence[str] | None = None,
) -> Opened:
    """Open a bitext, also one that does not name its languages; see ``open_units``."""
    source, target = map(resolved_code, languages)
    named: tuple[str | None, str | None] = (source, target)
    is_once = _is_read_once(path)
    if is_once:
        # Such a stream can't be read a second time, and has no name that shows its format.
        name = format or "tsv"
        named = (source or UNKNOWN[0], target or UNKNOWN[1])
    else:
        name = format or guess_format(path)
    opened = Opened("pairs", name)

    def stream(codes: tuple[str | None, str | None]) -> Iterator[TextPair]:
        return read_pairs_as_named(
            path,
            opened.bad,
            format=name,
            languages=codes,
            columns=columns,
            skipped=opened.skipped,
        )

    pairs = stream(named)
    is_named = not is_once
    # Without a language, no line of JSON is a pair; a few lines are enough to see this.
    if not is_once:
        opened.bad.most = _LOOKED_AT
    try:
        first = _first_of(pairs, opened)
        opened.bad.most = None
    except DamagedFileError:
        raise
    except DataError:
        # The file may not name its languages; any other error occurs again below.
        opened.bad = CountedBadLines()
        opened.skipped.clear()
        if is_once:
            raise
        pairs = stream((source or UNKNOWN[0], target or UNKNOWN[1]))
        first = _first_of(pairs, opened)
        is_named = False
    opened.pairs = pairs
    if first is not None:
        opened.pairs = chain([first], pairs)
    if first is not None and is_named:
        opened.languages = (first.source_language, first.target_language)
    elif source and target:
        opened.languages = (source, target)
    return opened


def _first_of(pairs: Iterator[TextPair], opened: Opened) -> TextPair | None:
    """Return the first pair; None in an empty file.

    Raises:
        DataError: no line is a pair; the message describes the fault of the first line.
    """
    first = next(pairs, None)
    if first is None and opened.bad.error is not None:
        raise opened.bad.error
    return first


def _open_json(path: str, languages: tuple[str | None, str | None]) -> Opened:
    """Open JSON: questions, passages or pairs, by the keys of the first object."""
    first = _first_object(path)
    if any(keys <= first.keys() for keys in _QUESTION_KEYS) or "data" in first:
        return _open_questions(path)
    try:
        return open_pairs(path, None, languages)
    except DataError:
        key = next((name for name in _TEXT_KEYS if isinstance(first.get(name), str)), None)
        if key is None:
            raise
    opened = Opened("passages", "jsonl")
    opened.texts = _texts_of_objects(path, key)
    return opened


def _first_object(path: str) -> dict[str, object]:
    """Return the first object of a file; an empty one if there is none."""
    try:
        value = next((value for _, value in json_values(path)), None)
    except DataError:
        return {}  # the reader reports the error
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return {}
    return value


def _texts_of_objects(path: str, key: str) -> Iterator[str]:
    for _, value in json_values(path):
        if isinstance(value, dict) and isinstance(value.get(key), str):
            yield value[key]


def _open_document(path: str, language: str | None) -> Opened:
    """Open a document: its headings, paragraphs, list items and cells."""
    found = read_document(path, language)
    opened = Opened("document", stem_and_suffix(path)[1].removeprefix("."))
    opened.texts = (unit.text for unit in found.units)
    opened.languages = tuple(filter(None, [resolved_code(language) or found.language]))
    return opened


def _open_questions(path: str) -> Opened:
    opened = Opened("questions", "questions")
    opened.texts = (
        question.text for question in read_questions(Path(path), skipped=opened.skipped)
    )
    return _begun(opened)


def _open_table(path: str, languages: tuple[str | None, str | None]) -> Opened:
    """Open a table: pairs if two columns are known, else sentences or labeled pairs."""
    # A table with a column called text contains no pairs, even if it has one more column.
    language = languages[0] or find_language(Path(path))
    if _has_pair_columns(path) or not has_sentences(path, language=language):
        try:
            return open_pairs(path, None, languages)
        except DataError as error:
            return _open_labeled(path, error)
    opened = Opened("texts", stem_and_suffix(path)[1].removeprefix("."))
    opened.texts = read_column(path, language=language, bad=opened.bad)
    opened.languages = tuple(filter(None, [language]))
    return _begun(opened)


def _has_pair_columns(path: str) -> bool:
    """Return whether the first row of a table names columns of a source and a target."""
    try:
        first = next(table_records(path), None)
    except DataError:
        return False
    return first is not None and header_columns(list(first[1])) is not None


def _open_lines(path: str, languages: tuple[str | None, str | None]) -> Opened:
    """Open lines: pairs if most have a tab, else texts."""
    # Published questions are recognized only by their names.
    stem = stem_and_suffix(path)[0]
    if stem.endswith(".questions") or stem.startswith("topic"):
        return _open_questions(path)
    with open_text(path, errors="surrogateescape") as lines:
        first = [line.rstrip("\r\n").split("\t") for line in itertools.islice(lines, _LOOKED_AT)]
    # A sentence may contain a tab by mistake, so that a few tabs are no evidence.
    tabs = sum(len(cells) > 1 for cells in first)
    if tabs * 2 <= len(first):
        return _open_texts(path, languages[0], with_ids=False)
    is_pair_named = languages_from_name(path) is not None or all(languages)
    if not is_pair_named and _has_ids(first):
        return _open_texts(path, languages[0], with_ids=True)
    # Three columns without a score may be a label and two sentences.
    try:
        return open_pairs(path, "tsv", languages)
    except DataError as error:
        return _open_labeled(path, error)


def _has_ids(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether each row is a unique word and a text, which mostly has several words."""
    words = {cells[0] for cells in rows}
    are_words = all(len(cells) == 2 and cells[0] and " " not in cells[0] for cells in rows)
    are_texts = sum(" " in cells[-1].strip() for cells in rows) > len(rows) / 2
    has_digits = any(any(map(str.isdigit, word)) for word in words)
    return are_words and are_texts and has_digits and len(words) == len(rows)


def _open_texts(path: str, given: str | None, *, with_ids: bool) -> Opened:
    """Open a text of one language, a sentence a line."""
    opened = Opened("texts", "text")
    if with_ids:
        opened.format = "id TAB text"
    language = resolved_code(given) or find_language(Path(path))
    opened.languages = tuple(filter(None, [language]))

    def texts() -> Iterator[str]:
        with open_text(path, errors=opened.bad.errors) as lines:
            for _, line in opened.bad.numbered(lines, path):
                text = line.rstrip("\r\n")
                if with_ids:
                    text = text.partition("\t")[2]
                yield text

    opened.texts = texts()
    return _begun(opened)


def _open_labeled(path: str, error: DataError) -> Opened:
    """Open sentence pairs with labels; raise the bitext's error if the file has none of these."""
    kinds: tuple[LabeledPairKind, ...] = ("nli", "sts")
    for kind in kinds:
        opened = Opened("labeled pairs", kind)
        opened.texts = _labeled_texts(path, kind)
        try:
            return _begun(opened)
        except DataError:
            continue
    raise error


def _labeled_texts(path: str, kind: LabeledPairKind) -> Iterator[str]:
    for row in labeled_rows(Path(path), kind):
        yield row.a
        yield row.b


def _begun(opened: Opened) -> Opened:
    """Read the first text, so that a file of another kind is recognized at once."""
    texts = opened.texts
    first = next(texts, None)
    if first is not None:
        opened.texts = chain([first], texts)
    return opened
