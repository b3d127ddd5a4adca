"""What becomes of scored pairs as they stream by: probabilities, checks, which are kept, and where they are written."""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from jaxtyping import Float64
from numpy import ndarray

from interlingua.corpus.formats import guess_format
from interlingua.errors import ConfigError
from interlingua.files import PathLike
from interlingua.mining.calibration import Calibration, expected_cuts
from interlingua.mining.checks import RULES, Checker, CheckPlan, Pairs
from interlingua.mining.pair_rows import ON_STDOUT, PairRow, columns_of, format_with_columns, open_rows, write_rows
from interlingua.mining.score import ScoredPairs

COLUMNS = ("score", "source", "target", "probability", "cosine", "reasons")
REJECTED = "rejected pairs"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
LOOKED_AT = 1_000_000
"""Pairs of a stream of which the quantiles are."""
MUCH = 0.3
"""Share of the pairs that a threshold cuts, from which on a line warns."""
BELOW = "below the threshold"
IMPROBABLE = "improbable"


@dataclass(frozen=True, kw_only=True, slots=True)
class FilterConfig:
    """Which pairs are kept; without any of these, all.

    Attributes:
        threshold: least score.
        probability: least probability, 0 to 1.
        precision: the least score from which on the first pairs of the stream are expected to be that precise.
        prior: share of right pairs in the stream; estimated from its first pairs by default.
        checks: what is measured and rejects.
    """

    threshold: float | None = None
    probability: float | None = None
    precision: float | None = None
    prior: float | None = None
    checks: CheckPlan

    def __post_init__(self) -> None:
        if self.threshold is not None and self.precision is not None:
            raise ConfigError("a threshold and a precision are two ways to cut; give one of them")
        if self.threshold is not None and math.isnan(self.threshold):
            raise ConfigError("the threshold is no number; choose a score, e.g. 1.05")
        for name in ("probability", "precision", "prior"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise ConfigError(f"{name} is {value:g}; choose a number between 0 and 1, e.g. 0.95")

    @property
    def needs_calibration(self) -> list[str]:
        """Names of the options that have no meaning without probabilities."""
        return [name for name in ("probability", "precision", "prior") if getattr(self, name) is not None]


def filter_config(check: str, drop: str, **limits: float | None) -> FilterConfig:
    """From options, see ``CheckPlan.parse`` and ``FilterConfig``.

    Raises:
        ConfigError: there is no such check, or a limit can't be.
    """
    return FilterConfig(checks=CheckPlan.parse(check, drop), **limits)


class Filter:
    """Looks at the scored pairs of one stream.

    Args:
        config: which are kept.
        languages: of source and target.
        calibration: gives probabilities.
        folder: for what the checks remember.

    Attributes:
        read: pairs so far.
        kept: of these.
        reasons: reason -> pairs rejected for it; a pair may have several.
        threshold: given, or found for the precision among the first pairs.
        blank: pairs with a blank side, which have no score; they count in no quantile and in no share.
        first_scores: of up to ``LOOKED_AT`` other pairs and the rest of their block, for the quantiles.
        prior: share of right pairs, given or estimated from the first pairs.
    """

    def __init__(
        self, config: FilterConfig, languages: tuple[str, str], calibration: Calibration | None, folder: PathLike
    ) -> None:
        if calibration is None and config.needs_calibration:
            raise ConfigError(
                f"{config.needs_calibration[0]} needs --calibration; make one with interlingua score --learn"
            )
        self.config = config
        self.calibration = calibration
        self.checker = Checker(config.checks, *languages, Path(folder))
        self.read = self.kept = self.blank = 0
        self.reasons: Counter[str] = Counter()
        self.threshold = config.threshold
        self.prior = config.prior
        self.first_scores: list[Float64[ndarray, " n"]] = []

    def rows(self, blocks: Iterable[ScoredPairs]) -> Iterator[PairRow]:
        """All pairs, kept or not, in their order."""
        for block in blocks:
            has_text = np.array([bool(pair.source.strip() and pair.target.strip()) for pair in block.pairs], bool)
            self.blank += int(np.count_nonzero(~has_text))
            if sum(map(len, self.first_scores)) < LOOKED_AT:
                self.first_scores.append(block.scores[has_text])
            probabilities = self._probabilities(block)
            texts = [pair.source for pair in block.pairs], [pair.target for pair in block.pairs]
            measured = self.checker.measure(Pairs(*texts, block.hubs))
            rejected = {RULES[name].reason: marks for name, marks in self.checker.rejected(measured).items()}
            if self.threshold is not None:
                rejected = {BELOW: block.scores < self.threshold} | rejected
            if probabilities is not None and self.config.probability is not None:
                rejected = {IMPROBABLE: probabilities < self.config.probability} | rejected
            for at, pair in enumerate(block.pairs):
                reasons = [reason for reason, marks in rejected.items() if marks[at]]
                columns: dict[str, Any] = {
                    "score": float(block.scores[at]),
                    "source": pair.source,
                    "target": pair.target,
                }
                if probabilities is not None:
                    columns["probability"] = round(float(probabilities[at]), 6)
                columns |= {"cosine": round(float(block.cosines[at]), 6), "reasons": reasons}
                columns |= {name: round(float(values[at]), 4) for name, values in measured.items()}
                self.read += 1
                self.kept += not reasons
                self.reasons.update(reasons)
                yield PairRow(pair._replace(score=columns["score"]), columns, reasons)

    def _probabilities(self, block: ScoredPairs) -> Float64[ndarray, " n"] | None:
        """Of each pair; the first block tells the share of right pairs and, for a precision, the threshold."""
        if self.calibration is None:
            return None
        if self.prior is None:
            self.prior = self.calibration.estimate_prior(block.scores)
        found = self.calibration.probability(block.scores, prior=self.prior)
        if self.config.precision is not None and self.threshold is None:
            self.threshold = expected_cuts(block.scores, found, [self.config.precision])[0].score
        return found

    def report(self) -> list[str]:
        """What was kept and what was not, in lines."""
        lines = [f"{self.read:,} pairs read, {self.kept:,} kept"]
        if self.reasons:
            counts = ", ".join(f"{reason} {count:,}" for reason, count in self.reasons.most_common())
            lines[0] += f"; rejected (a pair may have several reasons): {counts}"
        if self.blank:
            lines[0] += f"; {self.blank:,} have a blank side and score 0"
        if sum(map(len, self.first_scores)):
            lines.append(quantile_line(np.concatenate(self.first_scores)))
        if self.prior is not None:
            lines.append(f"translations among the pairs: {self.prior:.1%}")
        if self.config.precision is not None and self.threshold is not None:
            cut = "reached by no pair" if math.isinf(self.threshold) else f"threshold {self.threshold:.4f}"
            lines.append(f"precision {self.config.precision:g}: {cut}, by the first pairs of the stream")
        # A pair with a blank side scores 0, so that any threshold above that cuts it.
        cut_blank = self.blank if self.config.threshold is not None and self.config.threshold > 0 else 0
        below = (self.reasons[BELOW] - cut_blank) / max(self.read - self.blank, 1)
        if self.config.threshold is not None and below > MUCH:
            lines.append(
                f"warning: the threshold of {self.config.threshold:g} cuts {below:.0%} of the pairs, and the same"
                " number means another thing for another model and other texts; learn what a score is worth with"
                " --learn, then cut by --calibration and --precision"
            )
        return lines


def quantile_line(scores: Float64[ndarray, " n"]) -> str:
    """Where the scores lie, in a line."""
    found = zip(QUANTILES, np.quantile(scores, QUANTILES), strict=True)
    return "score quantiles: " + ", ".join(f"{share:.0%} {score:.4f}" for share, score in found)


def output_format(path: PathLike | None, format: str | None) -> str:
    """The format of an output: as given, or by its name; TSV on standard output.

    Raises:
        ConfigError: standard output can't have that format, or there is no such format.
    """
    found = format or ("tsv" if path is None else guess_format(path))
    if path is None and found not in ON_STDOUT:
        raise ConfigError(f"standard output is tsv, jsonl or csv, not {found!r}; name a file with --output")
    return found


def write_filtered(
    rows: Iterable[PairRow],
    path: PathLike | None,
    *,
    format: str,
    columns: Sequence[str] | None = None,
    stdout: TextIO | None,
    rejected: PathLike | None = None,
) -> None:
    """Writes the rows that are kept, in their order.

    Args:
        rows: kept or not.
        path: a file, which appears when it is complete; None = standard output.
        format: see ``output_format``.
        columns: see ``pair_rows.write_rows``.
        stdout: standard output.
        rejected: file for all other rows, .tsv, .jsonl, .csv or .xlsx, with their reasons.
    """
    with contextlib.ExitStack() as stack:
        reject = None
        if rejected is not None:
            form = format_with_columns(rejected, REJECTED)
            reject = stack.enter_context(
                open_rows(rejected, format=form, columns=("reasons", *columns_of(form, columns)))
            )

        def kept() -> Iterator[PairRow]:
            for row in rows:
                if not row.reasons:
                    yield row
                elif reject is not None:
                    reject(row)

        write_rows(kept(), path, format=format, columns=columns, stdout=stdout)


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """For what is remembered of a stream; it goes with the block."""
    with tempfile.TemporaryDirectory(prefix="interlingua-") as folder:
        yield Path(folder)
