"""SentEval's logistic regression: many side by side against one at a time with torch's own layers
and optimizers."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from interlingua.evaluation.metrics.logistic import (
    L2_GRID,
    LogisticSettings,
    Split,
    fit_classifiers,
    random_split,
)

SETTINGS = [
    LogisticSettings(),
    LogisticSettings(optimizer="rmsprop", batch_size=32, tenacity=3, epoch_size=2),
    LogisticSettings(tenacity=0, epoch_size=1),
]


def one_alone(x, y, split, l2, settings):
    """Run SentEval's classifier split by split: accuracy, weights and number of passes."""
    draw = np.random.RandomState(1111)
    torch.manual_seed(1111)
    layer = nn.Linear(x.shape[1], int(y.max()) + 1).double()
    kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.RMSprop
    optimizer = kind(layer.parameters(), weight_decay=l2)
    if split.drawn_from:
        draw.permutation(split.drawn_from)
    passes, best, misses, kept = 0, -1.0, 0, None
    while passes <= 200:
        for _ in range(settings.epoch_size):
            order = split.train[draw.permutation(len(split.train))]
            for first in range(0, len(order), settings.batch_size):
                rows = order[first : first + settings.batch_size]
                optimizer.zero_grad()
                nn.functional.cross_entropy(layer(x[rows]), y[rows]).backward()
                optimizer.step()
        passes += settings.epoch_size
        accuracy = float((layer(x[split.dev]).argmax(1) == y[split.dev]).double().mean())
        if accuracy > best:
            best, kept = accuracy, copy.deepcopy(layer)
            continue
        if misses >= settings.tenacity:
            break
        misses += 1
    return best, torch.cat([kept.weight, kept.bias[:, None]], dim=1).detach(), passes


@pytest.fixture(scope="module")
def noisy():
    draw = np.random.RandomState(0)
    y = draw.randint(0, 3, 230)
    return torch.from_numpy(draw.randn(230, 7) + np.eye(3, 7)[y]), torch.from_numpy(y)


@pytest.mark.parametrize("settings", SETTINGS, ids=["senteval", "prototyping", "first_miss"])
def test_side_by_side_is_one_at_a_time(noisy, settings):
    x, y = noisy
    rows = np.random.RandomState(1).permutation(230)
    # two sizes, so two groups; splits that end at different times; a dev set drawn as SentEval
    # draws it
    splits = [
        Split(rows[60:], rows[:60]),
        Split(rows[:170], rows[170:]),
        Split(rows[30:], rows[:30]),
    ]
    together = fit_classifiers(x, y, splits, classes=3, settings=settings)
    lengths = set()
    for split, found in zip(splits, together, strict=True):
        for place, l2 in enumerate(L2_GRID):
            accuracy, weights, passes = one_alone(x, y, split, l2, settings)
            assert found.dev_accuracy[place] == accuracy
            torch.testing.assert_close(found.weights[place], weights, rtol=0, atol=1e-9)
            lengths.add(passes)
    assert len(lengths) > 1 or not settings.tenacity


def test_a_random_dev_set_is_senteval_s(noisy):
    x, y = noisy
    rows = np.arange(100, 230)
    split = random_split(rows, 0.05, 1e-3)
    order = np.random.RandomState(1111).permutation(130)
    assert split.dev.tolist() == rows[order[:6]].tolist()
    assert sorted([*split.train, *split.dev]) == rows.tolist()
    (found,) = fit_classifiers(x, y, [split], classes=3)
    accuracy, weights, _ = one_alone(x, y, split, 1e-3, LogisticSettings())
    assert found.dev_accuracy.tolist() == [accuracy]
    torch.testing.assert_close(found.weights[0], weights, rtol=0, atol=1e-9)


def test_training_ends_with_the_first_check_after_200_passes():
    x = torch.linspace(-1, 1, 80, dtype=torch.float64)[:, None]
    y = torch.ones(80, dtype=torch.int64)
    y[::2] = 0
    settings = LogisticSettings(tenacity=10_000, epoch_size=50)
    (found,) = fit_classifiers(
        x, y, [Split(np.arange(80), np.arange(80))], classes=2, settings=settings
    )
    accuracy, weights, passes = one_alone(x, y, Split(np.arange(80), np.arange(80)), 1e-5, settings)
    assert passes == 250
    assert found.dev_accuracy[0] == accuracy
    torch.testing.assert_close(found.weights[0], weights, rtol=0, atol=1e-9)


def test_predictions_use_the_bias():
    x = torch.tensor([[0.0], [1.0]] * 40)
    y = torch.tensor([0, 1] * 40)
    (found,) = fit_classifiers(x, y, [Split(np.arange(80), np.arange(80))], classes=2)
    expected = (x @ found.weights[0, :, :1].T + found.weights[0, :, 1]).argmax(1)
    assert found.predict(x, 0).tolist() == expected.tolist()
