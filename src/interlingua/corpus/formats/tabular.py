"""Bitexts with one pair a line: TSV, with or without a score, and JSONL."""

from __future__ import annotations

import contextlib
import functools
import json
import math
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from interlingua.config import languages
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import (
    OTHER_LANGUAGES,
    SCORE,
    ChosenColumns,
    PairWithFields,
    TableChoice,
    TextPair,
    field_text,
    languages_from_name,
    named_languages,
    one_language_pair,
    one_line,
    pair_fields,
    peek,
    requested_pair,
    with_names,
)
from interlingua.corpus.formats.json_stream import is_json_array, json_array_items
from interlingua.corpus.formats.table_columns import (
    ALL_FOUND,
    OPTION,
    TableColumns,
    chosen_place,
    header_columns,
    other_fields,
    pairs_of_rows,
    score_of_cell,
    shown_cells,
)
from interlingua.errors import DataError, count_of
from interlingua.storage.files import open_text, open_text_writer, stem_and_suffix
from interlingua.storage.json_text import parse_json


class Tsv:
    """``source<TAB>target``, or ``score<TAB>source<TAB>target``.

    The latter is the form of LASER, WikiMatrix and CCMatrix. A first row may name the columns, as
    in CSV; then, or if the user names columns, there may be any number of them.

    Args:
        choice: columns and header row, if the user names them.
    """

    def __init__(self, choice: TableChoice = ALL_FOUND) -> None:
        self.choice = choice

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Stream the lines; the first one decides on the columns."""
        with open_text(path, errors=bad.errors) as lines:
            numbered = bad.numbered(lines, path)
            number, line = next(numbered, (0, ""))
            if not number:
                return
            numbered = chain([(number, line)], numbered)
            first = _cells(line)
            if self.choice == ALL_FOUND and not _is_header(
                first, path, source_language, target_language
            ):
                languages = named_languages(path, source_language, target_language)
                yield from _pairs_without_header(numbered, path, languages, skipped, bad)
                return
            rows = ((number, _cells(line)) for number, line in numbered)
            yield from pairs_of_rows(
                rows, path, source_language, target_language, skipped, bad, self.choice
            )

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Write two columns, or three if the pairs have scores.

        Tabs and line ends in a text become spaces. If the pairs have other columns or keys too,
        they follow, and a first line names all of them.
        """
        first, pairs = peek(one_language_pair(pairs, path))
        names, pairs = with_names(pairs)
        # Pairs of catalogues and translation memories become a plain file of texts.
        if not isinstance(first, PairWithFields):
            names = [name for name in names if name == SCORE]
        has_scores = SCORE in names
        extra = [name for name in names if name not in (SCORE, "source", "target")]
        count = 0
        with open_text_writer(path) as file:
            if extra:
                header = [*[SCORE] * has_scores, "source", "target", *extra]
                file.write("\t".join(map(one_line, header)) + "\n")
            for pair in pairs:
                cells = [one_line(pair.source), one_line(pair.target)]
                if has_scores:
                    cells.insert(0, _score_cell(pair.score, has_header=bool(extra)))
                if extra:
                    fields = pair_fields(pair)
                    cells += [one_line(field_text(fields.get(name))) for name in extra]
                file.write("\t".join(cells) + "\n")
                count += 1
        return count


def _score_cell(score: float | None, *, has_header: bool) -> str:
    """Return a score as text; without a header every line of three columns needs a number."""
    if score is None:
        return "" if has_header else "0"
    return f"{score:.6g}"


def _cells(line: str) -> list[str]:
    return line.rstrip("\r\n").split("\t")


def _is_header(cells: list[str], path: str, source: str | None, target: str | None) -> bool:
    """Return whether the first line names columns.

    Two names of languages may also be two ordinary words. They are a header if they are the
    languages of the file, or if the languages of the file are not known otherwise.
    """
    columns = header_columns(cells, source, target)
    if columns is None or columns.languages is None:
        return columns is not None
    named = languages_from_name(path) or (None, None)
    known = {source or named[0], target or named[1]} - {None}
    return len(known) < 2 or known == set(columns.languages)


NAME_BOTH_TEXTS = (
    "name both texts, as in a.de,a.en, or find the pairs of two texts that are not aligned with"
    " `interlingua mine`"
)
"""Remedy for a text with one sentence a line that is called a table."""


