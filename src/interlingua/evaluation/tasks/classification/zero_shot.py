"""Zero-shot transfer: learn to classify in one language, be tested in all others.

Each class at the end is one data set.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64
from numpy import ndarray
from torch import Tensor

from interlingua.config import AtLeast
from interlingua.errors import ConfigError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.classification import LabeledSets, mldoc_sets
from interlingua.evaluation.data.folders import ENGLISH, choose_languages, full_code
from interlingua.evaluation.metrics.linear import class_numbers
from interlingua.evaluation.metrics.mlp import EPOCHS, train_mlps
from interlingua.evaluation.scores import Items, SubsetScores, mean_scores
from interlingua.evaluation.task import Findings, Scored
from interlingua.evaluation.tasks.classification.classification import (
    ClassificationTask,
    ClsV1Data,
    ClsV2Data,
    FolderData,
    LabeledLanguage,
    Sib200Data,
    UmsabData,
)
from interlingua.runtime.progress import Progress

LANGUAGES_TOGETHER = 12
"""Languages to train classifiers for at the same time; bounds memory."""
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？।॥؟۔።])\s*")


@dataclass(frozen=True, kw_only=True)
class ZeroShotTask(ClassificationTask):
    """LASER's protocol (Artetxe and Schwenk 2019, sec. 4.2): a small MLP over frozen embeddings.

    All directions between the languages are scored.

    A classifier is trained on one language's training set, stopped by the same language's dev set,
    and tested on every language; see ``metrics.mlp``. ``accuracy`` is the mean over seeds and
    ``accuracy_sd`` their standard deviation; in a group, ``accuracy_sd`` is the standard deviation
    of the group's mean. ``zero_shot_N`` are the directions between two languages. ``asymmetry`` is
    the mean absolute difference of a pair's two directions. EMS prints ``from_eng_Latn_N`` and
    ``to_eng_Latn_N`` as en -> X and X -> en, and ``with_eng_Latn_N`` as the average.
    ``same_language_N`` are the scores within one language, without transfer.

    Attributes:
        languages: languages to learn from and to test on; all by default.
        sources: the languages among these to learn from; all by default.
        seeds: of the classifiers; one run each. The paper does not specify its five seeds.
        epochs: passes over the training set.
        split_mean: embed every sentence of a text on its own and take their mean, as LASER's script
            for MLDoc does; else the encoder cuts a text at its maximum length.
    """

    splits: ClassVar[Sequence[str]] = ("train", "dev", "test")

    sources: tuple[str, ...] | None = None
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    epochs: Annotated[int, AtLeast(1)] = EPOCHS
    split_mean: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ConfigError(
                f"seeds: expected one or more different numbers, found {list(self.seeds)}"
            )

    def run(self, encoder: CachedEncoder, folder: Path, progress: Progress) -> Findings:
        """Train one classifier per language, and test each of them in all languages."""
        units = list(self.units(folder))
        progress.start(sum(unit.sentences for unit in units), "texts", self.name)
        sets = [unit.data for unit in units]
        # the test sets of all languages stay in memory, because each classifier is tested on them;
        # a training set is embedded only when its classifiers are trained
        tests = {}
        for one in sets:
            progress.note(f"{one.key} test")
            tests[one.key] = self._embed(encoder, one, "test")
            progress.advance(len(tests[one.key]))
        right: dict[tuple[str, str], Bool[ndarray, "s n"]] = {}
        dev_accuracy: dict[str, Float64[ndarray, " s"]] = {}
        for sources in _same_size(self._sources(sets)):
            progress.note(f"{sources[-1].key} classifiers")
            self._learn(encoder, sources, sets, tests, right, dev_accuracy)
            texts = 0
            for one in sources:
                texts += len(one.splits["train"].texts) + len(one.splits["dev"].texts)
            progress.advance(texts)
        found = Findings(folder=folder)
        for unit in units:
            found.record(unit)
        _add_scores(found, {one.key: one for one in sets}, right, dev_accuracy)
        return found

    def members(self, found: Findings) -> dict[str, list[SubsetScores]]:
        """Return the groups of directions: between two languages, and within one language.

        Those between two languages are also grouped as from English, to English, and both together.
        """
        transfers = [one for one in found.subsets if len(set(one.languages)) == 2]
        kinds = {
            "zero_shot": transfers,
            f"from_{ENGLISH}": [subset for subset in transfers if subset.languages[0] == ENGLISH],
            f"to_{ENGLISH}": [subset for subset in transfers if subset.languages[1] == ENGLISH],
            f"with_{ENGLISH}": [subset for subset in transfers if ENGLISH in subset.languages],
            "same_language": [one for one in found.subsets if len(set(one.languages)) == 1],
        }
        return {f"{kind}_{len(chosen)}": chosen for kind, chosen in kinds.items() if chosen}

    def means(
        self, group: str, subsets: Sequence[SubsetScores], found: Findings
    ) -> dict[str, float]:
        """Compute means, the deviation of the group's mean, and the gap of opposite directions."""
        means = mean_scores(subsets)
        if "accuracy_sd" in means:
            # the deviation over seeds of the mean over directions, not the mean of the deviations
            of_seeds = np.mean([found.repeats[subset.name] for subset in subsets], axis=0)
            means["accuracy_sd"] = float(of_seeds.std(ddof=1))
        accuracy = {subset.name: subset.scores["accuracy"] for subset in subsets}
        turned = {subset.name: _turned(subset) for subset in subsets}
        # name < other: each pair of directions once
        both_ways = [
            abs(accuracy[name] - accuracy[other])
            for name, other in turned.items()
            if name < other and other in accuracy
        ]
        if both_ways:
            means["asymmetry"] = float(np.mean(both_ways))
        return means

    def embed_language(self, encoder: CachedEncoder, one: LabeledLanguage) -> None:
        """Embed the texts of one language.

        A language that is not learned from needs only the test set.
        """
        if self._learns_from(one):
            for split in self.splits:
                self._embed(encoder, one, split)
        else:
            self._embed(encoder, one, "test")

    def _learns_from(self, one: LabeledLanguage) -> bool:
        if self.sources is None or one.key in self.sources:
            return True
        return any(full_code(source.rpartition(".")[2]) == one.code for source in self.sources)

    def _sources(self, sets: Sequence[LabeledLanguage]) -> list[LabeledLanguage]:
        available = {one.key: one.key.rpartition(".")[2] for one in sets}
        # sources are named as languages are, or with their domain: "books.de"
        chosen = choose_languages(self.sources, available, {}, Path("the languages to learn from"))
        return [one for one in sets if one.key in chosen]

    def _embed(
        self, encoder: CachedEncoder, one: LabeledLanguage, split: str
    ) -> Float32[ndarray, "n d"]:
        texts = one.splits[split].texts
        if not self.split_mean:
            return encoder.encode(texts, language=one.code)
        # one mean for each text over the rows of its sentences, which are consecutive
        parts = [sentences(text) for text in texts]
        together = list(itertools.chain.from_iterable(parts))
        vectors = encoder.encode(together, language=one.code)
        counts = np.array([len(part) for part in parts])
        sums = np.add.reduceat(vectors, np.cumsum(counts) - counts, axis=0)
        return np.asarray(sums / counts[:, None], dtype=np.float32)

    def _learn(
        self,
        encoder: CachedEncoder,
        sources: Sequence[LabeledLanguage],
        sets: Sequence[LabeledLanguage],
        tests: Mapping[str, Float32[ndarray, "n d"]],
        right: dict[tuple[str, str], Bool[ndarray, "s n"]],
        dev_accuracy: dict[str, Float64[ndarray, " s"]],
    ) -> None:
        """Train the classifiers of languages of equal sizes, and test them on every language."""
        domain = sources[0].domain
        labels: set[str] = set()
        for one in sets:
            if one.domain == domain:
                labels.update(one.splits["train"].labels)
        # sorted, so that the numbers of classes do not depend on the order of the texts
        classes = sorted(labels)

        def numbers(split: str) -> Tensor:
            return _stack([class_numbers(one.splits[split].labels, classes) for one in sources])

        x = _stack([self._embed(encoder, one, "train") for one in sources])
        dev_x = _stack([self._embed(encoder, one, "dev") for one in sources])
        y = numbers("train")
        dev_y = numbers("dev")
        nets = train_mlps(
            x, y, dev_x, dev_y, classes=len(classes), seeds=self.seeds, epochs=self.epochs
        )
        for number, source in enumerate(sources):
            dev_accuracy[source.key] = nets.dev_right[number].numpy() / dev_y.shape[1]
            for target in sets:
                if target.domain == domain:
                    # (seeds, texts)
                    predicted = nets.predict(torch.from_numpy(tests[target.key]), number).numpy()
                    gold = class_numbers(target.splits["test"].labels, classes)
                    right[source.key, target.key] = predicted == gold


