"""Probabilities that pairs with given scores are translations, and cuts that follow from them.

A logistic and an isotonic curve are fitted to pairs with known answers and compared on pairs that
the fit has not seen. A ``Calibration`` keeps the better one as log odds at some scores. The prior
is the share of right pairs among other pairs. It is estimated from the position of their scores
between those of known right and known wrong pairs. If right and wrong pairs overlap much, a small
difference between the known pairs and the others changes the estimated share a lot.
``share_interval``, ``precision_interval`` and ``doubted`` report this uncertainty.

The curve holds the log odds at the prior of the pairs that it was fitted to. Minus the log odds of
that prior, they are log likelihood ratios, which do not depend on any prior. Plus the log odds of
another prior, these ratios are the log odds of a pair among pairs with that prior (Bayes' rule).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numpy import ndarray
from numpy.typing import ArrayLike

from interlingua.config import from_mapping
from interlingua.config.languages import resolve_language
from interlingua.errors import ConfigError, DataError
from interlingua.mining.calibration.score_mixture import move_scores
from interlingua.storage.files import PathLike, is_special
from interlingua.storage.formats import CALIBRATION
from interlingua.storage.locks import exclusive
from interlingua.storage.record import read_record, write_record

CalibrationShape = Literal["logistic", "isotonic"]
Basis = Literal["probes", "gold", "labels"]
PRECISIONS = (*(round(0.5 + 0.01 * step, 2) for step in range(50)), 0.995, 0.999)
"""Precisions for which a calibration has cuts."""
FOLDS = 5
_BINS = 10
MIN_CALIBRATION_PAIRS = 5
"""Minimum number of pairs of either answer for learning."""
_RESAMPLES = 40
"""Curves of resampled pairs that a calibration keeps."""
MOST_SCORES = 20_000
"""Maximum number of scores of all pairs by which an interval is measured."""
LIKENESS_ERROR = 0.015
MOVED_ERROR = 0.025
"""Margins at both ends of an interval of precision, because known pairs always differ a little from
the others. ``MOVED_ERROR`` applies if held-out pairs score differently from the list's pairs. Both
are measured by benchmarks/precision.py."""
LEAST_SEPARATION = 0.9
"""Separation below which the estimated share depends on small differences."""
_MOST = 30.0
"""Largest absolute value of log odds; a pair beyond it is certain enough."""


class Cut(NamedTuple):
    """The longest list of best pairs that is expected to have the requested precision.

    Attributes:
        precision: the requested one, a share of the pairs.
        score: of the last pair; infinite where no pair is good enough.
        pairs: number of pairs that score at least as much.
        right: expected number of translations among them.
    """

    precision: float
    score: float
    pairs: int
    right: float


class Bin(NamedTuple):
    """Pairs of similar probability and known answers.

    Attributes:
        probability: mean probability of the pairs.
        right: share of right pairs among them.
        pairs: number of pairs.
        lowest: the lowest score of a pair.
    """

    probability: float
    right: float
    pairs: int
    lowest: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """The probabilities of scores for one language pair, one model and one way of scoring.

    Attributes:
        source_language: a code such as ``zho_Hans``.
        target_language: code of the target's language, or None.
        model: the identity of the model, see ``ModelInfo.identity``.
        scoring: how the scores are made, in words; scores made in another way mean something else.
        basis: source of the known answers: ``probes``, held-out parallel text among
            the texts that were mined; ``gold``, all pairs that are right; ``labels``, pairs that
            someone has judged.
        shape: the curve is a line in log odds between its points; beyond them it continues
            (``logistic``) or is level.
        scores: of the curve's points, ascending.
        log_odds: at these scores, natural logarithm, not descending.
        fitted_prior: share of right ones among the pairs that the curve was fitted to.
        prior: expected share of right ones among the pairs that were mined for this calibration.
        pairs: number of pairs with a known answer that the curve was fitted to.
        measures: of predictions for pairs that the fit had not seen: ``ece``, ``brier``,
            ``log_loss``; ``separation``, see the function of that name.
        bins: the reliability curve of the same predictions.
        cuts: where to cut the pairs that were mined for this calibration.
        alternatives: other curves that the known pairs allow, by resampling.
    """

    source_language: str
    target_language: str
    model: str
    scoring: str
    basis: Basis
    shape: CalibrationShape
    scores: tuple[float, ...]
    log_odds: tuple[float, ...]
    fitted_prior: float
    prior: float
    pairs: int
    measures: Mapping[str, float] = field(default_factory=dict)
    bins: tuple[Bin, ...] = ()
    cuts: tuple[Cut, ...] = ()
    alternatives: tuple[Curve, ...] = ()

    @property
    def languages(self) -> str:
        """Name of the language pair, such as ``zho_Hans-eng_Latn``."""
        return f"{self.source_language}-{self.target_language}"

    def log_likelihood_ratios(self, scores: ArrayLike) -> Float64[ndarray, " n"]:
        """Compute the log likelihood ratio (natural) of right and wrong pairs for each score."""
        at = np.asarray(scores, dtype=np.float64)
        values = np.interp(at, self.scores, self.log_odds)
        # ``np.interp`` is level beyond the points; the logistic curve is a line that continues.
        if self.shape == "logistic" and len(self.scores) > 1:
            slope = (self.log_odds[-1] - self.log_odds[0]) / (self.scores[-1] - self.scores[0])
            beyond = np.minimum(at - self.scores[0], 0) + np.maximum(at - self.scores[-1], 0)
            values += slope * beyond
        return np.clip(values - log_odds_of(self.fitted_prior), -_MOST, _MOST)

    def probability(
        self, scores: ArrayLike, *, prior: float | None = None
    ) -> Float64[ndarray, " n"]:
        """Compute the probability that each pair is a translation.

        Args:
            scores: computed as ``scoring`` specifies.
            prior: share of right pairs among those that are scored; by default the share among the
                pairs mined for this calibration.
        """
        if prior is None:
            prior = self.prior
        log_odds = self.log_likelihood_ratios(scores) + log_odds_of(prior)
        return np.asarray(1 / (1 + np.exp(-log_odds)))

    def estimate_prior(self, scores: ArrayLike) -> float:
        """Estimate the share of right pairs among unlabeled ones by maximum likelihood.

        The EM iterations of Saerens, Latinne & Decaestecker (2002), section 2.2, converge to it.
        This function finds it by bisection: the derivative of the log likelihood falls
        monotonically over the shares 0 to 1, and its zero is the estimate.

        Args:
            scores: of all pairs, not only of those above a threshold.
        """
        # With r the likelihood ratio of a score and p the share, the log likelihood is the sum of
        # log(1 + p (r - 1)), up to a constant; its derivative in p sums (r - 1) / (1 + p (r - 1)).
        gain = np.expm1(self.log_likelihood_ratios(scores))
        low = 1e-6
        high = 1 - 1e-6
        for _ in range(50):
            middle = (low + high) / 2
            if (gain / (1 + middle * gain)).mean() > 0:
                low = middle
            else:
                high = middle
        return (low + high) / 2

    def estimate_share(self, scores: Float64[ndarray, " n"]) -> float:
        """Estimate the share of right pairs among unlabeled ones; it is never quite 0 or 1.

        It is the mean of ``estimate_prior`` over the curves that the known pairs allow. A maximum
        likelihood estimate is often exactly 1 for a list of mostly right pairs, and then each pair
        would be certain. So the mean is at least 0.5 / (n + 1) and at most 1 minus this bound,
        where n is the number of scores or of known pairs, whichever is smaller.

        Args:
            scores: of all pairs, not only of those above a threshold.
        """
        return share_with_interval(self, scores)[0]

    def of_pairs(self, scores: Float64[ndarray, " n"]) -> Calibration:
        """Return a copy with the share of right pairs among these pairs, and with their cuts."""
        return replace(self, prior=self.estimate_share(scores)).cut_for(scores)

    def cut_for(self, scores: Float64[ndarray, " n"]) -> Calibration:
        """Return a copy with the cuts for these pairs."""
        return replace(self, cuts=expected_cuts(scores, self.probability(scores)))

    def with_curve(self, curve: Curve) -> Calibration:
        """Return a copy with another curve."""
        return replace(
            self, shape=curve.shape, scores=curve.scores, log_odds=curve.log_odds, alternatives=()
        )

    def threshold(self, precision: float) -> float:
        """Return the minimum score with which the mined pairs were expected to have this precision.

        The score is valid for other pairs if the share of right ones among them is also ``prior``.

        Args:
            precision: a share of the pairs, 0 to 1; the next higher known one is used.

        Raises:
            ConfigError: no such cut is known, or no pair was that good.
        """
        # Requested and known precisions may differ by rounding.
        reached = [cut for cut in self.cuts if np.isfinite(cut.score)]
        good = [cut for cut in reached if cut.precision >= precision - 1e-9]
        if not good:
            known = "no precision is reached"
            if reached:
                known = f"pass a precision of at most {max(cut.precision for cut in reached):g}"
            raise ConfigError(f"no threshold reaches a precision of {precision:g}; {known}")
        # Tuples compare by their first field: the least of the precisions that are high enough.
        return min(good).score


def expected_cuts(
    scores: Float64[ndarray, " n"],
    probabilities: Float64[ndarray, " n"],
    precisions: Sequence[float] = PRECISIONS,
) -> tuple[Cut, ...]:
    """Return the lowest cut at which the mean probability of kept pairs reaches each precision.

    Args:
        scores: of the pairs, in any order.
        probabilities: of the same pairs, not descending where the scores ascend.
        precisions: each a share of the pairs.
    """
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    right = np.cumsum(probabilities[order])
    counts = np.arange(1, len(order) + 1)
    # Pairs of equal scores stay together: a list can be cut only behind the last of them.
    is_last = np.append(ordered[1:] != ordered[:-1], True)[: len(order)]
    cuts = []
    for precision in precisions:
        # Entry i is of the i + 1 best pairs; the longest list that is good enough is taken.
        good = np.flatnonzero(is_last & (right >= precision * counts - 1e-9))
        if len(good):
            at = int(good[-1])
            cuts.append(Cut(precision, float(ordered[at]), at + 1, float(right[at])))
        else:
            cuts.append(Cut(precision, np.inf, 0, 0.0))
    return tuple(cuts)


def load_calibration(
    path: PathLike,
    source_language: str,
    target_language: str,
    *,
    model: str | None = None,
    scoring: str | None = None,
) -> Calibration:
    """Read the calibration of a language pair, or else that of the reverse pair.

    Args:
        path: a file written by ``save_calibration``.
        source_language: in any code.
        target_language: code of the target's language, or None.
        model: refuse a calibration of another model.
        scoring: refuse a calibration of scores that were computed in another way.

    Raises:
        DataError: the file is missing or is not a calibration.
        ConfigError: it holds no such language pair, or is of another model or scoring.
    """
    return choose_calibration(
        load_calibrations(path),
        str(path),
        (source_language, target_language),
        model=model,
        scoring=scoring,
    )


def choose_calibration(
    known: Mapping[str, Calibration],
    name: str,
    languages: tuple[str, str],
    *,
    model: str | None = None,
    scoring: str | None = None,
) -> Calibration:
    """Return the calibration of a language pair from those that were read.

    See ``load_calibration``.

    Args:
        known: the result of ``load_calibrations``.
        name: of their file, for messages.
        languages: of source and target, in any code.
        model: refuse a calibration of another model.
        scoring: refuse a calibration of scores that were computed in another way.

    Raises:
        ConfigError: there is no such language pair, or it is of another model or scoring.
    """
    codes = [resolve_language(language).code for language in languages]
    # A score is the same in both directions, and so is its probability.
    found = known.get("-".join(codes)) or known.get("-".join(codes[::-1]))
    if found is None:
        raise ConfigError(
            f"{name} contains no calibration for {'-'.join(codes)}; it contains: {', '.join(known)}"
        )
    if model is not None and found.model != model:
        raise ConfigError(
            f"{name} was made with another model ({found.model[:12]}, expected {model[:12]});"
            " calibrate again with this model"
        )
    if scoring is not None and found.scoring != scoring:
        raise ConfigError(
            f"{name} is for scores computed by {found.scoring!r}, not by {scoring!r}; calibrate"
            " again"
        )
    return found


def load_calibrations(path: PathLike) -> dict[str, Calibration]:
    """Read all calibrations of a file, by language pair.

    Raises:
        DataError: the file is missing or is not a calibration.
    """
    content = read_record(path, CALIBRATION)
    try:
        return {languages: _read(table) for languages, table in content["pairs"].items()}
    # A valid checksum does not prove that this program wrote the file.
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"this is not a calibration file ({error}); make one with `interlingua calibrate`",
            path=path,
        ) from error


def save_calibration(calibration: Calibration, path: PathLike) -> None:
    """Write a calibration; those of other language pairs that the file holds stay there.

    Runs that write to one file wait for one another, so that no run overwrites what another has
    added.

    Raises:
        DataError: a file that is not a calibration has that name.
    """
    # Links are followed, so that all runs that write to one file wait for the same lock.
    target = Path(os.path.realpath(path))
    # A pipe or a device holds no calibrations, and reading it may never end.
    if is_special(target):
        _write_all({calibration.languages: calibration}, path)
        return
    with exclusive(
        target.parent, remedy="choose another --output", name=f".{target.name}.lock", wait=True
    ):
        known = {}
        if target.exists():
            known = load_calibrations(path)
        known[calibration.languages] = calibration
        _write_all(known, path)


def _write_all(known: dict[str, Calibration], path: PathLike) -> None:
    """Write the file of some calibrations, in the order of their languages."""
    pairs = {languages: _to_table(one) for languages, one in sorted(known.items())}
    write_record(path, CALIBRATION, {"pairs": pairs})


def _to_table(calibration: Calibration) -> dict[str, Any]:
    """Return a calibration in its JSON form."""
    table = {each.name: getattr(calibration, each.name) for each in dataclasses.fields(calibration)}
    table["bins"] = [one._asdict() for one in calibration.bins]
    # JSON has no infinity: a cut that no pair reaches is left out.
    table["cuts"] = [one._asdict() for one in calibration.cuts if np.isfinite(one.score)]
    table["alternatives"] = [one._asdict() for one in calibration.alternatives]
    return table


def _read(table: dict[str, Any]) -> Calibration:
    """Build a calibration from its JSON form; the inverse of ``_to_table``."""
    # The strict reader of settings knows dataclasses, and no named tuples.
    lists = ("bins", "cuts", "alternatives")
    plain = {key: value for key, value in table.items() if key not in lists}
    bins = tuple(Bin(**one) for one in table.get("bins", ()))
    cuts = tuple(Cut(**one) for one in table.get("cuts", ()))
    alternatives = tuple(_read_curve(**one) for one in table.get("alternatives", ()))
    found = from_mapping(Calibration, plain, where="calibration")
    return dataclasses.replace(found, bins=bins, cuts=cuts, alternatives=alternatives)


def _read_curve(
    shape: CalibrationShape, scores: Sequence[float], log_odds: Sequence[float]
) -> Curve:
    """Build a curve from lists read from JSON."""
    if len(scores) != len(log_odds) or not scores or shape not in FITS:
        raise ValueError("expected a known shape and as many scores as log odds")
    return Curve(shape, tuple(map(float, scores)), tuple(map(float, log_odds)))


def log_odds_of(share: float) -> float:
    """Compute the log odds of a share; the result is finite for 0 and 1 too."""
    share = min(max(share, 1e-9), 1 - 1e-9)
    return float(np.log(share / (1 - share)))


class Curve(NamedTuple):
    """Log odds by score: points of a line that never falls; see ``Calibration``."""

    shape: CalibrationShape
    scores: tuple[float, ...]
    log_odds: tuple[float, ...]

    def probability(self, scores: Float64[ndarray, " n"]) -> Float64[ndarray, " n"]:
        """Compute the probability of being right, for the share of right pairs in the fit."""
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
        bins: the same predictions, in bins of equal size.
        compared: mean log loss of each shape on unseen pairs, in nats.
        pairs: number of pairs that it was fitted to.
    """

    curve: Curve
    prior: float
    measures: Mapping[str, float]
    bins: tuple[Bin, ...]
    compared: Mapping[str, float]
    pairs: int

    def calibration(
        self, *, languages: tuple[str, str], model: str, scoring: str, basis: Basis
    ) -> Calibration:
        """Return a ``Calibration`` for pairs with the same share of right ones as in the fit."""
        return Calibration(
            source_language=languages[0],
            target_language=languages[1],
            model=model,
            scoring=scoring,
            basis=basis,
            shape=self.curve.shape,
            scores=self.curve.scores,
            log_odds=self.curve.log_odds,
            fitted_prior=self.prior,
            prior=self.prior,
            pairs=self.pairs,
            measures=self.measures,
            bins=self.bins,
        )


