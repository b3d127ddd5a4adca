"""Fits a calibration to pairs with known answers, and measures it on pairs that the fit has not seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numpy import ndarray

from interlingua.errors import DataError
from interlingua.mining.calibration import Bin, Shape

FOLDS = 5
BINS = 10
LEAST_PAIRS = 20
"""Of either answer; from fewer nothing is learnt."""


class Curve(NamedTuple):
    """Log odds by score: points of a line that never falls; see ``Calibration``."""

    shape: Shape
    scores: tuple[float, ...]
    log_odds: tuple[float, ...]

    def probability(self, scores: Float64[ndarray, " n"]) -> Float64[ndarray, " n"]:
        """Of being right, with the share of right ones that the fit saw."""
        values = np.interp(scores, self.scores, self.log_odds)
        if self.shape == "logistic":
            (low, high), (first, last) = self.scores, self.log_odds
            values = first + (scores - low) * (last - first) / (high - low)
        return np.asarray(1 / (1 + np.exp(-np.clip(values, -40, 40))))


class Fit(NamedTuple):
    """A curve and how good it is.

    Attributes:
        curve: fitted to all pairs.
        prior: share of right ones among them.
        measures: of predictions for pairs that the fit had not seen.
        bins: the same predictions, in bins of as many pairs each.
        compared: mean log loss of each shape on unseen pairs, in nats.
    """

    curve: Curve
    prior: float
    measures: Mapping[str, float]
    bins: tuple[Bin, ...]
    compared: Mapping[str, float]


def fit_calibration(scores: Float64[ndarray, " n"], right: Bool[ndarray, " n"], *, seed: int = 0) -> Fit:
    """The better of a logistic and an isotonic curve; both never fall.

    Each is fitted five times to four fifths of the pairs and predicts the last fifth. The isotonic curve, which bends
    where it likes, is taken where its log loss on unseen pairs is lower by more than the difference's standard error.

    Args:
        scores: of pairs with a known answer.
        right: the answers.
        seed: of the fifths.

    Raises:
        DataError: there are too few pairs of an answer.
    """
    least = int(min(right.sum(), (~right).sum()))
    if least < LEAST_PAIRS:
        raise DataError(
            f"{int(right.sum())} right and {int((~right).sum())} wrong pairs were found; a calibration takes at least"
            f" {LEAST_PAIRS} of each: give more pairs"
        )
    folds = _folds(right, seed)
    unseen = {shape: np.empty(len(scores)) for shape in FITS}
    for fold in range(FOLDS):
        held = folds == fold
        for name, fit in FITS.items():
            unseen[name][held] = fit(scores[~held], right[~held]).probability(scores[held])
    losses = {name: _log_losses(guess, right) for name, guess in unseen.items()}
    gain = losses["logistic"] - losses["isotonic"]
    better = gain.mean() > gain.std() / np.sqrt(len(gain))
    shape: Shape = "isotonic" if better else "logistic"
    return Fit(
        FITS[shape](scores, right),
        float(right.mean()),
        measure(unseen[shape], right),
        reliability(unseen[shape], right, scores),
        {name: float(loss.mean()) for name, loss in losses.items()},
    )


def fit_logistic(scores: Float64[ndarray, " n"], right: Bool[ndarray, " n"]) -> Curve:
    """Platt (1999): a line in log odds, of maximum likelihood by Newton's method, with his softened answers.

    A line that falls is made level: a higher score is never worse.
    """
    middle = float(scores.mean())
    width = float(scores.std()) or 1.0
    x = np.stack([(scores - middle) / width, np.ones(len(scores))], axis=1)
    count = int(right.sum())
    targets = np.where(right, (count + 1) / (count + 2), 1 / (len(right) - count + 2))
    weights = np.array([0.0, np.log(targets.mean() / (1 - targets.mean()))])
    for _ in range(100):
        guess = 1 / (1 + np.exp(-x @ weights))
        hessian = (x * (guess * (1 - guess))[:, None]).T @ x + 1e-9 * np.eye(2)
        step = np.linalg.solve(hessian, x.T @ (targets - guess))
        weights += step * min(1.0, 2.0 / float(np.abs(step).max() or 1.0))
        if np.abs(step).max() < 1e-10:
            break
    slope, offset = (float(weight) for weight in weights)
    if slope < 0:
        slope = 0.0
        offset = float(np.log(targets.mean() / (1 - targets.mean())))
    return Curve("logistic", (middle - width, middle + width), (offset - slope, offset + slope))


def fit_isotonic(scores: Float64[ndarray, " n"], right: Bool[ndarray, " n"]) -> Curve:
    """The never falling steps of least squares (pool adjacent violators; Zadrozny & Elkan 2002), joined by lines.

    Each step's share is (right + 1/2) / (pairs + 1), so that no pair is ever certain.
    """
    values, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    hits = np.bincount(inverse, weights=right, minlength=len(values))
    steps: list[tuple[float, float, float, float]] = []  # pairs, right ones, first and last score
    for score, pairs, good in zip(values.tolist(), counts.tolist(), hits.tolist(), strict=True):
        steps.append((pairs, good, score, score))
        while len(steps) > 1 and steps[-2][1] * steps[-1][0] >= steps[-1][1] * steps[-2][0]:
            last = steps.pop()
            before = steps.pop()
            steps.append((before[0] + last[0], before[1] + last[1], before[2], last[3]))
    table = np.array(steps)
    share = np.maximum.accumulate((table[:, 1] + 0.5) / (table[:, 0] + 1))
    points = dict(zip(table[:, 2:].ravel().tolist(), np.repeat(np.log(share / (1 - share)), 2).tolist(), strict=True))
    return Curve("isotonic", tuple(points), tuple(points.values()))


FITS: Mapping[Shape, Callable[[Float64[ndarray, " n"], Bool[ndarray, " n"]], Curve]] = {
    "logistic": fit_logistic,
    "isotonic": fit_isotonic,
}


def measure(guess: Float64[ndarray, " n"], right: Bool[ndarray, " n"]) -> dict[str, float]:
    """How far probabilities are from what happens.

    Args:
        guess: probabilities of being right.
        right: the answers.

    Returns:
        ``ece``, the expected calibration error: how far the share of right pairs is from the mean probability, on
        average over ten bins of as many pairs each; ``brier``, the mean squared error; ``log_loss`` in nats.
    """
    gaps = [(abs(one.right - one.probability), one.pairs) for one in reliability(guess, right, guess)]
    return {
        "ece": sum(gap * pairs for gap, pairs in gaps) / len(guess),
        "brier": float(np.mean((guess - right) ** 2)),
        "log_loss": float(_log_losses(guess, right).mean()),
    }


def reliability(
    guess: Float64[ndarray, " n"], right: Bool[ndarray, " n"], scores: Float64[ndarray, " n"]
) -> tuple[Bin, ...]:
    """Mean probability and share of right pairs in bins of as many pairs each, from the least likely on."""
    return _bins(np.array_split(np.argsort(guess, kind="stable"), BINS), guess, right, scores)


def reliability_by_tenths(
    guess: Float64[ndarray, " n"], right: Bool[ndarray, " n"], scores: Float64[ndarray, " n"]
) -> tuple[Bin, ...]:
    """The same for probabilities from 0 to 0.1, from 0.1 to 0.2 and so on, but for those that no pair has.

    Where few pairs are right, nearly all bins of as many pairs each are of junk.
    """
    tenths = np.minimum((10 * guess).astype(np.int64), 9)
    return _bins([np.flatnonzero(tenths == tenth) for tenth in range(10)], guess, right, scores)


def _bins(
    parts: Sequence[Int64[ndarray, " m"]],
    guess: Float64[ndarray, " n"],
    right: Bool[ndarray, " n"],
    scores: Float64[ndarray, " n"],
) -> tuple[Bin, ...]:
    return tuple(
        Bin(float(guess[part].mean()), float(right[part].mean()), len(part), float(scores[part].min()))
        for part in parts
        if len(part)
    )


def _folds(right: Bool[ndarray, " n"], seed: int) -> Int64[ndarray, " n"]:
    """A fifth for each pair, as many of either answer in each as can be."""
    folds = np.empty(len(right), np.int64)
    rng = np.random.default_rng(seed)
    for answer in (True, False):
        places = rng.permutation(np.flatnonzero(right == answer))
        folds[places] = np.arange(len(places)) % FOLDS
    return folds


def _log_losses(guess: Float64[ndarray, " n"], right: Bool[ndarray, " n"]) -> Float64[ndarray, " n"]:
    kept = np.clip(guess, 1e-12, 1 - 1e-12)
    return np.asarray(-np.log(np.where(right, kept, 1 - kept)))
