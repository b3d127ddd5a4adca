"""Pairs of texts and the files they come in: a reader and a writer for every format of bitext.

A format is a class named in ``registry.FORMATS`` with ``read`` and ``write``; everything streams.
"""

from __future__ import annotations

import glob
import gzip
import json
import logging
import lzma
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, Self, cast

from interlingua.config import languages, registry
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.errors import ConfigError, DamagedFileError, DataError
from interlingua.storage.files import (
    COMPRESSIONS,
    PathLike,
    Spool,
    check_content,
    stem_and_suffix,
)

log = logging.getLogger("interlingua")
FORMAT_OF_SUFFIX = {
    ".tsv": "tsv",
    ".txt": "tsv",
    ".csv": "csv",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".tmx": "tmx",
    ".xlf": "xliff",
    ".xliff": "xliff",
    ".sdlxliff": "xliff",
    ".mqxliff": "xliff",
    ".strings": "catalog",
    ".arb": "catalog",
    ".srt": "subtitles",
    ".vtt": "subtitles",
    ".ass": "subtitles",
    ".ssa": "subtitles",
    ".po": "gettext",
    ".mo": "gettext",
    ".zip": "opus",
    ".parquet": "huggingface",
    ".arrow": "huggingface",
}
SUBTITLE_SUFFIXES = (".srt", ".vtt", ".ass", ".ssa")
_WITH_COLUMNS = ("tsv", "csv", "xlsx", "jsonl", "huggingface")
"""Formats with columns or keys that the user may choose."""
_WITH_ROWS = ("tsv", "csv", "xlsx")
"""Formats with an optional row that names the columns."""
IN_TWO_FILES = ("moses", "subtitles", "catalog")
"""Formats with two files per bitext. A path names both files, separated by a comma, or is a part
that their names share."""
READ_ONLY = ("subtitles", "catalog", "qt")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DATE_WORDS = frozenset((*MONTHS, "mon", "tue", "wed", "thu", "fri", "sat", "sun"))
"""Months and days of the week, of which some are also codes of languages."""
OTHER_LANGUAGES = "other languages"
SCORE = "score"
_DAMAGED = "rest of a damaged file"
"""Key of a counter: damaged files that were read only up to the damage."""


class TextPair(NamedTuple):
    """A text and its translation; languages are codes such as ``"eng_Latn"``."""

    source: str
    target: str
    source_language: str
    target_language: str
    score: float | None = None

    def swapped(self) -> TextPair:
        """Return the same pair with source and target swapped."""
        return TextPair(
            self.target, self.source, self.target_language, self.source_language, self.score
        )


class ChosenColumns(NamedTuple):
    """The columns of the texts, by the names or the numbers (from 1) that the user passes."""

    source: str
    target: str


class TableChoice(NamedTuple):
    """The user's choices for a table; None for values that the reader finds."""

    columns: ChosenColumns | None = None
    sheet: str | None = None
    """Name of a workbook's sheet, or its number from 1."""
    header_row: int | None = None
    """Number of the row with the names of the columns, from 1."""


class PairWithOrigin(TextPair):
    """A pair with its origin, which a writer of the same format keeps.

    Equal to any other pair of the same texts, languages and score.
    """

    origin: Any
    whole_file: str | None = None
    """Name of a format that writes all pairs, also rejected ones, into a copy of their file."""
    measures: Mapping[str, Any] = MappingProxyType({})
    """Values that were measured for the pair, by name: probability, cosine, reasons ..."""

    @classmethod
    def of(cls, pair: TextPair, origin: Any) -> Self:
        """Return the pair with its origin."""
        found = cls(*pair)
        found.origin = origin
        return found

    def with_measures(self, measures: Mapping[str, Any]) -> Self:
        """Return the pair with values that were measured for it."""
        found = self.of(self, self.origin)
        found.measures = measures
        return found

    @property
    def fields(self) -> Mapping[str, Any]:
        """The file's values for the pair except texts, languages and score, by name."""
        return {}

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the fields of all pairs of the file, ``score`` too if there are scores.

        None if the names are known only after the whole file is read.
        """
        return None

    def swapped(self) -> Self:
        """Return the same pair with source and target swapped."""
        return self.of(super().swapped(), self.origin)

    def _replace(self, **changes: Any) -> Self:
        return self.of(super()._replace(**changes), self.origin)


class PairWithFields(PairWithOrigin):
    """A pair of a table or of JSON, with its other columns or keys."""

    origin: Mapping[str, Any]

    @property
    def fields(self) -> Mapping[str, Any]:
        """The other columns or keys by name."""
        return self.origin


class PairOfTable(PairWithFields):
    """A pair of a table, all rows of which have the same columns."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """The other columns by name."""
        return {name: value for name, value in self.origin.items() if name != SCORE}

    @property
    def names(self) -> tuple[str, ...]:
        """The other columns, and the score."""
        return tuple(self.origin)


def pair_fields(pair: TextPair | None) -> Mapping[str, Any]:
    """Return the file's values for a pair except texts, languages and score, by name."""
    if isinstance(pair, PairWithOrigin):
        return pair.fields
    return {}


