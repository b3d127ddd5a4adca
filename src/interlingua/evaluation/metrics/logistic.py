"""SentEval's logistic regression, trained for many folds and strengths side by side.

A cross-validation fits one small classifier for each fold and strength of regularization. One such
classifier is too small to keep a core busy. So all classifiers with training sets of equal size are
trained at the same time, step by step. Their weights are one tensor (f, r, c, d1) of f splits
(folds), r strengths, c classes and d inputs with a bias. A step is two batched matrix products for
all of them.

Source: ``senteval/tools/classifier.py`` of facebookresearch/SentEval (Conneau and Kiela 2018),
class ``MLP`` with ``nhid`` 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64
from numpy import ndarray
from torch import Tensor
from torch.nn import functional as F

from interlingua.evaluation.metrics.linear import linear_start

L2_GRID = (1e-5, 1e-4, 1e-3, 1e-2)
SEED = 1111
MAX_EPOCHS = 200
SPLITS_TOGETHER = 16
"""Number of splits trained together; more do not fit into the cache of a core and are not
faster."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LogisticSettings:
    """The training settings of the classifiers.

    The defaults are SentEval's. Other values are those of its prototyping config.
    """

    folds: int = 10
    """Folds of every cross-validation."""
    optimizer: str = "adam"
    """adam with learning rate 1e-3, or rmsprop with 1e-2; all their other settings are torch's
    defaults."""
    batch_size: int = 64
    """Examples per step."""
    tenacity: int = 5
    """Checks without improvement that are allowed, in total and not in sequence; the next one ends
    the training."""
    epoch_size: int = 4
    """Passes over the training set between two checks on the dev set."""


SENTEVAL = LogisticSettings()
PROTOTYPING = LogisticSettings(
    folds=5, optimizer="rmsprop", batch_size=128, tenacity=3, epoch_size=2
)


class Split(NamedTuple):
    """One training set with its dev set, for one classifier per strength of regularization.

    Attributes:
        train: rows to learn from.
        dev: rows that decide when the training stops.
        l2: strengths of the regularization.
        drawn_from: number of rows in the random order that was drawn to split train from dev; 0 if
            no order was drawn.
    """

    train: Int64[ndarray, " n"]
    dev: Int64[ndarray, " m"]
    l2: tuple[float, ...] = L2_GRID
    drawn_from: int = 0


class FittedClassifiers(NamedTuple):
    """The classifiers of a split, one per strength.

    Attributes:
        weights: one row per class, its bias last.
        dev_accuracy: accuracy of each classifier on the dev set, a fraction.
    """

    weights: Float[Tensor, "r c d1"]
    dev_accuracy: Float[ndarray, " r"]

    def predict(self, x: Float[Tensor, "n d"], strength: int) -> Int64[ndarray, " n"]:
        """Predict the classes with the classifier of one strength, specified by its index."""
        chosen = self.weights[strength]
        return (x @ chosen[:, :-1].T + chosen[:, -1]).argmax(-1).numpy()


def random_split(rows: Int64[ndarray, " n"], share: float, l2: float) -> Split:
    """Return a split with a random share of the rows as dev set, drawn as SentEval draws it."""
    order = np.random.RandomState(SEED).permutation(len(rows))
    cut = int(share * len(rows))
    return Split(rows[order[cut:]], rows[order[:cut]], (l2,), drawn_from=len(rows))


def fit_classifiers(
    x: Float[Tensor, "n d"],
    y: Int64[Tensor, " n"],
    splits: Sequence[Split],
    *,
    classes: int,
    settings: LogisticSettings = SENTEVAL,
) -> list[FittedClassifiers]:
    """Fit logistic regressions by cross-entropy, each independently and from the same seed.

    After every ``epoch_size`` passes, a classifier is scored on its dev set. The weights with the
    best score are kept; of equals, the first. Training ends with the check that exceeds the
    tenacity, or after 200 passes. The regularization is an L2 penalty on weights and biases that is
    added to the gradient.

    SentEval requests the sum of losses over a batch in a way that torch has ignored since version
    1.0, so the loss is a mean.

    Args:
        x: embeddings, as they are.
        y: their classes.
        splits: all with the same number of strengths.
        classes: their number.
        settings: of the training.
    """
    # a bias is the weight of a constant
    ones = torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], dim=1)
    found: dict[int, FittedClassifiers] = {}
    # the sizes of folds differ by about one example, so there are only a few sizes
    by_size: dict[int, list[int]] = {}
    for index, split in enumerate(splits):
        by_size.setdefault(len(split.train), []).append(index)
    for indices in by_size.values():
        for first in range(0, len(indices), SPLITS_TOGETHER):
            chunk = indices[first : first + SPLITS_TOGETHER]
            fitted = _fit_same_size(ones, y, [splits[index] for index in chunk], classes, settings)
            found |= dict(zip(chunk, fitted, strict=True))
    return [found[index] for index in range(len(splits))]


