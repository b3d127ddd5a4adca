"""Mined pairs to a file: which are kept, why others are not, in which columns, and what is shown of all of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interlingua.corpus.formats import TextPair, guess_format
from interlingua.errors import ConfigError
from interlingua.files import PathLike
from interlingua.mining.calibration import Calibration, Cut, expected_cuts
from interlingua.mining.checks import RULES, Checker, CheckPlan, Pairs, hubs_of
from interlingua.mining.pair_rows import (
    DEFAULT_COLUMNS,
    SHORT,
    WITH_COLUMNS,
    Digits,
    PairRow,
    check_columns,
    write_rows,
)
from interlingua.mining.pipeline import Mined, chunks

OWN_COLUMNS = (
    *DEFAULT_COLUMNS,
    "probability",
    "cosine",
    "source_origins",
    "target_origins",
    "source_hub",
    "target_hub",
    "reasons",
)
WRITTEN = (*WITH_COLUMNS, "tmx")
SHOWN = 12
"""Pairs of a kind in the report."""
TO_JUDGE = 200
"""Pairs in the report that are at even distances through all."""
BELOW = "below the threshold"


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Which pairs are kept.

    Attributes:
        threshold: least score.
        precision: mean probability that the kept ones must have.
        checks: what is measured and rejects.
        like_laser: the score must be above the threshold, not at it, and is written with all its digits.
    """

    threshold: float | None = None
    precision: float | None = None
    checks: CheckPlan
    like_laser: bool = False

    def __post_init__(self) -> None:
        if self.threshold is not None and self.precision is not None:
            raise ConfigError("a threshold and a precision are two ways to cut; give one of them")
        if self.threshold is not None and math.isnan(self.threshold):
            raise ConfigError("the threshold is no number; choose a score, e.g. 1.05")
        if self.precision is not None and not 0 < self.precision <= 1:
            raise ConfigError(
                f"precision {self.precision:g} is no share of the pairs; choose one from 0 to 1, e.g. 0.95"
            )


@dataclass(slots=True)
class Written:
    """What was written, and what was not.

    Attributes:
        pairs: kept.
        rejected: reason -> pairs, which may have several reasons.
        threshold: the score that was given, or found for the precision; None where neither was given.
        prior: share of right pairs among all, by the calibration.
        cuts: pairs expected at each precision.
        best: of the kept ones, at even distances in the list.
        borderline: the pairs around the threshold, or the last of those kept and rejected.
        rejects: reason -> some of the pairs rejected for it alone or among others.
        even: at even distances through all that were found, for judging.
        rules: reason -> what rejects, in words.
        kept: all kept pairs, where they were not written to a file.
    """

    pairs: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    threshold: float | None = None
    prior: float | None = None
    cuts: tuple[Cut, ...] = ()
    best: list[PairRow] = field(default_factory=list)
    borderline: list[PairRow] = field(default_factory=list)
    rejects: dict[str, list[PairRow]] = field(default_factory=dict)
    even: list[PairRow] = field(default_factory=list)
    rules: dict[str, str] = field(default_factory=dict)
    kept: list[PairRow] = field(default_factory=list)


def check_output(path: PathLike, columns: Sequence[str] | None, checks: CheckPlan) -> str:
    """The format of an output, if it can be written.

    Raises:
        ConfigError: it is none that is written here, or a column is not there.
    """
    name = guess_format(path)
    if name not in WRITTEN:
        raise ConfigError(f"{path}: pairs are written as .tsv, .jsonl, .csv, .xlsx or .tmx; choose one")
    check_columns(columns, OWN_COLUMNS, checks)
    return name