def fit_calibration(
    scores: Float64[ndarray, " n"], right: Bool[ndarray, " n"], *, seed: int = 0
) -> Fit:
    """Fit a logistic and an isotonic curve, neither of which ever falls, and return the better one.

    Each is fitted five times to four fifths of the pairs and predicts the last fifth. The isotonic
    curve is more flexible. It is chosen only if its log loss on unseen pairs is lower by more than
    the standard error of the difference.

    Args:
        scores: of pairs with a known answer.
        right: the answers.
        seed: of the fifths.

    Raises:
        DataError: there are too few pairs of an answer.
    """
    least = int(min(right.sum(), (~right).sum()))
    if least < MIN_CALIBRATION_PAIRS:
        raise DataError(
            f"found {int(right.sum())} right and {int((~right).sum())} wrong pairs, but a"
            f" calibration needs at least {MIN_CALIBRATION_PAIRS} of each; pass more pairs"
        )
    # For each shape: the probability of every pair, by a curve that was fitted without that pair.
    folds = _folds(right, seed)
    unseen = {shape: np.empty(len(scores)) for shape in FITS}
    for fold in range(FOLDS):
        is_held = folds == fold
        for name, fit in FITS.items():
            curve = fit(scores[~is_held], right[~is_held])
            unseen[name][is_held] = curve.probability(scores[is_held])
    losses = {name: _log_losses(guess, right) for name, guess in unseen.items()}
    gain = losses["logistic"] - losses["isotonic"]
    shape: CalibrationShape = "logistic"
    if gain.mean() > gain.std() / np.sqrt(len(gain)):
        shape = "isotonic"
    return Fit(
        FITS[shape](scores, right),
        float(right.mean()),
        measure_calibration(unseen[shape], right),
        reliability(unseen[shape], right, scores),
        {name: float(loss.mean()) for name, loss in losses.items()},
        len(scores),
    )


