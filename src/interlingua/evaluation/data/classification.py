"""Sets of texts with a label, split into train, dev and test, in a folder.

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

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from interlingua.config.languages import find_code
from interlingua.corpus.formats.labeled_texts import (
    LabeledTexts,
    decoded_bytes,
    read_labeled_json,
    read_labeled_table,
    read_labeled_texts,
    read_reviews,
)
from interlingua.errors import DataError
from interlingua.evaluation.data.folders import PACKED, folders_in, matching_files
from interlingua.storage.files import files_in, tab_rows

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
_REVIEWS = re.compile(r"dataset_([a-z]{2})_(train|dev|test)\.json")
REVIEWS_PER_CLASS = 1000
"""CLS: positive reviews to train on, and as many negative ones."""


Splits = dict[str, Callable[[], LabeledTexts]]
"""Split (train, dev or test) -> function that reads it."""
LabeledSets = dict[str, Splits]
"""Language, as the files spell it, after the domain if there are several (``books.de``) -> its
splits."""


def sib200_sets(folder: Path) -> LabeledSets:
    """Return the readers of SIB-200 for the languages that have a training set."""
    found: LabeledSets = {}
    for below in folders_in(folder):
        files = {split: below / f"{split}.tsv" for split in SPLITS}
        # three columns distinguish it from a user's own label TAB text
        if files["train"].is_file() and _columns_of(files["train"]) == 3:
            found[below.name] = {
                split: functools.partial(
                    read_labeled_table, path, label=1, text=2, columns=3, has_ids=True
                )
                for split, path in files.items()
                if path.is_file()
            }
    return found


def mldoc_sets(folder: Path, train_size: int = 1000) -> LabeledSets:
    """Return the readers of MLDoc with the training set of ``train_size`` documents."""
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
    """Return the readers of CLS v1 by domain and language.

    The dev set is drawn from the reviews that CLS v1 calls unlabeled; these also have ratings.
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
    """Return the readers of CLS v2 by language; reviews of three stars are dropped as neutral."""
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
    """Return the readers of your own files, in the folder itself or in a subfolder per language.

    Folders that are not named after a language are ignored.
    """
    found: LabeledSets = {}
    for match, path in matching_files(folder, _OWN_FILE):
        splits = found.setdefault(match[1], {})
        splits[_SPLIT_NAMES[match[2]]] = functools.partial(read_labeled_texts, path)
    for below in folders_in(folder):
        if find_code(below.name) is None:
            continue
        for match, path in matching_files(below, _OWN_SPLIT):
            splits = found.setdefault(below.name, {})
            splits[_SPLIT_NAMES[match[1]]] = functools.partial(read_labeled_texts, path)
    # a classifier has nothing to learn from without a training set
    return {language: splits for language, splits in found.items() if "train" in splits}


def require_split(splits: Splits, split: str, *, language: str, folder: Path) -> None:
    """Check that a split of a language exists.

    Raises:
        DataError: the split is missing.
    """
    if split not in splits:
        raise DataError(
            f"{language} has no {split} set; use one of: {', '.join(splits)}", path=folder
        )


def _read_mldoc(path: Path) -> LabeledTexts:
    found = read_labeled_table(path)
    return found._replace(texts=list(map(decoded_bytes, found.texts)))


def _read_starred(path: Path, per_class: int | None) -> LabeledTexts:
    stars = read_labeled_json(path, label="stars", text="review_body")
    rated = zip(stars.texts, map(float, stars.labels), strict=True)
    texts = [(text, _opinion(rating)) for text, rating in rated if rating != 3]
    return _evenly(texts, per_class)


def _read_reviews(path: Path, per_class: int | None = None) -> LabeledTexts:
    reviews = [(text, _opinion(stars)) for text, stars in read_reviews(path)]
    return _evenly(reviews, per_class)


def _opinion(stars: float) -> str:
    return "positive" if stars > 3 else "negative"


def _evenly(rows: list[tuple[str, str]], per_class: int | None) -> LabeledTexts:
    """Return all rows, or ``per_class`` rows of each label, taken at even distances.

    Such files are sorted by rating, so the first rows of a label all have the same rating.
    """
    if per_class is not None:
        by_label: dict[str, list[tuple[str, str]]] = {}
        for row in rows:
            by_label.setdefault(row[1], []).append(row)
        rows = []
        for _, of_label in sorted(by_label.items()):
            count = min(per_class, len(of_label))
            # i * n // count: all rows in order if a label has no more rows than ``per_class``
            rows += [of_label[i * len(of_label) // count] for i in range(count)]
    return LabeledTexts([text for text, _ in rows], [label for _, label in rows])


def _columns_of(path: Path) -> int:
    _, first = next(tab_rows(path), (1, [""]))
    return len(first)
