"""Pair classification: do pairs of sentences that belong together have the higher cosines?

Each class at the end is one data set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from interlingua.errors import DataError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import find_folder, full_code
from interlingua.evaluation.data.pairs import (
    LabeledPairs,
    Neutral,
    PairSets,
    PairSplit,
    mrpc_sets,
    pair_sets,
    paws_x_sets,
    xnli_sets,
)
from interlingua.evaluation.metrics.precision import pair_average_precision
from interlingua.evaluation.scores import Items
from interlingua.evaluation.task import Findings, LanguageTask, Scored, Unit
from interlingua.evaluation.tasks.similarity.similarity import cosines

_XNLI = ("ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh")


@dataclass(frozen=True, kw_only=True)
class PairClassificationTask(LanguageTask):
    """Average precision of the cosine as a score for pairs, both texts in one language.

    Nothing is trained.

    It is mteb's ``cosine_ap`` (its ``max_ap`` is the best of several similarities).
    ``positive_share`` is the expected average precision of random scores.

    Attributes:
        languages: languages to score; all by default.
        split: test, dev or train.
    """

    main_metric: ClassVar[str] = "average_precision"

    split: PairSplit = field(default="test", metadata={"words": "{}"})

    def find(self, data: Path) -> Path:
        """Return the data set's folder; the error names the requested split."""
        expected = f"{self.expected} of the split {self.split}"
        return find_folder(data, self.folders, self.files, expected)

    def unit(self, key: str, file: Callable[[], LabeledPairs], folder: Path) -> Unit[LabeledPairs]:
        """Read a language.

        Raises:
            DataError: all pairs have one label.
        """
        pairs = file()
        # average precision is 1 or 0 then, whatever the encoder
        if len(set(pairs.positive)) < 2:
            raise DataError(
                f"{key}: all pairs have the same label; expected pairs of both labels",
                path=folder,
            )
        return Unit(
            name=key,
            languages=(full_code(key), full_code(key)),
            pairs=len(pairs.positive),
            data=pairs,
            contents=(pairs.first, pairs.second, [str(int(label)) for label in pairs.positive]),
            sentences=2 * len(pairs.positive),
        )

    def score(self, encoder: CachedEncoder, unit: Unit[LabeledPairs]) -> Scored:
        """Rank the pairs by their cosine, and compute the average precision."""
        language = unit.languages[0]
        first = encoder.encode(unit.data.first, language=language)
        second = encoder.encode(unit.data.second, language=language)
        positive = np.array(unit.data.positive)
        # because the gold is boolean, comparisons resample the average precision; see ``Items``
        items = Items(cosines(first, second), positive)
        scores = {
            "average_precision": pair_average_precision(items.values, positive),
            "positive_share": float(positive.mean()),
        }
        return Scored(scores, items)

    def is_protocol(self, found: Findings) -> bool:
        """Return whether the data are the protocol's, by content or the number of pairs."""
        if found.revision is not None:
            return True
        return all(subset.pairs == self.size() for subset in found.subsets)

    def size(self) -> int | None:
        """Return the data set's pairs per language, if that number identifies it."""
        return None


class PairMRPC(PairClassificationTask):
    """Microsoft's paraphrase corpus (Dolan and Brockett 2005): English, 1,725 test pairs."""

    name: ClassVar[str] = "pair_mrpc"
    published: ClassVar[str | None] = "pair_mrpc"
    folders: ClassVar[Sequence[str]] = ("mrpc", "MRPC")
    expected: ClassVar[str] = "MRPC files (test.tsv, msr_paraphrase_test.txt)"

    def files(self, folder: Path) -> PairSets:
        """Return MRPC's pairs of the split."""
        return mrpc_sets(folder, self.split)


@dataclass(frozen=True, kw_only=True)
class PairXNLI(PairClassificationTask):
    """XNLI (Conneau et al. 2018): does the premise entail the hypothesis, or not?

    The group ``xnli_15of15`` has all its languages.

    Attributes:
        split: dev, 2,490 pairs per language, or test, 5,010.
        neutral: whether neutral pairs are ``negative``, as contradictions are, or ``left_out``, as
            in mteb's XNLI.
    """

    name: ClassVar[str] = "pair_xnli"
    published: ClassVar[str | None] = "pair_xnli"
    folders: ClassVar[Sequence[str]] = ("xnli", "XNLI-1.0")
    expected: ClassVar[str] = "XNLI files (dev-de.tsv, xnli.test.tsv)"
    paper_groups: ClassVar[Mapping[str, Sequence[str]]] = {"xnli": _XNLI}

    split: PairSplit = field(default="dev", metadata={"words": "{}"})
    neutral: Neutral = field(default="negative", metadata={"words": "without_neutral"})

    def files(self, folder: Path) -> PairSets:
        """Return XNLI's pairs of the split, by language."""
        return xnli_sets(folder, self.split, self.neutral)

    def size(self) -> int | None:
        """Return the number of pairs of the split; each of the three labels is a third."""
        # the neutral pairs are a third of all pairs
        pairs = {"dev": 2490, "test": 5010}.get(self.split)
        if pairs is not None and self.neutral == "left_out":
            return pairs * 2 // 3
        return pairs


class PairPawsX(PairClassificationTask):
    """PAWS-X (Yang et al. 2019): paraphrases among pairs with nearly the same words.

    It has 7 languages of 2,000 pairs each.
    """

    name: ClassVar[str] = "pair_paws_x"
    folders: ClassVar[Sequence[str]] = ("paws_x", "x-final", "pawsx")
    expected: ClassVar[str] = "PAWS-X folders (de/test_2k.tsv)"

    def files(self, folder: Path) -> PairSets:
        """Return the pairs of the split, by language."""
        return paws_x_sets(folder, self.split)

    def size(self) -> int | None:
        """Return the number of pairs of the split, or None for training data."""
        if self.split == "train":
            return None
        return 2000


class PairFolder(PairClassificationTask):
    """Your own pairs, ``german.test.tsv`` (1 or 0 TAB text TAB text) or ``.jsonl``."""

    name: ClassVar[str] = "pair_folder"
    folders: ClassVar[Sequence[str]] = ("pairs",)
    expected: ClassVar[str] = "labeled pairs (german.test.tsv with label and two texts)"

    def files(self, folder: Path) -> PairSets:
        """Return the folder's pairs of the split, by language."""
        return pair_sets(folder, self.split)