def fit_logistic(scores: Float64[ndarray, " n"], right: Bool[ndarray, " n"]) -> Curve:
    """Fit a line in log odds by maximum likelihood, with the softened answers of Platt (1999).

    It is found by Newton's method. A falling line is replaced by a level one: a higher score is
    never worse.
    """
    # Scores are scaled to mean 0 and deviation 1, so that both weights are of similar size.
    middle = float(scores.mean())
    width = float(scores.std()) or 1.0
    x = np.stack([(scores - middle) / width, np.ones(len(scores))], axis=1)
    # Platt's targets, (N+ + 1) / (N+ + 2) and 1 / (N- + 2) in place of 1 and 0: if the answers
    # are separable, the slope stays finite.
    count = int(right.sum())
    targets = np.where(right, (count + 1) / (count + 2), 1 / (len(right) - count + 2))
    # The search starts with the level line, the best one if scores contain no information.
    weights = np.array([0.0, np.log(targets.mean() / (1 - targets.mean()))])
    for _ in range(100):
        guess = 1 / (1 + np.exp(-x @ weights))
        hessian = (x * (guess * (1 - guess))[:, None]).T @ x + 1e-9 * np.eye(2)
        step = np.linalg.solve(hessian, x.T @ (targets - guess))
        # A step of at most 2: a full one may overshoot where the curve is nearly level.
        weights += step * min(1.0, 2.0 / float(np.abs(step).max() or 1.0))
        if np.abs(step).max() < 1e-10:
            break
    slope, offset = (float(weight) for weight in weights)
    if slope < 0:
        slope = 0.0
        offset = float(np.log(targets.mean() / (1 - targets.mean())))
    # Two points determine the line, one deviation to either side of the mean.
    return Curve("logistic", (middle - width, middle + width), (offset - slope, offset + slope))


