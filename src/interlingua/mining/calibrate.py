"""The whole of ``interlingua calibrate``: mines, learns from pairs with known answers, reports how good that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64
from numpy import ndarray

from interlingua.corpus.formats import read_pairs
from interlingua.errors import ConfigError, DataError
from interlingua.files import open_text
from interlingua.mining.calibration import Bin, Calibration, expected_cuts, load_calibrations, save_calibration
from interlingua.mining.fitting import FITS, Fit, fit_calibration, measure, reliability_by_tenths
from interlingua.mining.gold import gold_pairs, is_gold, read_gold
from interlingua.mining.job import named
from interlingua.mining.pipeline import MineConfig, Mined, Progress, TextFile, mine_files
from interlingua.mining.probes import Probes, answers, make_probes
from interlingua.mining.share import doubted, separation, share_interval
from interlingua.mining.side_tables import with_lines
from interlingua.mining.work_folder import at_work
from interlingua.remote import check_writable

SHOWN_PRECISIONS = (0.5, 0.8, 0.9, 0.95, 0.99)
"""Precisions that are printed."""
Basis = Literal["probes", "gold", "labels"]


class Known(NamedTuple):
    """Pairs with known answers.

    Attributes:
        scores: theirs.
        right: the answers.
        notes: what a user should know.
    """

    scores: Float64[ndarray, " n"]
    right: Bool[ndarray, " n"]
    notes: list[str]


class Calibrated(NamedTuple):
    """What was learned, and the report in lines."""

    calibration: Calibration
    lines: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class CalibrateJob:
    """What ``interlingua calibrate --help`` says of the options of these names.

    Attributes:
        output: the calibration file.
        config: how pairs are found.
        parallel: held-out translations, in any format of bitext.
        labels: judged pairs, 1 or 0 TAB source TAB target.
        gold: all pairs that are right.
        probes: held-out pairs taken at most.
        seed: of the draw.
        work: folder of all that is made on the way.
    """

    output: Path
    config: MineConfig
    parallel: str | None = None
    labels: Path | None = None
    gold: Path | None = None
    probes: int = 2000
    seed: int = 0
    work: Path | None = None

    def __post_init__(self) -> None:
        if self.output.is_file():
            load_calibrations(self.output)  # another file of that name would be lost
        if self.parallel is not None and self.labels is not None:
            raise ConfigError("held-out text and judged pairs are two ways to learn; give one of them")
        if self.basis == "gold" and self.gold is None:
            raise ConfigError(
                "nothing tells right pairs from wrong ones; give --parallel held-out text, --judged or --gold"
            )
        if self.parallel is not None and self.config.documents is not None:
            raise ConfigError("held-out text is part of no document; calibrate without documents, or with --judged")

    @property
    def basis(self) -> Basis:
        """Where the answers come from; gold next to another basis only measures."""
        return "probes" if self.parallel else "labels" if self.labels else "gold"

    @property
    def folder(self) -> Path:
        """Of all that is made on the way."""
        return self.work or self.output.with_name(f"{self.output.name}.work")

    def run(self, source: TextFile, target: TextFile, model: str, *, progress: Progress) -> Calibrated:
        """Mines the texts, learns from the pairs and writes the calibration."""
        check_writable(self.output)
        languages = source.language, target.language
        probes = self._probes(languages)
        gold = read_gold(self.gold) if self.gold else None
        labels = read_labels(self.labels) if self.labels else {}
        if probes is not None:
            source = source._replace(extra=[*source.extra, *probes.source])
            target = target._replace(extra=[*target.extra, *probes.target])
        with named(self.folder), at_work(self.folder, keep=self.work is not None):
            source, target = (with_lines(side, self.folder) for side in (source, target))
            mined = mine_files(source, target, self.config, self.folder, model=model, progress=progress)
            return self._learn(mined, probes, labels, gold, languages, model)

    def _learn(
        self,
        mined: Mined | None,
        probes: Probes | None,
        labels: dict[tuple[str, str], bool],
        gold: Sequence[tuple[str, str]] | None,
        languages: tuple[str, str],
        model: str,
    ) -> Calibrated:
        """Writes the calibration."""
        assert mined is not None
        own = np.ones(len(mined.pairs), bool)
        if probes is not None:
            answered = answers(mined.pairs, mined.x, mined.y, probes)
            own = answered.own
            right = answered.right[answered.known]
            whole = len(np.intersect1d(probes.source_pairs, probes.target_pairs))
            note = (
                f"held-out pairs: {len(probes.source) + len(probes.target):,} sides mixed in; of {whole:,} pairs with"
                f" both sides {int(right.sum()):,} were found; {answered.excluded:,} left out, of which"
                " a side is in the texts too"
            )
            known = Known(mined.pairs["score"][answered.known], right, [note])
        elif self.labels is not None:
            known = _judged(mined, labels, self.labels)
        else:
            known = _golden(mined, gold or [])
        fit = fit_calibration(known.scores, known.right, seed=self.seed)
        fit = fit._replace(measures={**fit.measures, "separation": separation(known.scores, known.right)})
        found = self._calibration(fit, mined.pairs["score"][own], len(known.scores), languages, model)
        save_calibration(found, self.output)
        lines = [*mined.notes, *known.notes, *report(fit, found, int(own.sum()))]
        if self.basis == "probes":  # judged and gold pairs are the texts' own
            lines += self._sureness(found, known, mined.pairs["score"][own])
        if gold is not None and self.basis != "gold":
            lines += against_gold(found, mined, own, gold)
        return Calibrated(found, [*lines, f"written: {self.output}"])

    def _probes(self, languages: tuple[str, str]) -> Probes | None:
        if self.parallel is None:
            return None
        pairs = read_pairs(self.parallel, source_language=languages[0], target_language=languages[1])
        return make_probes(((pair.source, pair.target) for pair in pairs), self.probes, seed=self.seed)

    def _sureness(self, found: Calibration, known: Known, scores: Float64[ndarray, " n"]) -> list[str]:
        """How far the estimated share can be relied on, in lines."""
        low, high = share_interval(found, FITS[found.shape], known.scores, known.right, scores, seed=self.seed)
        line = (
            f"this share: {low:.1%} to {high:.1%} by resampling, if known pairs are like the others; right ones score"
            f" more than wrong ones {found.measures['separation']:.0%} of the time"
        )
        return [line, f"warning: {doubt}"] if (doubt := doubted(found)) else [line]

    def _calibration(
        self, fit: Fit, scores: Float64[ndarray, " n"], pairs: int, languages: tuple[str, str], model: str
    ) -> Calibration:
        """With the share of right ones among the pairs that were mined, and where to cut them."""
        found = Calibration(
            source_language=languages[0], target_language=languages[1], model=model, scoring=self.config.scoring,
            basis=self.basis, shape=fit.curve.shape, scores=fit.curve.scores, log_odds=fit.curve.log_odds,
            fitted_prior=fit.prior, prior=fit.prior, pairs=pairs, measures=fit.measures, bins=fit.bins,
        )  # fmt: skip
        if self.basis == "labels":
            # judged pairs may have been chosen by their score; the curve holds for all pairs, and so does its mean
            share = float(found.probability(scores).mean())
            found = replace(found, fitted_prior=share, prior=share)
        else:
            found = replace(found, prior=found.estimate_prior(scores))
        return replace(found, cuts=expected_cuts(scores, found.probability(scores)))


def read_labels(path: Path) -> dict[tuple[str, str], bool]:
    """Judged pairs: 1 or 0 TAB source TAB target.

    Raises:
        DataError: a line is none.
    """
    labels = {}
    with open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            cells = line.rstrip("\r\n").split("\t")
            if len(cells) != 3 or cells[0] not in ("0", "1"):
                raise DataError("expected 1 or 0 TAB source TAB target", path=path, line=number)
            labels[cells[1].strip(), cells[2].strip()] = cells[0] == "1"
    return labels


def report(fit: Fit, found: Calibration, own: int) -> list[str]:
    """The curve and its quality, in lines."""
    measures = found.measures
    compared = fit.compared
    lines = [
        f"{found.pairs:,} pairs with a known answer, {100 * found.fitted_prior:.1f} % right; {found.shape} curve"
        f" (log loss on unseen pairs: logistic {compared['logistic']:.4f}, isotonic {compared['isotonic']:.4f})",
        f"on unseen pairs: calibration error (ECE) {measures['ece']:.4f}, Brier {measures['brier']:.4f}",
        *_curve(found.bins),
    ]
    lines.append(f"translations among the {own:,} pairs found: {found.prior:.1%}, about {found.prior * own:,.0f}")
    for cut in found.cuts:
        if cut.precision in SHOWN_PRECISIONS:
            outcome = f"{cut.pairs:,} pairs, from score {cut.score:.4f} on" if cut.pairs else "no pair is that likely"
            lines.append(f"precision {cut.precision:.2f}: {outcome}")
    return lines


def against_gold(
    found: Calibration, mined: Mined, own: Bool[ndarray, " n"], gold: Sequence[tuple[str, str]]
) -> list[str]:
    """How true the probabilities are where the right pairs are known after all, in lines."""
    known, _ = gold_pairs(gold, mined.x, mined.y)
    right = is_gold(mined, known)[own]
    scores = mined.pairs["score"][own]
    probabilities = found.probability(scores)
    measures = measure(probabilities, right)
    lines = [
        f"by the gold pairs {right.mean():.1%} of the pairs found are right ({int(right.sum()):,}); calibration error"
        f" (ECE) {measures['ece']:.4f}, Brier {measures['brier']:.4f}",
        *_curve(reliability_by_tenths(probabilities, right, scores)),
    ]
    for cut in expected_cuts(scores, probabilities, SHOWN_PRECISIONS):
        kept = right[scores >= cut.score]
        if len(kept):
            lines.append(f"precision {cut.precision:.2f} requested: {kept.mean():.3f} found, of {len(kept):,} pairs")
    return lines


def _curve(bins: Sequence[Bin]) -> list[str]:
    """The reliability curve, in lines: what was predicted, what is true, of how many pairs, the worst one's score."""
    rows = [f"{one.probability:9.3f}  {one.right:5.3f}  {one.pairs:6,}  {one.lowest:10.4f}" for one in bins]
    return ["predicted  right   pairs  from score", *rows]


