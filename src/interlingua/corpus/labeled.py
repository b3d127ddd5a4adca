"""Pairs of sentences with a label: natural language inference and similarity sets.

They are read in the layouts in which they are handed out:

- ``.jsonl``: SNLI's, MultiNLI's and XNLI's own (``gold_label``, ``sentence1``, ``sentence2``);
- tables with a header: sentence-transformers' ``AllNLI.tsv.gz`` and ``stsbenchmark.tsv.gz``, SNLI's
  and XNLI's ``.txt`` and ``.tsv``, GLUE's; a ``split`` column chooses the rows, a ``language``
  column tells the language;
- tables without: ``a<TAB>b<TAB>label`` (XTREME's XNLI, silver pairs), ``score<TAB>a<TAB>b``, and
  STS benchmark's own seven columns (``sts-train.csv``).

``en.dev.tsv``, ``dev-de.tsv`` or ``en-de.test.tsv`` tell the languages by name, two of them first
those of ``a``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from interlingua.errors import DataError, count_of
from interlingua.files import stem_and_suffix, tab_rows
from interlingua.json_text import json_lines
from interlingua.languages import find_code, resolve

log = logging.getLogger("interlingua")
Kind = Literal["nli", "sts"]
NLI_CLASSES = ("contradiction", "entailment", "neutral")
"""Index = class, in sentence-transformers' order."""
CLASS_OF = {name: index for index, name in enumerate(NLI_CLASSES)} | {"contradictory": 0}
NO_GOLD_LABEL = "-"
"""Stands in SNLI and MultiNLI where the annotators disagreed."""
MAX_SCORE = 5.0
EXPECTED_LABEL = {
    "nli": f"one of {', '.join(NLI_CLASSES)}",
    "sts": f"a score from 0 to {MAX_SCORE:g}",
}
COLUMNS: dict[str, tuple[str, ...]] = {
    "a": ("sentence1", "premise"),
    "b": ("sentence2", "hypothesis"),
    "nli": ("gold_label", "label"),
    "sts": ("score", "label"),
    "split": ("split",),
    "language": ("language",),
}
"""What a column may be called, the name that counts first."""
STS_BENCHMARK_COLUMNS = 7
LANGUAGE_IN_NAME = re.compile(r"[a-z]{2,3}(?:_[A-Z][a-z]{3})?")


class LabeledPair(NamedTuple):
    """Two sentences and what relates them."""

    a: str
    b: str
    label: float
    """Index in ``NLI_CLASSES``, or similarity in [0, 1]."""
    language_a: str
    language_b: str


class _Row(NamedTuple):
    a: str
    b: str
    label: str
    language: str | None


def read_labeled(
    path: Path,
    *,
    kind: Kind,
    split: str = "train",
    languages: tuple[str, str],
    may_be_empty: bool = False,
) -> list[LabeledPair]:
    """Reads a labeled set; rows without a gold label (``-``) are left out and counted in a warning.

    Args:
        path: the file, plain or compressed (.gz, .xz, .zst).
        kind: nli has one of three classes, sts a score from 0 to 5.
        split: of a file with a split in every row; others are read whole.
        languages: of first and second sentences, where neither rows nor the file's name say.
        may_be_empty: whether a file without pairs of the split is none to complain of.

    Raises:
        DataError: the file is missing, a row is not of the layout, or none is left.
    """
    languages = languages_in_name(path) or languages
    pairs: list[LabeledPair] = []
    unlabeled = 0
    for number, row in _rows(path, kind, split):
        if kind == "nli" and row.label == NO_GOLD_LABEL:
            unlabeled += 1
            continue
        if not row.a.strip() or not row.b.strip():
            raise DataError("a sentence is empty; remove the row", path=path, line=number)
        # What the row says comes before what the file's name or the caller does.
        row_languages = languages
        if row.language:
            code = _language(row.language, path, number)
            row_languages = (code, code)
        label = _label(row.label, kind, path, number)
        pairs.append(LabeledPair(row.a, row.b, label, *row_languages))
    if unlabeled:
        log.warning(
            "%s: %d of %d pairs have no gold label and are left out",
            path,
            unlabeled,
            unlabeled + len(pairs),
        )
    if not pairs and not may_be_empty:
        raise DataError(
            f"no labeled pairs in it (of the split {split!r}, if it has splits)", path=path
        )
    return pairs