def fit_isotonic(scores: Float64[ndarray, " n"], right: Bool[ndarray, " n"]) -> Curve:
    """Fit the non-decreasing steps of least squares, joined by lines.

    They are found by pooling adjacent violators, as in Zadrozny & Elkan (2002). Each step's share
    is (right + 1/2) / (pairs + 1), so that no pair is ever certain.
    """
    values, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    hits = np.bincount(inverse, weights=right, minlength=len(values))
    # Of each step: its pairs, the right ones among them, its first and its last score.
    steps: list[tuple[float, float, float, float]] = []
    for score, pairs, good in zip(values.tolist(), counts.tolist(), hits.tolist(), strict=True):
        steps.append((pairs, good, score, score))
        # A step of no higher share than the one before is joined with it; the shares are compared
        # as products, which are whole numbers and exact.
        while len(steps) > 1 and steps[-2][1] * steps[-1][0] >= steps[-1][1] * steps[-2][0]:
            last = steps.pop()
            before = steps.pop()
            steps.append((before[0] + last[0], before[1] + last[1], before[2], last[3]))
    table = np.array(steps)
    # Adding one half may reverse the order of a long and a short step.
    share = np.maximum.accumulate((table[:, 1] + 0.5) / (table[:, 0] + 1))
    # Two points for each step, or one for a step of a single score: a dict keeps one of two equal
    # keys.
    ends = table[:, 2:].ravel().tolist()
    log_odds = np.repeat(np.log(share / (1 - share)), 2).tolist()
    points = dict(zip(ends, log_odds, strict=True))
    return Curve("isotonic", tuple(points), tuple(points.values()))


