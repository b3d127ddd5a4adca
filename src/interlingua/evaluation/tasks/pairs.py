"""Pair classification: do pairs of sentences that belong together have the higher cosines? One class, one data set."""

from __future__ import annotations

import abc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, get_args

import numpy as np

from interlingua.corpus.pair_sets import (
    LabelledPairs,
    Neutral,
    PairSets,
    Split,
    mrpc_sets,
    pair_sets,
    paws_x_sets,
    xnli_sets,
)
from interlingua.errors import DataError
from interlingua.evaluation.metrics.precision import average_precision
from interlingua.evaluation.task import (
    Embeds,
    Items,
    Progress,
    SubsetScores,
    TaskResult,
    check_choice,
    options,
    silent,
)
from interlingua.evaluation.tasks.folders import choose_languages, content_sha256, find_folder, full_code, recognise
from interlingua.evaluation.tasks.groups import grouped
from interlingua.evaluation.tasks.similarity import cosines

_XNLI = ("ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh")


@dataclass(frozen=True, kw_only=True, slots=True)
class PairClassificationTask(abc.ABC):
    """Average precision of the cosine as a score for pairs, both texts in one language; nothing is trained.

    mteb's ``cosine_ap`` (its ``max_ap`` is the best of several similarities). ``positive_share`` is what a
    random score would get.

    Attributes:
        languages: languages to score; all by default.
        split: test, dev or train.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    main_metric: ClassVar[str] = "average_precision"
    folders: ClassVar[Sequence[str]]
    expected: ClassVar[str]
    published: ClassVar[bool] = False
    own_split: ClassVar[Split] = "test"
    paper_languages: ClassVar[Sequence[str]] = ()

    languages: Sequence[str] | None = None
    split: Split = "test"

    def __post_init__(self) -> None:
        check_choice("split", self.split, get_args(Split))

    def evaluate(self, encoder: Embeds, data: Path, *, progress: Progress = silent) -> TaskResult:
        """See ``Task.evaluate``."""
        start = time.perf_counter()
        folder = self._folder(data)
        files = self.files(folder)
        codes = {key: full_code(key) for key in files}
        sets = {key: files[key]() for key in self.parts(data)}
        total = sum(2 * len(pairs.positive) for pairs in sets.values())
        done = 0
        subsets = []
        items = {}
        for key, pairs in sets.items():
            if len(set(pairs.positive)) < 2:
                raise DataError(f"{key}: all pairs have one label; expected some of either", path=folder)
            subset, items[key] = _score(encoder, key, codes[key], pairs)
            subsets.append(subset)
            done += 2 * len(pairs.positive)
            progress(key, done, total)
        digests = {key: _digest(pairs) for key, pairs in sets.items()}
        revision = recognise(self.name, digests) if self.published else None
        own = revision or all(subset.pairs == self.size() for subset in subsets)
        members = {f"all_{len(subsets)}": subsets}
        if present := [subset for subset in subsets if subset.languages[0] in self.paper_languages]:
            members[f"{self.name.removeprefix('pair_')}_{len(present)}of{len(self.paper_languages)}"] = present
        return TaskResult(
            task=self.label() if own else f"{self.label()}_{folder.resolve().name}",
            version=self.version,
            main_metric=self.main_metric,
            higher_is_better=True,
            dataset=folder.resolve().name,
            data_sha256=content_sha256([list(digests), list(digests.values())]),
            data_revision=revision,
            subsets=tuple(subsets),
            items=items,
            seconds=time.perf_counter() - start,
            **grouped(members),
            **options(self),
        )

    def parts(self, data: Path) -> list[str]:
        """See ``Task.parts``."""
        folder = self._folder(data)
        return choose_languages(self.languages, {key: key for key in self.files(folder)}, {}, folder)

    def _folder(self, data: Path) -> Path:
        return find_folder(data, self.folders, self.files, f"{self.expected} of the split {self.split}")

    def label(self) -> str:
        """What the result is called; a split that is not the protocol's is part of the name."""
        return self.name if self.split == self.own_split else f"{self.name}_{self.split}"

    def size(self) -> int | None:
        """The data set's pairs per language, where it is known by them."""
        return None

    @abc.abstractmethod
    def files(self, folder: Path) -> PairSets:
        """The languages of a folder."""


