"""Filtering of scored pairs: their probabilities, the checks, and the writing of kept pairs.

Blocks of scored pairs come from ``score`` in the order of a stream, or from ``mine``, best first. A
``Filter`` makes a row of each pair, with all that is known about it and the reasons why it is
rejected. ``write_filtered`` writes the kept rows of a stream. ``write_mined`` writes the mined
pairs that are kept, and takes samples of kept and rejected ones for the page.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from jaxtyping import Float64
from numpy import ndarray
from numpy.typing import NDArray

from interlingua.corpus.formats.bitext import (
    READ_ONLY,
    PairWithOrigin,
    TextPair,
    guess_format,
    pair_fields,
)
from interlingua.errors import ConfigError, count_of
from interlingua.mining.calibration.calibration import (
    PRECISIONS,
    Calibration,
    Cut,
    doubted,
    expected_cuts,
    precision_interval,
    share_with_interval,
)
from interlingua.mining.checks import Checker, CheckPlan, Pairs, find_check, hubs_of
from interlingua.mining.pair_cut import PairCut
from interlingua.mining.pipeline import Mined
from interlingua.mining.review import Judgments
from interlingua.mining.writer import (
    DEFAULT_COLUMNS,
    ON_STDOUT,
    SHORT,
    WITH_COLUMNS,
    Digits,
    PairRow,
    check_columns,
    choose_columns,
    format_with_columns,
    open_rows,
    write_rows,
)
from interlingua.runtime.portions import ceil_div
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike

SCORE_COLUMNS = (*DEFAULT_COLUMNS, "probability", "cosine", "reasons")
MINE_COLUMNS = (*SCORE_COLUMNS, "source_origins", "target_origins", "source_hub", "target_hub")
"""Columns that each verb always has, next to those of the checks."""
WRITTEN = (*WITH_COLUMNS, "tmx")
REJECTED = "rejected pairs"
BELOW = "below the threshold"
IMPROBABLE = "improbable"
JUDGED_BAD = "judged bad"
SHOWN_PRECISIONS = (0.5, 0.8, 0.9, 0.95, 0.99)
"""Precisions whose cuts are shown in reports."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_LOOKED_AT = 1_000_000
"""Maximum number of pairs of a stream from which the quantiles are computed."""
MUCH = 0.3
"""Share of cut pairs above which the report warns about the threshold."""
_SHOWN = 12
"""Maximum number of pairs of each kind on the page of samples."""
LEARNED_FROM = 200_000
"""Number of evenly spaced pairs from which the share of right pairs is estimated."""
JUDGE = (
    "to verify these numbers, judge 50 pairs spread evenly over the list and pass them with"
    " --labels instead of --parallel"
)
_PAIRS_AT_ONCE = 8192
"""Mined pairs that are filtered at a time."""
TO_JUDGE = 200
"""Number of evenly spaced pairs on the page of samples that a person may judge."""


def is_cut(cut: PairCut, scores: Float64[ndarray, " n"], threshold: float) -> NDArray[np.bool_]:
    """Mark the scores that a threshold cuts."""
    if cut.is_like_laser:
        return np.asarray(scores <= threshold)
    return np.asarray(scores < threshold)


class ScoredPairs(NamedTuple):
    """Some pairs in the order of the stream.

    Attributes:
        pairs: as they came.
        scores: margins, or cosines; 0 where a side is blank.
        cosines: of both sides.
        hubs: how many of the texts that are scored together have the source as their nearest, or
            the target, whichever number is larger; 0 without a window.
        columns: further known values of each pair.
        lines: of each pair, see ``PairRow``.
    """

    pairs: list[TextPair]
    scores: Float64[ndarray, " n"]
    cosines: NDArray[np.floating]
    hubs: NDArray[np.number]
    columns: Sequence[Mapping[str, Any]] = ()
    lines: Sequence[tuple[int, int]] = ()


