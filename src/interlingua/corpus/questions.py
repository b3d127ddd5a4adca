"""Questions with the passages that answer them, for training retrieval.

The layout is known by the file's name.

- ``*.json``: DPR's list of ``{"question", "positive_ctxs", "hard_negative_ctxs"}``, or SQuAD's form
  (XQuAD-R too), where a paragraph answers its questions; a passage in another language than its
  question names it (``"language"``);
- ``*.jsonl``: Mr.TyDi as on the hub, ``{"query", "positive_passages", "negative_passages"}``;
- ``topic*.tsv`` or ``topics*.txt``: Mr.TyDi's topics, with ``qrels*.txt`` next to them and the
  collection (``docs.jsonl`` or ``corpus.jsonl``) there or in ``collection/``, here or one folder
  up;
- ``*.questions.tsv`` (question id, passage's line from 0, question, ...) next to
  ``*.passages.txt``.

All may be compressed. The language is what the object or the file's name, or else its folder's,
says; English for DPR and SQuAD, which say nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from interlingua.corpus.formats import uncompressed_name
from interlingua.corpus.json_stream import json_array_items
from interlingua.errors import DataError, count_of
from interlingua.files import COMPRESSIONS, open_text, stem_and_suffix, tab_rows
from interlingua.languages import find_code, resolve
from interlingua.storage.json_text import json_lines, load_json

NO_POSITIVE = "question without a passage that answers it"
NO_TEXT = "passage without text"


class TitledText(NamedTuple):
    """A text that is searched."""

    text: str
    title: str = ""
    language: str = ""
    """Its code; empty: that of the question."""


class Question(NamedTuple):
    """A question with passages that answer it and, maybe, passages that look like it and don't."""

    text: str
    language: str
    positives: tuple[TitledText, ...]
    """The first is the one to learn."""
    hard_negatives: tuple[TitledText, ...] = ()


def read_questions(
    path: Path, *, languages: Sequence[str] = (), skipped: Counter[str] | None = None
) -> Iterator[Question]:
    """Reads one file, question by question; see the module for the layouts.

    Args:
        path: the file.
        languages: only questions of these; default: all.
        skipped: counts what is left out, by reason.

    Raises:
        DataError: a file is missing, is of no known layout, or holds something else (with its
            line).
    """
    codes = {resolve(language).code for language in languages}
    if skipped is None:  # an empty counter of the caller's is one to count in
        skipped = Counter()
    for question in _reader_of(path):
        if codes and question.language not in codes:
            skipped["question in another language"] += 1
            continue
        positives = tuple(passage for passage in question.positives if passage.text)
        hard_negatives = tuple(passage for passage in question.hard_negatives if passage.text)
        listed = len(question.positives) + len(question.hard_negatives)
        if blank := listed - len(positives) - len(hard_negatives):
            skipped[NO_TEXT] += blank
        if positives:
            yield question._replace(positives=positives, hard_negatives=hard_negatives)
        else:
            skipped[NO_POSITIVE] += 1


def _reader_of(path: Path) -> Iterator[Question]:
    stem, suffix = stem_and_suffix(path)
    if suffix == ".json":
        # SQuAD's file is one object, DPR's is a list.
        if _begins_with(path, "{"):
            return _read_squad(path)
        return _read_dpr(path)
    if suffix in (".jsonl", ".json_lines"):
        return _read_mrtydi(path)
    if suffix == ".tsv" and stem.endswith(".questions"):
        return _read_lines(path)
    if suffix in (".tsv", ".txt") and stem.startswith("topic"):
        return _read_topics(path)
    raise DataError(
        "unknown layout: expected *.json (DPR, SQuAD), *.jsonl (Mr.TyDi), topic*.tsv or"
        " *.questions.tsv",
        path=path,
    )


def _read_dpr(path: Path) -> Iterator[Question]:
    language = _language_of_name(path)
    for line, item in json_array_items(path):
        where = {"path": path, "line": line}
        text = _text(item, "question", where)
        yield Question(
            text,
            _named_language(item, language, where),
            _passages(item, "positive_ctxs", where),
            _passages(item, "hard_negative_ctxs", where),
        )


