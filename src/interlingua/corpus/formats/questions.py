"""Questions, the passages that answer them, and judgments, for training and evaluating retrieval.

``read_questions`` gives each question with the texts of its passages, for training; the layout is
known by the file's name:

- ``*.json``: DPR's list of ``{"question", "positive_ctxs", "hard_negative_ctxs"}``, or SQuAD's form
  (XQuAD-R too), where a paragraph answers its questions; a passage in another language than its
  question names this language (``"language"``);
- ``*.jsonl``: Mr.TyDi as on the hub, ``{"query", "positive_passages", "negative_passages"}``;
- ``topic*.tsv`` or ``topics*.txt``: Mr.TyDi's topics, with ``qrels*.txt`` next to them and the
  collection (``docs.jsonl`` or ``corpus.jsonl``) in the same folder, in its ``collection/``, or in
  one of these places one folder up;
- ``*.questions.tsv`` (question id, passage's line from 0, question, ...) next to
  ``*.passages.txt``.

All files may be compressed. The object, the file's name or its folder's name contains the language;
DPR and SQuAD, which name none, are English. A language in a name is compared with the questions.

Evaluation keeps ids and judgments. It reads the same files, and those of BEIR, with one function
per kind of file: ``question_lines``, ``squad_paragraphs``, ``topics``, ``trec_qrels``,
``beir_qrels`` and ``documents``.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from interlingua.config.languages import find_in_name, resolve_language
from interlingua.corpus.formats.bitext import uncompressed_name
from interlingua.corpus.formats.json_stream import is_json_array, json_array_items
from interlingua.errors import DataError, count_of
from interlingua.storage.files import COMPRESSIONS, open_text, stem_and_suffix, tab_rows
from interlingua.storage.json_text import json_lines, load_json

NO_POSITIVE = "question without an answering passage"
_NO_TEXT = "passage without text"


class TitledText(NamedTuple):
    """A text that is searched."""

    text: str
    title: str = ""
    language: str = ""
    """Code of its language; empty: the language of the question."""


class Question(NamedTuple):
    """A question, passages that answer it, and optional similar passages that do not answer it."""

    text: str
    language: str
    positives: tuple[TitledText, ...]
    """Passages that answer; the first one is the one to learn."""
    hard_negatives: tuple[TitledText, ...] = ()


class Judgment(NamedTuple):
    """A line of a file of judgments."""

    line: int
    query: str
    passage: str
    grade: int
    """Above 0 for passages that answer."""


class PoolPassage(NamedTuple):
    """A passage of a collection; many have no title."""

    id: str
    title: str
    text: str


_Place = tuple[Path, int | None]
"""File and line."""


def read_questions(
    path: Path, *, languages: Sequence[str] = (), skipped: Counter[str] | None = None
) -> Iterator[Question]:
    """Read one file, question by question; see the module for the layouts.

    Args:
        path: the file.
        languages: languages of the questions to read; all by default.
        skipped: counts questions that are left out, by reason.

    Raises:
        DataError: a file is missing, has an unknown layout or wrong content (the error names the
            line), or has questions in another script than its language.
    """
    codes = {resolve_language(language).code for language in languages}
    if skipped is None:  # an empty counter that the caller passes is used, too
        skipped = Counter()
    for question in _in_language_of_file(_reader_of(path), path):
        if codes and question.language not in codes:
            skipped["question in another language"] += 1
            continue
        positives = tuple(passage for passage in question.positives if passage.text)
        hard_negatives = tuple(passage for passage in question.hard_negatives if passage.text)
        listed = len(question.positives) + len(question.hard_negatives)
        if blank := listed - len(positives) - len(hard_negatives):
            skipped[_NO_TEXT] += blank
        if positives:
            yield question._replace(positives=positives, hard_negatives=hard_negatives)
        else:
            skipped[NO_POSITIVE] += 1


def _in_language_of_file(questions: Iterator[Question], path: Path) -> Iterator[Question]:
    """Assign the language of the file to questions without one; their texts must fit this language.

    Raises:
        DataError: no name indicates the language, or the texts are in another script.
    """
    from interlingua.corpus.cleaning.language_evidence import (
        LOOKED_AT,
        SUPPORTING_TEXTS,
        checked_language,
    )

    # Files that name a language do so for all questions, so the first ones are enough.
    first = list(islice(questions, max(LOOKED_AT, SUPPORTING_TEXTS)))
    texts = [question.text for question in first if not question.language]
    language = ""
    if texts:
        code = _language_by_name(path, texts)
        language = str(checked_language(texts, code, path, _OPTION, is_given=False))
    for question in chain(first, questions):
        if not question.language:
            language = language or str(_language_by_name(path, [question.text]))
            question = question._replace(language=language)
        yield question


_OPTION = 'as "language" of the questions, or in the name of the file or its folder,'


def _language_by_name(path: Path, texts: Sequence[str]) -> str:
    """Return the language in the name of a file or of its folders.

    In the file's name, any part may be the language (``en.train``), in a folder's name only the
    last (``mrtydi-v1.1-korean``). A part that is also a word (``it``) is a language only if the
    questions support it. For DPR and SQuAD, which are English by default, only the
    file's name counts.

    Raises:
        DataError: there is none.
    """
    from interlingua.corpus.cleaning.language_evidence import is_meant
    from interlingua.corpus.cleaning.named_languages import is_word

    stem, suffix = stem_and_suffix(path)
    parts = stem.split(".")[::-1]
    if suffix != ".json":
        parts += [folder.name.split("-")[-1] for folder in path.parents[:2]]
    for part in parts:
        code = find_in_name(part)
        if code is not None and (not is_word(code) or is_meant(texts, code)):
            return code
    if suffix == ".json":
        return "eng_Latn"
    raise DataError(
        "the language is unknown; rename the file or its folder, for example to"
        " en.train.questions.tsv or mrtydi-v1.1-korean, or add the key 'language' to the objects",
        path=path,
    )


def _reader_of(path: Path) -> Iterator[Question]:
    """Return the reader of a file, which leaves the language empty if no object names it."""
    stem, suffix = stem_and_suffix(path)
    if suffix == ".json":
        if is_json_array(path):
            return _read_dpr(path)
        return _read_squad(path)
    if suffix in (".jsonl", ".json_lines"):
        return _read_mrtydi(path)
    if suffix == ".tsv" and stem.endswith(".questions"):
        return _read_lines(path)
    if suffix in (".tsv", ".txt") and stem.startswith("topic"):
        return _read_topics(path)
    raise DataError(
        "unknown layout; use one of: *.json (DPR, SQuAD), *.jsonl (Mr.TyDi), topic*.tsv,"
        " *.questions.tsv",
        path=path,
    )


def _read_dpr(path: Path) -> Iterator[Question]:
    for line, item in json_array_items(path):
        yield _question(item, ("question", "positive_ctxs", "hard_negative_ctxs"), (path, line))


def _read_mrtydi(path: Path) -> Iterator[Question]:
    for line, item in json_lines(path):
        yield _question(item, ("query", "positive_passages", "negative_passages"), (path, line))


def _question(item: Any, keys: tuple[str, str, str], place: _Place) -> Question:
    """Return the question in an object, by the keys of its text and of its passages."""
    return Question(
        _one_line(first_text(item, keys[:1], place)),
        _named_language(item, place),
        _passages(item, keys[1], place),
        _passages(item, keys[2], place),
    )


def _read_squad(path: Path) -> Iterator[Question]:
    with squad_errors(path, "context"):
        for title, paragraph in squad_paragraphs(path):
            passages = (_passage(paragraph["context"], title),)
            for item in paragraph["qas"]:
                positives: tuple[TitledText, ...] = passages
                if item.get("is_impossible", False):  # of SQuAD 2: no answer in the passage
                    positives = ()
                text = _one_line(first_text(item, ("question",), (path, None)))
                yield Question(text, "", positives)


def _read_lines(path: Path) -> Iterator[Question]:
    with open_text(passages_of(path)) as lines:
        passages = [TitledText(_one_line(line)) for line in lines]
    for _, _, passage, text in question_lines(path, len(passages)):
        yield Question(_one_line(text), "", (passages[passage],))


def _read_topics(path: Path) -> Iterator[Question]:
    """Read Mr.TyDi's own files.

    The two small files and the collection are each read once; of the collection, only the passages
    that answer are kept.
    """
    relevant: dict[str, list[str]] = {}
    qrels = _related_file(path, re.sub(r"^topics?", "qrels", path.name), ("qrels",))
    for judgment in trec_qrels(qrels):
        if judgment.grade > 0:
            relevant.setdefault(judgment.query, []).append(judgment.passage)
    needed = {passage for passages in relevant.values() for passage in passages}
    collection = _related_file(path, "collection/docs.jsonl", ("docs", "corpus"))
    found = {
        one.id: _passage(one.text, one.title)
        for one in documents([collection], ("docid", "id"))
        if one.id in needed
    }
    if missing := sorted(needed - found.keys()):
        raise DataError(
            f"lacks {count_of(len(missing), 'passages')} of the qrels, such as {missing[0]!r};"
            " fetch the collection again",
            path=collection,
        )
    for _, name, text in topics(path):
        answers = tuple(found[key] for key in relevant.get(name, ()))
        yield Question(_one_line(text), "", answers)


def passages_of(path: Path) -> Path:
    """Return the file of the passages for ``*.questions.tsv``, which has one passage per line."""
    return path.with_name(path.name.replace(".questions.tsv", ".passages.txt"))


def question_lines(path: Path, passages: int) -> Iterator[tuple[int, str, int, str]]:
    """Yield line, id, number of the passage, and question of ``*.questions.tsv``.

    Args:
        path: the file.
        passages: number of passages.

    Raises:
        DataError: a line has too few columns, an empty question, or an unknown passage number.
    """
    for line, cells in _filled_rows(path, ("question id", "line of the passage", "question")):
        if not cells[1].isdecimal() or int(cells[1]) >= passages:
            raise DataError(
                f"unknown passage {cells[1]!r}; {passages_of(path).name} has the lines 0 to"
                f" {passages - 1}",
                path=path,
                line=line,
            )
        yield line, cells[0], int(cells[1]), cells[2]


def topics(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, id and question of a file of topics.

    Raises:
        DataError: a line has too few columns, or an empty question.
    """
    for line, cells in _filled_rows(path, ("question id", "question")):
        yield line, cells[0], cells[1]