def _fit_same_size(
    x: Float[Tensor, "n d1"],
    y: Int64[Tensor, " n"],
    splits: Sequence[Split],
    classes: int,
    settings: LogisticSettings,
) -> list[FittedClassifiers]:
    """Fit splits with training sets of one size in parallel, step by step.

    A split ends when all its classifiers have ended.
    """
    state = _State(x.shape[1], splits, classes, settings, x.dtype)
    targets = F.one_hot(y, classes).to(x.dtype)
    results: dict[int, FittedClassifiers] = {}
    # row i of the state is of splits[running[i]]
    running = list(range(len(splits)))
    orders = [_orders(split) for split in splits]
    trains = [torch.from_numpy(split.train) for split in splits]
    # SentEval stops at the first check after MAX_EPOCHS
    for epoch in range(1, MAX_EPOCHS + settings.epoch_size + 1):
        rows = torch.stack(
            [trains[split][torch.from_numpy(next(orders[split]))] for split in running]
        )
        for batch in torch.split(rows, settings.batch_size, dim=1):
            state.learn(_gathered(x, batch), _gathered(targets, batch))
        if epoch % settings.epoch_size:
            continue
        accuracies = []
        for split, weights in zip(running, state.weights, strict=True):
            accuracies.append(_accuracies(x, y, splits[split].dev, weights))
        state.check(torch.stack(accuracies))
        has_ended = state.misses.gt(settings.tenacity).all(1) | (epoch >= MAX_EPOCHS + 1)
        for row in has_ended.nonzero()[:, 0].tolist():
            best = state.best[row].clone()
            results[running[row]] = FittedClassifiers(best, state.best_accuracy[row].numpy())
        if has_ended.any():
            state.keep(~has_ended)
            running = [running[row] for row in (~has_ended).nonzero()[:, 0].tolist()]
        if not running:
            break
    return [results[split] for split in range(len(splits))]


def _gathered(values: Float[Tensor, "n d"], rows: Int64[Tensor, "f b"]) -> Float[Tensor, "f b d"]:
    # values[rows] is the same and takes several times as long
    return values.index_select(0, rows.flatten()).reshape(*rows.shape, -1)


class _State:
    """The weights of splits x strengths, their optimizer state, and the best weights so far."""

    def __init__(
        self,
        width: int,
        splits: Sequence[Split],
        classes: int,
        settings: LogisticSettings,
        dtype: torch.dtype,
    ) -> None:
        weight, bias = linear_start(
            width - 1, classes, torch.Generator().manual_seed(SEED), dtype=dtype
        )
        start = torch.cat([weight, bias[:, None]], dim=1)
        # (f, r, c, d1): splits, strengths, classes, inputs and a bias; the same start for all
        self.weights = start.repeat(len(splits), len(splits[0].l2), 1, 1)
        self.l2 = torch.tensor([split.l2 for split in splits], dtype=dtype)[..., None, None]
        # the optimizer's running means of the gradient and of its square
        self.mean = torch.zeros_like(self.weights)
        self.square = torch.zeros_like(self.weights)
        self.best = self.weights.clone()
        # below any accuracy, so that the first check is always better
        self.best_accuracy = torch.full(self.weights.shape[:2], -1.0, dtype=torch.float64)
        self.misses = torch.zeros(self.weights.shape[:2], dtype=torch.int64)
        self.steps = 0
        self.settings = settings

    def learn(self, x: Float[Tensor, "f b d1"], targets: Float[Tensor, "f b c"]) -> None:
        """Take one step with every classifier; the classifiers of a split see the same batch."""
        # strengths and classes as one axis: one product for all strengths of a split
        logits = (x @ self.weights.flatten(1, 2).mT).reshape(*x.shape[:2], *self.weights.shape[1:3])
        # the gradient of the mean cross-entropy by the logits: (softmax - one-hot) / b
        errors = (logits.softmax(-1) - targets[:, :, None]) / x.shape[1]
        gradient = (errors.flatten(2).mT @ x).reshape(self.weights.shape)
        self.step(gradient.addcmul_(self.weights, self.l2))

    def step(self, gradient: Float[Tensor, "f r c d1"]) -> None:
        """Update the weights as ``torch.optim`` does with its defaults."""
        self.steps += 1
        # the updates of torch.optim.Adam and torch.optim.RMSprop
        if self.settings.optimizer == "adam":
            self.mean.lerp_(gradient, 0.1)
            self.square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            scale = (self.square / (1 - 0.999**self.steps)).sqrt_().add_(1e-8)
            self.weights.addcdiv_(self.mean, scale, value=-1e-3 / (1 - 0.9**self.steps))
        else:
            self.square.mul_(0.99).addcmul_(gradient, gradient, value=0.01)
            self.weights.addcdiv_(gradient, self.square.sqrt().add_(1e-8), value=-1e-2)

    def check(self, accuracy: Float[Tensor, "f r"]) -> None:
        """Keep the weights that improved, and count the checks without improvement.

        A classifier that has ended is not changed.
        """
        is_running = self.misses <= self.settings.tenacity
        is_better = is_running & (accuracy > self.best_accuracy)
        self.misses += is_running & ~is_better
        self.best_accuracy = torch.where(is_better, accuracy, self.best_accuracy)
        self.best = torch.where(is_better[..., None, None], self.weights, self.best)

    def keep(self, which: Tensor) -> None:
        """Continue with some of the splits."""
        for name in ("weights", "l2", "mean", "square", "best", "best_accuracy", "misses"):
            setattr(self, name, getattr(self, name)[which])


def _orders(split: Split) -> Iterator[Int64[ndarray, " n"]]:
    """Yield the orders in which SentEval visits a training set, one per pass."""
    generator = np.random.RandomState(SEED)
    # SentEval draws the split and the orders from one stream
    if split.drawn_from:
        generator.permutation(split.drawn_from)
    while True:
        yield generator.permutation(len(split.train))


def _accuracies(
    x: Float[Tensor, "n d1"],
    y: Int64[Tensor, " n"],
    rows: Int64[ndarray, " m"],
    weights: Float[Tensor, "r c d1"],
) -> Float[Tensor, " r"]:
    """Compute the accuracy of each strength's classifier on some rows."""
    dev = torch.from_numpy(rows)
    logits = x.index_select(0, dev) @ weights.flatten(0, 1).T
    logits = logits.reshape(len(rows), *weights.shape[:2])
    right: Tensor = logits.argmax(-1) == y[dev, None]
    return right.double().mean(0)
