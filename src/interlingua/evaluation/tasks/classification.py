"""What the classification tasks share: labelled texts in many languages, read, checked and named."""

from __future__ import annotations

import abc
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from interlingua.corpus.classification_sets import (
    SPLITS,
    LabelledSets,
    LabelledTexts,
    cls_v1_sets,
    cls_v2_sets,
    labelled_sets,
    require_split,
    sib200_sets,
)
from interlingua.errors import DataError
from interlingua.evaluation.task import Embeds, Items, Progress, SubsetScores, TaskResult, options, silent
from interlingua.evaluation.tasks.folders import choose_languages, content_sha256, find_folder, full_code, recognise


class LabelledLanguage(NamedTuple):
    """A language's texts.

    Attributes:
        key: the language as the files spell it, behind its domain where there are several.
        code: the language.
        splits: train, dev, test -> texts and labels; those that are there.
    """

    key: str
    code: str
    splits: Mapping[str, LabelledTexts]

    @property
    def domain(self) -> str:
        """``books`` of ``books.de``; empty where there is one domain."""
        return self.key.rpartition(".")[0]


class Scored(NamedTuple):
    """What a protocol finds; see ``TaskResult``."""

    subsets: list[SubsetScores]
    items: dict[str, Items]
    groups: dict[str, dict[str, float]]
    members: dict[str, tuple[str, ...]]


class TextCounter:
    """Counts texts for a progress."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def __call__(self, label: str, texts: int) -> None:
        """So many texts more are done."""
        self._done += texts
        self._progress(label, self._done, self._total)


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassificationTask(abc.ABC):
    """Accuracy of a classifier over frozen embeddings; a data set and a protocol make a task.

    Embeddings are those the model gives: nothing but a Normalize module of its own scales them.

    Attributes:
        languages: languages to score; all by default.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    main_metric: ClassVar[str] = "accuracy"
    splits: ClassVar[Sequence[str]]
    folders: ClassVar[Sequence[str]]
    expected: ClassVar[str]
    published: ClassVar[str | None] = None

    languages: Sequence[str] | None = None

    def evaluate(self, encoder: Embeds, data: Path, *, progress: Progress = silent) -> TaskResult:
        """See ``Task.evaluate``."""
        start = time.perf_counter()
        folder = find_folder(data, self.folders, self.files, self.expected)
        sets = self._read(folder)
        _check_labels(sets, folder)
        total = sum(len(texts.texts) for one in sets for texts in one.splits.values())
        scored = self.score(encoder, sets, TextCounter(progress, total))
        digests = {}
        for one in sets:
            digests[one.key] = content_sha256([side for split in one.splits.values() for side in split])
        revision = recognise(self.published, digests) if self.published else None
        own = revision or self.of_protocol(sets)
        return TaskResult(
            task=self.label() if own else f"{self.label()}_{folder.resolve().name}",
            version=self.version,
            main_metric=self.main_metric,
            higher_is_better=True,
            dataset=folder.resolve().name,
            data_sha256=content_sha256([list(digests), list(digests.values())]),
            data_revision=revision,
            subsets=tuple(scored.subsets),
            groups=scored.groups,
            members=scored.members,
            items=scored.items,
            seconds=time.perf_counter() - start,
            **options(self),
        )

    def parts(self, data: Path) -> list[str]:
        """See ``Task.parts``."""
        folder = find_folder(data, self.folders, self.files, self.expected)
        available = {key: key.rpartition(".")[2] for key in self.files(folder)}
        return choose_languages(self.languages, available, {}, folder)

    def embed(self, encoder: Embeds, data: Path) -> None:
        """See ``evaluation.parts``; nothing is trained."""
        for one in self._read(find_folder(data, self.folders, self.files, self.expected)):
            self.embed_language(encoder, one)

    def _read(self, folder: Path) -> list[LabelledLanguage]:
        files = self.files(folder)
        sets = []
        for key in self.parts(folder):
            for split in self.splits:
                require_split(files[key], split, language=key, folder=folder)
            splits = {split: files[key][split]() for split in SPLITS if split in files[key]}
            sets.append(LabelledLanguage(key, full_code(key.rpartition(".")[2]), splits))
        return sets

    @abc.abstractmethod
    def files(self, folder: Path) -> LabelledSets:
        """The languages of a folder."""

    @abc.abstractmethod
    def embed_language(self, encoder: Embeds, one: LabelledLanguage) -> None:
        """Embeds the texts of a language that ``score`` asks for."""

    def sizes(self) -> Mapping[str, int]:
        """The data set's number of texts by split, where it is known by these."""
        return {}

    def label(self) -> str:
        """What the result is called."""
        return self.name

    def of_protocol(self, sets: Sequence[LabelledLanguage]) -> bool:
        """Whether the sizes are the data set's own."""
        sizes = self.sizes()
        return bool(sizes) and all(
            len(one.splits[split].texts) == sizes[split] for one in sets for split in self.splits
        )

    @abc.abstractmethod
    def score(self, encoder: Embeds, sets: Sequence[LabelledLanguage], count: TextCounter) -> Scored:
        """The protocol."""


