"""The base classes of classification tasks: labeled texts in many languages."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from interlingua.corpus.formats.labeled_texts import LabeledTexts
from interlingua.errors import DataError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.classification import (
    SPLITS,
    cls_v1_sets,
    cls_v2_sets,
    labeled_sets,
    require_split,
    sib200_sets,
)
from interlingua.evaluation.data.folders import full_code
from interlingua.evaluation.task import Findings, LanguageTask, Unit


class LabeledLanguage(NamedTuple):
    """A language's texts.

    Attributes:
        key: the language as the files spell it; after the domain (``books.de``) if there are
            several domains.
        code: the language.
        splits: train, dev, test -> texts and labels; only existing splits.
    """

    key: str
    code: str
    splits: Mapping[str, LabeledTexts]

    @property
    def domain(self) -> str:
        """``books`` of ``books.de``; empty if there is only one domain."""
        return self.key.rpartition(".")[0]


@dataclass(frozen=True, kw_only=True)
class ClassificationTask(LanguageTask):
    """Accuracy of a classifier over frozen embeddings; a data set and a protocol make a task.

    Embeddings are the model's own: only a Normalize module of the model scales them. ``files``
    returns the ``LabeledSets`` of a folder.

    Attributes:
        languages: languages to score; all by default.
    """

    main_metric: ClassVar[str] = "accuracy"
    splits: ClassVar[Sequence[str]]

    def units(self, folder: Path) -> Iterator[Unit[LabeledLanguage]]:
        """Yield the languages.

        Raises:
            DataError: a split is missing, or has a label that no training text has.
        """
        languages = self.read(folder)
        # before the first unit: nothing is embedded if a label is wrong
        _check_labels(languages, folder)
        for one in languages:
            splits = one.splits.values()
            yield Unit(
                name=one.key,
                languages=(one.code, one.code),
                pairs=len(one.splits["test"].texts),
                data=one,
                contents=[side for split in splits for side in split],
                sentences=sum(len(split.texts) for split in splits),
                is_official=self.has_official_sizes(one),
            )

    def source_languages(self, files: Mapping[str, Any]) -> dict[str, str]:
        """Return each file's key -> its language, without the domain before the dot."""
        return {key: key.rpartition(".")[2] for key in files}

    def embed(self, encoder: CachedEncoder, data: Path) -> None:
        """Embed the texts of the chosen languages without training a classifier."""
        for one in self.read(self.find(data)):
            self.embed_language(encoder, one)

    def read(self, folder: Path) -> list[LabeledLanguage]:
        """Read the texts of the chosen languages.

        Raises:
            DataError: a split is missing.
        """
        files = self.files(folder)
        sets = []
        for key in self.chosen(files, folder):
            for split in self.splits:
                require_split(files[key], split, language=key, folder=folder)
            # the dev set too if there is one, so that an unknown label in it is reported
            splits = {split: files[key][split]() for split in SPLITS if split in files[key]}
            sets.append(LabeledLanguage(key, full_code(key.rpartition(".")[2]), splits))
        return sets

    @abc.abstractmethod
    def embed_language(self, encoder: CachedEncoder, one: LabeledLanguage) -> None:
        """Embed those texts of a language that ``score`` needs."""

    def sizes(self) -> Mapping[str, int]:
        """Return the data set's number of texts by split, if these identify it."""
        return {}

    def has_official_sizes(self, one: LabeledLanguage) -> bool:
        """Return whether a language has as many texts as the data set."""
        sizes = self.sizes()
        if not sizes:
            return False
        return all(len(one.splits[split].texts) == sizes[split] for split in self.splits)

    def is_protocol(self, found: Findings) -> bool:
        """Return whether the data are the protocol's, by content or sizes."""
        return found.revision is not None or found.is_official


def _check_labels(sets: Sequence[LabeledLanguage], folder: Path) -> None:
    """Check that every label is in a training set of its domain."""
    for one in sets:
        # the labels of all languages, because zero-shot transfer learns from another language
        known: set[str] = set()
        for other in sets:
            if other.domain == one.domain:
                known.update(other.splits["train"].labels)
        for split, texts in one.splits.items():
            if unknown := set(texts.labels) - known:
                found = f"the label {min(unknown)!r} of the {split} set is in no training set"
                there = ", ".join(sorted(known)[:12])
                raise DataError(
                    f"{one.key}: {found}; the training labels are: {there}", path=folder
                )
        # a classifier of one class is always right
        if len(known) < 2:
            found = f"all training texts have the label {min(known)!r}"
            raise DataError(f"{one.key}: {found}; at least two labels are required", path=folder)


class Sib200Data:
    """SIB-200 (Adelani et al. 2024): 7 topics of FLORES's sentences in 205 languages.

    701 sentences are for training, 99 for dev and 204 for test.
    """

    folders: ClassVar[Sequence[str]] = ("sib200", "sib-200")
    reader: ClassVar = sib200_sets
    expected: ClassVar[str] = "SIB-200 folders (deu_Latn/train.tsv with id, topic and text)"
    published: ClassVar[str | None] = "sib200"


class UmsabData:
    """UMSAB (Barbieri et al. 2022): sentiment of tweets, 3 classes in 8 languages.

    1,839 tweets are for training, 324 for dev and 870 for test.
    """

    folders: ClassVar[Sequence[str]] = ("umsab_sentiment", "umsab")
    reader: ClassVar = labeled_sets
    expected: ClassVar[str] = "UMSAB files (german.train.tsv with label and text)"
    published: ClassVar[str | None] = "umsab_sentiment"


class FolderData:
    """Any labeled texts of your own.

    They are in ``german.train.tsv`` or ``de/train.tsv`` (label TAB text), or in ``.jsonl``.
    """

    folders: ClassVar[Sequence[str]] = ("labeled",)
    reader: ClassVar = labeled_sets
    expected: ClassVar[str] = "labeled texts (german.train.tsv or de/train.tsv with label and text)"


class ClsV1Data:
    """CLS v1, Webis-CLS-10 (Prettenhofer and Stein 2010): opinions on products in 4 languages.

    The products are books, DVDs and music.

    Each domain and language has 2,000 reviews to train on and 2,000 to test, half of them positive.
    EMS also has 2,000 dev reviews and does not specify their source. Here they are 1,000 of each
    class, evenly spaced in ``unlabeled.review``.
    """

    folders: ClassVar[Sequence[str]] = ("cls-acl10-unprocessed", "cls_v1")
    reader: ClassVar = cls_v1_sets
    expected: ClassVar[str] = "CLS v1 folders (de/books/train.review)"

    def sizes(self) -> Mapping[str, int]:
        """Return the number of reviews by split."""
        return {"train": 2000, "dev": 2000, "test": 2000}


class ClsV2Data:
    """CLS v2, the Multilingual Amazon Reviews Corpus (Keung et al. 2020): opinions in 6 languages.

    It is used as in EMS.

    Up to two stars are negative, four or more positive. EMS has 2,000 training reviews and does not
    specify which. Here they are 1,000 of each class, evenly spaced in the file. Dev and test keep
    their 4,000.
    """

    folders: ClassVar[Sequence[str]] = ("amazon_reviews_multi", "cls_v2")
    reader: ClassVar = cls_v2_sets
    expected: ClassVar[str] = "CLS v2 files (train/dataset_de_train.json)"

    def sizes(self) -> Mapping[str, int]:
        """Return the number of reviews by split."""
        return {"train": 2000, "dev": 4000, "test": 4000}