def _read_mrtydi(path: Path) -> Iterator[Question]:
    language = _language_of(path)
    for line, item in json_lines(path):
        where = {"path": path, "line": line}
        found = _named_language(item, language, where)
        positives = _passages(item, "positive_passages", where)
        negatives = _passages(item, "negative_passages", where)
        yield Question(_text(item, "query", where), found, positives, negatives)


def _read_squad(path: Path) -> Iterator[Question]:
    language = _language_of_name(path)
    content = load_json(path)
    try:
        for article in content["data"]:
            title = (article.get("title") or "").replace("_", " ")
            for paragraph in article["paragraphs"]:
                passages = (_passage(paragraph["context"], title),)
                for item in paragraph["qas"]:
                    positives: tuple[TitledText, ...] = passages
                    if item.get("is_impossible", False):  # of SQuAD 2: no answer in the passage
                        positives = ()
                    yield Question(_text(item, "question", {"path": path}), language, positives)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"not SQuAD's form (data, paragraphs, context, qas, question): {type(error).__name__}"
            f" {error}",
            path=path,
        ) from error


def _read_lines(path: Path) -> Iterator[Question]:
    passage_file = path.with_name(re.sub(r"\.questions\.tsv", ".passages.txt", path.name))
    language = _language_of(path)
    if language is None:
        raise DataError(
            "no language in its name; call it by one, such as en.train.questions.tsv", path=path
        )
    with open_text(passage_file) as lines:
        passages = [TitledText(_one_line(line)) for line in lines]
    for line, cells in _cells(path, "question id, passage's line, question", at_least=3):
        if not cells[1].isdecimal() or int(cells[1]) >= len(passages):
            raise DataError(
                f"passage {cells[1]!r}, expected a number from 0 to {len(passages) - 1}, a line of"
                f" {passage_file.name}",
                path=path,
                line=line,
            )
        yield Question(_one_line(cells[2]), language, (passages[int(cells[1])],))


def _read_topics(path: Path) -> Iterator[Question]:
    """Mr.TyDi's own files.

    Two passes over small files and one over the collection, of which only passages that answer are
    kept.
    """
    language = _language_of(path)
    if language is None:
        raise DataError(
            "no language in its name or its folder's; call the folder mrtydi-v1.1-korean or ko",
            path=path,
        )
    relevant = _relevant(_related_file(path, re.sub(r"^topics?", "qrels", path.name), ("qrels",)))
    needed = {passage for passages in relevant.values() for passage in passages}
    collection = _related_file(path, "collection/docs.jsonl", ("docs", "corpus"))
    found = {key: passage for key, passage in _collection(collection) if key in needed}
    if missing := sorted(needed - found.keys()):
        raise DataError(
            f"lacks {count_of(len(missing), 'passages')} of the qrels, such as {missing[0]!r}",
            path=collection,
        )
    for _, cells in _cells(path, "question id, question", at_least=2):
        answers = tuple(found[key] for key in relevant.get(cells[0], ()))
        yield Question(_one_line(cells[1]), language, answers)


def _relevant(path: Path) -> dict[str, list[str]]:
    """Question id -> ids of the passages that answer it: ``qid 0 docid relevance``."""
    relevant: dict[str, list[str]] = {}
    with open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            cells = line.split()
            if len(cells) != 4 or not cells[3].lstrip("-").isdecimal():
                raise DataError(
                    f"{line.strip()[:60]!r}, expected: question 0 passage grade",
                    path=path,
                    line=number,
                )
            if int(cells[3]) > 0:
                relevant.setdefault(cells[0], []).append(cells[2])
    return relevant


def _collection(path: Path) -> Iterator[tuple[str, TitledText]]:
    """The passages of a collection by their ids.

    Its lines are ``{"id", "contents": "title<blank line>text"}`` or ``{"docid", "title", "text"}``.
    """
    for line, item in json_lines(path):
        where = {"path": path, "line": line}
        if "contents" in item:
            title, _, text = _string(item, "contents", where).partition("\n\n")
            yield _text(item, "id", where), _passage(text, title)
        else:
            passage = _titled(item, where)
            yield _text(item, "docid", where), passage


