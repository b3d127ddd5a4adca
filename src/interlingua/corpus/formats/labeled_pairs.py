"""Pairs of sentences with a label: inference, similarity, and paraphrase sets; judged translations.

Training, validation, evaluation, ``average`` and calibration read them here, in the layouts in
which they are published:

- ``.jsonl``: files of SNLI, MultiNLI and XNLI (``gold_label``, ``sentence1``, ``sentence2``), and
  of mteb (``score``, ``sentence1``, ``sentence2``);
- tables with a header: ``AllNLI.tsv.gz`` and ``stsbenchmark.tsv.gz`` of sentence-transformers,
  ``.txt`` and ``.tsv`` files of SNLI and XNLI, tables of GLUE and SICK; a ``split`` column chooses
  the rows, a ``language`` column names the language;
- tables without a header: ``a<TAB>b<TAB>label`` (XTREME's XNLI, silver pairs),
  ``label<TAB>a<TAB>b``, and files known by their names: ``sts-train.csv`` (STS benchmark's own
  seven columns),
  ``stsb-de-train.csv`` (stsb-multi-mt, quoted), ``STS.en-de.txt`` (the extended STS17),
  ``STS.input.MSRpar.txt`` with its ``STS.gs.MSRpar.txt`` (SemEval).

Names such as ``en.dev.tsv``, ``dev-de.tsv`` or ``en-de.test.tsv`` contain the languages; if there
are two, the first is the language of ``a``.
"""

from __future__ import annotations

import csv
import logging
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

from interlingua.config.languages import find_code, resolve_language
from interlingua.errors import DataError, count_of
from interlingua.storage.files import open_text, stem_and_suffix, tab_rows
from interlingua.storage.json_text import json_lines

log = logging.getLogger("interlingua")
LabeledPairKind = Literal["nli", "sts", "judgment", "binary"]
"""nli: one of three classes; sts: a score from 0 to 5; judgment: a score of any scale; binary: 1 or
0."""
NLI_CLASSES = ("contradiction", "entailment", "neutral")
"""Index = class, in sentence-transformers' order."""
CLASS_OF = {name: index for index, name in enumerate(NLI_CLASSES)} | {"contradictory": 0}
NO_GOLD_LABEL = "-"
"""In SNLI and MultiNLI, the label of pairs on which the annotators disagreed."""
MAX_SCORE = 5.0
EXPECTED_LABEL = {
    "nli": f"one of {', '.join(NLI_CLASSES)}",
    "sts": f"a score from 0 to {MAX_SCORE:g}",
    "judgment": "a number",
    "binary": "1 or 0",
}
SCORES = ("score", "similarity_score", "relatedness_score", "label")
_COLUMNS: dict[str, tuple[str, ...]] = {
    "a": ("sentence1", "premise", "sentence_A"),
    "b": ("sentence2", "hypothesis", "sentence_B"),
    "nli": ("gold_label", "label"),
    "sts": SCORES,
    "judgment": SCORES,
    "binary": ("label",),
    "split": ("split",),
    "language": ("language",),
}
"""Names of a column, the preferred one first."""
CODE = r"([a-z]{2,3}(?:_[A-Z][a-z]{3})?)"
ENGLISH_FIRST = ("track2.ar-en", "track4b.es-en", "track6.tr-en")
"""Tracks of STS17 with rows that start with English, although their names end with it."""
STS_BENCHMARK_COLUMNS = 7


class LabeledPair(NamedTuple):
    """Two sentences and their relation."""

    a: str
    b: str
    label: float
    """Index in ``NLI_CLASSES``, or similarity in [0, 1]."""
    language_a: str
    language_b: str


class PairLayout(NamedTuple):
    """Positions of the label and the sentences in a table without names of columns.

    Attributes:
        label: column of the label.
        a: column of the first sentence.
        b: column of the second one.
        width: number of columns; by default, any number that includes the columns above.
        header: whether the first row names the columns.
        quoted: comma-separated with quotation marks; otherwise separated by tabs, and quotation
            marks are text.
        gold: file of the labels, one per line, if they are in a separate file.
    """

    label: int = 0
    a: int = 1
    b: int = 2
    width: int | None = None
    header: bool = False
    quoted: bool = False
    gold: Path | None = None


