"""SentEval's three protocols, which compute an accuracy from labeled vectors.

Source: ``senteval/tools/validation.py`` of facebookresearch/SentEval (Conneau and Kiela 2018): its
classes ``InnerKFoldClassifier``, ``KFoldClassifier`` and ``SplitClassifier``, with torch's logistic
regression.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32, Float64, Int64
from numpy import ndarray

from interlingua.errors import DataError, import_extra
from interlingua.evaluation.metrics.logistic import (
    L2_GRID,
    SEED,
    SENTEVAL,
    FittedClassifiers,
    LogisticSettings,
    Split,
    fit_classifiers,
    random_split,
)

DEV_SHARE = 0.05
"""Share of the training set that decides when the last training stops."""


class Outcome(NamedTuple):
    """The outcome of a SentEval task.

    Attributes:
        accuracy: on the test examples, a fraction; the mean over folds if there are several.
        dev_accuracy: accuracy on dev examples with the chosen strength of regularization.
        right: one value per test example, 0 if it is wrong; their mean is the accuracy.
        predicted: the class of each test example.
    """

    accuracy: float
    dev_accuracy: float
    right: Float64[ndarray, " n"]
    predicted: Int64[ndarray, " n"]


def nested_cross_validation(
    x: Float32[ndarray, "n d"],
    y: Int64[ndarray, " n"],
    *,
    classes: int,
    settings: LogisticSettings = SENTEVAL,
) -> Outcome:
    """Test every example once, with a classifier that did not learn from it.

    It is used for MR, CR, SUBJ and MPQA. In each fold, an inner cross-validation on the other
    examples chooses the regularization. The last training of a fold holds out 5 % of the others for
    early stopping.
    """
    vectors = torch.from_numpy(x)
    numbers = torch.from_numpy(y)
    outer = list(_folds(y, settings))
    # 1. the inner folds of all outer ones, fitted together
    splits = []
    for train, _ in outer:
        splits += [Split(train[inner], train[dev]) for inner, dev in _folds(y[train], settings)]
    inner = fit_classifiers(vectors, numbers, splits, classes=classes, settings=settings)
    # 2. the best strength of each outer fold
    grid = []
    for first in range(0, len(inner), settings.folds):
        grid.append(_chosen(inner[first : first + settings.folds]))
    # 3. the last classifier of each outer fold, with that strength
    last = []
    for (train, _), (l2, _) in zip(outer, grid, strict=True):
        last.append(random_split(train, DEV_SHARE, l2))
    fitted = fit_classifiers(vectors, numbers, last, classes=classes, settings=settings)
    predicted = np.zeros(len(y), np.int64)
    right = np.zeros(len(y))
    for (_, test), one in zip(outer, fitted, strict=True):
        predicted[test] = one.predict(vectors[torch.from_numpy(test)], 0)
        # each fold counts the same, whatever its size
        right[test] = (predicted[test] == y[test]) * (len(y) / (settings.folds * len(test)))
    return Outcome(float(right.mean()), float(np.mean([dev for _, dev in grid])), right, predicted)


def cross_validation_on_train(
    train: tuple[Float32[ndarray, "n d"], Int64[ndarray, " n"]],
    test: tuple[Float32[ndarray, "m d"], Int64[ndarray, " m"]],
    *,
    classes: int,
    settings: LogisticSettings = SENTEVAL,
) -> Outcome:
    """Choose the regularization by cross-validation on the training set; for TREC and MRPC."""
    x, y = train
    vectors = torch.from_numpy(train[0])
    numbers = torch.from_numpy(train[1])
    splits = [Split(inner, dev) for inner, dev in _folds(y, settings)]
    l2, dev_accuracy = _chosen(
        fit_classifiers(vectors, numbers, splits, classes=classes, settings=settings)
    )
    last = random_split(np.arange(len(x)), DEV_SHARE, l2)
    (fitted,) = fit_classifiers(vectors, numbers, [last], classes=classes, settings=settings)
    return _tested(fitted, 0, test, dev_accuracy)


def validation_on_dev(
    train: tuple[Float32[ndarray, "n d"], Int64[ndarray, " n"]],
    dev: tuple[Float32[ndarray, "k d"], Int64[ndarray, " k"]],
    test: tuple[Float32[ndarray, "m d"], Int64[ndarray, " m"]],
    *,
    classes: int,
    settings: LogisticSettings = SENTEVAL,
) -> Outcome:
    """Choose the regularization and end the training by a dev set; for SST.

    SentEval trains the best classifier a second time, which results in the same classifier.
    """
    vectors = torch.from_numpy(np.concatenate([train[0], dev[0]]))
    numbers = torch.from_numpy(np.concatenate([train[1], dev[1]]))
    rows = np.arange(len(vectors))
    split = Split(rows[: len(train[0])], rows[len(train[0]) :])
    (fitted,) = fit_classifiers(vectors, numbers, [split], classes=classes, settings=settings)
    l2, dev_accuracy = _chosen([fitted])
    return _tested(fitted, L2_GRID.index(l2), test, dev_accuracy)


def _tested(
    fitted: FittedClassifiers,
    strength: int,
    test: tuple[Float32[ndarray, "m d"], Int64[ndarray, " m"]],
    dev_accuracy: float,
) -> Outcome:
    """Return the test outcome of the classifier of one strength, specified by its index."""
    predicted = fitted.predict(torch.from_numpy(test[0]), strength)
    right = (predicted == test[1]).astype(np.float64)
    return Outcome(float(right.mean()), dev_accuracy, right, predicted)


def _chosen(fitted: Sequence[FittedClassifiers]) -> tuple[float, float]:
    """Return the strength with the best mean accuracy, and that mean.

    Accuracies are compared in percent with two decimals. Of equals, the first is returned.
    """
    means: Float[ndarray, " r"] = np.mean([one.dev_accuracy for one in fitted], axis=0)
    # SentEval rounds the means before it compares them, so that more of them are equal
    rounded = [round(100 * mean, 2) for mean in means]
    best = int(np.argmax(rounded))
    return L2_GRID[best], float(means[best])


def _folds(y: Int64[ndarray, " n"], settings: LogisticSettings) -> Any:
    """Return an iterator over pairs of training and test rows."""
    selection = import_extra(
        "sklearn.model_selection", package="scikit-learn", extra="classification"
    )
    if np.bincount(y).min() < settings.folds:
        fewest = int(np.bincount(y).min())
        raise DataError(
            f"a class has {fewest} examples, but cross-validation with {settings.folds} folds"
            " requires one per fold; use fewer folds"
        )
    splitter = selection.StratifiedKFold(n_splits=settings.folds, shuffle=True, random_state=SEED)
    # the folds depend only on the classes, so the vectors are not needed
    return splitter.split(np.zeros(len(y)), y)