def write_mined(
    mined: Mined,
    path: PathLike | None,
    selection: Selection,
    *,
    languages: tuple[str, str],
    columns: Sequence[str] | None = None,
    calibration: Calibration | None = None,
    folder: Path,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Written:
    """Writes the pairs that are kept, best first.

    Args:
        mined: what was found.
        path: .tsv, .jsonl, .csv, .xlsx or .tmx; None = the pairs come back in ``Written.kept``.
        selection: which are kept.
        languages: of source and target.
        columns: see ``pair_rows.write_rows``.
        calibration: gives the probabilities; the share of right pairs is estimated anew from the scores.
        folder: for what the checks remember.
        progress: called with the pairs looked at, and all.

    Returns:
        Counts, cuts and samples.
    """
    written = Written(threshold=selection.threshold, rules=rules_in_words(selection.checks))
    scores = mined.pairs["score"]
    probabilities: NDArray[np.float64] | None = None
    if calibration is not None and len(scores):
        written.prior = calibration.prior if calibration.basis == "gold" else calibration.estimate_prior(scores)
        probabilities = calibration.probability(scores, prior=written.prior)
        written.cuts = expected_cuts(scores, probabilities)
    if selection.precision is not None:
        if probabilities is None:
            raise ConfigError("a precision needs a calibration; make one with interlingua calibrate")
        written.threshold = expected_cuts(scores, probabilities, [selection.precision])[0].score
    rows = _rows(mined, selection, languages, probabilities, written, folder, progress)
    kept = (row for row in rows if not row.reasons)
    if path is None:
        written.kept = list(kept)
        return written
    name = check_output(path, columns, selection.checks)
    digits: Digits = repr if selection.like_laser else SHORT
    write_rows(kept, path, format=name, columns=columns, digits=digits)
    return written


def _rows(
    mined: Mined,
    selection: Selection,
    languages: tuple[str, str],
    probabilities: NDArray[np.float64] | None,
    written: Written,
    folder: Path,
    progress: Callable[[int, int], None],
) -> Iterator[PairRow]:
    """All pairs with their columns and reasons; takes note of counts and samples."""
    checker = Checker(selection.checks, *languages, folder)
    threshold = -np.inf if written.threshold is None else written.threshold
    scores = mined.pairs["score"]
    above = int(np.count_nonzero(scores > threshold if selection.like_laser else scores >= threshold))
    sampler = _Sampler(written, above, len(scores))
    place = 0
    for part in chunks(mined.pairs):
        texts = [[side.texts[number] for number in part[name].tolist()] for side, name in _sides(mined)]
        hubs = hubs_of(part["hub_x"], part["hub_y"], len(mined.x.texts), len(mined.y.texts))
        pairs = Pairs(texts[0], texts[1], hubs)
        measured = checker.measure(pairs)
        rejected = checker.rejected(measured)
        for at, found in enumerate(part.tolist()):
            score, cosine, x, y, hub_x, hub_y = found
            reasons = [RULES[name].reason for name, marks in rejected.items() if marks[at]]
            if score < threshold or (selection.like_laser and score == threshold):
                reasons.insert(0, BELOW)
            values: dict[str, Any] = {"score": score, "source": texts[0][at], "target": texts[1][at]}
            if probabilities is not None:
                values["probability"] = round(float(probabilities[place]), 6)
            values |= {"cosine": round(cosine, 6)}
            values |= {"source_origins": mined.x.origins(x), "target_origins": mined.y.origins(y)}
            values |= {"source_hub": hub_x, "target_hub": hub_y, "reasons": reasons}
            values |= {name: round(float(column[at]), 4) for name, column in measured.items()}
            pair = TextPair(values["source"], values["target"], *languages, score)
            lines = (int(mined.x.lines_of(x)[0]), int(mined.y.lines_of(y)[0]))
            row = PairRow(pair, values, reasons, lines)
            sampler(row, place)
            yield row
            place += 1
        progress(place, len(scores))


def rules_in_words(checks: CheckPlan) -> dict[str, str]:
    """What rejects a pair, by the reason that is given."""
    found = {}
    for name, limit in checks.limits.items():
        rule = RULES[name]
        found[rule.reason] = f"{rule.measures}: {f'{limit:g} or more' if rule.above else f'less than {limit:g}'}"
    return found


class _Sampler:
    """Takes note of counts and of samples for the report."""

    def __init__(self, written: Written, above: int, pairs: int) -> None:
        self.written = written
        self.above = above
        self.step = max(1, above // SHOWN)
        self.judged = set(np.linspace(0, pairs - 1, min(pairs, TO_JUDGE)).round().astype(int).tolist())
        self.edge = range(max(0, above - SHOWN), min(pairs, above + SHOWN))

    def __call__(self, row: PairRow, place: int) -> None:
        """Looks at the next pair."""
        written = self.written
        written.pairs += not row.reasons
        written.rejected.update(row.reasons)
        if place in self.judged:
            written.even.append(row)
        if place in self.edge:
            written.borderline.append(row)
        elif not row.reasons and len(written.best) < SHOWN and place % self.step == 0:
            written.best.append(row)
        for reason in row.reasons:
            some = written.rejects.setdefault(reason, [])
            if len(some) < SHOWN and reason != BELOW:
                some.append(row)


def _sides(mined: Mined) -> list[tuple[Any, str]]:
    return [(mined.x, "x"), (mined.y, "y")]
