"""Semantic textual similarity sets in a folder: two sentences and people's judgment.

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

import re
from pathlib import Path
from typing import Literal, NamedTuple

from interlingua.corpus.formats.labeled_pairs import (
    CODE,
    ENGLISH_FIRST,
    PairLayout,
    labeled_rows,
    layout_by_name,
)
from interlingua.errors import DataError
from interlingua.evaluation.data.folders import PACKED, folders_in, matching_files
from interlingua.storage.files import files_in

SimilaritySplit = Literal["train", "dev", "test"]
_TRACK = re.compile(rf"(?:STS\.input\.)?track\d([ab]?)\.{CODE}-{CODE}\.(?:tsv|txt){PACKED}")
_EXTENDED = re.compile(rf"STS\.{CODE}-{CODE}\.txt{PACKED}")
_PAIR = re.compile(rf"{CODE}-{CODE}\.(?:tsv|jsonl){PACKED}")
_YEAR_SET = re.compile(rf"(201[2-6])\.([\w-]+?)(?:\.test)?\.tsv{PACKED}")
_SENTEVAL_FOLDER = re.compile(r"STS(1[2-6])-en-test")
_SENTEVAL_SET = re.compile(r"STS\.input\.(?:surprise\.)?([\w-]+)\.txt")
_SICK_FILES = {
    "train": "SICK_train.txt",
    "dev": "SICK_trial.txt",
    "test": "SICK_test_annotated.txt",
}


class SimilarityFile(NamedTuple):
    """The file of a similarity set, and the languages of its first and second texts."""

    languages: tuple[str, str]
    path: Path


class JudgedPairs(NamedTuple):
    """Pairs of sentences and their judgments, higher for more similar."""

    first: list[str]
    second: list[str]
    gold: list[float]
    unjudged: int
    """Pairs left out because they have no judgment (blank lines in SemEval's gold files)."""


def sts17_files(folder: Path) -> dict[str, SimilarityFile]:
    """Return the sets of a STS17 folder by language pair, English first.

    Track 4b, from another source, is ``en-es_4b``.
    """
    found: dict[str, SimilarityFile] = {}
    for path in files_in(folder):
        if match := _TRACK.fullmatch(path.name):
            part = match[1]
            languages = (match[2], match[3])
        # The first pattern is of the sets that Reimers & Gurevych added.
        elif match := _EXTENDED.fullmatch(path.name) or _PAIR.fullmatch(path.name):
            part = ""
            languages = (match[1], match[2])
        else:
            continue
        # English first, else as the name has them: False sorts before True, and the sort is stable
        key = "-".join(sorted(languages, key=lambda code: code != "en"))
        if part == "b":
            key += "_4b"
        # the rows of these tracks start with English, although their names end with it
        if any(name in path.name for name in ENGLISH_FIRST):
            languages = ("en", languages[0])
        _keep(found, key, SimilarityFile(languages, path))
    return found


def stsb_files(folder: Path, split: SimilaritySplit) -> dict[str, SimilarityFile]:
    """Return the files of a split of the STS benchmark by language.

    Their rows are translations of each other.
    """
    found: dict[str, SimilarityFile] = {}
    own_name = rf"{CODE}\.{split}\.(?:tsv|jsonl){PACKED}|stsb-{CODE}-{split}\.csv"
    for path in files_in(folder):
        if match := re.fullmatch(own_name, path.name):
            code = match[1] or match[2]
            _keep(found, code, SimilarityFile((code, code), path))
        elif path.name == f"sts-{split}.csv":
            _keep(found, "en", SimilarityFile(("en", "en"), path))
    return found


def sts12_16_files(folder: Path) -> dict[str, SimilarityFile]:
    """Return the English test sets of 2012 to 2016 by year and name, ``2012.MSRpar``."""
    found: dict[str, SimilarityFile] = {}
    for match, path in matching_files(folder, _YEAR_SET):
        _keep(found, f"{match[1]}.{match[2]}", SimilarityFile(("en", "en"), path))
    for below in folders_in(folder):
        if year := _SENTEVAL_FOLDER.fullmatch(below.name):
            for match, path in matching_files(below, _SENTEVAL_SET):
                file = SimilarityFile(("en", "en"), path)
                _keep(found, f"20{year[1]}.{match[1]}", file)
    return found


def sick_files(folder: Path) -> dict[str, SimilarityFile]:
    """Return the files of SICK by split."""
    found: dict[str, SimilarityFile] = {}
    for split, original in _SICK_FILES.items():
        for name in (f"{split}.tsv", f"{split}.jsonl", f"{split}.jsonl.gz", original):
            if (folder / name).is_file():
                _keep(found, split, SimilarityFile(("en", "en"), folder / name))
    return found


def read_scored_pairs(file: SimilarityFile) -> JudgedPairs:
    """Read a set; see ``corpus.formats.labeled_pairs``.

    Raises:
        DataError: a file is missing or broken.
    """
    pairs = JudgedPairs([], [], [], 0)
    unjudged = 0
    layout = layout_by_name(file.path) or PairLayout()
    for row in labeled_rows(file.path, "judgment", layout=layout):
        if row.label is None:  # SemEval judged only some pairs of a set
            unjudged += 1
            continue
        pairs.first.append(row.a)
        pairs.second.append(row.b)
        pairs.gold.append(row.label)
    return pairs._replace(unjudged=unjudged)


def _keep(found: dict[str, SimilarityFile], key: str, file: SimilarityFile) -> None:
    """Add a set; raise an error on a second copy, because two layouts of it could differ."""
    if key in found:
        raise DataError(
            f"{found[key].path.name} in the same folder is a copy of this set, {key}; remove one",
            path=file.path,
        )
    found[key] = file