def without_lost_values(
    pairs: Iterable[TextPair], path: PathLike, *, keeps_scores: bool = False
) -> Iterator[TextPair]:
    """Yield the pairs, then log the names of their values that the file's format cannot store."""
    lost: dict[str, None] = {}
    for pair in pairs:
        if pair.score is not None and not keeps_scores:
            lost[SCORE] = None
        # Pairs that were read from a file of this format are written with their values.
        if isinstance(pair, PairWithFields):
            lost.update(dict.fromkeys(pair.fields))
        yield pair
    if lost:
        log.warning(
            "%s: this format has no place for %s; write .tsv, .csv, .xlsx, .jsonl or .tmx to keep"
            " them",
            path,
            ", ".join(lost),
        )


class PairFormat(Protocol):
    """A file format of bitexts."""

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Stream pairs.

        Use ``skipped`` to count omitted pairs by reason, and ``bad`` to count unreadable pairs.
        """
        ...

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Write atomically and return the number of pairs."""
        ...


def read_pairs(
    path: PathLike | tuple[PathLike, PathLike],
    *,
    format: str | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    columns: Sequence[str] | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    skipped: Counter[str] | None = None,
    bad: BadLines | None = None,
) -> Iterator[TextPair]:
    """Stream the pairs of a bitext in any of the known formats, plain or compressed.

    Args:
        path: a file; for Moses the common prefix of the two files, either of them, or both as a
            tuple; for Hugging Face data a folder, a file or ``hf:NAME[:CONFIG[:SPLIT]]``.
        format: a name of ``registry.FORMATS`` or ``package.module:Class``; guessed from the file's
            name when not given.
        source_language: any code or name ``languages.resolve_language`` takes. Taken from the
            file's content or its name (``news.de-en.tsv``) by default.
        target_language: code of the target's language, or None.
        columns: columns of the source and the target in a table or in JSON, by name or by number
            from 1.
        sheet: sheet of a workbook, by name or by number from 1; the first by default.
        header_row: number of the row that names the columns of a table; found by default.
        skipped: counts what the reader leaves out, by reason (``"fuzzy"``, ``"untranslated"``,
            ...).
        bad: how to handle unreadable lines and damaged files; by default the first fault stops.

    Raises:
        DataError: the file is missing, broken or misaligned (the error names file and line), or
            its languages are unknown.
    """
    if isinstance(path, tuple):
        path = ",".join(os.fspath(side) for side in path)
        format = format or _format_of_two_files(path) or "moses"
    path = os.fspath(path)
    source = resolved_code(source_language)
    target = resolved_code(target_language)
    is_reported = bad is not None
    bad = bad or BadLines()
    pairs = read_pairs_as_named(
        path,
        bad,
        format=format,
        languages=(source, target),
        columns=columns,
        sheet=sheet,
        header_row=header_row,
        skipped=skipped,
    )
    if not is_reported:
        pairs = _with_warnings(pairs, path, bad)
    return _in_checked_languages(pairs, path, (source is not None, target is not None))