def languages_in_name(path: Path) -> tuple[str, str] | None:
    """The languages that a file is called by, or None.

    For example by ``de.train.tsv``, ``dev-de.tsv`` or ``en-de.test.tsv``.
    """
    parts = re.split(r"[.-]", stem_and_suffix(path)[0])
    codes = map(find_code, filter(LANGUAGE_IN_NAME.fullmatch, parts))
    found = [code for code in codes if code is not None]
    if not 1 <= len(found) <= 2:
        return None
    return found[0], found[-1]  # the same twice where there is one


def _language(name: str, path: Path, line: int) -> str:
    try:
        return resolve(name).code
    except DataError as error:
        raise DataError(str(error), path=path, line=line) from error


def _rows(path: Path, kind: Kind, split: str) -> Iterator[tuple[int, _Row]]:
    if stem_and_suffix(path)[1] in (".jsonl", ".json"):
        return _json_rows(path, kind, split)
    return _table_rows(path, kind, split)


def _json_rows(path: Path, kind: Kind, split: str) -> Iterator[tuple[int, _Row]]:
    for number, record in json_lines(path):
        columns = _columns(list(record), kind, path, number)
        if (row := _pick(record, columns, split)) is not None:
            yield number, row


def _table_rows(path: Path, kind: Kind, split: str) -> Iterator[tuple[int, _Row]]:
    header: Sequence[str] = ()
    columns: dict[str, Any] = {}
    # None of these files is quoted: quotation marks are text.
    for number, fields in tab_rows(path):
        if number == 1:
            if {"sentence1", "premise"} & set(fields):
                header = fields
                columns = _columns(fields, kind, path, number)
                continue
            columns = _layout(fields, kind, path)
        if len(fields) < (len(header) or 1 + max(columns.values())):
            expected = "two sentences and a label, separated by tabs"
            if header:
                expected = f"{count_of(len(header), 'columns')}"
            raise DataError(
                f"{count_of(len(fields), 'columns')}; expected {expected}", path=path, line=number
            )
        # Without a header the columns are called by their numbers.
        names = header or range(len(fields))
        record = dict(zip(names, fields, strict=False))
        if (row := _pick(record, columns, split)) is not None:
            yield number, row


def _columns(names: Sequence[str], kind: Kind, path: Path, line: int) -> dict[str, Any]:
    """Which column is what, by name."""
    columns = {}
    for role, known in COLUMNS.items():
        columns[role] = next((name for name in known if name in names), None)
    for role in ("a", "b", kind):
        if columns[role] is None:
            expected = " or ".join(COLUMNS[role])
            present = ", ".join(map(str, names))
            raise DataError(
                f"no column {expected} for kind {kind!r}; there are: {present}",
                path=path,
                line=line,
            )
    columns["label"] = columns[kind]
    return {role: name for role, name in columns.items() if name is not None}


def _layout(fields: Sequence[str], kind: Kind, path: Path) -> dict[str, int]:
    """Which column is what, by the first row of a table without a header."""
    if kind == "sts" and len(fields) >= STS_BENCHMARK_COLUMNS and _is_label(fields[4], kind):
        return {"label": 4, "a": 5, "b": 6}
    if len(fields) == 3 and _is_label(fields[2], kind):
        return {"a": 0, "b": 1, "label": 2}
    if len(fields) == 3 and _is_label(fields[0], kind):
        return {"label": 0, "a": 1, "b": 2}
    raise DataError(
        f"{count_of(len(fields), 'columns')}, none of them a header or a label of kind {kind!r};"
        " expected"
        f" a<TAB>b<TAB>label, where label is {EXPECTED_LABEL[kind]}",
        path=path,
        line=1,
    )


def _pick(record: Mapping[Any, Any], columns: Mapping[str, Any], split: str) -> _Row | None:
    """The row, or none if it belongs to another split."""
    if "split" in columns and record[columns["split"]] != split:
        return None
    language = None
    if "language" in columns:
        language = str(record[columns["language"]])
    a, b, label = (str(record[columns[role]]) for role in ("a", "b", "label"))
    return _Row(a, b, label, language)


def _is_label(text: str, kind: Kind) -> bool:
    if kind == "nli":
        return text in CLASS_OF or text == NO_GOLD_LABEL
    try:
        return 0 <= float(text) <= MAX_SCORE
    except ValueError:
        return False


def _label(text: str, kind: Kind, path: Path, line: int) -> float:
    if not _is_label(text, kind):
        raise DataError(f"label {text!r}; expected {EXPECTED_LABEL[kind]}", path=path, line=line)
    if kind == "nli":
        return float(CLASS_OF[text])
    return float(text) / MAX_SCORE
