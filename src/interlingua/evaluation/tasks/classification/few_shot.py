"""Few-shot classification by mteb's rule: a logistic regression learns from a few labeled texts.

Each Python class at the end is one data set.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from jaxtyping import Bool, Float32, Int64
from numpy import ndarray

from interlingua.config import AtLeast
from interlingua.errors import import_extra
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.metrics.linear import class_numbers
from interlingua.evaluation.scores import Items
from interlingua.evaluation.task import Scored, Unit
from interlingua.evaluation.tasks.classification.classification import (
    ClassificationTask,
    FolderData,
    LabeledLanguage,
    Sib200Data,
    UmsabData,
)

MAX_ITERATIONS = 100
"""Iterations of the logistic regression's solver."""


@dataclass(frozen=True, kw_only=True)
class FewShotTask(ClassificationTask):
    """mteb's classification (Muennighoff et al. 2023; ``AbsTaskClassification``), by language.

    In each of ten experiments, 8 texts of each label are drawn from the training set, and
    scikit-learn's logistic regression, with its own defaults, is fitted to their embeddings.
    ``accuracy`` on the test set is the mean of the ten, ``accuracy_sd`` their standard deviation,
    and ``f1_macro`` the mean of their macro F1. The result equals mteb's own for the same vectors.

    Attributes:
        samples_per_label: labeled texts per class; fewer if the training set has fewer.
        draws: experiments.
        seed: of the draws and the solver.
    """

    splits: ClassVar[Sequence[str]] = ("train", "test")

    samples_per_label: Annotated[int, AtLeast(1)] = 8
    draws: Annotated[int, AtLeast(1)] = 10
    seed: int = 42

    def score(self, encoder: CachedEncoder, unit: Unit[LabeledLanguage]) -> Scored:
        """Train on each draw of a language's training texts, and average the test scores."""
        one = unit.data
        train = one.splits["train"]
        test = one.splits["test"]
        y = class_numbers(train.labels, _classes(one))
        test_y = class_numbers(test.labels, _classes(one))
        drawn = self._draws(one)
        # only training texts that some draw has are embedded; row_in_x: row of train -> row of x
        used = sorted({row for rows in drawn for row in rows})
        row_in_x = {row: number for number, row in enumerate(used)}
        x = encoder.encode([train.texts[row] for row in used], language=one.code)
        test_x = encoder.encode(test.texts, language=one.code)
        of_draws = []
        for rows in drawn:
            own_x = x[[row_in_x[row] for row in rows]]
            of_draws.append(self._predict(own_x, y[rows], test_x))
        predicted = np.stack(of_draws)
        right: Bool[ndarray, "r n"] = predicted == test_y
        accuracies = right.mean(axis=1)
        scores = {"accuracy": float(accuracies.mean())}
        if self.draws > 1:
            scores["accuracy_sd"] = float(accuracies.std(ddof=1))
        metrics = import_extra("sklearn.metrics", package="scikit-learn", extra="classification")
        f1 = [metrics.f1_score(test_y, found, average="macro") for found in predicted]
        scores["f1_macro"] = float(np.mean(f1))
        return Scored(scores, Items(right.mean(axis=0)))

    def embed_language(self, encoder: CachedEncoder, one: LabeledLanguage) -> None:
        """Embed the training texts that are drawn, and the test set."""
        used = sorted({row for rows in self._draws(one) for row in rows})
        encoder.encode([one.splits["train"].texts[row] for row in used], language=one.code)
        encoder.encode(one.splits["test"].texts, language=one.code)

    def _draws(self, one: LabeledLanguage) -> list[list[int]]:
        y = class_numbers(one.splits["train"].labels, _classes(one))
        return few_shot_draws(
            y, samples_per_label=self.samples_per_label, draws=self.draws, seed=self.seed
        )

    def _predict(
        self, x: Float32[ndarray, "k d"], y: Int64[ndarray, " k"], test_x: Float32[ndarray, "n d"]
    ) -> Int64[ndarray, " n"]:
        linear_model = import_extra(
            "sklearn.linear_model", package="scikit-learn", extra="classification"
        )
        classifier = linear_model.LogisticRegression(
            max_iter=MAX_ITERATIONS, random_state=self.seed
        )
        with warnings.catch_warnings():
            # mteb uses this number of iterations, even if the solver has not converged
            warnings.simplefilter("ignore")
            return np.asarray(classifier.fit(x, y).predict(test_x), dtype=np.int64)


def _classes(one: LabeledLanguage) -> list[str]:
    return sorted({*one.splits["train"].labels, *one.splits["test"].labels})


def few_shot_draws(
    y: Int64[ndarray, " n"], *, samples_per_label: int, draws: int, seed: int
) -> list[list[int]]:
    """Return the rows that mteb draws per experiment: the first of each label in shuffled order."""
    order = list(range(len(y)))
    found = []
    for _ in range(draws):
        # as mteb does: apply the same shuffle each time, to the order that the previous one
        # produced
        np.random.RandomState(seed).shuffle(order)
        counts: Counter[int] = Counter()
        rows = []
        for row in order:
            label = int(y[row])
            if counts[label] < samples_per_label:
                counts[label] += 1
                rows.append(row)
        found.append(rows)
    return found


class FewShotSib200(Sib200Data, FewShotTask):
    """Topics of sentences; see ``Sib200Data``."""

    name: ClassVar[str] = "few_shot_sib200"


class FewShotUmsab(UmsabData, FewShotTask):
    """Sentiment of tweets; see ``UmsabData``.

    mteb's own task of these data keeps 256 of the 870 test tweets.
    """

    name: ClassVar[str] = "few_shot_umsab"


class FewShotFolder(FolderData, FewShotTask):
    """Your own labeled texts; see ``FolderData``."""

    name: ClassVar[str] = "few_shot_folder"