class LabeledRow(NamedTuple):
    """A row of a labeled set."""

    line: int
    a: str
    b: str
    label: float | None
    """Class or number as the file has it; None if it has none (``-``, a blank gold line)."""
    language: str | None
    """The language that the row names."""


def read_labeled(
    path: Path,
    *,
    kind: Literal["nli", "sts"],
    split: str = "train",
    languages: tuple[str, str],
    may_be_empty: bool = False,
) -> list[LabeledPair]:
    """Read a labeled set; rows without a gold label are left out and counted in a warning.

    Args:
        path: the file, plain or compressed (.gz, .xz, .zst).
        kind: nli has one of three classes, sts a score from 0 to 5.
        split: name of the split, for a file that names a split in every row; other files are read
            whole.
        languages: codes for first and second sentences, if neither the rows nor the file's name
            contain them.
        may_be_empty: whether a file may have no pairs of the split.

    Raises:
        DataError: the file is missing, a row is not of the layout, or no pair is left.
    """
    languages = languages_in_name(path) or languages
    scale = 1.0 if kind == "nli" else MAX_SCORE
    pairs: list[LabeledPair] = []
    unlabeled = 0
    for row in labeled_rows(path, kind, split=split, may_be_empty=may_be_empty):
        if row.label is None:
            unlabeled += 1
            continue
        # The row takes precedence over the file's name and the caller.
        row_languages = languages
        if row.language:
            code = _language(row.language, path, row.line)
            row_languages = (code, code)
        pairs.append(LabeledPair(row.a, row.b, row.label / scale, *row_languages))
    if unlabeled:
        log.warning(
            "%s: %d of %d pairs have no gold label and are left out",
            path,
            unlabeled,
            unlabeled + len(pairs),
        )
    return pairs


def labeled_rows(
    path: Path,
    kind: LabeledPairKind,
    *,
    layout: PairLayout | None = None,
    split: str | None = None,
    may_be_empty: bool = False,
) -> Iterator[LabeledRow]:
    """Yield the rows of a labeled set.

    Args:
        path: the file, plain or compressed.
        kind: kind of the labels.
        layout: layout of a table; by default found by its header, its name or its first row.
        split: name of the split, for a file that names a split in every row; other files are read
            whole.
        may_be_empty: whether a file may have no labeled rows.

    Raises:
        DataError: a file is missing; a row has too few columns, an empty sentence or an unknown
            label; the numbers of sentences and labels differ; or there are no labeled rows.
    """
    if layout is None:
        layout = layout_by_name(path)
    has_labels = False
    for line, a, b, label, language in _rows(path, kind, layout, split):
        no_label = NO_GOLD_LABEL if kind == "nli" else ""
        if label == no_label and (kind == "nli" or (layout is not None and layout.gold)):
            yield LabeledRow(line, a, b, None, language)
            continue
        if not a.strip() or not b.strip():
            raise DataError(
                "a sentence is empty; fill it in or remove the row", path=path, line=line
            )
        value = _value(label, kind)
        if value is None:
            labels = layout.gold if layout is not None and layout.gold else path
            raise DataError(
                f"unknown label {label[:40]!r}; expected {EXPECTED_LABEL[kind]}",
                path=labels,
                line=line,
            )
        has_labels = True
        yield LabeledRow(line, a, b, value, language)
    if not has_labels and not may_be_empty:
        of_split = f" (of the split {split!r}, if there are splits)" if split else ""
        raise DataError(
            f"the file contains no labeled pairs{of_split}; expected a label and two sentences"
            " per line",
            path=path,
        )