def trec_qrels(path: Path) -> Iterator[Judgment]:
    """Yield the judgments of a file of TREC's format: query, 0 or Q0, passage, grade.

    Raises:
        DataError: a line has another number of columns, or a grade is not a whole number.
    """
    for line, text in _filled_lines(path):
        cells = text.split()
        if len(cells) != 4:
            raise DataError(
                f"expected question 0 passage grade, found {count_of(len(cells), 'columns')};"
                " correct the line",
                path=path,
                line=line,
            )
        yield Judgment(line, cells[0], cells[2], _grade(cells[3], path, line))


def beir_qrels(path: Path) -> Iterator[Judgment]:
    """Yield the judgments of a file of BEIR: query, passage, grade; its header is skipped.

    Raises:
        DataError: a line has too few columns, or a grade is not a whole number.
    """
    for line, cells in _filled_rows(path, ("query", "passage", "grade")):
        if line > 1 or cells[2].lstrip("-").isdigit():
            yield Judgment(line, cells[0], cells[1], _grade(cells[2], path, line))


def documents(files: Iterable[Path], id_keys: tuple[str, ...]) -> Iterator[PoolPassage]:
    """Yield the passages of collections.

    Lines are ``{"id", "contents": "title<blank line>text"}`` (Mr.TyDi's own; without a blank line
    all is text) or ``{"docid", "title", "text"}``.

    Args:
        files: JSON lines.
        id_keys: keys of an id, the preferred one first.

    Raises:
        DataError: an object has no id or no text, or a value of another type in its place.
    """
    for path in files:
        for line, record in json_lines(path):
            place = (path, line)
            name = first_text(record, id_keys, place)
            if "contents" in record:
                title, gap, text = first_text(
                    record, ("contents",), place, may_be_blank=True
                ).partition("\n\n")
                if not gap:
                    text = title
                    title = ""
            else:
                title = first_text({"title": "", **record}, ("title",), place, may_be_blank=True)
                # A text may be empty; if there is a title, the text may also be null.
                is_there = record.get("text") is not None or bool(title.strip())
                text = first_text(record, ("text",), place, may_be_blank=is_there)
            yield PoolPassage(name, title.strip(), text.strip())