def sentences(text: str) -> list[str]:
    """Split a text into sentences at their final punctuation marks; return at least one."""
    return [part for part in _SENTENCE_END.split(text) if part.strip()] or [text]


def _same_size(sets: Sequence[LabeledLanguage]) -> Iterable[list[LabeledLanguage]]:
    """Yield batches of languages to train together: same domain and sizes, limited in number."""

    def size(one: LabeledLanguage) -> tuple[str, int, int]:
        return one.domain, len(one.splits["train"].texts), len(one.splits["dev"].texts)

    for _, group in itertools.groupby(sorted(sets, key=size), key=size):
        languages = list(group)
        for first in range(0, len(languages), LANGUAGES_TOGETHER):
            yield languages[first : first + LANGUAGES_TOGETHER]


def _stack(arrays: Sequence[ndarray]) -> Tensor:
    return torch.from_numpy(np.stack(arrays))


def _add_scores(
    found: Findings,
    sets: Mapping[str, LabeledLanguage],
    right: Mapping[tuple[str, str], Bool[ndarray, "s n"]],
    dev_accuracy: Mapping[str, Float64[ndarray, " s"]],
) -> None:
    """Add the scores of all directions, which have a row per seed in ``right``."""
    for first, second in itertools.product(sets, sets):
        if (first, second) not in right:
            continue
        source = sets[first]
        target = sets[second]
        # (seeds, texts)
        by_text = right[first, second]
        by_seed = by_text.mean(axis=1)
        scores = {"accuracy": float(by_seed.mean())}
        if len(by_seed) > 1:
            scores["accuracy_sd"] = float(by_seed.std(ddof=1))
        scores["dev_accuracy"] = float(dev_accuracy[first].mean())
        name = f"{source.domain}.{source.code}-{target.code}".removeprefix(".")
        scored = Scored(scores, Items(by_text.mean(axis=0)), repeats=by_seed)
        found.add_scores(name, (source.code, target.code), by_text.shape[1], scored)