FITS: Mapping[CalibrationShape, Callable[[Float64[ndarray, " n"], Bool[ndarray, " n"]], Curve]] = {
    "logistic": fit_logistic,
    "isotonic": fit_isotonic,
}


def measure_calibration(
    guess: Float64[ndarray, " n"], right: Bool[ndarray, " n"]
) -> dict[str, float]:
    """Measure how far probabilities are from the observed answers.

    Args:
        guess: probabilities of being right.
        right: the answers.

    Returns:
        ``ece``, the expected calibration error: the difference between the share of right pairs and
        the mean probability, averaged over ten bins of equal size; ``brier``, the mean squared
        error; ``log_loss`` in nats.
    """
    bins = reliability(guess, right, guess)
    gaps = [(abs(one.right - one.probability), one.pairs) for one in bins]
    return {
        "ece": sum(gap * pairs for gap, pairs in gaps) / len(guess),
        "brier": float(np.mean((guess - right) ** 2)),
        "log_loss": float(_log_losses(guess, right).mean()),
    }


def reliability(
    guess: Float64[ndarray, " n"], right: Bool[ndarray, " n"], scores: Float64[ndarray, " n"]
) -> tuple[Bin, ...]:
    """Compute the mean probability and the share of right pairs in bins of equal size.

    The first bin holds the least likely pairs.
    """
    return _bins(np.array_split(np.argsort(guess, kind="stable"), _BINS), guess, right, scores)


