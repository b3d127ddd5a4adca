"""Bitexts with one pair a line: TSV, with or without a score, and JSONL."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from interlingua import languages
from interlingua.corpus.bad_lines import BadLines
from interlingua.corpus.formats import (
    TextPair,
    languages_from_name,
    named_languages,
    one_language_pair,
    one_line,
    peek,
)
from interlingua.errors import DataError
from interlingua.files import open_text, open_text_writer
from interlingua.json_text import parse_json


class Tsv:
    """``source<TAB>target``, or ``score<TAB>source<TAB>target``.

    The latter is the form of LASER, WikiMatrix and CCMatrix.
    """

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Streams the lines; the first one decides between two and three columns."""
        source, target = named_languages(path, source_language, target_language)
        columns = 0  # of the first good line, which all others must have
        with open_text(path, errors=bad.errors) as lines:
            for number, line in bad.numbered(lines, path):
                cells = line.rstrip("\r\n").split("\t")
                # Nothing is to check in most lines, which are as the first one.
                if len(cells) != columns:
                    if cells == [""]:
                        skipped["empty line"] += 1
                        continue
                    if columns or len(cells) not in (2, 3):
                        expected = columns or "source<TAB>target or score<TAB>source<TAB>target"
                        problem = (
                            f"{len(cells)} columns, expected {expected}; tabs inside a text must go"
                        )
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
                    bad.reject(DataError(problem, path=path, line=number), line)
                    continue
                columns = 3
                yield TextPair(cells[1], cells[2], source, target, score)

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Writes two columns, or three if the first pair has a score.

        Tabs and line ends in a text become spaces.
        """
        first, pairs = peek(one_language_pair(pairs, path))
        has_scores = first is not None and first.score is not None
        count = 0
        with open_text_writer(path) as file:
            for pair in pairs:
                score = ""
                if has_scores:
                    score = f"{pair.score or 0.0:.6g}\t"
                file.write(f"{score}{one_line(pair.source)}\t{one_line(pair.target)}\n")
                count += 1
        return count


class Jsonl:
    """One JSON object a line, with these keys:

    - ``source`` and ``target``: the texts;
    - ``source_language`` and ``target_language``: any codes; not needed where both are given or in
      the file's name;
    - ``score``: optional number.

    Hugging Face's ``{"translation": {"de": "...", "en": "..."}}`` is read too. Other keys are
    ignored.
    """  # noqa: D415

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Streams the objects; blank lines are skipped and counted."""
        named = languages_from_name(path) or (None, None)
        source = source_language or named[0]
        target = target_language or named[1]
        with open_text(path, errors=bad.errors) as lines:
            for number, line in bad.numbered(lines, path):
                if not line.strip():
                    skipped["empty line"] += 1
                    continue
                try:
                    pair = pair_of_object(parse_json(line), source, target)
                except (ValueError, TypeError) as error:
                    bad.reject(DataError(str(error), path=path, line=number), line)
                    continue
                yield pair

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Writes any mixture of language pairs."""
        count = 0
        with open_text_writer(path) as file:
            for pair in pairs:
                item = {key: value for key, value in pair._asdict().items() if value is not None}
                file.write(json.dumps(item, ensure_ascii=False) + "\n")
                count += 1
        return count


def pair_of_object(item: Any, source: str | None, target: str | None) -> TextPair:
    """The pair in a JSON object.

    Args:
        item: with the keys of ``Jsonl``, or with ``translation``.
        source: source language, where the object names none.
        target: target language, as any code.

    Raises:
        ValueError: a key is missing, is not a text, or the languages are unknown.
    """
    if not isinstance(item, dict):
        raise ValueError(f"expected an object with source and target, got {type(item).__name__}")
    if isinstance(item.get("translation"), dict):
        return pair_of_translation(item["translation"], source, target)
    for key in ("source", "target"):
        if not isinstance(item.get(key), str):
            raise ValueError(
                f"the key {key!r} is {'not a text' if key in item else 'missing'}; expected source"
                " and target"
            )
    source = item.get("source_language") or source
    target = item.get("target_language") or target
    if not source or not target:
        raise ValueError(
            "its languages are unknown; add source_language and target_language, or name them"
        )
    score = item.get("score")
    if score is not None:
        # A bool is an int to Python, and JSON's reader also takes NaN and Infinity.
        is_number = isinstance(score, int | float) and not isinstance(score, bool)
        if not is_number or not math.isfinite(score):
            raise ValueError(f"score is {str(score)[:40]!r}, expected a number")
        score = float(score)
    first, second = (languages.resolve(str(language)).code for language in (source, target))
    return TextPair(item["source"], item["target"], first, second, score)


def pair_of_translation(item: dict[str, Any], source: str | None, target: str | None) -> TextPair:
    """The pair in ``{"de": "...", "en": "..."}``, a cell of Hugging Face's ``translation`` columns.

    Raises:
        ValueError: the languages there are not exactly the two requested.
    """
    texts = {languages.resolve(key).code: value for key, value in item.items()}
    order: tuple[str | None, ...] = tuple(texts)
    if source in texts and target in texts:
        order = (source, target)
    if len(order) != 2:
        raise ValueError(
            f"translation holds {len(texts)} languages ({', '.join(item)}); name the two to read"
        )
    first = str(order[0])
    second = str(order[1])
    if not isinstance(texts[first], str) or not isinstance(texts[second], str):
        raise ValueError("translation holds a value that is not a text")
    return TextPair(texts[first], texts[second], first, second)


def score_of_cell(cell: str) -> float:
    """The score in a cell.

    Raises:
        ValueError: it is not a finite number.
    """
    try:
        score = float(cell)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise ValueError(f"invalid score {cell[:40]!r}: expected a number")
    return score