def read_pairs_as_named(
    path: str,
    bad: BadLines,
    *,
    format: str | None = None,
    languages: tuple[str | None, str | None] = (None, None),
    columns: Sequence[str] | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    skipped: Counter[str] | None = None,
) -> Iterator[TextPair]:
    """Stream the pairs of a bitext without a check of their languages; see ``read_pairs``.

    Args:
        path: a file, a prefix, or two files separated by a comma.
        bad: how to handle unreadable lines.
        format: name of the format; by default derived from the file's name.
        languages: codes of source and target, if they are known.
        columns: columns of the source and the target.
        sheet: sheet of a workbook.
        header_row: row of a table with the names of the columns.
        skipped: counts the pairs that the reader leaves out.
    """
    if skipped is None:  # an empty counter that the caller passes is used, too
        skipped = Counter()
    name = format or guess_format(path)
    reader = _format(name, _table_choice(name, columns, sheet, header_row))
    return _until_damage(reader.read(path, *languages, skipped, bad), path, skipped, bad)


def write_pairs(
    pairs: Iterable[TextPair],
    path: PathLike,
    *,
    format: str | None = None,
    languages: tuple[str, str] | None = None,
) -> int:
    """Write pairs to a file that appears only when it is complete.

    Args:
        pairs: the pairs, of one language pair; JSONL and TMX accept any mixture.
        path: as in ``read_pairs``.
        format: a name of ``registry.FORMATS`` or ``package.module:Class``; guessed from the file's
            name when not given.
        languages: codes of source and target; used if there are no pairs and the format would
            otherwise take the languages from the pairs.

    Returns:
        The number of pairs written.
    """
    path = os.fspath(path)
    writer = _format(format or guess_format(path))
    write_empty = getattr(writer, "write_empty", None)
    if languages is None or not all(languages) or write_empty is None:
        return writer.write(pairs, path)
    first, pairs = peek(pairs)
    if first is None:
        write_empty(path, TextPair("", "", *languages))
        return 0
    return writer.write(pairs, path)


def guess_format(path: PathLike) -> str:
    """Guess a format by a name, mostly its suffix; a folder or ``hf:`` is Hugging Face data.

    A format that an installed package adds is named after the suffix of its files. Moses files have
    a language as their suffix, and are named by a prefix (``news``, ``news.de-en``), by one of the
    two files, or by both with a comma.

    Raises:
        DataError: the suffix is of no known format.
    """
    name = os.fspath(path)
    if name.startswith("hf:") or Path(name).is_dir():
        return "huggingface"
    suffix = stem_and_suffix(name)[1]
    if (special := _format_by_content(name, suffix)) is not None:
        return special
    if _are_two_files(name):
        return "moses"
    if suffix in FORMAT_OF_SUFFIX:
        return FORMAT_OF_SUFFIX[suffix]
    installed = {entry.name for entry in registry.installed(registry.FORMATS.group)}
    if suffix and suffix[1:] in installed:
        return suffix[1:]
    if not suffix or "," in name:
        is_moses = bool(_languages_behind(name)) or not _languages_behind(name, SUBTITLE_SUFFIXES)
        return ("subtitles", "moses")[is_moses]
    check_content(name)  # .ts is also a suffix of Qt; .docx and .html need another remedy
    # The suffix of "news.de" is one language, the suffix of "news.de-en" is two languages.
    if _code_in_name(suffix[1:]) or languages_from_name(suffix[1:]) or _languages_behind(name):
        return "moses"
    known = ", ".join(FORMAT_OF_SUFFIX)
    raise DataError(
        f"unknown format of bitext {suffix}; use one of: {known}, also with .gz, .xz or .zst, or"
        " for Moses files their prefix, such as news.de-en",
        path=path,
    )


def _format_by_content(name: str, suffix: str) -> str | None:
    """Return the format of a file with a suffix that several formats have, or of two files."""
    if _are_two_files(name):
        return _format_of_two_files(name)
    candidate = {".json": "catalog", ".xml": "catalog", ".ts": "qt"}.get(suffix)
    if candidate is None or not Path(name).is_file():
        return None
    # The class of the format decides, because only it knows how its files start.
    if cast(Any, registry.resolve_name(registry.FORMATS, candidate)).is_format_of(name):
        return candidate
    return None


def _format_of_two_files(name: str) -> str | None:
    """Return the format of two files separated by a comma; None for Moses files."""
    suffix = stem_and_suffix(name.partition(",")[0].strip())[1]
    if suffix in (".json", ".xml"):
        return "catalog"
    found = FORMAT_OF_SUFFIX.get(suffix)
    if found in IN_TWO_FILES:
        return found
    return None