def reliability_by_tenths(
    guess: Float64[ndarray, " n"], right: Bool[ndarray, " n"], scores: Float64[ndarray, " n"]
) -> tuple[Bin, ...]:
    """Compute ``reliability`` for probabilities from 0 to 0.1, from 0.1 to 0.2 and so on.

    If few pairs are right, nearly all bins of equal size hold wrong pairs. Empty bins are left out.
    """
    # A probability of 1 goes into the last bin.
    tenths = np.minimum((10 * guess).astype(np.int64), 9)
    return _bins([np.flatnonzero(tenths == tenth) for tenth in range(10)], guess, right, scores)


def _bins(
    parts: Sequence[Int64[ndarray, " m"]],
    guess: Float64[ndarray, " n"],
    right: Bool[ndarray, " n"],
    scores: Float64[ndarray, " n"],
) -> tuple[Bin, ...]:
    """Return the bins of some parts of the pairs, without empty ones."""
    bins = []
    for part in parts:
        if len(part):
            probability = float(guess[part].mean())
            share = float(right[part].mean())
            bins.append(Bin(probability, share, len(part), float(scores[part].min())))
    return tuple(bins)


def _folds(right: Bool[ndarray, " n"], seed: int) -> Int64[ndarray, " n"]:
    """Assign each pair to one of five folds, with the pairs of each answer spread evenly."""
    folds = np.empty(len(right), np.int64)
    rng = np.random.default_rng(seed)
    for answer in (True, False):
        places = rng.permutation(np.flatnonzero(right == answer))
        folds[places] = np.arange(len(places)) % FOLDS
    return folds


