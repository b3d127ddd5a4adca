"""Readers of semantic textual similarity sets: two sentences and people's judgment.

The layouts are those in which the sets are published:

- STS17: ``track1.ar-ar.tsv`` (score, two texts), SemEval's ``STS.input.track1.ar-ar.txt`` and
  ``STS.gs....txt``, the extended set's ``STS.en-de.txt`` (two texts, score), mteb's
  ``en-de.jsonl``;
- STS benchmark: ``de.test.tsv``, its own ``sts-test.csv``, stsb-multi-mt's ``stsb-de-test.csv``;
- STS12-16: ``2012.MSRpar.test.tsv``, SentEval's ``STS12-en-test/STS.input.MSRpar.txt`` and
  ``STS.gs.MSRpar.txt``;
- SICK: ``test.tsv``, its own ``SICK_test_annotated.txt``, mteb's ``test.jsonl``.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from interlingua.errors import DataError, count_of
from interlingua.evaluation.data.folders import PACKED, folders_in, matching_files
from interlingua.files import files_in, open_text
from interlingua.json_text import json_lines

Split = Literal["train", "dev", "test"]
_CODE = r"([a-z]{2,3}(?:_[A-Z][a-z]{3})?)"
_TRACK = re.compile(rf"(?:STS\.input\.)?track\d([ab]?)\.{_CODE}-{_CODE}\.(?:tsv|txt){PACKED}")
_EXTENDED = re.compile(rf"STS\.{_CODE}-{_CODE}\.txt{PACKED}")
_PAIR = re.compile(rf"{_CODE}-{_CODE}\.(?:tsv|jsonl){PACKED}")
_YEAR_SET = re.compile(rf"(201[2-6])\.([\w-]+?)(?:\.test)?\.tsv{PACKED}")
_SENTEVAL_FOLDER = re.compile(r"STS(1[2-6])-en-test")
_SENTEVAL_SET = re.compile(r"STS\.input\.(?:surprise\.)?([\w-]+)\.txt")
_SICK_FILES = {
    "train": "SICK_train.txt",
    "dev": "SICK_trial.txt",
    "test": "SICK_test_annotated.txt",
}
_ENGLISH_FIRST = ("track2.ar-en", "track4b.es-en", "track6.tr-en")  # whatever their names say


class SimilarityFile(NamedTuple):
    """Where a similarity set is and how it is written.

    Attributes:
        languages: of the first and the second text, as the file's name spells them.
        path: the texts.
        gold: the judgments, where they are in a file of their own, line by line.
        columns: places of the judgment and of the two texts in a row.
        quoted: comma-separated with quotation marks; else separated by tabs, and quotation marks
            are text.
        header: whether the first row names the columns.
    """

    languages: tuple[str, str]
    path: Path
    gold: Path | None = None
    columns: tuple[int, int, int] = (0, 1, 2)
    quoted: bool = False
    header: bool = False


class JudgedPairs(NamedTuple):
    """Pairs of sentences and their judgments, higher for more similar."""

    first: list[str]
    second: list[str]
    gold: list[float]
    unjudged: int
    """Pairs left out because they have no judgment (blank lines in SemEval's gold files)."""


def sts17_files(folder: Path) -> dict[str, SimilarityFile]:
    """The sets of a STS17 folder by language pair, English first.

    Track 4b, from another source, is ``en-es_4b``.
    """
    found: dict[str, SimilarityFile] = {}
    for path in files_in(folder):
        columns = (0, 1, 2)
        if match := _TRACK.fullmatch(path.name):
            part = match[1]
            languages = (match[2], match[3])
        # the sets that Reimers & Gurevych added: texts first, then the score
        elif match := _EXTENDED.fullmatch(path.name):
            part = ""
            languages = (match[1], match[2])
            columns = (2, 0, 1)
        elif match := _PAIR.fullmatch(path.name):
            part = ""
            languages = (match[1], match[2])
        else:
            continue
        # English first, else as the name has them: False sorts before True, and the sort is stable
        key = "-".join(sorted(languages, key=lambda code: code != "en"))
        if part == "b":
            key += "_4b"
        # the rows of these tracks begin with English, although their names end with it
        if any(name in path.name for name in _ENGLISH_FIRST):
            languages = ("en", languages[0])
        _keep(found, key, SimilarityFile(languages, path, _gold_file(path), columns))
    return found


def stsb_files(folder: Path, split: Split) -> dict[str, SimilarityFile]:
    """The files of a split of the STS benchmark by language.

    Their rows are translations of each other.
    """
    found: dict[str, SimilarityFile] = {}
    for path in files_in(folder):
        if match := re.fullmatch(rf"{_CODE}\.{split}\.(?:tsv|jsonl){PACKED}", path.name):
            _keep(found, match[1], SimilarityFile((match[1], match[1]), path))
        elif match := re.fullmatch(rf"stsb-{_CODE}-{split}\.csv", path.name):
            languages = (match[1], match[1])
            file = SimilarityFile(languages, path, None, (2, 0, 1), quoted=True)
            _keep(found, match[1], file)
        elif path.name == f"sts-{split}.csv":
            _keep(found, "en", SimilarityFile(("en", "en"), path, None, (4, 5, 6)))
    return found


def sts12_16_files(folder: Path) -> dict[str, SimilarityFile]:
    """The English test sets of 2012 to 2016 by year and name, ``2012.MSRpar``."""
    found: dict[str, SimilarityFile] = {}
    for match, path in matching_files(folder, _YEAR_SET):
        _keep(found, f"{match[1]}.{match[2]}", SimilarityFile(("en", "en"), path))
    for below in folders_in(folder):
        if year := _SENTEVAL_FOLDER.fullmatch(below.name):
            for match, path in matching_files(below, _SENTEVAL_SET):
                file = SimilarityFile(("en", "en"), path, _gold_file(path))
                _keep(found, f"20{year[1]}.{match[1]}", file)
    return found


def sick_files(folder: Path) -> dict[str, SimilarityFile]:
    """The files of SICK by split."""
    found: dict[str, SimilarityFile] = {}
    for split, original in _SICK_FILES.items():
        for name in (f"{split}.tsv", f"{split}.jsonl", f"{split}.jsonl.gz"):
            if (folder / name).is_file():
                _keep(found, split, SimilarityFile(("en", "en"), folder / name))
        if (folder / original).is_file():
            path = folder / original
            file = SimilarityFile(("en", "en"), path, None, (3, 1, 2), header=True)
            _keep(found, split, file)
    return found


def read_scored_pairs(file: SimilarityFile) -> JudgedPairs:
    """Reads a set.

    Raises:
        DataError: a file is missing or empty, a row has too few columns, an empty text or a
            judgment that is not a number, or texts and judgments have unequal lengths.
    """
    pairs = JudgedPairs([], [], [], 0)
    unjudged = 0
    for number, score, first, second in _rows(file):
        # SemEval judged some of a set's pairs only, and left the others blank
        if file.gold is not None and not score.strip():
            unjudged += 1
            continue
        if not first.strip() or not second.strip():
            raise DataError(
                "a text is empty; fill it in or remove the line", path=file.path, line=number
            )
        pairs.gold.append(_number(score, file.gold or file.path, number))
        pairs.first.append(first)
        pairs.second.append(second)
    if not pairs.gold:
        raise DataError(
            "the file is empty; expected a score and two texts per line", path=file.path
        )
    return pairs._replace(unjudged=unjudged)


def _rows(file: SimilarityFile) -> Iterator[tuple[int, str, str, str]]:
    """Line number, judgment and the two texts."""
    if file.gold is not None:
        yield from _rows_with_gold(file.path, file.gold)
        return
    if ".jsonl" in file.path.name:
        yield from _json_rows(file.path)
        return
    with open_text(file.path) as lines:
        separator = "tabs"
        rows: Iterable[Sequence[str]] = map(_fields, lines)
        if file.quoted:
            separator = "commas"
            rows = csv.reader(lines)
        # numbers are of rows, which with quotation marks may take several lines
        for number, row in enumerate(_whole_rows(rows, file.path), 1):
            if file.header and number == 1:
                continue
            if len(row) <= max(file.columns):
                expected = f"{1 + max(file.columns)} columns, {separator} between them"
                raise DataError(
                    f"{count_of(len(row), 'columns')}; expected {expected}",
                    path=file.path,
                    line=number,
                )
            score, first, second = (row[column] for column in file.columns)
            yield number, score, first, second


def _whole_rows(rows: Iterable[Sequence[str]], path: Path) -> Iterator[Sequence[str]]:
    try:
        yield from rows
    except csv.Error as error:
        raise DataError(f"not CSV ({error}); fetch it again", path=path) from error


def _rows_with_gold(path: Path, gold: Path) -> Iterator[tuple[int, str, str, str]]:
    with open_text(path) as lines, open_text(gold) as judged:
        texts = list(map(_fields, lines))
        scores = [line.strip() for line in judged]
    if len(texts) != len(scores):
        raise DataError(
            f"{count_of(len(texts), 'lines')}, but {gold.name} has {len(scores)}; fetch both again",
            path=path,
        )
    for number, (row, score) in enumerate(zip(texts, scores, strict=True), 1):
        if len(row) < 2:
            raise DataError(
                f"{count_of(len(row), 'columns')}; expected two texts with a tab between",
                path=path,
                line=number,
            )
        yield number, score, row[0], row[1]


def _json_rows(path: Path) -> Iterator[tuple[int, str, str, str]]:
    for number, record in json_lines(path):
        try:
            score = record["score" if "score" in record else "similarity_score"]
            first = record["sentence1"]
            second = record["sentence2"]
        except KeyError as error:
            raise DataError(
                f"no {error.args[0]}; expected an object with score, sentence1 and sentence2",
                path=path,
                line=number,
            ) from error
        yield number, str(score), str(first), str(second)


def _fields(line: str) -> list[str]:
    return line.rstrip("\r\n").split("\t")


def _number(text: str, path: Path, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    # float() takes "nan" and "inf", which would make every correlation NaN
    if not math.isfinite(value):
        raise DataError(
            f"the judgment {text[:40]!r} is not a number; correct the line", path=path, line=line
        )
    return value


def _gold_file(path: Path) -> Path | None:
    """SemEval's gold file for its input file.

    It is in the same folder or, for STS17, in ``STS2017.gs`` next to that.
    """
    if not path.name.startswith("STS.input."):
        return None
    name = path.name.replace("STS.input.", "STS.gs.", 1)
    elsewhere = path.parent.parent / "STS2017.gs" / name
    if not path.with_name(name).is_file() and elsewhere.is_file():
        return elsewhere
    # also where it is missing, so that the error names it
    return path.with_name(name)


def _keep(found: dict[str, SimilarityFile], key: str, file: SimilarityFile) -> None:
    """Adds a set, of which there may be one copy only: two layouts of it could differ."""
    if key in found:
        raise DataError(
            f"{found[key].path.name} next to it is the same set, {key}; keep one of them",
            path=file.path,
        )
    found[key] = file