class Filter:
    """A filter of the scored pairs of one run.

    Args:
        cut: which are kept.
        checks: that measure and reject pairs.
        languages: of source and target.
        calibration: gives probabilities.
        folder: where the checks record earlier pairs; None = in memory.
        judgments: answers to some pairs, which decide in place of the score and the checks.

    Attributes:
        read: pairs so far.
        kept: of these.
        reasons: reason -> pairs rejected for it; a pair may have several.
        threshold: from the options, or found for the precision.
        prior: share of right pairs, from the options or estimated.
        expected: number of right pairs expected among the pairs passed to ``learn``.
        cuts: pairs expected at each precision among the pairs passed to ``learn``.
        interval: in which the true precision of the kept pairs is expected, if a precision is
            requested.
        share_interval: in which the true share of right pairs is expected, if it is estimated.
        learned_from: description of the pairs passed to ``learn``.
        blank: pairs with a blank side, which have no score; they count in no quantile and in no
            share.
        first_scores: scores of the first pairs without a blank side, for the quantiles; whole
            blocks are added until there are ``_LOOKED_AT`` scores or more.

    Raises:
        ConfigError: an option needs a calibration, and there is none.
    """

    def __init__(
        self,
        cut: PairCut,
        checks: CheckPlan,
        languages: tuple[str, str],
        calibration: Calibration | None,
        folder: Path | None,
        judgments: Judgments | None = None,
    ) -> None:
        cut.check_cut()
        if calibration is None and cut.needs_calibration:
            raise ConfigError(
                f"{cut.needs_calibration[0]} requires --calibration; make one with `interlingua"
                " calibrate` for mine, or with `interlingua score --learn` for score"
            )
        self.cut = cut
        self.calibration = calibration
        self.checker = Checker(checks, languages, folder)
        self.read = 0
        self.kept = 0
        self.blank = 0
        self.reasons: Counter[str] = Counter()
        self.threshold = cut.least_score
        self.prior = cut.known_prior
        self.expected = 0.0
        self.cuts: tuple[Cut, ...] = ()
        self.interval: tuple[float, float] | None = None
        self.share_interval: tuple[float, float] | None = None
        self.learned_from = "the first pairs of the stream"
        self.first_scores: list[Float64[ndarray, " n"]] = []
        self._has_learned = calibration is None
        self.judgments = judgments
        self._judged: Counter[bool] = Counter()

    def learn(self, scores: Float64[ndarray, " n"]) -> None:
        """Estimate the share of right pairs and the threshold for a precision from these scores.

        Without a call of this method, the scores of the first block are used.

        Args:
            scores: of pairs that no check rejects.
        """
        self._has_learned = True
        if self.calibration is None or not len(scores):
            return
        if self.prior is None and self.calibration.basis == "gold":
            self.prior = self.calibration.prior
        elif self.prior is None:
            self.prior, self.share_interval = share_with_interval(self.calibration, scores)
        probabilities = self.calibration.probability(scores, prior=self.prior)
        self.expected = float(probabilities.sum())
        self.cuts = expected_cuts(scores, probabilities, PRECISIONS)
        if self.cut.precision is not None:
            [found] = expected_cuts(scores, probabilities, [self.cut.precision])
            self.threshold = found.score
            self.interval = precision_interval(
                self.calibration, scores, found.score, prior=self.cut.known_prior
            )

    def accepted(self, pairs: Sequence[TextPair]) -> NDArray[np.bool_]:
        """Mark the pairs that have two texts and that no check of single pairs rejects."""
        sources = [pair.source for pair in pairs]
        targets = [pair.target for pair in pairs]
        has_texts = [bool(a.strip() and b.strip()) for a, b in zip(sources, targets, strict=True)]
        return np.asarray(np.array(has_texts, bool) & ~self.checker.refuses(sources, targets))

    def rows(self, blocks: Iterable[ScoredPairs]) -> Iterator[PairRow]:
        """Yield all pairs, kept or not, in their order."""
        for block in blocks:
            self._note_scores(block)
            sources = [pair.source for pair in block.pairs]
            targets = [pair.target for pair in block.pairs]
            fields: list[Mapping[str, Any]] = []
            if self.checker.needs_fields:
                fields += map(pair_fields, block.pairs)
            measured = self.checker.measure(Pairs(sources, targets, block.hubs, fields))
            if not self._has_learned:
                self.learn(block.scores[self.accepted(block.pairs)])
            probabilities = None
            if self.calibration is not None:
                probabilities = self.calibration.probability(block.scores, prior=self.prior)
            rejected = self._rejected(block, probabilities, measured)
            findings = self.checker.findings(measured)
            for at in range(len(block.pairs)):
                reasons = [reason for reason, marks in rejected.items() if marks[at]]
                if self.judgments is not None:
                    reasons = self._judge(self.judgments, block.pairs[at], reasons)
                found = tuple(name for name, marks in findings.items() if marks[at])
                self.read += 1
                self.kept += not reasons
                self.reasons.update(reasons)
                yield _row(block, at, probabilities, measured, reasons)._replace(findings=found)

    def _judge(self, judgments: Judgments, pair: TextPair, reasons: list[str]) -> list[str]:
        """Return the reasons against a pair: none if it is judged good, one more if bad."""
        is_good = judgments.answer(pair.source, pair.target)
        if is_good is None:
            return reasons
        self._judged[is_good] += 1
        return [] if is_good else [JUDGED_BAD, *reasons]

    def _note_scores(self, block: ScoredPairs) -> None:
        """Keep the scores of the first pairs, for the quantiles, and count blank pairs."""
        has_text = np.array(
            [bool(pair.source.strip() and pair.target.strip()) for pair in block.pairs], bool
        )
        self.blank += int(np.count_nonzero(~has_text))
        if sum(map(len, self.first_scores)) < _LOOKED_AT:
            self.first_scores.append(block.scores[has_text])

    def _rejected(
        self,
        block: ScoredPairs,
        probabilities: Float64[ndarray, " n"] | None,
        measured: Mapping[str, Float64[ndarray, " n"]],
    ) -> dict[str, NDArray[np.bool_]]:
        """Return which pairs are rejected, by reason."""
        rejected: dict[str, NDArray[np.bool_]] = {}
        if probabilities is not None and self.cut.least_probability is not None:
            rejected[IMPROBABLE] = probabilities < self.cut.least_probability
        if self.threshold is not None:
            rejected[BELOW] = is_cut(self.cut, block.scores, self.threshold)
        return rejected | self.checker.rejected(measured)

    def report(self) -> list[str]:
        """Return lines on the kept and the rejected pairs."""
        lines = [f"{count_of(self.read, 'pairs')} read, {self.kept:,} kept"]
        if self.reasons:
            lines[0] += rejected_in_words(self.reasons)
        if self.blank:
            lines[0] += f"; {self.blank:,} with a blank side and score 0"
        if sum(map(len, self.first_scores)):
            lines.append(quantile_line(np.concatenate(self.first_scores)))
        if self.prior is not None:
            where = "the pairs"
            if self.share_interval is not None:
                where = self.learned_from
            lines.append(share_line(where, self.prior, self.share_interval))
        precision = self.cut.precision
        if precision is not None and self.threshold is not None:
            cut = f"threshold {self.threshold:.4f}"
            if math.isinf(self.threshold):
                cut = "no pair reaches it"
            elif self.interval is not None:
                cut += f", {interval_in_words(self.interval)}"
            lines.append(f"precision {precision:g}: {cut}, estimated from {self.learned_from}")
            lines += self.advice()
        return lines + self._threshold_warning() + self._judgment_lines()

    def no_cut_lines(self) -> list[str]:
        """Return a line if scores reject no pair and no answers decide, otherwise none."""
        has_answers = self.judgments is not None and bool(self.judgments.answers)
        has_cut = self.threshold is not None or self.cut.least_probability is not None
        if has_cut or has_answers or self.read == self.blank:
            return []
        return [no_cut_line("--learn")]

    def _judgment_lines(self) -> list[str]:
        """Return lines on the answers; none without answers."""
        if self.judgments is None or not (self.judgments.answers or self._judged):
            return []
        good, bad = self._judged[True], self._judged[False]
        decided = f"judged: {count_of(good, 'pairs')} good and kept, {bad:,} bad and rejected"
        return [*self.judgments.notes, decided, *self.judgments.unmatched()]

    def advice(self) -> list[str]:
        """Return lines on how to make a requested precision more certain."""
        if self.calibration is None or self.calibration.basis != "probes":
            return []
        doubt = doubted(self.calibration)
        if doubt:
            return [f"warning: {doubt}"]
        return [JUDGE]

    def _threshold_warning(self) -> list[str]:
        """Return a warning line if the threshold removes many pairs, otherwise no line."""
        threshold = self.cut.least_score
        if threshold is None:
            return []
        # A pair with a blank side scores 0, so that any threshold above that cuts it.
        cut = self.reasons[BELOW]
        if threshold > 0:
            cut -= self.blank
        below = cut / max(self.read - self.blank, 1)
        if below <= MUCH:
            return []
        return [
            f"warning: the threshold {threshold:g} rejects {below:.0%} of the pairs, and its"
            " meaning depends on the model and the texts; calibrate the scores with --learn, then"
            " pass --calibration and --precision"
        ]


