"""SentEval's transfer tasks (Conneau and Kiela 2018): classifiers over English embeddings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Int64
from numpy import ndarray

from interlingua.config.registry import did_you_mean
from interlingua.errors import DataError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import ENGLISH
from interlingua.evaluation.data.senteval import Examples, TransferTask, senteval_sets
from interlingua.evaluation.metrics.logistic import PROTOTYPING, SENTEVAL, LogisticSettings
from interlingua.evaluation.metrics.senteval import (
    Outcome,
    cross_validation_on_train,
    nested_cross_validation,
    validation_on_dev,
)
from interlingua.evaluation.scores import Items, SubsetScores, mean_scores
from interlingua.evaluation.task import Findings, Scored, Task, Unit
from interlingua.evaluation.tasks.groups import present_members

_SIZES = {
    "MR": 10662,
    "CR": 3775,
    "SUBJ": 10000,
    "MPQA": 10606,
    "SST": 67349,
    "TREC": 5452,
    "MRPC": 4076,
}
"""The seven tasks and their training examples."""


@dataclass(frozen=True, kw_only=True)
class SentEval(Task):
    """The seven tasks that LaBSE and MEXMA report, with SentEval's logistic regression in torch.

    It uses Adam, batches of 64 and an L2 grid of 1e-5 to 1e-2. MR, CR, SUBJ and MPQA use 10-fold
    nested cross-validation, SST its dev set, TREC and MRPC 10-fold cross-validation on the training
    set. MRPC's features are [|u-v|, u*v]. See ``metrics.logistic`` and ``metrics.senteval``.
    Embeddings are the model's own, not scaled.

    A task with a training set of another size than SentEval's has the size in its name
    (``SST_6920``: only sentences, instead of SentEval's 67,349 phrases). The average then is
    ``senteval_6of7``.

    Attributes:
        tasks: names of the tasks to score; all available ones by default.
        prototyping: SentEval's quicker settings, 5 folds, RMSprop, batches of 128 and fewer epochs.
    """

    name: ClassVar[str] = "senteval"
    main_metric: ClassVar[str] = "accuracy"
    folders: ClassVar[Sequence[str]] = ("senteval_cls", "senteval", "SentEval")
    published: ClassVar[str | None] = "senteval"
    reader: ClassVar = senteval_sets
    expected: ClassVar[str] = "SentEval tasks (MR/rt-polarity.pos, rt-polarity.all)"

    tasks: tuple[str, ...] | None = None
    prototyping: bool = False

    def units(self, folder: Path) -> Iterable[Unit[TransferTask]]:
        """Yield the tasks to score.

        Raises:
            DataError: a requested task is missing.
        """
        files = self.files(folder)
        # all names are checked before the first task is read
        for name in self.tasks or ():
            if name not in files:
                raise DataError(f"unknown task {name!r}{did_you_mean(name, files)}", path=folder)
        for name, size in _SIZES.items():
            if name not in files or name not in (self.tasks or files):
                continue
            task = files[name]()
            trained_on = len(task["train"].labels)
            shown = name
            if trained_on != size:
                shown = f"{name}_{trained_on}"
            yield Unit(
                name=shown,
                key=name,
                languages=(ENGLISH, ENGLISH),
                pairs=len(task.get("test", task["train"]).labels),
                data=task,
                contents=_contents(task),
                sentences=sum(
                    len(examples.texts) + len(examples.others or ()) for examples in task.values()
                ),
                is_official=trained_on == size,
            )

    def score(self, encoder: CachedEncoder, unit: Unit[TransferTask]) -> Scored:
        """Train SentEval's classifier on one task, and score its test texts."""
        task = unit.data
        vectors = {
            split: (_features(encoder, examples), np.array(examples.labels, dtype=np.int64))
            for split, examples in task.items()
        }
        settings = PROTOTYPING if self.prototyping else SENTEVAL
        outcome = _classify(vectors, settings)
        # F1 next to accuracy for pairs (MRPC), as SentEval reports
        scores = {"accuracy": outcome.accuracy, "dev_accuracy": outcome.dev_accuracy}
        if task["train"].others is not None:
            scores["f1"] = _f1(vectors["test"][1], outcome.predicted)
        return Scored(scores, Items(outcome.right))

    def is_protocol(self, found: Findings) -> bool:
        """Return whether the data are the protocol's, by the sizes of the training sets."""
        return found.is_official

    def members(self, found: Findings) -> Mapping[str, Sequence[SubsetScores]]:
        """Return the group of all tasks, and that of tasks with SentEval's own training sets."""
        with_own_sizes = present_members(found.subsets, {"senteval": list(_SIZES)})
        return {**super().members(found), **with_own_sizes}

    def means(
        self, group: str, subsets: Sequence[SubsetScores], found: Findings
    ) -> dict[str, float]:
        """Average the scores of a group; F1 is only reported for single tasks."""
        means = mean_scores(subsets)
        if len(subsets) > 1:
            means.pop("f1", None)
        return means


def _classify(
    vectors: dict[str, tuple[Float32[ndarray, "n d"], Int64[ndarray, " n"]]],
    settings: LogisticSettings,
) -> Outcome:
    """Run SentEval's protocol for the splits that a task has."""
    classes = 1 + max(int(y.max()) for _, y in vectors.values())
    # MR, CR, SUBJ and MPQA have no split, TREC and MRPC no dev set, SST has all three
    if "test" not in vectors:
        return nested_cross_validation(*vectors["train"], classes=classes, settings=settings)
    if "dev" not in vectors:
        return cross_validation_on_train(
            vectors["train"], vectors["test"], classes=classes, settings=settings
        )
    return validation_on_dev(
        vectors["train"], vectors["dev"], vectors["test"], classes=classes, settings=settings
    )


def _features(encoder: CachedEncoder, examples: Examples) -> Float32[ndarray, "n d"]:
    """Return the embeddings, or [|u - v|, u * v] for pairs, which is independent of their order."""
    u = encoder.encode(examples.texts, language=ENGLISH)
    if examples.others is None:
        return u
    v = encoder.encode(examples.others, language=ENGLISH)
    return np.concatenate([np.abs(u - v), u * v], axis=1)


def _f1(y: Int64[ndarray, " n"], predicted: Int64[ndarray, " n"]) -> float:
    """Compute F1 of class 1."""
    hits = ((y == 1) & (predicted == 1)).sum()
    # F1 = 2 TP / (gold + predicted); 0 where neither has the class
    return float(2 * hits / max((y == 1).sum() + (predicted == 1).sum(), 1))


def _contents(task: TransferTask) -> Iterator[Sequence[str]]:
    for examples in task.values():
        yield examples.texts
        yield examples.others or ()
        yield [str(label) for label in examples.labels]