def _score(encoder: Embeds, key: str, code: str, pairs: LabelledPairs) -> tuple[SubsetScores, Items]:
    first, second = (encoder.encode(side, language=code) for side in (pairs.first, pairs.second))
    positive = np.array(pairs.positive)
    items = Items(cosines(first, second), positive)
    scores = {
        "average_precision": average_precision(items.values, positive),
        "positive_share": float(positive.mean()),
    }
    return SubsetScores(name=key, languages=(code, code), pairs=len(positive), scores=scores), items


def _digest(pairs: LabelledPairs) -> str:
    return content_sha256([pairs.first, pairs.second, [str(int(label)) for label in pairs.positive]])


@dataclass(frozen=True, kw_only=True, slots=True)
class PairMRPC(PairClassificationTask):
    """Microsoft's paraphrase corpus (Dolan and Brockett 2005), English: 1,725 pairs of the test set."""

    name: ClassVar[str] = "pair_mrpc"
    published: ClassVar[bool] = True
    folders: ClassVar[Sequence[str]] = ("mrpc", "MRPC")
    expected: ClassVar[str] = "MRPC files (test.tsv, msr_paraphrase_test.txt)"

    def files(self, folder: Path) -> PairSets:
        """See ``PairClassificationTask.files``."""
        return mrpc_sets(folder, self.split)


@dataclass(frozen=True, kw_only=True, slots=True)
class PairXNLI(PairClassificationTask):
    """XNLI (Conneau et al. 2018): does the premise entail the hypothesis, or not? ``xnli_15of15`` are its languages.

    Attributes:
        split: dev, 2,490 pairs per language, or test, 5,010.
        neutral: neutral pairs are negative as contradictions are, or left_out, as in mteb's XNLI.
    """

    name: ClassVar[str] = "pair_xnli"
    published: ClassVar[bool] = True
    folders: ClassVar[Sequence[str]] = ("xnli", "XNLI-1.0")
    expected: ClassVar[str] = "XNLI files (dev-de.tsv, xnli.test.tsv)"
    own_split: ClassVar[Split] = "dev"
    paper_languages: ClassVar[Sequence[str]] = tuple(full_code(code) for code in _XNLI)

    split: Split = "dev"
    neutral: Neutral = "negative"

    def __post_init__(self) -> None:
        PairClassificationTask.__post_init__(self)
        check_choice("neutral", self.neutral, get_args(Neutral))

    def files(self, folder: Path) -> PairSets:
        """See ``PairClassificationTask.files``."""
        return xnli_sets(folder, self.split, self.neutral)

    def size(self) -> int | None:
        """See ``PairClassificationTask.size``; the three labels are equally many."""
        pairs = {"dev": 2490, "test": 5010}.get(self.split)
        return pairs * 2 // 3 if pairs and self.neutral == "left_out" else pairs

    def label(self) -> str:
        """See ``PairClassificationTask.label``."""
        name = PairClassificationTask.label(self)
        return name if self.neutral == "negative" else f"{name}_without_neutral"


@dataclass(frozen=True, kw_only=True, slots=True)
class PairPawsX(PairClassificationTask):
    """PAWS-X (Yang et al. 2019): paraphrases among pairs with nearly the same words, 7 languages, 2,000 pairs each."""

    name: ClassVar[str] = "pair_paws_x"
    folders: ClassVar[Sequence[str]] = ("paws_x", "x-final", "pawsx")
    expected: ClassVar[str] = "PAWS-X folders (de/test_2k.tsv)"

    def files(self, folder: Path) -> PairSets:
        """See ``PairClassificationTask.files``."""
        return paws_x_sets(folder, self.split)

    def size(self) -> int | None:
        """See ``PairClassificationTask.size``."""
        return None if self.split == "train" else 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class PairFolder(PairClassificationTask):
    """Your own pairs, ``german.test.tsv`` (1 or 0 TAB text TAB text) or ``.jsonl``."""

    name: ClassVar[str] = "pair_folder"
    folders: ClassVar[Sequence[str]] = ("pairs",)
    expected: ClassVar[str] = "labelled pairs (german.test.tsv with label and two texts)"

    def files(self, folder: Path) -> PairSets:
        """See ``PairClassificationTask.files``."""
        return pair_sets(folder, self.split)
