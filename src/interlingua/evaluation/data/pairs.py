"""Sets of pairs of sentences that either belong together or don't, in a folder.

- MRPC: ``test.tsv`` (label, two ids, two texts, with a header) or Microsoft's own
  ``msr_paraphrase_test.txt``;
- XNLI: ``dev-de.tsv`` (premise, hypothesis, label), or its own ``xnli.dev.tsv`` for all languages;
- PAWS-X: ``x-final/de/test_2k.tsv`` (id, two texts, label, with a header);
- your own: ``german.test.tsv`` (1 or 0, two texts), or ``.jsonl`` with ``label``, ``sentence1``,
  ``sentence2``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from interlingua.corpus.formats.labeled_pairs import (
    CLASS_OF,
    PairLayout,
    labeled_rows,
    languages_in_name,
    read_labeled,
)
from interlingua.evaluation.data.folders import PACKED, folders_in, matching_files
from interlingua.storage.files import files_in

PairSplit = Literal["train", "dev", "test"]
Neutral = Literal["negative", "left_out"]
_MRPC_FILES = {
    "train": ("train.tsv", "msr_paraphrase_train.txt"),
    "dev": ("val.tsv", "dev.tsv"),
    "test": ("test.tsv", "msr_paraphrase_test.txt"),
}
# Label, two ids, two texts, with a header.
_MRPC = PairLayout(label=0, a=3, b=4, width=5, header=True)
# Id, two texts, label, with a header.
_PAWS = PairLayout(label=3, a=1, b=2, width=4, header=True)
_OWN = PairLayout(width=3)
_PAWS_FILES = {"train": "translated_train.tsv", "dev": "dev_2k.tsv", "test": "test_2k.tsv"}


class LabeledPairs(NamedTuple):
    """Pairs of texts, and whether the two texts of each pair belong together."""

    first: list[str]
    second: list[str]
    positive: list[bool]


PairSets = dict[str, Callable[[], LabeledPairs]]
"""Language, as the files spell it -> function that reads its pairs."""


def mrpc_file(folder: Path, split: str) -> Path | None:
    """Return the file of a split of MRPC, or None if it is missing."""
    return next((folder / name for name in _MRPC_FILES[split] if (folder / name).is_file()), None)


def mrpc_sets(folder: Path, split: PairSplit) -> PairSets:
    """Return the reader of MRPC, which is English."""
    path = mrpc_file(folder, split)
    if path is None:
        return {}
    return {"en": functools.partial(read_mrpc, path)}


def read_mrpc(path: Path) -> LabeledPairs:
    """Read a file of MRPC.

    Raises:
        DataError: it is missing or empty, or a row is not of its layout.
    """
    return _read_binary(path, _MRPC)


def paws_x_sets(folder: Path, split: PairSplit) -> PairSets:
    """Return the readers of PAWS-X by language; the English training pairs are in ``train.tsv``."""
    if (folder / "x-final").is_dir():
        folder = folder / "x-final"
    found: PairSets = {}
    for below in folders_in(folder):
        name = _PAWS_FILES[split]
        # English is what the others were translated from
        if (below.name, split) == ("en", "train"):
            name = "train.tsv"
        if (below / name).is_file():
            found[below.name] = functools.partial(_read_binary, below / name, _PAWS)
    return found


def xnli_sets(folder: Path, split: PairSplit, neutral: Neutral) -> PairSets:
    """Return the readers of XNLI by language; a positive pair is an entailment."""
    found: PairSets = {}
    for path in files_in(folder):
        is_of_one = re.fullmatch(rf"{split}-[a-z]{{2,3}}\.tsv{PACKED}", path.name) is not None
        if is_of_one and languages_in_name(path):
            language = path.name.partition("-")[2].partition(".")[0]
            found[language] = functools.partial(_read_xnli, path, None, neutral)
        elif re.fullmatch(rf"xnli\.{split}\.(?:tsv|jsonl){PACKED}", path.name):
            for language in _xnli_languages(path):
                found[language] = functools.partial(_read_xnli, path, language, neutral)
    return found


def pair_sets(folder: Path, split: PairSplit) -> PairSets:
    """Return the readers of your own pairs by language."""
    found: PairSets = {}
    for match, path in matching_files(folder, rf"([\w-]+)\.{split}\.(?:tsv|jsonl){PACKED}"):
        found[match[1]] = functools.partial(_read_binary, path, _OWN)
    return found


def _read_xnli(path: Path, language: str | None, neutral: Neutral) -> LabeledPairs:
    pairs = read_labeled(path, kind="nli", languages=("eng_Latn", "eng_Latn"))
    # a file that covers all languages also contains the pairs of languages that were not requested
    if language is not None:
        pairs = [pair for pair in pairs if pair.language_a == language]
    if neutral == "left_out":
        pairs = [pair for pair in pairs if pair.label != CLASS_OF["neutral"]]
    # two classes: a pair belongs together where the premise entails the hypothesis
    entailed = [pair.label == CLASS_OF["entailment"] for pair in pairs]
    return LabeledPairs([pair.a for pair in pairs], [pair.b for pair in pairs], entailed)


@functools.lru_cache(maxsize=4)
def _xnli_languages(path: Path) -> tuple[str, ...]:
    """Return the languages in XNLI's combined file; cached, because every lookup needs them."""
    pairs = read_labeled(path, kind="nli", languages=("eng_Latn", "eng_Latn"))
    return tuple(dict.fromkeys(pair.language_a for pair in pairs))


def _read_binary(path: Path, layout: PairLayout) -> LabeledPairs:
    found = LabeledPairs([], [], [])
    for row in labeled_rows(path, "binary", layout=layout):
        found.first.append(row.a)
        found.second.append(row.b)
        found.positive.append(row.label == 1)
    return found