def _turned(subset: SubsetScores) -> str:
    """Return the name of the opposite direction."""
    source, target = subset.languages
    return subset.name.removesuffix(f"{source}-{target}") + f"{target}-{source}"


@dataclass(frozen=True, kw_only=True)
class ZeroShotMLDoc(ZeroShotTask):
    """MLDoc (Schwenk and Li 2018): 4 topics of Reuters news in 8 languages.

    1,000 documents are for training, 1,000 for dev and 4,000 for test.

    Attributes:
        train_size: 1000, 2000, 5000 or 10000 documents to learn from; papers use 1,000.
    """

    name: ClassVar[str] = "zero_shot_mldoc"
    folders: ClassVar[Sequence[str]] = ("MLDoc", "mldoc")
    expected: ClassVar[str] = "MLDoc files (german.train.1000 or mldoc.train1000.de)"

    train_size: Literal[1000, 2000, 5000, 10000] = field(
        default=1000, metadata={"words": "train{}"}
    )

    def files(self, folder: Path) -> LabeledSets:
        """Return MLDoc's files with this number of training texts, by language."""
        return mldoc_sets(folder, self.train_size)

    def sizes(self) -> Mapping[str, int]:
        """Return MLDoc's number of texts by split."""
        return {"train": self.train_size, "dev": 1000, "test": 4000}


class ZeroShotClsV1(ClsV1Data, ZeroShotTask):
    """Opinions on books, DVDs and music, each domain on its own; see ``ClsV1Data``."""

    name: ClassVar[str] = "zero_shot_cls_v1"


class ZeroShotClsV2(ClsV2Data, ZeroShotTask):
    """Opinions on any product; see ``ClsV2Data``."""

    name: ClassVar[str] = "zero_shot_cls_v2"


class ZeroShotSib200(Sib200Data, ZeroShotTask):
    """Topics of sentences; see ``Sib200Data``."""

    name: ClassVar[str] = "zero_shot_sib200"


class ZeroShotUmsab(UmsabData, ZeroShotTask):
    """Sentiment of tweets; see ``UmsabData``."""

    name: ClassVar[str] = "zero_shot_umsab"


class ZeroShotFolder(FolderData, ZeroShotTask):
    """Your own labeled texts; see ``FolderData``."""

    name: ClassVar[str] = "zero_shot_folder"