def layout_by_name(path: Path) -> PairLayout | None:
    """Return the layout that the name of a published file indicates, or None."""
    name = path.name
    if name.startswith("STS.input."):
        return PairLayout(a=0, b=1, gold=_gold_file(path))
    if re.fullmatch(rf"STS\.{CODE}-{CODE}\.txt(?:\.(?:gz|xz|zst))?", name):
        return PairLayout(label=2, a=0, b=1)
    if re.fullmatch(rf"stsb-{CODE}-(?:train|dev|test)\.csv", name):
        return PairLayout(label=2, a=0, b=1, quoted=True)
    if re.fullmatch(r"sts-(?:train|dev|test)\.csv", name):
        return PairLayout(label=4, a=5, b=6)
    return None


def languages_in_name(path: Path) -> tuple[str, str] | None:
    """Return the languages that a file's name contains, or None.

    Examples of such names are ``de.train.tsv``, ``dev-de.tsv`` and ``en-de.test.tsv``.
    """
    parts = re.split(r"[.-]", stem_and_suffix(path)[0])
    codes = [find_code(part) for part in parts if re.fullmatch(CODE, part)]
    found = [code for code in codes if code is not None]
    if not 1 <= len(found) <= 2:
        return None
    if any(name in path.name for name in ENGLISH_FIRST):
        found.reverse()
    return found[0], found[-1]  # the same twice if there is one


def _language(name: str, path: Path, line: int) -> str:
    try:
        return resolve_language(name).code
    except DataError as error:
        raise DataError(str(error), path=path, line=line) from error


_Cells = tuple[int, str, str, str, str | None]
"""Line, first and second sentence, label, language."""


def _rows(
    path: Path, kind: LabeledPairKind, layout: PairLayout | None, split: str | None
) -> Iterator[_Cells]:
    if layout is not None and layout.gold is not None:
        return _rows_with_gold(path, layout.gold)
    if stem_and_suffix(path)[1] in (".jsonl", ".json"):
        return _json_rows(path, kind, split)
    return _table_rows(path, kind, layout, split)


def _json_rows(path: Path, kind: LabeledPairKind, split: str | None) -> Iterator[_Cells]:
    for line, record in json_lines(path):
        columns = _named_columns(list(record), kind, path, line)
        if _is_of_split(record, columns, split):
            yield _picked(line, record, columns)


def _table_rows(
    path: Path, kind: LabeledPairKind, layout: PairLayout | None, split: str | None
) -> Iterator[_Cells]:
    separator = "tabs"
    rows = tab_rows(path)
    if layout is not None and layout.quoted:
        separator = "commas"
        rows = _quoted_rows(path)
    first = next(rows, None)
    if first is None:
        return
    columns, least, most = _columns_of_table(first[1], kind, layout, path)
    if columns.pop("header", None) is None:
        rows = chain([first], rows)
    for line, cells in rows:
        if not least <= len(cells) <= most:
            raise DataError(
                f"expected {count_of(least, 'columns')} with {separator} between them, found"
                f" {count_of(len(cells), 'columns')}",
                path=path,
                line=line,
            )
        if _is_of_split(cells, columns, split):
            yield _picked(line, cells, columns)


def _columns_of_table(
    cells: Sequence[str], kind: LabeledPairKind, layout: PairLayout | None, path: Path
) -> tuple[dict[str, int], int, float]:
    """Return the column of each role, and the least and the greatest number of columns.

    The role ``header`` is there if the first row names the columns.
    """
    if set(_COLUMNS["a"]) & set(cells) and not (layout is not None and layout.header):
        names = _named_columns(cells, kind, path, 1)
        columns = {role: list(cells).index(name) for role, name in names.items()}
        return columns | {"header": 0}, len(cells), math.inf
    layout = layout or _layout_of_row(cells, kind, path)
    columns = {"label": layout.label, "a": layout.a, "b": layout.b}
    least = layout.width or 1 + max(columns.values())
    if layout.header:
        columns["header"] = 0
    return columns, least, layout.width or math.inf