def _pairs_without_header(
    lines: Iterable[tuple[int, str]],
    path: str,
    languages: tuple[str, str],
    skipped: Counter[str],
    bad: BadLines,
) -> Iterator[TextPair]:
    """Stream lines of two columns, or of three with the score first."""
    source, target = languages
    columns = 0  # number in the first good line; all other lines must have as many
    for number, line in lines:
        cells = _cells(line)
        # Most lines have as many columns as the first one, and need no check.
        if len(cells) != columns:
            if cells == [""]:
                skipped["empty line"] += 1
                continue
            if columns or len(cells) not in (2, 3):
                expected = f"{columns} columns; remove tabs inside a text"
                if not columns and len(cells) == 1:
                    expected = (
                        "source<TAB>target or score<TAB>source<TAB>target; if the file is a text"
                        f" with one sentence a line, {NAME_BOTH_TEXTS}"
                    )
                elif not columns:
                    expected = f"source<TAB>target or score<TAB>source<TAB>target; {OPTION}"
                problem = f"found {count_of(len(cells), 'columns')}, expected {expected}"
                bad.reject(DataError(problem, path=path, line=number), line)
                continue
        if len(cells) == 2:
            columns = 2
            yield TextPair(cells[0], cells[1], source, target)
            continue
        try:
            score = score_of_cell(cells[0])
        except ValueError:
            problem = f"the first of three columns is {cells[0][:40]!r}, expected a score"
            if not columns:
                problem = f"{problem}; if the texts are in other columns, {OPTION}"
            bad.reject(DataError(problem, path=path, line=number), line)
            continue
        columns = 3
        yield TextPair(cells[1], cells[2], source, target, score)


class Jsonl:
    """One JSON object a line, with these keys:

    - ``source`` and ``target``: the texts;
    - ``source_language`` and ``target_language``: any codes; not needed if both are arguments or in
      the file's name;
    - ``score``: optional number.

    Hugging Face's ``{"translation": {"de": "...", "en": "..."}}`` is read too, and so are keys
    with the names that columns of a table may have. Other keys are kept with the pair. A file may
    also be one JSON array of such objects.

    Args:
        choice: keys of the texts, if the user names them.
    """  # noqa: D415

    def __init__(self, choice: TableChoice = ALL_FOUND) -> None:
        self.choice = choice

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Stream the objects; blank lines are skipped and counted."""
        named = languages_from_name(path) or (None, None)
        source = source_language or named[0]
        target = target_language or named[1]
        with contextlib.closing(self._lines(path, bad)) as lines:
            for number, line in lines:
                if not str(line).strip():
                    skipped["empty line"] += 1
                    continue
                try:
                    item = parse_json(line) if isinstance(line, str) else line
                    pair = pair_of_object(item, source, target, self.choice.columns)
                except (ValueError, TypeError) as error:
                    bad.reject(DataError(str(error), path=path, line=number), str(line))
                    continue
                requested = requested_pair(pair, source_language, target_language)
                if requested is None:
                    skipped[OTHER_LANGUAGES] += 1
                else:
                    yield requested

    def _lines(self, path: str, bad: BadLines) -> Generator[tuple[int, Any]]:
        """Yield the lines, or the objects of a file that is one JSON array."""
        if stem_and_suffix(path)[1] == ".json" and is_json_array(path):
            yield from json_array_items(Path(path))
            return
        with open_text(path, errors=bad.errors, is_json=True) as lines:
            yield from bad.numbered(lines, path)

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Write any mixture of language pairs."""
        if stem_and_suffix(path)[1] == ".json":
            raise DataError(
                "pairs are written as one object per line; use a file name that ends in .jsonl",
                path=path,
            )
        count = 0
        with open_text_writer(path) as file:
            for pair in pairs:
                item = {key: value for key, value in pair._asdict().items() if value is not None}
                item |= other_fields(pair_fields(pair), item)
                for key in ("source_language", "target_language"):
                    item[key] = languages.written_code(item[key])
                file.write(json.dumps(item, ensure_ascii=False) + "\n")
                count += 1
        return count


def pair_of_object(
    item: Any,
    source: str | None,
    target: str | None,
    columns: ChosenColumns | None = None,
) -> TextPair:
    """Return the pair in a JSON object.

    Args:
        item: with the keys of ``Jsonl``, or with ``translation``.
        source: source language, if the object names none.
        target: target language, as any code.
        columns: keys of the texts, if the user names them.

    Raises:
        ValueError: a key is missing, a value is not a text, or the languages are unknown.
    """
    if not isinstance(item, dict):
        remedy = "; if the file is one list, rename it to .json" if isinstance(item, list) else ""
        kind = type(item).__name__
        raise ValueError(f"expected an object with source and target, found {kind}{remedy}")
    if isinstance(item.get("translation"), dict) and columns is None:
        pair = pair_of_translation(item["translation"], source, target)
        pair = pair._replace(score=_score_of(item.get(SCORE)))
        further = _variants_left(item["translation"], pair)
        return _with_fields(pair, {**further, **item}, {"translation", SCORE})
    found = _keys_of(item, source, target, columns)
    keys = list(item)
    texts = [item[keys[found.source]], item[keys[found.target]]]
    for place, text in zip((found.source, found.target), texts, strict=True):
        if not isinstance(text, str):
            raise ValueError(f"the value of the key {keys[place]!r} is not text")
    named = found.languages or (None, None)
    names = (
        _value(item, keys, found.source_language) or named[0] or source,
        _value(item, keys, found.target_language) or named[1] or target,
    )
    if not names[0] or not names[1]:
        raise ValueError(
            "the languages are unknown; add the keys source_language and target_language, or"
            " pass both languages"
        )
    score = _score_of(_value(item, keys, found.score))
    first, second = (_code_of(name) for name in names)
    pair = TextPair(texts[0], texts[1], first, second, score)
    used = {keys[place] for place in found[:5] if place >= 0}
    return _with_fields(pair, item, used)