def languages_from_name(path: PathLike) -> tuple[str, str] | None:
    """Find the languages in a file's name.

    Returns:
        Two language codes in the order of the name; None if no part of the name consists of two
        known codes with a hyphen between them.
    """
    for part in Path(path).name.split("."):
        pieces = part.split("-")
        if len(pieces) == 2 and _is_no_pair(*pieces):
            continue
        # A language may hold a hyphen itself, as in "pt-BR-en", so every place is tried.
        for cut in range(1, len(pieces)):
            left = _code_in_name("-".join(pieces[:cut]))
            right = _code_in_name("-".join(pieces[cut:]))
            if left and right:
                return left, right
    return None


def _is_no_pair(first: str, second: str) -> bool:
    """Return whether two parts of a name are a locale (``pt-br``) or months, not two languages."""
    if {first.lower(), second.lower()} <= DATE_WORDS:
        return True
    return languages.is_locale(first, second)


def named_languages(path: PathLike, source: str | None, target: str | None) -> tuple[str, str]:
    """Return both languages of a file whose content does not name them.

    Raises:
        DataError: they are neither specified nor in the file's name.
    """
    if source and target:
        return source, target
    found = languages_from_name(path)
    if found is None:
        one = next(filter(None, map(_code_in_name, Path(path).name.split(".")[:-1])), None)
        alone = ""
        if one is not None:
            alone = f" ({one.name} names only one language, {languages.resolve_language(one).name})"
        raise DataError(
            f"the languages are unknown, because the file name does not contain both{alone}; pass"
            " --source-language and --target-language, or rename the file, for example to"
            " news.de-en.tsv",
            path=path,
        )
    return source or found[0], target or found[1]


def one_language_pair(pairs: Iterable[TextPair], path: PathLike) -> Iterator[TextPair]:
    """Yield pairs and refuse a second language pair, which some formats can't hold."""
    first: tuple[str, str] | None = None
    for pair in pairs:
        found = (pair.source_language, pair.target_language)
        first = first or found
        if found != first:
            raise DataError(
                f"this format has one language pair per file, found {first} and then {found}; use"
                " JSONL or TMX",
                path=path,
            )
        yield pair


def one_line(text: str) -> str:
    """Return the text without the characters that end a line or a column."""
    if not _LINE_END.search(text):  # translate takes four times as long
        return text
    return text.translate(_LINE_ENDS)


def uncompressed_name(path: PathLike) -> str:
    """Return the path without the suffix of a compression."""
    name = os.fspath(path)
    suffix = Path(name).suffix
    if suffix.lower() not in COMPRESSIONS:
        return name
    return name[: -len(suffix)]


def resolved_code(language: str | None) -> str | None:
    """Return the code of a language in any spelling, or None for None.

    Raises:
        DataError: there is no such language.
    """
    if not language:
        return None
    return languages.resolve_code(language)


def written_codes(pair: TextPair) -> tuple[str, str]:
    """Return the languages of a pair as files name them, for example ``de`` and ``en``."""
    source = languages.resolve_language(pair.source_language)
    target = languages.resolve_language(pair.target_language)
    codes = (source.iso1 or source.iso3, target.iso1 or target.iso3)
    if codes[0] == codes[1] and source == target:  # one language of two regions
        return languages.written_tag(pair.source_language), languages.written_tag(
            pair.target_language
        )
    if codes[0] == codes[1]:  # one language in two scripts
        return source.code, target.code
    return codes


