"""SentEval's transfer tasks (Conneau and Kiela 2018): what does a linear classifier find in English embeddings?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Int64
from numpy import ndarray

from interlingua.corpus.senteval_sets import Examples, TransferTask, senteval_sets
from interlingua.errors import DataError
from interlingua.evaluation.metrics.logistic import PROTOTYPING, SENTEVAL, LogisticSettings
from interlingua.evaluation.metrics.senteval import (
    Outcome,
    cross_validation_on_train,
    nested_cross_validation,
    validation_on_dev,
)
from interlingua.evaluation.task import Embeds, Items, Progress, SubsetScores, TaskResult, mean_scores, options, silent
from interlingua.evaluation.tasks.folders import content_sha256, find_folder, recognise
from interlingua.registry import did_you_mean

ENGLISH = "eng_Latn"
SIZES = {"MR": 10662, "CR": 3775, "SUBJ": 10000, "MPQA": 10606, "SST": 67349, "TREC": 5452, "MRPC": 4076}
"""The seven tasks and their training examples."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SentEval:
    """The seven tasks that LaBSE and MEXMA report, with SentEval's logistic regression in torch.

    Adam, batches of 64, an L2 grid of 1e-5 to 1e-2; MR, CR, SUBJ and MPQA by 10-fold nested cross-validation, SST by
    its dev set, TREC and MRPC by 10-fold cross-validation on the training set; MRPC's features are [|u-v|, u*v]. See
    ``metrics.logistic`` and ``metrics.senteval``. Embeddings are those the model gives, not scaled.

    A task with a training set that is not of SentEval's size carries the size in its name (``SST_6920``: sentences
    alone, where SentEval has 67,349 phrases), and the average then is ``senteval_6of7``.

    Attributes:
        tasks: names of those to score; all that are there by default.
        prototyping: SentEval's quicker settings, 5 folds, RMSprop, batches of 128 and fewer epochs.
    """

    name: ClassVar[str] = "senteval"
    version: ClassVar[str] = "1"
    main_metric: ClassVar[str] = "accuracy"
    folders: ClassVar[Sequence[str]] = ("senteval_cls", "senteval", "SentEval")
    expected: ClassVar[str] = "SentEval tasks (MR/rt-polarity.pos, rt-polarity.all)"

    tasks: tuple[str, ...] | None = None
    prototyping: bool = False

    def evaluate(self, encoder: Embeds, data: Path, *, progress: Progress = silent) -> TaskResult:
        """See ``Task.evaluate``."""
        start = time.perf_counter()
        folder = find_folder(data, self.folders, senteval_sets, self.expected)
        sets = self._read(folder)
        total = sum(_texts(one) for one in sets.values())
        done = 0
        subsets = []
        items = {}
        for name, task in sets.items():
            shown = name if _of_protocol(name, task) else f"{name}_{len(task['train'].labels)}"
            subset, items[shown] = self._score(encoder, shown, task)
            subsets.append(subset)
            done += _texts(task)
            progress(shown, done, total)
        members = {f"all_{len(subsets)}": subsets}
        if proper := [subset for subset in subsets if subset.name in SIZES]:
            members[f"senteval_{len(proper)}of{len(SIZES)}"] = proper
        digests = {name: _digest(task) for name, task in sets.items()}
        revision = recognise("senteval", digests)
        return TaskResult(
            task=self.name if len(proper) == len(subsets) else f"{self.name}_{folder.resolve().name}",
            version=self.version,
            main_metric=self.main_metric,
            higher_is_better=True,
            dataset=folder.resolve().name,
            data_sha256=content_sha256([list(digests), list(digests.values())]),
            data_revision=revision,
            subsets=tuple(subsets),
            groups={group: _means(chosen) for group, chosen in members.items()},
            members={group: tuple(subset.name for subset in chosen) for group, chosen in members.items()},
            items=items,
            seconds=time.perf_counter() - start,
            **options(self),
        )

    def _read(self, folder: Path) -> dict[str, TransferTask]:
        files = senteval_sets(folder)
        for name in self.tasks or ():
            if name not in files:
                raise DataError(f"no task {name!r} here{did_you_mean(name, files)}", path=folder)
        return {name: files[name]() for name in SIZES if name in files and name in (self.tasks or files)}

    def _score(self, encoder: Embeds, shown: str, task: TransferTask) -> tuple[SubsetScores, Items]:
        vectors = {split: (_features(encoder, examples), _classes(examples)) for split, examples in task.items()}
        outcome = _classify(vectors, PROTOTYPING if self.prototyping else SENTEVAL)
        scores = {"accuracy": outcome.accuracy, "dev_accuracy": outcome.dev_accuracy}
        if task["train"].others is not None:
            scores["f1"] = _f1(vectors["test"][1], outcome.predicted)
        pairs = len(outcome.right)
        return SubsetScores(name=shown, languages=(ENGLISH, ENGLISH), pairs=pairs, scores=scores), Items(outcome.right)


def _classify(
    vectors: dict[str, tuple[Float32[ndarray, "n d"], Int64[ndarray, " n"]]], settings: LogisticSettings
) -> Outcome:
    classes = 1 + max(int(y.max()) for _, y in vectors.values())
    if "test" not in vectors:
        return nested_cross_validation(*vectors["train"], classes=classes, settings=settings)
    if "dev" not in vectors:
        return cross_validation_on_train(vectors["train"], vectors["test"], classes=classes, settings=settings)
    return validation_on_dev(vectors["train"], vectors["dev"], vectors["test"], classes=classes, settings=settings)


def _features(encoder: Embeds, examples: Examples) -> Float32[ndarray, "n d"]:
    u = encoder.encode(examples.texts, language=ENGLISH)
    if examples.others is None:
        return u
    v = encoder.encode(examples.others, language=ENGLISH)
    return np.concatenate([np.abs(u - v), u * v], axis=1)


def _classes(examples: Examples) -> Int64[ndarray, " n"]:
    return np.array(examples.labels, dtype=np.int64)


def _f1(y: Int64[ndarray, " n"], predicted: Int64[ndarray, " n"]) -> float:
    """Of the class 1."""
    return float(2 * ((y == 1) & (predicted == 1)).sum() / max((y == 1).sum() + (predicted == 1).sum(), 1))


def _means(subsets: Sequence[SubsetScores]) -> dict[str, float]:
    means = mean_scores(subsets)
    return {metric: value for metric, value in means.items() if metric != "f1" or len(subsets) == 1}


def _of_protocol(name: str, task: TransferTask) -> bool:
    return len(task["train"].labels) == SIZES[name]


def _texts(task: TransferTask) -> int:
    return sum(len(examples.texts) * (1 if examples.others is None else 2) for examples in task.values())


def _digest(task: TransferTask) -> str:
    return content_sha256(
        [side for one in task.values() for side in (one.texts, one.others or (), [str(label) for label in one.labels])]
    )