def _score_of(value: Any) -> float | None:
    """Return the score of an object.

    Raises:
        ValueError: it is not a finite number.
    """
    if value is None:
        return None
    # A bool is an int to Python, and JSON's reader also takes NaN and Infinity.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise ValueError(f"score: expected a number, found {str(value)[:40]!r}")
    return float(value)


def _keys_of(
    item: dict[str, Any], source: str | None, target: str | None, chosen: ChosenColumns | None
) -> TableColumns:
    """Return the numbers of the keys of the texts, the score and the languages.

    Raises:
        ValueError: no keys are known for both texts.
    """
    keys = list(item)
    if chosen is not None:
        places = [chosen_place(name, keys) for name in chosen]
        for name, place in zip(chosen, places, strict=True):
            if place < 0:
                raise ValueError(f"the key {name!r} is missing; the keys are: {shown_cells(keys)}")
        score = keys.index("score") if "score" in item else -1
        return TableColumns(places[0], places[1], score, *_language_keys(keys))
    if "source" in item and "target" in item:  # without a search for all names
        score = keys.index("score") if "score" in item else -1
        return TableColumns(
            keys.index("source"), keys.index("target"), score, *_language_keys(keys)
        )
    found = header_columns(keys, source, target)
    if found is not None:
        return found
    missing = next((key for key in ("source", "target") if key not in item), "target")
    raise ValueError(
        f"the key {missing!r} is missing, the keys are: {shown_cells(keys)}; use the keys source"
        f" and target, or {OPTION}"
    )


def _language_keys(keys: list[str]) -> tuple[int, int]:
    """Return the numbers of the keys of both languages; -1 if there is none."""
    first, second = (
        keys.index(key) if key in keys else -1 for key in ("source_language", "target_language")
    )
    return first, second


def _value(item: dict[str, Any], keys: list[str], place: int) -> Any:
    """Return the value of a key by its number; None if there is no such key."""
    if place < 0:
        return None
    return item[keys[place]]


def _with_fields(pair: TextPair, item: dict[str, Any], used: set[str]) -> TextPair:
    """Return the pair with the other keys of its object as fields."""
    # An object without other keys becomes such a pair too: later objects may have other keys.
    return PairWithFields.of(pair, {key: value for key, value in item.items() if key not in used})


def _variants_left(texts: dict[str, Any], pair: TextPair) -> dict[str, Any]:
    """Return the texts in further variants of the pair's languages, by their keys."""
    codes = {key: languages.resolve_code(key) for key in texts}
    tags = [languages.written_tag(code) for code in pair[2:4]]
    return {
        key: text
        for key, text in texts.items()
        if codes[key] in pair[2:4] and languages.written_tag(codes[key]) not in tags
    }


def pair_of_translation(item: dict[str, Any], source: str | None, target: str | None) -> TextPair:
    """Return the pair in ``{"de": "...", "en": "..."}``, a cell of a ``translation`` column.

    Hugging Face's data sets have such columns.

    Raises:
        ValueError: the languages there are not exactly the two requested.
    """
    codes = [languages.resolve_code(key) for key in item]
    texts = list(item.values())
    places: list[int | None] = list(range(len(codes)))
    if source and target:
        # Two requested regions of one language are two texts.
        first = languages.choose_code(source, codes)
        others = [None if place == first else code for place, code in enumerate(codes)]
        places = [first, languages.choose_code(target, others)]
        if None in places and len(codes) == 2:  # of other languages than those requested
            places = [0, 1]
    if len(places) != 2 or None in places:
        raise ValueError(
            f"translation contains {len(texts)} languages ({', '.join(item)}); choose two of them"
            " with --source-language and --target-language"
        )
    one, other = (place or 0 for place in places)
    if not isinstance(texts[one], str) or not isinstance(texts[other], str):
        raise ValueError("translation contains a value that is not text")
    return TextPair(texts[one], texts[other], codes[one], codes[other])


def _code_of(language: Any) -> str:
    """Return the code of a language in any spelling."""
    if isinstance(language, languages.LanguageCode):
        return language
    return _code_named(str(language))


@functools.lru_cache(maxsize=4096)
def _code_named(name: str) -> str:
    """Return the code of a name; the objects of a file repeat the same few names."""
    return languages.resolve_code(name)