def field_text(value: Any) -> str:
    """Return a field as text: numbers and texts as they are, others as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def requested_pair(pair: TextPair, source: str | None, target: str | None) -> TextPair | None:
    """Return a pair in the requested direction, if its content names its languages.

    None if it is of other languages or regions than those requested.
    """
    if source is None and target is None:
        return pair
    for found in (pair, pair.swapped()):
        if languages.accepts(source, found.source_language) and languages.accepts(
            target, found.target_language
        ):
            return found
    return None


def peek(pairs: Iterable[TextPair]) -> tuple[TextPair | None, Iterator[TextPair]]:
    """Return the first pair, or None if there is none, and an iterator over all pairs."""
    iterator = iter(pairs)
    first = next(iterator, None)
    if first is None:
        return None, iterator
    return first, chain([first], iterator)


def with_names(pairs: Iterable[TextPair]) -> tuple[list[str], Iterator[TextPair]]:
    """Return the names of the pairs' fields, without texts and languages, together with the pairs.

    A file with a header needs the names before the first pair. If neither the first pair nor its
    file determines them, all pairs are first copied to a temporary file and examined.

    Returns:
        The names, ``score`` first if any pair has one; and an iterator over all pairs.
    """
    first, pairs = peek(pairs)
    names = first.names if isinstance(first, PairWithOrigin) else ()
    if names is None:
        columns, pairs = typed_columns(pairs)
        names = tuple(columns)
    has_scores = SCORE in names or (first is not None and first.score is not None)
    return [SCORE] * has_scores + [name for name in names if name != SCORE], pairs


def typed_columns(pairs: Iterable[TextPair]) -> tuple[dict[str, type], Iterator[TextPair]]:
    """Return the types of the pairs' fields, without texts and languages, together with the pairs.

    All pairs are first copied to a temporary file, unless they have only texts and scores.

    Returns:
        The type of each field by its name: bool, int or float, otherwise str (also for mixed
        types); and an iterator over all pairs.
    """
    first, pairs = peek(pairs)
    if first is None:
        return {}, pairs
    if not isinstance(first, PairWithOrigin):
        return {SCORE: float} if first.score is not None else {}, pairs
    kept: Spool[tuple[TextPair, Mapping[str, Any]]] = Spool()
    types: dict[str, type] = {}
    for pair in pairs:
        fields = dict(pair_fields(pair))
        kept.add((TextPair(*pair), fields))
        if pair.score is not None:
            fields[SCORE] = pair.score
        for name, value in fields.items():
            types[name] = _joint_type(types.get(name, type(value)), value)
    return types, (PairWithFields.of(pair, fields) for pair, fields in kept.replay())


def _joint_type(so_far: type, value: Any) -> type:
    """Return the type of a column with one more value."""
    is_plain = so_far in (bool, int, float) and type(value) is so_far
    if is_plain and (so_far is not int or abs(value) < 1 << 63):
        return so_far
    return str


def is_moses_name(path: PathLike) -> bool:
    """Return whether two files of a bitext exist, either of Moses or of subtitles.

    The path is both files with a comma between them, or the start of their names.
    """
    name = os.fspath(path)
    behind = (_languages_behind(name, suffixes) for suffixes in (("",), SUBTITLE_SUFFIXES))
    return _are_two_files(name) or any(len(codes) > 1 for codes in behind)


def _are_two_files(name: str) -> bool:
    first, comma, second = name.partition(",")
    return bool(comma) and Path(first.strip()).is_file() and Path(second.strip()).is_file()


def _languages_behind(name: str, suffixes: Sequence[str] = ("",)) -> set[str]:
    """Return the languages of the files ``<name>.<language><suffix>``, for the passed suffixes."""
    prefix = Path(name).name
    files = [file for file in Path(name).parent.glob(f"{glob.escape(prefix)}.*") if file.is_file()]
    endings = [uncompressed_name(file.name).removeprefix(f"{prefix}.") for file in files]
    parts = [own.removesuffix(end) for own in endings for end in suffixes if own.endswith(end)]
    codes = map(_code_in_name, parts)
    return {code for code in codes if code is not None}


_LINE_END = re.compile("[\t\n\r]")
_LINE_ENDS = {ord(c): " " for c in "\t\n\r"}


def _with_warnings(pairs: Iterator[TextPair], path: str, bad: BadLines) -> Iterator[TextPair]:
    """Yield the pairs, then log which entries were left out, if the caller does not report them."""
    yield from pairs
    bad.log_report(path)


def _until_damage(
    pairs: Iterator[TextPair], path: str, skipped: Counter[str], bad: BadLines
) -> Iterator[TextPair]:
    """Yield the pairs of a file, or those before its damage if bad lines are skipped."""
    read = 0
    # The readers raise DamagedFileError for damage that they notice; the other errors come from the
    # decompression.
    try:
        for pair in pairs:
            read += 1
            yield pair
    except (DamagedFileError, EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        damage = error
        if not isinstance(damage, DamagedFileError):
            damage = DamagedFileError(
                f"is damaged or incomplete ({error}); fetch it again", path=path
            )
        bad.damaged(damage, f"{read:,} pairs", is_empty=not read)
        skipped[_DAMAGED] += 1


def _in_checked_languages(
    pairs: Iterator[TextPair], path: str, given: tuple[bool, bool]
) -> Iterator[TextPair]:
    """Yield the pairs after their first texts are compared with the languages of the file.

    Files of several languages name them in every entry, and are not checked.

    Raises:
        DataError: the texts of a side are in another script than its language.
    """
    from interlingua.corpus.cleaning.language_evidence import (
        LOOKED_AT,
        check_words,
        checked_language,
    )
    from interlingua.corpus.inspection.faults import warn_of_first

    # An error is raised only after the pairs that precede it.
    first: list[TextPair] = []
    failure: Exception | None = None
    try:
        first += islice(pairs, LOOKED_AT)
    except Exception as error:
        failure = error
    codes = {pair[2:4] for pair in first}
    checked = []
    warn_of_first([pair[:2] for pair in first], path)
    if len(codes) == 1:
        for side, option in enumerate(("--source-language", "--target-language")):
            texts = _texts_of(side, first, pairs)
            code = (first[0].source_language, first[0].target_language)[side]
            other = (first[0].target_language, first[0].source_language)[side]
            checked.append(
                checked_language(texts, code, path, option, is_given=given[side], other=other)
            )
        check_words(first, path, given)
    yield from _renamed(chain(first, pairs), first, checked)
    if failure is not None:
        raise failure


def _texts_of(side: int, first: list[TextPair], pairs: Iterator[TextPair]) -> Iterator[str]:
    """Yield the texts of one side; pairs that are read in addition are appended to ``first``."""
    read = 0
    while True:
        while read < len(first):
            yield (first[read].source, first[read].target)[side]
            read += 1
        pair = next(pairs, None)
        if pair is None:
            return
        first.append(pair)


def _renamed(
    pairs: Iterable[TextPair], first: list[TextPair], checked: list[str]
) -> Iterator[TextPair]:
    """Yield the pairs with the checked languages in place of those of the first pair."""
    if not checked or checked == list(first[0][2:4]):
        yield from pairs
        return
    before = first[0][2:4]
    for pair in pairs:
        if pair[2:4] == before:
            pair = pair._replace(source_language=checked[0], target_language=checked[1])
        yield pair


def _table_choice(
    name: str, columns: Sequence[str] | None, sheet: str | None, header_row: int | None
) -> TableChoice | None:
    """Return the user's choice of a table, or None.

    Raises:
        ConfigError: the user chooses a column, a sheet or a row, and the format has none.
    """
    named = columns and f"columns {' and '.join(columns)} are named"
    choices = (
        (named, _WITH_COLUMNS, "none"),
        (sheet and f"the sheet {sheet!r} is named", ("xlsx",), "no sheets"),
        (header_row and f"the header row {header_row} is set", _WITH_ROWS, "no header row"),
    )
    for what, formats, has in choices:
        if what and name not in formats:
            raise ConfigError(f"{what}, but the format {name} has {has}; remove this choice")
    if columns is not None and len(columns) != 2:
        raise ConfigError(
            f"columns {' and '.join(columns)}: expected two columns, that of the source and that"
            " of the target"
        )
    if columns is None and sheet is None and header_row is None:
        return None
    chosen = None
    if columns is not None:
        chosen = ChosenColumns(*columns)
    return TableChoice(chosen, sheet, header_row)


def _format(name: str, choice: TableChoice | None = None) -> PairFormat:
    """Return a format by its name."""
    found: Any = registry.resolve_name(registry.FORMATS, name)
    if choice is None:
        return cast(PairFormat, found())
    return cast(PairFormat, found(choice))


@lru_cache(maxsize=4096)
def _code_in_name(name: str) -> languages.LanguageCode | None:
    # A whole word such as "German" also resolves, but in a file's name it is more often part of a
    # title.
    if not re.fullmatch(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*", name):
        return None
    return languages.find_in_name(name)
