"""Readers of texts with a label, split into train, dev and test, in the layouts they come in.

- SIB-200: ``deu_Latn/train.tsv`` (id, topic, text), with or without its header;
- MLDoc: ``german.train.1000``, ``german.dev``, ``german.test`` as its own script writes them
  (``CCAT`` TAB text), or the names LASER gives them, ``mldoc.train1000.de``;
- CLS v1, Webis-CLS-10 unprocessed: ``de/books/train.review`` in XML, next to ``test.review`` and
  ``unlabeled.review``;
- CLS v2, the Multilingual Amazon Reviews Corpus: ``train/dataset_de_train.json``, one review a
  line;
- your own: ``german.train.tsv`` or ``de/train.tsv`` (label TAB text), or ``.jsonl`` with ``text``
  and ``label``.

A split is read when it is first used.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from interlingua.corpus.xml_stream import xml_events
from interlingua.errors import DataError
from interlingua.evaluation.data.folders import (
    PACKED,
    folders_in,
    json_fields,
    matching_files,
    numbered_rows,
)
from interlingua.files import files_in, tab_rows
from interlingua.languages import find_code

Domain = Literal["books", "dvd", "music"]
DOMAINS: tuple[Domain, ...] = ("books", "dvd", "music")
SPLITS = ("train", "dev", "test")
_SPLIT_NAMES = {
    "train": "train",
    "dev": "dev",
    "val": "dev",
    "valid": "dev",
    "validation": "dev",
    "test": "test",
}
_SPLIT = "|".join(_SPLIT_NAMES)
_OWN_FILE = re.compile(rf"([\w-]+)\.({_SPLIT})\.(?:tsv|jsonl){PACKED}")
_OWN_SPLIT = re.compile(rf"({_SPLIT})\.(?:tsv|jsonl){PACKED}")
_MLDOC_LANGUAGES = (
    "chinese",
    "english",
    "french",
    "german",
    "italian",
    "japanese",
    "russian",
    "spanish",
)
_CLS_CODES = {"de": "de", "en": "en", "fr": "fr", "jp": "ja"}
_PYTHON_BYTES = re.compile(r"b(['\"]).*\1")
_REVIEWS = re.compile(r"dataset_([a-z]{2})_(train|dev|test)\.json")
REVIEWS_PER_CLASS = 1000
"""CLS: positive reviews to train on, and as many negative ones."""


class LabeledTexts(NamedTuple):
    """Texts and the label of each."""

    texts: list[str]
    labels: list[str]


Splits = dict[str, Callable[[], LabeledTexts]]
"""train, dev, test -> reads it."""
LabeledSets = dict[str, Splits]
"""Language, as the files spell it, behind the domain where there are several (``books.de``) -> its
splits."""


def sib200_sets(folder: Path) -> LabeledSets:
    """SIB-200, for the languages that have a training set."""
    found: LabeledSets = {}
    for below in folders_in(folder):
        files = {split: below / f"{split}.tsv" for split in SPLITS}
        # three columns tell it from a user's own label TAB text
        if files["train"].is_file() and _columns_of(files["train"]) == 3:
            found[below.name] = {
                split: functools.partial(_read_numbered, path)
                for split, path in files.items()
                if path.is_file()
            }
    return found


def mldoc_sets(folder: Path, train_size: int = 1000) -> LabeledSets:
    """MLDoc, with the training set of that many documents."""
    found: LabeledSets = {}
    names = {
        name: (f"{name}.train.{train_size}", f"{name}.dev", f"{name}.test")
        for name in _MLDOC_LANGUAGES
    }
    # the names that LASER's script gives them
    names |= {
        code: (f"mldoc.train{train_size}.{code}", f"mldoc.dev.{code}", f"mldoc.test.{code}")
        for code in ("de", "en", "es", "fr", "it", "ja", "ru", "zh")
    }
    for name, files in names.items():
        if (folder / files[0]).is_file():
            splits = zip(SPLITS, files, strict=True)
            found[name] = {
                split: functools.partial(_read_mldoc, folder / file) for split, file in splits
            }
    return found


def cls_v1_sets(folder: Path) -> LabeledSets:
    """CLS v1 by domain and language.

    The dev set is drawn from the reviews it calls unlabeled, which have ratings.
    """
    found: LabeledSets = {}
    for domain in DOMAINS:
        for name, code in _CLS_CODES.items():
            below = folder / name / domain
            if (below / "train.review").is_file():
                found[f"{domain}.{code}"] = {
                    "train": functools.partial(_read_reviews, below / "train.review"),
                    "dev": functools.partial(
                        _read_reviews, below / "unlabeled.review", REVIEWS_PER_CLASS
                    ),
                    "test": functools.partial(_read_reviews, below / "test.review"),
                }
    return found


def cls_v2_sets(folder: Path) -> LabeledSets:
    """CLS v2 by language; reviews of three stars are neither good nor bad and are left out."""
    found: LabeledSets = {}
    for split in SPLITS:
        # a folder for each split, as published, or all files in one
        for path in files_in(folder / split) or files_in(folder):
            match = _REVIEWS.fullmatch(path.name)
            if match and match[2] == split:
                # the training set is cut to the size of CLS, the others are used whole
                most = REVIEWS_PER_CLASS if split == "train" else None
                read = functools.partial(_read_starred, path, most)
                found.setdefault(match[1], {})[split] = read
    return {language: splits for language, splits in found.items() if "train" in splits}


def labeled_sets(folder: Path) -> LabeledSets:
    """Your own files, or a folder of them per language.

    Folders that are not called after a language are something else.
    """
    found: LabeledSets = {}
    for match, path in matching_files(folder, _OWN_FILE):
        splits = found.setdefault(match[1], {})
        splits[_SPLIT_NAMES[match[2]]] = functools.partial(_read_own, path)
    for below in folders_in(folder):
        if find_code(below.name) is None:
            continue
        for match, path in matching_files(below, _OWN_SPLIT):
            splits = found.setdefault(below.name, {})
            splits[_SPLIT_NAMES[match[1]]] = functools.partial(_read_own, path)
    # a classifier has nothing to learn from without a training set
    return {language: splits for language, splits in found.items() if "train" in splits}


def require_split(splits: Splits, split: str, *, language: str, folder: Path) -> None:
    """Says which splits of a language there are.

    Raises:
        DataError: this one is not among them.
    """
    if split not in splits:
        raise DataError(
            f"{language} has no {split} set; there are: {', '.join(splits)}", path=folder
        )


def read_table(path: Path, label: int, text: int, *, columns: int) -> LabeledTexts:
    """A table with a label and a text in each row.

    Args:
        path: the file, its columns separated by tabs.
        label: which column has the label.
        text: which one the text.
        columns: how many there are.

    Raises:
        DataError: the file is missing or empty, a row has another number of columns, or no label or
            no text.
    """
    rows = [(number, row[label], row[text]) for number, row in numbered_rows(path, columns)]
    return _collected(rows, path)


def _read_numbered(path: Path) -> LabeledTexts:
    rows = list(numbered_rows(path, 3))
    # the header, which some copies lack
    if rows and rows[0][1][:2] == ["index_id", "category"]:
        del rows[0]
    first: dict[str, int] = {}
    for number, (key, _, _) in rows:
        if key in first:
            raise DataError(
                f"the id {key!r} is that of line {first[key]} too; ids are unique",
                path=path,
                line=number,
            )
        first[key] = number
    return _collected([(number, label, text) for number, (_, label, text) in rows], path)


def _read_mldoc(path: Path) -> LabeledTexts:
    found = read_table(path, 0, 1, columns=2)
    return found._replace(texts=list(map(_decoded, found.texts)))


def _decoded(text: str) -> str:
    """The text itself where it is written as a Python literal of bytes."""
    # under Python 3 MLDoc's script writes b'...' with escapes instead of the text
    if not _PYTHON_BYTES.fullmatch(text):
        return text
    return str(ast.literal_eval(text).decode("utf-8"))


def _read_own(path: Path) -> LabeledTexts:
    # also in .jsonl.gz, which is not a suffix of Path
    if ".jsonl" in path.name:
        return _read_json(path, "label", "text")
    return read_table(path, 0, 1, columns=2)


def _read_starred(path: Path, per_class: int | None) -> LabeledTexts:
    stars = _read_json(path, "stars", "review_body")
    rated = zip(stars.texts, map(float, stars.labels), strict=True)
    texts = [(text, _opinion(rating)) for text, rating in rated if rating != 3]
    return _evenly(texts, per_class)


def _read_reviews(path: Path, per_class: int | None = None) -> LabeledTexts:
    reviews: list[tuple[str, str]] = []
    try:
        for event, item in xml_events(path, "item"):
            if event == "end" and item.tag == "item":
                text, rating = (item.findtext(tag) or "" for tag in ("text", "rating"))
                reviews.append((" ".join(text.split()), _opinion(float(rating))))
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        expected = "expected <item> with <rating> and <text>"
        raise DataError(f"no review file of CLS ({error}); {expected}", path=path) from error
    # a review without a text can't be classified
    reviews = [(text, label) for text, label in reviews if text]
    if not reviews:
        raise DataError("no reviews in it; expected <item> with <rating> and <text>", path=path)
    return _evenly(reviews, per_class)


def _opinion(stars: float) -> str:
    return "positive" if stars > 3 else "negative"


def _evenly(rows: list[tuple[str, str]], per_class: int | None) -> LabeledTexts:
    """All rows, or so many of each label, taken at even distances.

    Such files are sorted by rating, so that the first rows of a label are all of one rating.
    """
    if per_class is not None:
        by_label: dict[str, list[tuple[str, str]]] = {}
        for row in rows:
            by_label.setdefault(row[1], []).append(row)
        rows = []
        for _, of_label in sorted(by_label.items()):
            count = min(per_class, len(of_label))
            # i * n // count: all rows in order where there are no more of a label
            rows += [of_label[i * len(of_label) // count] for i in range(count)]
    return LabeledTexts([text for text, _ in rows], [label for _, label in rows])


def _read_json(path: Path, label: str, text: str) -> LabeledTexts:
    rows = json_fields(path, label, text)
    return _collected([(number, row[0], row[1]) for number, row in rows], path)


def _collected(rows: Iterable[tuple[int, str, str]], path: Path) -> LabeledTexts:
    found = LabeledTexts([], [])
    for number, label, text in rows:
        if not label.strip() or not text.strip():
            what = "text" if label.strip() else "label"
            raise DataError(
                f"the {what} is empty; fill it in or remove the line", path=path, line=number
            )
        found.texts.append(text)
        found.labels.append(label.strip())
    if not found.texts:
        raise DataError("the file is empty; expected a label and a text per line", path=path)
    return found


def _columns_of(path: Path) -> int:
    _, first = next(tab_rows(path), (1, [""]))
    return len(first)