def _judged(mined: Mined, labels: dict[tuple[str, str], bool], path: Path) -> Known:
    texts: list[dict[str, int]] = []
    for place, side in enumerate((mined.x, mined.y)):
        wanted = {pair[place] for pair in labels}
        texts.append({text: number for number, text in enumerate(side.texts) if text in wanted})
    by_number = {(texts[0].get(a, -1), texts[1].get(b, -1)): answer for (a, b), answer in labels.items()}
    pairs = list(zip(mined.pairs["x"].tolist(), mined.pairs["y"].tolist(), strict=True))
    at = np.array([place for place, pair in enumerate(pairs) if pair in by_number], dtype=np.int64)
    if not len(at):
        raise DataError("none of its pairs was mined; judge pairs of what mine writes", path=path)
    right = np.array([by_number[pairs[place]] for place in at.tolist()])
    return Known(mined.pairs["score"][at], right, [f"{len(at)} of {len(labels)} judged pairs are among those found"])


def _golden(mined: Mined, gold: Sequence[tuple[str, str]]) -> Known:
    known, lost = gold_pairs(gold, mined.x, mined.y)
    right = is_gold(mined, known)
    note = f"{int(right.sum())} of {len(known)} gold pairs were found; {lost} are of texts that are not there"
    return Known(np.array(mined.pairs["score"]), right, [note])
