"""From a score to the probability that a pair is a translation: the curve, where to cut, and the file of both."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float64
from numpy import ndarray
from numpy.typing import ArrayLike

from interlingua.config import from_mapping
from interlingua.errors import ConfigError, DataError
from interlingua.files import PathLike, atomic_write, is_special
from interlingua.json_text import parse_json, read_json_text
from interlingua.languages import resolve
from interlingua.locks import exclusive

FORMAT = "interlingua-calibration-1"
Shape = Literal["logistic", "isotonic"]
PRECISIONS = (*(round(0.5 + 0.01 * step, 2) for step in range(50)), 0.995, 0.999)
"""For which a calibration says where to cut."""
_MOST = 30.0
"""Log odds beyond this are certain enough."""


class Cut(NamedTuple):
    """The longest list of best pairs that is expected to have the requested precision.

    Attributes:
        precision: the requested one, a share of the pairs.
        score: of the last pair; infinite where no pair is good enough.
        pairs: that score as much or more.
        right: how many of them are expected to be translations.
    """

    precision: float
    score: float
    pairs: int
    right: float


class Bin(NamedTuple):
    """Pairs of similar probability and known answers.

    Attributes:
        probability: their mean.
        right: the share of them that is right.
        pairs: how many.
        lowest: score of the worst.
    """

    probability: float
    right: float
    pairs: int
    lowest: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """What a score is worth, for one language pair, one model and one way of scoring.

    Attributes:
        source_language: a code such as ``zho_Hans``.
        target_language: code of the target's language, or None.
        model: what tells the model, see ``ModelInfo.identity``.
        scoring: how the scores are made, in words; those of other ways mean something else.
        basis: where right and wrong pairs are known from: ``probes``, held-out parallel text among the texts that
            were mined; ``gold``, all pairs that are right; ``labels``, pairs that someone has judged.
        shape: the curve between its points is a line in log odds; beyond them it goes on (``logistic``) or is level.
        scores: of the curve's points, ascending.
        log_odds: at these scores, natural logarithm, not descending.
        fitted_prior: share of right ones among the pairs that the curve was fitted to.
        prior: share of right ones expected among the pairs mined then.
        pairs: with a known answer, that the curve was fitted to.
        measures: of predictions for pairs that the fit had not seen: ``ece``, ``brier``, ``log_loss``; ``separation``,
            see ``mining.share``.
        bins: the reliability curve of the same predictions.
        cuts: where to cut the pairs mined then.
    """

    source_language: str
    target_language: str
    model: str
    scoring: str
    basis: Literal["probes", "gold", "labels"]
    shape: Shape
    scores: tuple[float, ...]
    log_odds: tuple[float, ...]
    fitted_prior: float
    prior: float
    pairs: int
    measures: Mapping[str, float] = field(default_factory=dict)
    bins: tuple[Bin, ...] = ()
    cuts: tuple[Cut, ...] = ()

    @property
    def languages(self) -> str:
        """``zho_Hans-eng_Latn``."""
        return f"{self.source_language}-{self.target_language}"

    def log_likelihood_ratios(self, scores: ArrayLike) -> Float64[ndarray, " n"]:
        """How much likelier each score is for right pairs than for wrong ones, natural logarithm."""
        at = np.asarray(scores, dtype=np.float64)
        values = np.interp(at, self.scores, self.log_odds)
        if self.shape == "logistic" and len(self.scores) > 1:
            slope = (self.log_odds[-1] - self.log_odds[0]) / (self.scores[-1] - self.scores[0])
            values += slope * (np.minimum(at - self.scores[0], 0) + np.maximum(at - self.scores[-1], 0))
        return np.clip(values - _logit(self.fitted_prior), -_MOST, _MOST)

    def probability(self, scores: ArrayLike, *, prior: float | None = None) -> Float64[ndarray, " n"]:
        """Probability that each pair is a translation.

        Args:
            scores: made as ``scoring`` says.
            prior: share of right pairs among those that are scored; by default that among the pairs mined then.
        """
        odds = self.log_likelihood_ratios(scores) + _logit(self.prior if prior is None else prior)
        return np.asarray(1 / (1 + np.exp(-odds)))

    def estimate_prior(self, scores: ArrayLike) -> float:
        """The share of right pairs among unlabelled ones; Saerens, Latinne & Decaestecker (2002), section 2.2.

        The share of maximum likelihood, which their EM iterations lead to: the zero of the derivative, which falls all
        the way from 0 to 1, is found by halving the interval.

        Args:
            scores: of all pairs, not of those above a threshold alone.
        """
        gain = np.expm1(self.log_likelihood_ratios(scores))
        low = 1e-6
        high = 1 - 1e-6
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if (gain / (1 + middle * gain)).mean() > 0 else (low, middle)
        return (low + high) / 2

    def threshold(self, precision: float) -> float:
        """The score from which on the pairs mined then were expected to be that precise; ``prior`` must hold here too.

        Args:
            precision: a share of the pairs, 0 to 1; the next higher one that is known is taken.

        Raises:
            ConfigError: no such cut is known, or no pair was that good.
        """
        good = [cut for cut in self.cuts if cut.precision >= precision - 1e-9 and np.isfinite(cut.score)]
        if not good:
            best = max((cut.precision for cut in self.cuts if np.isfinite(cut.score)), default=None)
            known = "no precision was reached" if best is None else f"the highest known is {best:g}"
            raise ConfigError(f"no threshold gives a precision of {precision:g}; {known}")
        return min(good).score


def expected_cuts(
    scores: Float64[ndarray, " n"],
    probabilities: Float64[ndarray, " n"],
    precisions: Sequence[float] = PRECISIONS,
) -> tuple[Cut, ...]:
    """Where to cut a list so that the mean probability of what is kept is as high as requested.

    Args:
        scores: of the pairs, in any order.
        probabilities: of the same pairs, not descending where the scores ascend.
        precisions: each a share of the pairs.
    """
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    right = np.cumsum(probabilities[order])
    counts = np.arange(1, len(order) + 1)
    last = np.append(ordered[1:] != ordered[:-1], True)[: len(order)]  # pairs of equal scores stay together
    cuts = []
    for precision in precisions:
        good = np.flatnonzero(last & (right >= precision * counts - 1e-9))
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
    """The calibration of a language pair, in that order or, where there is none, turned round.

    Args:
        path: a file written by ``save_calibration``.
        source_language: in any code.
        target_language: code of the target's language, or None.
        model: refuse one of another model.
        scoring: refuse one of scores that were made in another way.

    Raises:
        DataError: the file is missing or no calibration.
        ConfigError: it holds no such language pair, or is of another model or scoring.
    """
    known = load_calibrations(path)
    wanted = [resolve(language).code for language in (source_language, target_language)]
    found = known.get("-".join(wanted)) or known.get("-".join(wanted[::-1]))
    if found is None:
        raise ConfigError(f"{path} has no calibration of {'-'.join(wanted)}; it has: {', '.join(known)}")
    if model is not None and found.model != model:
        raise ConfigError(f"{path} was made with another model ({found.model[:12]}, not {model[:12]}); calibrate again")
    if scoring is not None and found.scoring != scoring:
        raise ConfigError(f"{path} is for scores made by {found.scoring!r}, not {scoring!r}; calibrate again")
    return found


def load_calibrations(path: PathLike) -> dict[str, Calibration]:
    """All calibrations in a file, by language pair.

    Raises:
        DataError: the file is missing or no calibration.
    """
    try:
        content = parse_json(read_json_text(path))
        if content["format"] != FORMAT:
            raise DataError(f"expected the format {FORMAT}, got {content['format']!r}; calibrate again", path=path)
        return {languages: _read(table) for languages, table in content["pairs"].items()}
    except FileNotFoundError as error:
        raise DataError("no such file; check the path", path=path) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"is no calibration file ({error}); make one with interlingua calibrate", path=path) from error


def save_calibration(calibration: Calibration, path: PathLike) -> None:
    """Writes a calibration; those of other language pairs that the file holds stay there.

    Runs that write to one file wait for one another, so that none loses what another has added meanwhile.

    Raises:
        DataError: a file that is no calibration has that name.
    """
    target = Path(os.path.realpath(path))
    if is_special(target):  # a pipe or a device holds no calibrations, and reading it may never end
        _write_all({calibration.languages: calibration}, path)
        return
    with exclusive(target.parent, remedy="name another --output", name=f".{target.name}.lock", wait=True):
        known = load_calibrations(path) if target.exists() else {}
        known[calibration.languages] = calibration
        _write_all(known, path)


def _write_all(known: dict[str, Calibration], path: PathLike) -> None:
    pairs = {languages: _written(one) for languages, one in sorted(known.items())}
    with atomic_write(path) as file:
        json.dump({"format": FORMAT, "pairs": pairs}, file, indent=1, ensure_ascii=False)
        file.write("\n")


def _written(calibration: Calibration) -> dict[str, Any]:
    table = {each.name: getattr(calibration, each.name) for each in dataclasses.fields(calibration)}
    table["bins"] = [one._asdict() for one in calibration.bins]
    table["cuts"] = [one._asdict() for one in calibration.cuts if np.isfinite(one.score)]
    return table


def _read(table: dict[str, Any]) -> Calibration:
    plain = {key: value for key, value in table.items() if key not in ("bins", "cuts")}
    bins = tuple(Bin(**one) for one in table.get("bins", ()))
    cuts = tuple(Cut(**one) for one in table.get("cuts", ()))
    found = from_mapping(Calibration, plain, where="calibration")
    return dataclasses.replace(found, bins=bins, cuts=cuts)


def _logit(share: float) -> float:
    share = min(max(share, 1e-9), 1 - 1e-9)
    return float(np.log(share / (1 - share)))