def _log_losses(
    guess: Float64[ndarray, " n"], right: Bool[ndarray, " n"]
) -> Float64[ndarray, " n"]:
    """Compute the log loss of each pair in nats; it is finite even for a certain, wrong guess."""
    clipped = np.clip(guess, 1e-12, 1 - 1e-12)
    return np.asarray(-np.log(np.where(right, clipped, 1 - clipped)))


def separation(scores: Float64[ndarray, " n"], right: Bool[ndarray, " n"]) -> float:
    """Compute how often a right pair scores more than a wrong one: the area under the ROC curve.

    Equal scores count half.
    """
    wrong = np.sort(scores[~right])
    # For each right pair: how many wrong pairs score less, and how many score no more. In the mean
    # of the two numbers, a wrong pair of equal score counts half.
    less = np.searchsorted(wrong, scores[right], side="left")
    no_more = np.searchsorted(wrong, scores[right], side="right")
    return float((less + no_more).mean() / (2 * len(wrong)))


def doubted(calibration: Calibration) -> str:
    """Return a warning if held-out pairs represent the others poorly, otherwise an empty string."""
    if calibration.basis != "probes":
        return ""
    auc = calibration.measures.get("separation", 1.0)
    if auc < LEAST_SEPARATION:
        return (
            f"held-out right pairs score higher than wrong pairs only {auc:.0%} of the time, so"
            " the estimated share of translations and all precisions may be far off; judge 50"
            " pairs spread evenly over the list and pass them with --labels instead of --parallel"
        )
    if calibration.measures.get("moved", 0.0):
        return (
            "the scores of held-out right pairs differ from those of your texts (by"
            f" {calibration.measures['moved']:+.3f} at the median), which suggests another kind of"
            " text; the probabilities account for the difference but are less certain; pass"
            " held-out pairs similar to your texts, or judge 50 pairs and pass them with --labels"
            " instead of --parallel"
        )
    return ""