def _related_file(path: Path, name: str, stems: tuple[str, ...]) -> Path:
    """The file that goes with a topics file, compressed or not, here or one folder up.

    Args:
        path: the topics file.
        name: what the file is called.
        stems: what it may be called otherwise, as .jsonl or .txt.
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
        f"there is no {names[0]} next to it, in collection/ or one folder up; put it there",
        path=path,
    )


def _plain_name(name: str) -> str:
    """Without a compression's ending; the qrels of topics in .tsv are .txt."""
    plain = uncompressed_name(name)
    if plain.startswith("qrels"):
        plain = re.sub(r"\.tsv$", ".txt", plain)
    return plain


def _cells(path: Path, expected: str, *, at_least: int) -> Iterator[tuple[int, list[str]]]:
    for number, cells in tab_rows(path):
        if cells == [""]:
            continue
        if len(cells) < at_least or not all(cell.strip() for cell in cells[:at_least]):
            shown = "\t".join(cells).strip()[:60]
            raise DataError(f"{shown!r}, expected {expected}", path=path, line=number)
        yield number, cells


def _passages(item: Any, key: str, where: dict[str, Any]) -> tuple[TitledText, ...]:
    listed = item.get(key)
    if listed is None:  # not every question has hard negatives
        return ()
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise DataError(f"{key} is not a list of objects with title and text", **where)
    return tuple(_titled(one, where) for one in listed)


def _titled(item: dict[str, Any], where: dict[str, Any]) -> TitledText:
    passage = _passage(_string(item, "text", where), _string({"title": "", **item}, "title", where))
    if "language" in item:
        return passage._replace(language=_named_language(item, None, where))
    return passage


def _passage(text: str, title: str) -> TitledText:
    """A passage with a title; a title without a text is the text."""
    text = _one_line(text)
    title = _one_line(title)
    if not text:
        return TitledText(title)
    return TitledText(text, title)


def _text(item: Any, key: str, where: dict[str, Any]) -> str:
    text = _one_line(_string(item, key, where))
    if not text:
        raise DataError(f"{key!r} is blank; expected a text", **where)
    return text


def _string(item: Any, key: str, where: dict[str, Any]) -> str:
    """A text, a number written out, or nothing for null."""
    if not isinstance(item, dict) or key not in item:
        raise DataError(f"{key!r} is missing; expected a text", **where)
    value = item[key]
    if value is None:
        return ""
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise DataError(f"{key!r} must be text, got {type(value).__name__}", **where)
    return str(value)


def _one_line(text: str) -> str:
    return " ".join(text.lstrip("\ufeff").split())


def _named_language(item: dict[str, Any], default: str | None, where: dict[str, Any]) -> str:
    named = item.get("language", item.get("lang", default))
    if not isinstance(named, str):
        raise DataError(
            "its language is unknown; add a key 'language', or name the file's folder by it",
            **where,
        )
    try:
        return resolve(named).code
    except DataError as error:
        raise DataError(f"language {error}", **where) from error


def _language_of(path: Path) -> str | None:
    """The language in a file's name or its folders', or None.

    In the file's name it is one part (``en.train``), in a folder's the last one
    (``mrtydi-v1.1-korean``).
    """
    parts = stem_and_suffix(path)[0].split(".")[::-1]
    parts += [folder.name.split("-")[-1] for folder in path.parents[:2]]
    return next(filter(None, map(find_code, parts)), None)


def _language_of_name(path: Path) -> str:
    """For files that are English unless their own name tells otherwise."""
    return _language_of(Path(path.name)) or "eng_Latn"


def _begins_with(path: Path, first: str) -> bool:
    # Not by lines: a JSON file may be a single line that is longer than the limit.
    with open_text(path, in_lines=False, is_json=True) as file:
        while chunk := file.read(4096):
            if stripped := chunk.lstrip():
                return stripped.startswith(first)
    return False