def _row(
    block: ScoredPairs,
    at: int,
    probabilities: Float64[ndarray, " n"] | None,
    measured: Mapping[str, Float64[ndarray, " n"]],
    reasons: list[str],
) -> PairRow:
    """Return one pair of a block with all its columns, in the order of the JSON output."""
    pair = block.pairs[at]._replace(score=float(block.scores[at]))
    columns: dict[str, Any] = {"score": pair.score, "source": pair.source, "target": pair.target}
    if probabilities is not None:
        columns["probability"] = round(float(probabilities[at]), 6)
    columns["cosine"] = round(float(block.cosines[at]), 6)
    if block.columns:
        columns |= block.columns[at]
    columns["reasons"] = reasons
    values = {name: round(float(column[at]), 4) for name, column in measured.items()}
    # Pairs of a stream have no line numbers in two files.
    lines = (-1, -1)
    if block.lines:
        lines = block.lines[at]
    columns |= values
    # Further values of the input are kept, under names that have no other meaning here.
    extra = {name: value for name, value in pair_fields(pair).items() if name not in columns}
    return PairRow(pair, columns | extra, reasons, lines, values, tuple(extra))


def rejected_in_words(reasons: Counter[str]) -> str:
    """Format how many pairs each reason rejects, most frequent first, as the end of a line."""
    counts = [f"{reason} {count:,}" for reason, count in reasons.most_common()]
    return f"; rejected (a pair may have several reasons): {', '.join(counts)}"


