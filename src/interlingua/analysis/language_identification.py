"""Accuracy of a linear probe for the language of a sentence's vector; lower is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int64
from numpy import ndarray
from torch import Tensor

from interlingua.analysis.record import Measure, mean_measure
from interlingua.errors import DataError
from interlingua.runtime.progress import SILENT, Progress

_BLOCK = 8192
"""Vectors read at once."""
L2 = 1e-3
_STEPS = 200


def language_identification(
    vectors: Float32[ndarray, "l n d"],
    languages: Sequence[str],
    *,
    l2: float = L2,
    progress: Progress = SILENT,
) -> Measure:
    """Measure the accuracy of a linear language probe on sentences with unseen translations.

    The probe is a multinomial logistic regression of the language on the vector. It is trained on
    the even lines and tested on the odd ones, and the other way round. A probe on fixed vectors is
    the usual test of their content (Conneau et al. 2018, "What you can cram into a single vector").
    A language-neutral space would have a low accuracy (Libovický et al. 2020, "On the language
    neutrality of pre-trained multilingual representations", section 4). 1 / L is chance.

    Args:
        vectors: of line-aligned sentences, in memory or mapped; L languages.
        languages: their codes.
        l2: weight of the penalty relative to the mean cross-entropy; the penalty is half the
            squared length of the probe's weights. The vectors are centered, and scaled by one
            factor for all dimensions, to a mean variance of 1 per dimension.
        progress: shows the progress.

    Raises:
        DataError: there are fewer than two lines.
    """
    count, n, _ = vectors.shape
    if n < 2:
        raise DataError(
            "the language probe needs lines for training and for testing, found one line in each"
            " language; provide at least two"
        )
    right = np.zeros((count, n), dtype=bool)
    # A line and all its translations are in the same half, so training has no translation of a
    # test sentence.
    progress.start(2, "halves", "language probe")
    for half in (0, 1):
        test = np.arange(half, n, 2)
        probe = _train(vectors, np.arange(1 - half, n, 2), l2)
        for language in range(count):
            right[language, test] = _predict(probe, vectors[language, test]) == language
        progress.advance()
    return mean_measure(
        "language_identification",
        right,
        languages,
        unit="share",
        better="lower",
        ideal=1 / count,
        definition="accuracy of a linear probe that predicts the language of unseen sentences",
    )


class _Probe:
    """Center, scale and, per language, a weight vector and a bias."""

    def __init__(
        self, center: Float64[Tensor, " d"], scale: float, parameters: Float64[Tensor, "d+1 l"]
    ) -> None:
        self.center = center
        self.scale = scale
        self.parameters = parameters

    def features(self, vectors: Float32[ndarray, "n d"]) -> Float64[Tensor, "n d+1"]:
        """Center and scale vectors, and append a 1 for the bias."""
        x = (torch.from_numpy(np.asarray(vectors)).double() - self.center) / self.scale
        return torch.cat([x, x.new_ones(len(x), 1)], dim=1)


def _predict(probe: _Probe, vectors: Float32[ndarray, "n d"]) -> Int64[ndarray, " n"]:
    return (probe.features(vectors) @ probe.parameters).argmax(dim=1).numpy()


def _train(vectors: Float32[ndarray, "l n d"], lines: Int64[ndarray, " m"], l2: float) -> _Probe:
    """Train a probe on some lines of all languages."""
    count, _, width = vectors.shape
    total = count * len(lines)
    sums = (vectors[i, lines].sum(axis=0, dtype=np.float64) for i in range(count))
    center = torch.from_numpy(sum(sums) / total)
    squares = (
        (torch.from_numpy(vectors[i, lines]).double() - center).square().sum() for i in range(count)
    )
    # One factor for all dimensions, so that l2 means the same for all models; not 0 if all vectors
    # are equal.
    scale = max((sum(map(float, squares)) / (total * width)) ** 0.5, 1e-12)
    # Start from zeros: the loss is convex, so the start does not affect the result.
    probe = _Probe(center, scale, torch.zeros(width + 1, count, dtype=torch.float64))
    optimizer = torch.optim.LBFGS(
        [probe.parameters],
        max_iter=_STEPS,
        tolerance_grad=1e-6,
        tolerance_change=1e-10,
        line_search_fn="strong_wolfe",
    )
    optimizer.step(_loss_and_gradient(probe, vectors, lines, l2))  # type: ignore[no-untyped-call]
    return probe


def _loss_and_gradient(
    probe: _Probe, vectors: Float32[ndarray, "l n d"], lines: Int64[ndarray, " m"], l2: float
) -> Callable[[], float]:
    """Return a function that computes the mean cross-entropy plus l2 / 2 of the squared weights.

    It stores the gradient in ``parameters.grad``.
    """
    count = len(vectors)
    total = count * len(lines)
    # The last row is the bias, which has no penalty.
    is_penalized = torch.ones_like(probe.parameters)
    is_penalized[-1] = 0

    def closure() -> float:
        weights = probe.parameters
        gradient = l2 * is_penalized * weights
        loss = float((l2 / 2 * is_penalized * weights.square()).sum())
        for language in range(count):
            for start in range(0, len(lines), _BLOCK):
                x = probe.features(vectors[language, lines[start : start + _BLOCK]])
                log_shares = torch.log_softmax(x @ weights, dim=1)
                loss -= float(log_shares[:, language].sum()) / total
                # The gradient of cross-entropy by hand, X' (softmax - one hot): autograd would hold
                # the blocks of all languages until the end.
                error = log_shares.exp()
                error[:, language] -= 1
                gradient += x.T @ error / total
        weights.grad = gradient
        return loss

    return closure