def _check_labels(sets: Sequence[LabelledLanguage], folder: Path) -> None:
    """Says so where a text can't be classified, as nothing with its label is in the training sets of its domain."""
    for one in sets:
        known = {label for other in sets if other.domain == one.domain for label in other.splits["train"].labels}
        for split, texts in one.splits.items():
            if unknown := set(texts.labels) - known:
                found = f"the label {min(unknown)!r} of the {split} set is in no training set"
                there = ", ".join(sorted(known)[:12])
                raise DataError(f"{one.key}: {found}; there are: {there}", path=folder)
        if len(known) < 2:
            found = f"all training texts have the label {min(known)!r}"
            raise DataError(f"{one.key}: {found}; expected two labels or more", path=folder)


class Sib200Data:
    """SIB-200 (Adelani et al. 2024): 7 topics in 205 languages, 701 / 99 / 204 sentences, which are those of FLORES."""

    __slots__ = ()
    folders: ClassVar[Sequence[str]] = ("sib200", "sib-200")
    expected: ClassVar[str] = "SIB-200 folders (deu_Latn/train.tsv with id, topic and text)"
    published: ClassVar[str | None] = "sib200"

    def files(self, folder: Path) -> LabelledSets:
        """See ``ClassificationTask.files``."""
        return sib200_sets(folder)


class UmsabData:
    """UMSAB (Barbieri et al. 2022): sentiment of tweets, 3 classes in 8 languages, 1,839 / 324 / 870 tweets."""

    __slots__ = ()
    folders: ClassVar[Sequence[str]] = ("umsab_sentiment", "umsab")
    expected: ClassVar[str] = "UMSAB files (german.train.tsv with label and text)"
    published: ClassVar[str | None] = "umsab_sentiment"

    def files(self, folder: Path) -> LabelledSets:
        """See ``ClassificationTask.files``."""
        return labelled_sets(folder)


class FolderData:
    """Any labelled texts of your own: ``german.train.tsv`` or ``de/train.tsv`` (label TAB text), or ``.jsonl``."""

    __slots__ = ()
    folders: ClassVar[Sequence[str]] = ("labelled",)
    expected: ClassVar[str] = "labelled texts (german.train.tsv or de/train.tsv with label and text)"

    def files(self, folder: Path) -> LabelledSets:
        """See ``ClassificationTask.files``."""
        return labelled_sets(folder)


class ClsV1Data:
    """CLS v1, Webis-CLS-10 (Prettenhofer and Stein 2010): opinions on books, DVDs and music in 4 languages.

    2,000 reviews to train on and 2,000 to test by domain and language, half of them positive. EMS also has 2,000 dev
    reviews and does not say whence: here they are 1,000 of each class at even distances in ``unlabeled.review``.
    """

    __slots__ = ()
    folders: ClassVar[Sequence[str]] = ("cls-acl10-unprocessed", "cls_v1")
    expected: ClassVar[str] = "CLS v1 folders (de/books/train.review)"

    def files(self, folder: Path) -> LabelledSets:
        """See ``ClassificationTask.files``."""
        return cls_v1_sets(folder)

    def sizes(self) -> Mapping[str, int]:
        """See ``ClassificationTask.sizes``."""
        return {"train": 2000, "dev": 2000, "test": 2000}


class ClsV2Data:
    """CLS v2, the Multilingual Amazon Reviews Corpus (Keung et al. 2020) as EMS uses it: opinions in 6 languages.

    Up to two stars are negative, from four on positive. EMS has 2,000 training reviews and does not say which: here
    they are 1,000 of each class at even distances in the file. Dev and test keep their 4,000.
    """

    __slots__ = ()
    folders: ClassVar[Sequence[str]] = ("amazon_reviews_multi", "cls_v2")
    expected: ClassVar[str] = "CLS v2 files (train/dataset_de_train.json)"

    def files(self, folder: Path) -> LabelledSets:
        """See ``ClassificationTask.files``."""
        return cls_v2_sets(folder)

    def sizes(self) -> Mapping[str, int]:
        """See ``ClassificationTask.sizes``."""
        return {"train": 2000, "dev": 4000, "test": 4000}