def cut_line(cut: Cut, interval: tuple[float, float] | None) -> str:
    """Format a cut, with the interval in which its true precision is expected."""
    if not cut.pairs or interval is None:
        return f"precision {cut.precision:.2f}: no pair reaches it"
    return (
        f"precision {cut.precision:.2f}: {cut.pairs:,} pairs, from score {cut.score:.4f} on"
        f" ({interval_in_words(interval)})"
    )


def interval_in_words(interval: tuple[float, float]) -> str:
    """Format the interval in which the true precision is expected."""
    return f"true precision between {interval[0]:.3f} and {interval[1]:.3f}"


def no_cut_line(source: str) -> str:
    """Format the remark that scores reject no pair.

    Args:
        source: the option or command that makes a calibration.
    """
    return (
        "no pair is rejected by its score; to reject by it, pass --threshold, or --precision with"
        f" --calibration (a file from {source})"
    )


def share_line(
    where: str,
    share: float,
    interval: tuple[float, float] | None,
    count: int | None = None,
) -> str:
    """Format the share of translations, with its interval before the estimate.

    Args:
        where: the pairs, in words.
        share: the estimate, or the known share.
        interval: in which the true share is expected; None = the share is known.
        count: of the pairs.
    """
    shown = f"{share:.1%}"
    if count is not None:
        shown += f", about {share * count:,.0f}"
    if interval is None:
        return f"translations among {where}: {shown}"
    low, high = interval
    return (
        f"translations among {where}: between {low:.1%} and {high:.1%} (by resampling; valid if"
        f" the known pairs are like the others); estimate {shown}"
    )