def _quoted_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file by their numbers; a quoted row may take several lines."""
    try:
        with open_text(path) as lines:
            yield from enumerate(csv.reader(lines), 1)
    except csv.Error as error:
        raise DataError(f"cannot be read as CSV ({error}); fetch it again", path=path) from error


def _rows_with_gold(path: Path, gold: Path) -> Iterator[_Cells]:
    with open_text(gold) as judged:
        labels = [line.strip() for line in judged]
    rows = list(tab_rows(path))
    if len(rows) != len(labels):
        raise DataError(
            f"has {count_of(len(rows), 'lines')}, but {gold.name} has {len(labels)}; fetch both"
            " files again",
            path=path,
        )
    for (line, cells), label in zip(rows, labels, strict=True):
        if len(cells) < 2:
            raise DataError(
                "expected 2 columns with tabs between them, found"
                f" {count_of(len(cells), 'columns')}; correct the line",
                path=path,
                line=line,
            )
        yield line, cells[0], cells[1], label, None


def _named_columns(
    names: Sequence[str], kind: LabeledPairKind, path: Path, line: int
) -> dict[str, str]:
    """Return the name of each role's column."""
    columns = {}
    for role, known in _COLUMNS.items():
        if found := next((name for name in known if name in names), None):
            columns[role] = found
    for role in ("a", "b", kind):
        if role not in columns:
            expected = " or ".join(_COLUMNS[role])
            present = ", ".join(map(str, names))
            raise DataError(
                f"no column {expected} for kind {kind!r}; the columns are: {present}",
                path=path,
                line=line,
            )
    return columns | {"label": columns[kind]}


def _layout_of_row(cells: Sequence[str], kind: LabeledPairKind, path: Path) -> PairLayout:
    """Return the layout of a table without a header, by its first row."""
    is_sts = kind in ("sts", "judgment")
    if is_sts and len(cells) >= STS_BENCHMARK_COLUMNS and _is_label(cells[4], kind):
        return PairLayout(label=4, a=5, b=6)
    if len(cells) == 3 and _is_label(cells[2], kind):
        return PairLayout(label=2, a=0, b=1)
    if len(cells) >= 3 and _is_label(cells[0], kind):
        return PairLayout()
    raise DataError(
        f"found {count_of(len(cells), 'columns')} without a header and without a label of kind"
        f" {kind!r}; expected a<TAB>b<TAB>label, where label is {EXPECTED_LABEL[kind]}",
        path=path,
        line=1,
    )


def _is_of_split(record: Any, columns: Mapping[str, Any], split: str | None) -> bool:
    return split is None or "split" not in columns or bool(record[columns["split"]] == split)


def _picked(line: int, record: Any, columns: Mapping[str, Any]) -> _Cells:
    """Return the values of a row, which is a list or an object."""
    language = None
    if "language" in columns:
        language = str(record[columns["language"]])
    a, b, label = (str(record[columns[role]]) for role in ("a", "b", "label"))
    return line, a, b, label, language


def _is_label(text: str, kind: LabeledPairKind) -> bool:
    return _value(text, kind) is not None or (kind == "nli" and text == NO_GOLD_LABEL)


def _value(text: str, kind: LabeledPairKind) -> float | None:
    """Return a label as a number, or None if it is not a label of this kind."""
    if kind == "nli":
        return CLASS_OF.get(text)
    if kind == "binary":
        return {"1": 1.0, "0": 0.0}.get(text.strip())
    try:
        value = float(text)
    except ValueError:
        return None
    # float() takes "nan" and "inf", which would make every correlation NaN.
    is_valid = math.isfinite(value) if kind == "judgment" else 0 <= value <= MAX_SCORE
    return value if is_valid else None


def _gold_file(path: Path) -> Path:
    """Return SemEval's gold file for its input file.

    It is in the same folder or, for STS17, in ``STS2017.gs`` next to that folder.
    """
    name = path.name.replace("STS.input.", "STS.gs.", 1)
    elsewhere = path.parent.parent / "STS2017.gs" / name
    if not path.with_name(name).is_file() and elsewhere.is_file():
        return elsewhere
    # This path is returned even if the file is missing, so that the error names it.
    return path.with_name(name)
