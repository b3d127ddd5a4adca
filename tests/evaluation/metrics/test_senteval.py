"""SentEval's validation schemes: against loops over folds in plain words."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.model_selection import StratifiedKFold

from interlingua.errors import DataError
from interlingua.evaluation.metrics.logistic import L2_GRID, LogisticSettings, Split
from interlingua.evaluation.metrics.senteval import (
    cross_validation_on_train,
    nested_cross_validation,
    validation_on_dev,
)
from tests.evaluation.metrics.test_logistic import one_alone

SETTINGS = LogisticSettings(folds=3)


@pytest.fixture(scope="module")
def noisy():
    draw = np.random.RandomState(3)
    y = draw.randint(0, 2, 151)
    return draw.randn(151, 5) + 0.6 * y[:, None], y


def right(weights, x, y):
    return (
        (torch.from_numpy(x) @ weights[:, :-1].T + weights[:, -1]).argmax(1).numpy() == y
    ).astype(float)


def best_of_grid(x, y, rows, settings):
    """Cross-validate over some rows: percent with two decimals, the first of the best."""
    tensors = torch.from_numpy(x), torch.from_numpy(y)
    folds = list(
        StratifiedKFold(settings.folds, shuffle=True, random_state=1111).split(x[rows], y[rows])
    )
    means = [
        round(
            100
            * np.mean(
                [one_alone(*tensors, Split(rows[a], rows[b]), l2, settings)[0] for a, b in folds]
            ),
            2,
        )
        for l2 in L2_GRID
    ]
    return L2_GRID[int(np.argmax(means))], max(means)


def refit(x, y, rows, l2, settings):
    order = np.random.RandomState(1111).permutation(len(rows))
    cut = int(0.05 * len(rows))
    split = Split(rows[order[cut:]], rows[order[:cut]], drawn_from=len(rows))
    return one_alone(torch.from_numpy(x), torch.from_numpy(y), split, l2, settings)[1]


def test_nested_cross_validation(noisy):
    x, y = noisy
    accuracies, dev, values = [], [], np.zeros(len(y))
    for train, test in StratifiedKFold(3, shuffle=True, random_state=1111).split(x, y):
        l2, score = best_of_grid(x, y, train, SETTINGS)
        values[test] = right(refit(x, y, train, l2, SETTINGS), x[test], y[test])
        accuracies.append(values[test].mean())
        dev.append(score)
    found = nested_cross_validation(x, y, classes=2, settings=SETTINGS)
    assert found.accuracy == pytest.approx(np.mean(accuracies), abs=1e-12)
    assert 100 * found.dev_accuracy == pytest.approx(np.mean(dev), abs=0.01)
    assert ((found.right > 0) == values).all()
    assert found.right.mean() == pytest.approx(found.accuracy, abs=1e-12)
    assert ((found.predicted == y) == values).all()
    assert 0.5 < found.accuracy < 1


def test_cross_validation_on_train(noisy):
    x, y = noisy
    train, test = (x[:100], y[:100]), (x[100:], y[100:])
    l2, score = best_of_grid(*train, np.arange(100), SETTINGS)
    found = cross_validation_on_train(train, test, classes=2, settings=SETTINGS)
    expected = right(refit(*train, np.arange(100), l2, SETTINGS), *test)
    assert found.right.tolist() == expected.tolist()
    assert found.accuracy == expected.mean()
    assert 100 * found.dev_accuracy == pytest.approx(score, abs=0.01)


def test_validation_on_dev(noisy):
    x, y = noisy
    split = Split(np.arange(80), np.arange(80, 110))
    runs = [
        one_alone(torch.from_numpy(x), torch.from_numpy(y), split, l2, SETTINGS) for l2 in L2_GRID
    ]
    best = int(np.argmax([round(100 * accuracy, 2) for accuracy, _, _ in runs]))
    found = validation_on_dev(
        (x[:80], y[:80]), (x[80:110], y[80:110]), (x[110:], y[110:]), classes=2, settings=SETTINGS
    )
    assert found.right.tolist() == right(runs[best][1], x[110:], y[110:]).tolist()
    assert found.dev_accuracy == runs[best][0]


def test_a_class_smaller_than_the_folds(noisy):
    x, _ = noisy
    y = np.zeros(len(x), dtype=np.int64)
    y[:7] = 1
    with pytest.raises(DataError, match=r"7 examples, .*10 folds"):
        nested_cross_validation(x, y, classes=2)


def test_a_class_as_large_as_the_folds_is_enough(noisy):
    x, _ = noisy
    y = np.zeros(len(x), dtype=np.int64)
    # Without one of three folds, three or four are left.
    y[:5] = 1
    assert len(nested_cross_validation(x, y, classes=2, settings=SETTINGS).right) == len(x)