def quantile_line(scores: Float64[ndarray, " n"]) -> str:
    """Format the quantiles of the scores as a line."""
    found = zip(QUANTILES, np.quantile(scores, QUANTILES), strict=True)
    return "score quantiles: " + ", ".join(f"{share:.0%} {score:.4f}" for share, score in found)


def output_format(path: PathLike | None, format: str | None) -> str:
    """Return the format of an output: the requested one, or that of its name.

    The default on standard output is TSV.

    Raises:
        ConfigError: standard output can't have that format, or there is no such format.
    """
    if path is not None:
        named = format or guess_format(path)
        if named in READ_ONLY:
            raise ConfigError(
                f"{path}: the format {named} cannot be written; use .tsv, .jsonl, .csv, .xlsx or"
                " .tmx"
            )
        return named
    found = format or "tsv"
    if found not in ON_STDOUT:
        raise ConfigError(
            f"standard output: expected tsv, jsonl or csv, found {found!r}; pass a file with"
            " --output"
        )
    return found


def write_filtered(
    rows: Iterable[PairRow],
    path: PathLike | None,
    *,
    format: str,
    columns: Sequence[str] | None = None,
    languages: tuple[str, str] | None = None,
    stdout: TextIO | None,
    rejected: PathLike | None = None,
) -> None:
    """Write the rows that are kept, in their order.

    Args:
        rows: kept or not.
        path: a file, which appears when it is complete; None = standard output.
        format: see ``output_format``.
        columns: see ``writer.write_rows``.
        languages: of the pairs, for a file without rows.
        stdout: standard output.
        rejected: file for all other rows, .tsv, .jsonl, .csv or .xlsx, with their reasons.
    """
    with contextlib.ExitStack() as stack:
        reject = None
        if rejected is not None:
            form = format_with_columns(rejected, REJECTED)
            with_reasons = ("reasons", *choose_columns(form, columns))
            reject = stack.enter_context(
                open_rows(rejected, format=form, columns=with_reasons, takes_extra=columns is None)
            )

        # Both files are written in one pass over a stream that is read once: rejected rows are
        # written to their file while the writer requests kept rows.
        def kept() -> Iterator[PairRow]:
            for row in rows:
                if row.reasons and reject is not None:
                    reject(row)
                # If the output is a copy of the whole input file, rejected pairs stay in it too,
                # with their scores.
                pair = row.pair
                if not row.reasons or (
                    isinstance(pair, PairWithOrigin) and pair.whole_file == format
                ):
                    yield row

        write_rows(kept(), path, format=format, columns=columns, languages=languages, stdout=stdout)


def check_output(path: PathLike, columns: Sequence[str] | None, checks: CheckPlan) -> str:
    """Return the format of a file of mined pairs, if it can be written.

    Raises:
        ConfigError: the format cannot be written, or a column does not exist.
    """
    name = guess_format(path)
    if name not in WRITTEN:
        raise ConfigError(
            f"{path}: pairs cannot be written in this format; use .tsv, .jsonl, .csv, .xlsx or .tmx"
        )
    check_columns(columns, MINE_COLUMNS, checks)
    return name