def squad_paragraphs(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield title and paragraph of a file of SQuAD's form; call this inside ``squad_errors``."""
    for article in load_json(path)["data"]:
        title = (article.get("title") or "").replace("_", " ")
        for paragraph in article["paragraphs"]:
            yield title, paragraph


@contextlib.contextmanager
def squad_errors(path: Path, keys: str) -> Iterator[None]:
    """Report in one line that a file is not in the form of SQuAD.

    Args:
        path: the file.
        keys: keys of a paragraph except that of its questions.

    Raises:
        DataError: it is of another form.
    """
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"is not in the form of SQuAD (data, paragraphs, {keys}, qas, question):"
            f" {type(error).__name__} {error}",
            path=path,
        ) from error


def first_text(
    record: Any, keys: Sequence[str], place: _Place, *, may_be_blank: bool = False
) -> str:
    """Return the text that an object has under the first of some keys; a number is converted.

    Args:
        record: the object.
        keys: the preferred one first.
        place: file and line that errors name.
        may_be_blank: whether null and blank texts are allowed.

    Raises:
        DataError: no key has a value, or the value is blank or is not text.
    """
    path, line = place
    if not isinstance(record, dict):
        raise DataError(
            f"expected an object with {' or '.join(keys)}, found {type(record).__name__}",
            path=path,
            line=line,
        )
    for key in keys:
        value = record.get(key)
        if value is None:
            continue
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise DataError(
                f"{key!r}: expected text, found {type(value).__name__}", path=path, line=line
            )
        text = str(value)
        if not text.strip() and not may_be_blank:
            raise DataError(f"{key!r} is blank; expected a text", path=path, line=line)
        return text
    if may_be_blank and any(key in record for key in keys):
        return ""
    there = ", ".join(str(key) for key, value in record.items() if value is not None)
    raise DataError(
        f"expected the key {' or '.join(keys)}, found only {there}", path=path, line=line
    )