def resampled_curves(
    right: Float64[ndarray, " r"],
    wrong: Sequence[Float64[ndarray, " w"]],
    *,
    moves: Sequence[tuple[float, float]] = ((0.0, 1.0),),
    seed: int = 0,
) -> tuple[Curve, ...]:
    """Fit curves of either shape to known pairs that are resampled each time.

    Args:
        right: scores of known right pairs.
        wrong: samples of scores of known wrong pairs, which are used in turn.
        moves: shift and scale of the right pairs' scores, see ``Mixture.near``; used in turn.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    curves = []
    for number in range(_RESAMPLES):
        # Every resample has as many pairs of each answer as are known, so that it can be fitted and
        # has the same prior.
        shift, scale = moves[number % len(moves)]
        good = move_scores(rng.choice(right, len(right)), shift, scale)
        bad = rng.choice(wrong[number % len(wrong)], len(wrong[0]))
        answers = np.repeat([True, False], [len(good), len(bad)])
        fit = list(FITS.values())[number // len(wrong) % len(FITS)]
        curves.append(fit(np.concatenate([good, bad]), answers))
    return tuple(curves)


def share_interval(found: Calibration, scores: Float64[ndarray, " m"]) -> tuple[float, float]:
    """Compute the middle 95 % of the shares by the curves that the known pairs allow.

    The interval is widened to include ``found.estimate_share(scores)``.

    Args:
        found: the calibration, with its alternatives.
        scores: of all pairs.
    """
    return share_with_interval(found, scores)[1]


def share_with_interval(
    found: Calibration, scores: Float64[ndarray, " m"]
) -> tuple[float, tuple[float, float]]:
    """Compute ``found.estimate_share(scores)`` and ``share_interval``, each curve once."""
    few = _even_sample(np.asarray(scores, dtype=np.float64))
    shares = [found.with_curve(curve).estimate_prior(few) for curve in found.alternatives]
    # A calibration may have no resampled curves.
    shares = shares or [found.estimate_prior(few)]
    # Half a pair is the smallest share that the pairs can show, as in the isotonic curve.
    least = 0.5 / (min(len(scores), found.pairs) + 1)
    share = float(np.clip(np.mean(shares), least, 1 - least))
    low, high = _interval(shares)
    return share, (min(low, share), max(high, share))


def precision_interval(
    found: Calibration,
    scores: Float64[ndarray, " m"],
    threshold: float,
    *,
    prior: float | None = None,
) -> tuple[float, float]:
    """Compute the 95 % interval of the share of right pairs among those that reach a score.

    The interval of the resampled known pairs is widened by ``LIKENESS_ERROR`` at both ends.

    Args:
        found: the calibration, with its alternatives.
        scores: of all pairs.
        threshold: a score that some of them reach.
        prior: share of right pairs among all; estimated by each alternative by default.
    """
    few = _even_sample(scores)
    kept = few >= threshold
    if not kept.any():
        return 0.0, 1.0
    precisions = []
    for curve in found.alternatives or (Curve(found.shape, found.scores, found.log_odds),):
        other = found.with_curve(curve)
        share = prior
        if share is None:
            share = other.estimate_prior(few)
        precisions.append(float(other.probability(few[kept], prior=share).mean()))
    low, high = _interval(precisions)
    error = LIKENESS_ERROR
    if found.measures.get("moved", 0.0):
        error = MOVED_ERROR
    return max(0.0, low - error), min(1.0, high + error)


def _even_sample(scores: Float64[ndarray, " n"]) -> Float64[ndarray, " m"]:
    """Return at most ``MOST_SCORES`` of the scores, evenly spaced from lowest to highest."""
    if len(scores) <= MOST_SCORES:
        return scores
    places = np.linspace(0, len(scores) - 1, MOST_SCORES).round().astype(np.int64)
    return np.asarray(np.sort(scores)[places])


def _interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the middle 95 % of some values."""
    low, high = np.quantile(values, [0.025, 0.975]).tolist()
    return low, high