@dataclass(slots=True)
class Written:
    """Counts of the mined pairs that were written and of those that were not.

    Attributes:
        pairs: kept.
        rejected: reason -> pairs, which may have several reasons.
        threshold: the score from the options, or found for the precision; None if neither is set.
        prior: share of right pairs among those that no check rejects, by the calibration.
        accepted: pairs that no check of single pairs rejects, if there is a calibration.
        expected: number of right pairs expected among the accepted pairs.
        interval: in which the true precision is expected, if a precision was requested.
        share_interval: in which the true share of right pairs is expected, if it is estimated.
        cut_intervals: precision -> interval in which the true precision is expected.
        advice: how to narrow the interval, in lines.
        cuts: pairs expected at each precision.
        best: kept pairs, evenly spaced in the list.
        borderline: the pairs around the threshold, or the last pairs of the list without one.
        rejects: reason -> some of the pairs rejected for it, possibly among other reasons.
        even: evenly spaced pairs of all that were found, for judging.
        rules: reason -> the rule, in words.
        kept: all kept pairs, if they were not written to a file.
    """

    pairs: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    threshold: float | None = None
    prior: float | None = None
    accepted: int = 0
    expected: float = 0.0
    interval: tuple[float, float] | None = None
    share_interval: tuple[float, float] | None = None
    cut_intervals: dict[float, tuple[float, float]] = field(default_factory=dict)
    advice: list[str] = field(default_factory=list)
    cuts: tuple[Cut, ...] = ()
    best: list[PairRow] = field(default_factory=list)
    borderline: list[PairRow] = field(default_factory=list)
    rejects: dict[str, list[PairRow]] = field(default_factory=dict)
    even: list[PairRow] = field(default_factory=list)
    rules: dict[str, str] = field(default_factory=dict)
    kept: list[PairRow] = field(default_factory=list)


def write_mined(
    mined: Mined,
    path: PathLike | None,
    cut: PairCut,
    checks: CheckPlan,
    *,
    languages: tuple[str, str],
    columns: Sequence[str] | None = None,
    calibration: Calibration | None = None,
    folder: Path | None,
    progress: Progress = SILENT,
) -> Written:
    """Write the pairs that are kept, best first.

    Args:
        mined: pairs that were found.
        path: .tsv, .jsonl, .csv, .xlsx or .tmx; None = the pairs come back in ``Written.kept``.
        cut: which are kept.
        checks: that measure and reject pairs.
        languages: of source and target.
        columns: see ``writer.write_rows``.
        calibration: gives the probabilities; the share of right pairs is estimated anew from the
            scores.
        folder: where the checks record earlier pairs; None = in memory.
        progress: receives the progress of the work.

    Returns:
        Counts, cuts and samples.
    """
    scores = mined.pairs["score"]
    chosen = Filter(cut, checks, languages, calibration, folder)
    # All scores are known here. The share and the threshold are those of pairs that no check
    # rejects; if there are very many pairs, evenly spaced ones suffice.
    step = max(1, ceil_div(len(scores), LEARNED_FROM))
    accepted = np.zeros(0)
    if calibration is not None:
        some = mined.pairs[::step]
        accepted = np.array(some["score"][~refused(chosen.checker, mined, some)])
    chosen.learn(accepted)
    written = Written(
        threshold=chosen.threshold,
        prior=chosen.prior,
        accepted=len(accepted) * step,
        expected=chosen.expected * step,
        interval=chosen.interval,
        share_interval=chosen.share_interval,
        cut_intervals=_cut_intervals(chosen.cuts, calibration, accepted),
        advice=chosen.advice(),
        cuts=tuple(
            one._replace(pairs=one.pairs * step, right=one.right * step) for one in chosen.cuts
        ),
        rules=rules_in_words(checks),
    )
    # The place in the list where the threshold cuts, for the samples around it.
    above = len(scores)
    if chosen.threshold is not None:
        above -= int(np.count_nonzero(is_cut(cut, scores, chosen.threshold)))
    sampler = _Sampler(written, above, len(scores))
    rows = sampler.noted(chosen.rows(_blocks(mined, languages, progress)))
    kept_rows = (row for row in rows if not row.reasons)
    if path is None:
        written.kept = list(kept_rows)
    else:
        name = check_output(path, columns, checks)
        # LASER's script writes all digits of a score.
        digits: Digits = SHORT
        if cut.is_like_laser:
            digits = repr
        write_rows(
            kept_rows, path, format=name, columns=columns, languages=languages, digits=digits
        )
    written.pairs = chosen.kept
    written.rejected = chosen.reasons
    return written