def _filled_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers."""
    with open_text(path) as lines:
        for line, text in enumerate(lines, 1):
            if text.strip():
                yield line, text


def _filled_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table that are not blank; the passed columns must have text."""
    for line, cells in tab_rows(path):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) < len(columns):
            raise DataError(
                f"expected {', '.join(columns)} with tabs between them, found"
                f" {count_of(len(cells), 'columns')}; correct the line",
                path=path,
                line=line,
            )
        for name, cell in zip(columns, cells, strict=False):
            if not cell.strip():
                raise DataError(
                    f"the {name} is empty; fill it in or remove the line", path=path, line=line
                )
        yield line, cells


def _grade(text: str, path: Path, line: int) -> int:
    try:
        return int(text)
    except ValueError:
        raise DataError(
            f"the relevance must be a whole number, found {text[:40]!r}", path=path, line=line
        ) from None


def _related_file(path: Path, name: str, stems: tuple[str, ...]) -> Path:
    """Return the file that belongs to a topics file, compressed or not, in its folder or one above.

    Args:
        path: the topics file.
        name: name of the file.
        stems: other possible names, without their suffix .jsonl or .txt.
    """
    names = [Path(name).name, *(f"{stem}.{kind}" for stem in stems for kind in ("jsonl", "txt"))]
    names = [_plain_name(one) for one in names]
    here = path.parent
    above = here.parent
    for folder in (here, here / "collection", above, above / "collection"):
        for one in names:
            for ending in ("", *COMPRESSIONS):
                file = folder / (one + ending)
                if file.is_file():
                    return file
    raise DataError(
        f"{names[0]} not found in the same folder, in collection/ or one folder above; put it"
        " into one of these folders",
        path=path,
    )


def _plain_name(name: str) -> str:
    """Return a name without a compression's suffix; qrels end in .txt even if topics are .tsv."""
    plain = uncompressed_name(name)
    if plain.startswith("qrels"):
        plain = re.sub(r"\.tsv$", ".txt", plain)
    return plain


def _passages(item: dict[str, Any], key: str, place: _Place) -> tuple[TitledText, ...]:
    listed = item.get(key)
    if listed is None:  # not every question has hard negatives
        return ()
    if not isinstance(listed, list):
        raise DataError(
            f"{key}: expected a list of objects with title and text", path=place[0], line=place[1]
        )
    return tuple(_titled(one, place) for one in listed)


def _titled(item: Any, place: _Place) -> TitledText:
    text = first_text(item, ("text",), place, may_be_blank=True)
    title = first_text({"title": "", **item}, ("title",), place, may_be_blank=True)
    return _passage(text, title)._replace(language=_named_language(item, place))


def _passage(text: str, title: str) -> TitledText:
    """Return a passage with a title; a title without a text is the text."""
    text = _one_line(text)
    title = _one_line(title)
    if not text:
        return TitledText(title)
    return TitledText(text, title)


def _one_line(text: str) -> str:
    return " ".join(text.lstrip("\ufeff").split())


def _named_language(item: Mapping[str, Any], place: _Place) -> str:
    """Return the code of the language that an object names; empty if it names none.

    Raises:
        DataError: the name is not that of a known language.
    """
    named = str(item.get("language") or item.get("lang") or "")
    if not named:
        return ""
    try:
        return resolve_language(named).code
    except DataError as error:
        raise DataError(f"language {error}", path=place[0], line=place[1]) from error