def _cut_intervals(
    cuts: Iterable[Cut], calibration: Calibration | None, scores: Float64[ndarray, " n"]
) -> dict[float, tuple[float, float]]:
    """Return the intervals of the true precision at the cuts of ``SHOWN_PRECISIONS``."""
    if calibration is None:
        return {}
    return {
        cut.precision: precision_interval(calibration, scores, cut.score)
        for cut in cuts
        if cut.precision in SHOWN_PRECISIONS and cut.pairs
    }


def _blocks(mined: Mined, languages: tuple[str, str], progress: Progress) -> Iterator[ScoredPairs]:
    """Yield the mined pairs with their texts and their positions."""
    progress.start(len(mined.pairs), "pairs", "writing pairs")
    for start in range(0, len(mined.pairs), _PAIRS_AT_ONCE):
        part = mined.pairs[start : start + _PAIRS_AT_ONCE]
        pairs = []
        columns = []
        lines = []
        for x, y, hub_x, hub_y in part[["x", "y", "hub_x", "hub_y"]].tolist():
            pairs.append(TextPair(mined.x.texts[x], mined.y.texts[y], *languages))
            origins = {"source_origins": mined.x.origins(x), "target_origins": mined.y.origins(y)}
            columns.append({**origins, "source_hub": hub_x, "target_hub": hub_y})
            lines.append((int(mined.x.lines_of(x)[0]), int(mined.y.lines_of(y)[0])))
        hubs = hubs_of(part["hub_x"], part["hub_y"], len(mined.x.texts), len(mined.y.texts))
        yield ScoredPairs(pairs, part["score"], part["cosine"], hubs, columns, lines)
        progress.advance(len(part))


def rules_in_words(checks: CheckPlan) -> dict[str, str]:
    """Return the rules that reject a pair, by the reason that is reported."""
    found = {}
    for name, limit in checks.limits.items():
        check = find_check(name)
        rule = f"less than {limit:g}"
        if check.is_upper_limit:
            rule = f"{limit:g} or more"
        # A user's own check may have nothing but a name.
        found[check.reason or check.name] = f"{check.measures or check.name}: {rule}"
    return found


def refused(checker: Checker, mined: Mined, pairs: NDArray[np.void]) -> NDArray[np.bool_]:
    """Mark the pairs that checks of single pairs reject."""
    marks = np.zeros(len(pairs), bool)
    for start in range(0, len(pairs), _PAIRS_AT_ONCE):
        numbers = pairs[["x", "y"]][start : start + _PAIRS_AT_ONCE].tolist()
        sources = [mined.x.texts[x] for x, _ in numbers]
        targets = [mined.y.texts[y] for _, y in numbers]
        marks[start : start + len(numbers)] = checker.refuses(sources, targets)
    return marks


class _Sampler:
    """Sampler of the rows for the page.

    Args:
        written: where they go.
        above: number of pairs with a score that the threshold does not cut.
        pairs: number of all pairs.
    """

    def __init__(self, written: Written, above: int, pairs: int) -> None:
        self.written = written
        # Places in the list, by descending score: evenly spaced ones among the best pairs, evenly
        # spaced ones among all pairs, and those around the cut.
        self.step = max(1, above // _SHOWN)
        even = np.linspace(0, pairs - 1, min(pairs, TO_JUDGE)).round().astype(int)
        self.judged = set(even.tolist())
        self.edge = range(max(0, above - _SHOWN), min(pairs, above + _SHOWN))

    def noted(self, rows: Iterable[PairRow]) -> Iterator[PairRow]:
        """Yield the rows, and examine each of them in passing."""
        for place, row in enumerate(rows):
            self._note(row, place)
            yield row

    def _note(self, row: PairRow, place: int) -> None:
        """Add a row to each sample that it belongs to."""
        written = self.written
        if place in self.judged:
            written.even.append(row)
        # A pair at the edge is shown there, and not among the best as well.
        if place in self.edge:
            written.borderline.append(row)
        elif not row.reasons and len(written.best) < _SHOWN and place % self.step == 0:
            written.best.append(row)
        for reason in row.reasons:
            some = written.rejects.setdefault(reason, [])
            # Pairs below the threshold are shown around the cut, if they are of interest.
            if len(some) < _SHOWN and reason != BELOW:
                some.append(row)
