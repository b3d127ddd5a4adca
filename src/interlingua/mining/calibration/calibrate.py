"""Calibration of scores from pairs with known answers, for ``mine`` and for ``score``.

``learn_from_mining`` mines, and learns from held-out translations that are mixed into the texts
(probes), from judged pairs, or from all right pairs. Both sides of half of the probes are mixed in.
Of the others only one side is mixed in, so that every pair with it is wrong. These wrong pairs come
from the same search and the same retrieval as the wrong pairs among the texts themselves. Held-out
translations may be of another kind than the texts, and their wrong pairs then score differently.
So texts that seem translated are hidden from each other in a second retrieval. The new pairs of
these texts are wrong, and consist of the mined texts themselves.

``learn_scores`` scores a bitext, and learns from judged pairs of it, or from translations mixed in.
Some pairs of the bitext itself get a wrong target: another line's, a part of their own, a copy of
their source.

``score_mixture`` compares the scores of all pairs (the list) with those of known right pairs and of
each kind of known wrong pairs.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numpy import ndarray
from numpy.typing import NDArray

from interlingua.corpus.formats.bitext import TextPair, read_pairs
from interlingua.corpus.samples.reservoir import reservoir
from interlingua.encoder.protocol import Encode
from interlingua.errors import ConfigError, DataError
from interlingua.mining.calibration.calibration import (
    MIN_CALIBRATION_PAIRS,
    Basis,
    Bin,
    Calibration,
    Curve,
    Fit,
    doubted,
    expected_cuts,
    fit_calibration,
    load_calibrations,
    log_odds_of,
    measure_calibration,
    precision_interval,
    reliability_by_tenths,
    resampled_curves,
    save_calibration,
    separation,
    share_interval,
)
from interlingua.mining.calibration.kinds import COMPARED, differences_of_kind
from interlingua.mining.calibration.mixed_stream import (
    EVERY,
    MixedStream,
    refused_of_block,
    similar_targets,
)
from interlingua.mining.calibration.score_mixture import (
    Mixture,
    draw_like,
    fit_mixture,
    move_scores,
)
from interlingua.mining.checks import NO_CHECKS, Checker, CheckPlan
from interlingua.mining.filter import (
    JUDGE,
    SHOWN_PRECISIONS,
    cut_line,
    quantile_line,
    refused,
    share_line,
)
from interlingua.mining.gold import gold_pairs, is_gold, numbers_of_texts
from interlingua.mining.pair_search import PairSearch
from interlingua.mining.pipeline import Mined, TextFile, mine_files
from interlingua.mining.review import Judgments, read_labels
from interlingua.mining.score import BitextScorer, ScoreConfig, Stream
from interlingua.mining.texts import Line, NumberedTexts
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike
from interlingua.storage.remote import check_writable
from interlingua.storage.workspace import Workspace

_LEAST = 80
"""Minimum number of held-out pairs, so that each quarter of them contains some."""
_MOST = 1_000_000
"""Maximum number of pairs of a stream that are read."""
LEAST_OF_KIND = 20
"""Minimum number of wrong pairs for which a kind is treated separately."""
MOST_HIDDEN = 2000
"""Maximum number of pairs whose two texts are hidden from each other."""
LEAST_HIDDEN = 50
"""Minimum number of wrong pairs of the texts themselves. With fewer, the curve is fitted to the
wrong pairs of held-out texts."""
Answer = bool | None
"""True if a pair is right; None if unknown."""


class Probes(NamedTuple):
    """Held-out lines that are appended to the source and to the target.

    Attributes:
        source: lines.
        target: lines.
        source_pairs: for each line of the source, the number of the pair that it is from.
        target_pairs: the same for the target.
    """

    source: list[Line]
    target: list[Line]
    source_pairs: Int64[ndarray, " s"]
    target_pairs: Int64[ndarray, " t"]


class Answers(NamedTuple):
    """Known answers of mined pairs.

    Attributes:
        known: marks pairs that consist of the two sides of one probe, or of a side of a probe and
            one of the texts themselves. The answer to a pair of two different probes is not known:
            probes often come from one source and are near each other, so such a pair says nothing
            about the texts.
        right: marks pairs of both sides of one probe; without meaning where ``known`` is false.
        own: marks pairs without a probe.
        excluded: number of probes that are left out, because one of their sides is also in the
            texts themselves or in another probe.
    """

    known: Bool[ndarray, " n"]
    right: Bool[ndarray, " n"]
    own: Bool[ndarray, " n"]
    excluded: int


def make_probes(pairs: Iterable[tuple[str, str]], limit: int, *, seed: int = 0) -> Probes:
    """Draw pairs and distribute their sides.

    Args:
        pairs: translations, read once.
        limit: maximum number of pairs.
        seed: of the draw.

    Raises:
        DataError: there are too few.
    """
    drawn = reservoir(pairs, limit, seed=seed)
    if len(drawn) < _LEAST:
        raise DataError(
            f"found {len(drawn)} held-out pairs, but a calibration needs at least {_LEAST}; pass"
            " more pairs"
        )
    # Both sides of the first half are used. In the second half, every second pair contributes only
    # its source, and each of the remaining pairs only its target.
    order = np.random.default_rng(seed).permutation(len(drawn))
    half = np.sort(order[: len(order) // 2])
    rest = order[len(order) // 2 :]
    numbers = [np.concatenate([half, np.sort(rest[place::2])]) for place in (0, 1)]

    def lines_of(place: int) -> list[Line]:
        """Return the drawn texts of one side, each on one line."""
        return [
            Line(" ".join(drawn[number][place].split()), f"probe:{number}")
            for number in numbers[place].tolist()
        ]

    return Probes(lines_of(0), lines_of(1), numbers[0], numbers[1])


def answers(pairs: NDArray[np.void], x: NumberedTexts, y: NumberedTexts, probes: Probes) -> Answers:
    """Return for which mined pairs the probes provide an answer, and the answers.

    Args:
        pairs: ``FOUND`` records.
        x: the texts of the source, followed by those of the probes.
        y: those of the target.
        probes: the probes that were mixed in.
    """
    sides = (x, probes.source_pairs, pairs["x"]), (y, probes.target_pairs, pairs["y"])
    # For each side: the number of the probe to which the text of each mined pair belongs.
    found = []
    is_clean = np.ones(len(pairs), bool)
    excluded = set[int]()
    for side, numbers, texts in sides:
        probe_of, bad = _probe_of_text(side, numbers)
        found.append(probe_of[texts])
        is_clean &= ~np.isin(texts, [text for text, _ in bad])
        excluded |= {number for _, number in bad}
    is_probe = [numbers >= 0 for numbers in found]
    is_right = is_probe[0] & (found[0] == found[1])
    # If only one of its texts is from a probe, the pair is wrong: the translation of this text is
    # missing, or another text scores higher.
    has_one_probe = is_probe[0] ^ is_probe[1]
    is_known = (is_right | has_one_probe) & is_clean
    is_own = ~(is_probe[0] | is_probe[1])
    return Answers(is_known, is_right, is_own, len(excluded))


def _probe_of_text(
    side: NumberedTexts, numbers: Sequence[int] | NDArray[np.integer]
) -> tuple[ndarray, list[tuple[int, int]]]:
    """Return the probe that each text belongs to.

    Returns:
        The number of each text's probe, -1 for the texts themselves. Also a list of the texts of
        probes that occur once more, among the texts themselves or in another probe, each with the
        number of its probe.
    """
    probe_of = np.full(len(side), -1, np.int64)
    # The probes are the last lines of the side.
    texts = np.asarray(side.text_of_line[len(side.text_of_line) - len(numbers) :])
    bad = []
    for text, number in zip(texts.tolist(), np.asarray(numbers).tolist(), strict=True):
        # A blank side of a held-out pair.
        if text < 0:
            continue
        probe_of[text] = number
        # The text is in another line as well.
        if len(side.lines_of(text)) > 1:
            bad.append((text, number))
    return probe_of, bad


class Known(NamedTuple):
    """Pairs with known answers.

    Attributes:
        scores: the scores of the pairs.
        right: the answers.
        notes: remarks for the user.
    """

    scores: Float64[ndarray, " n"]
    right: Bool[ndarray, " n"]
    notes: list[str]


class Learned(NamedTuple):
    """A curve, and further results from the known pairs.

    Attributes:
        fit: the curve.
        known: the pairs that it was fitted to.
        alternatives: curves by resampling.
        mixture: shares of right and wrong pairs in the list; None if they were not estimated.
    """

    fit: Fit
    known: Known
    alternatives: tuple[Curve, ...]
    mixture: Mixture | None = None

    def calibration(
        self, *, languages: tuple[str, str], model: str, scoring: str, basis: Basis
    ) -> Calibration:
        """Return a calibration for pairs with the same share of right ones as the known pairs."""
        scores, right, _ = self.known
        measures = {**self.fit.measures, "separation": separation(scores, right)}
        if self.mixture is not None and self.mixture.is_moved:
            measures["moved"] = self.mixture.shift
        found = self.fit._replace(measures=measures).calibration(
            languages=languages, model=model, scoring=scoring, basis=basis
        )
        return replace(found, alternatives=self.alternatives)


def is_enough(known: Known) -> bool:
    """Return whether there are enough known pairs of either answer to learn from."""
    right = int(known.right.sum())
    return min(right, len(known.right) - right) >= MIN_CALIBRATION_PAIRS


def learn_from_known(known: Known, *, seed: int = 0) -> Learned:
    """Fit a curve to known pairs as they are."""
    fit = fit_calibration(known.scores, known.right, seed=seed)
    right = known.scores[known.right]
    wrong = known.scores[~known.right]
    return Learned(fit, known, resampled_curves(right, [wrong], seed=seed))


def learn_from_samples(
    right: Float64[ndarray, " r"],
    wrong: Sequence[Float64[ndarray, " w"]],
    scores: Float64[ndarray, " n"],
    *,
    others: Sequence[Float64[ndarray, " o"]] = (),
    measured: Mapping[int, float] | None = None,
    seed: int = 0,
) -> Learned:
    """Fit a curve to known pairs that are adjusted to the list by its scores.

    Args:
        right: scores of known right pairs.
        wrong: scores of known wrong pairs, by kind; each kind is weighted by its share of the list.
        scores: of the list.
        others: scores of wrong pairs that resemble the list's less; used only for alternative
            curves.
        measured: see ``fit_mixture``.
        seed: of the draws.

    Raises:
        DataError: there are too few known pairs.
    """
    drawn = np.concatenate([right, *wrong])
    answers = np.repeat([True, False], [len(right), len(drawn) - len(right)])
    places = [place for place, kind in enumerate(wrong) if len(kind) >= LEAST_OF_KIND]
    kinds = [wrong[place] for place in places] or [drawn[~answers]]
    if not len(scores) or min(len(right), *map(len, kinds)) < LEAST_OF_KIND:
        return learn_from_known(Known(drawn, answers, []), seed=seed)
    shares = {places.index(at): share for at, share in (measured or {}).items() if at in places}
    mixture = fit_mixture(scores, right, kinds, measured=shares)
    bad = draw_like(kinds, mixture.wrong, seed=seed)
    good = move_scores(right, mixture.shift, mixture.scale)
    answers = np.repeat([True, False], [len(good), len(bad)])
    known = Known(np.concatenate([good, bad]), answers, [])
    pools = [bad, *(np.concatenate([bad, other]) for other in others)]
    return Learned(
        fit_calibration(known.scores, known.right, seed=seed),
        known,
        resampled_curves(right, pools, moves=mixture.near, seed=seed),
        mixture,
    )


class LearnedCalibration(NamedTuple):
    """A learned calibration, and the report in lines."""

    calibration: Calibration
    lines: list[str]


class KnownAnswers(NamedTuple):
    """Sources of mined pairs with known answers.

    Attributes:
        probes: held-out translations that are mixed into the texts.
        labels: judged pairs, and whether each is right.
        labels_path: their file.
        gold: all right pairs; if there is another source, they only measure the accuracy.
    """

    probes: Probes | None = None
    labels: Judgments | None = None
    labels_path: Path | None = None
    gold: Sequence[tuple[str, str]] | None = None

    @property
    def basis(self) -> Basis:
        """The source that a calibration is learned from."""
        if self.probes is not None:
            return "probes"
        if self.labels is not None:
            return "labels"
        return "gold"

    def known(self, mined: Mined) -> tuple[Known, Bool[ndarray, " n"]]:
        """Return the mined pairs with known answers; and mark those of the texts themselves."""
        own = np.ones(len(mined.pairs), bool)
        if self.probes is not None:
            answered = answers(mined.pairs, mined.x, mined.y, self.probes)
            return _probed(mined, self.probes, answered), answered.own
        if self.labels is not None:
            return _judged(mined, self.labels, self.labels_path), own
        return _golden(mined, self.gold or []), own


def check_calibration(
    output: Path,
    config: PairSearch,
    *,
    parallel: PathLike | None,
    labels: PathLike | None,
    gold: PathLike | None,
) -> None:
    """Check the options of ``interlingua calibrate`` that depend on each other.

    Raises:
        ConfigError: two of them exclude each other, or there is nothing to learn from.
        DataError: the output is an existing file that is not a calibration.
    """
    if output.is_file():
        load_calibrations(output)  # raises an error if it is another kind of file
    if parallel is not None and labels is not None:
        raise ConfigError("--parallel and --labels cannot be combined; remove one")
    if parallel is None and labels is None and gold is None:
        raise ConfigError(
            "no pairs with a known answer; pass --parallel (held-out translations), --labels or"
            " --gold"
        )
    if parallel is not None and config.documents:
        raise ConfigError(
            "--parallel and --documents cannot be combined, because held-out pairs belong to no"
            " document; remove --documents, or pass --labels instead of --parallel"
        )
    check_writable(output)


def read_probes(path: str, languages: tuple[str, str], limit: int, *, seed: int = 0) -> Probes:
    """Draw held-out pairs from a bitext of any format; see ``make_probes``."""
    pairs = read_pairs(path, source_language=languages[0], target_language=languages[1])
    texts = ((pair.source, pair.target) for pair in pairs)
    return make_probes(texts, limit, seed=seed)


def learn_from_mining(
    source: TextFile,
    target: TextFile,
    config: PairSearch,
    known: KnownAnswers,
    checks: CheckPlan = NO_CHECKS,
    *,
    work: Workspace,
    output: Path,
    model: str,
    seed: int = 0,
    progress: Progress = SILENT,
) -> LearnedCalibration:
    """Mine two sides, learn from the pairs with known answers, and write the calibration.

    Args:
        source: the one side.
        target: the other.
        config: how pairs are found.
        known: where the answers come from.
        checks: these exclude pairs from the fit.
        work: the work folder.
        output: the calibration file.
        model: identity of the model and its settings.
        seed: of the draws.
        progress: receives the progress of the work.
    """
    languages = source.language, target.language
    if known.probes is not None:
        source = source._replace(held_out=known.probes.source)
        target = target._replace(held_out=known.probes.target)
    checker = Checker(checks, languages, work.path / "seen")
    everything = mine_files(
        source,
        target,
        config,
        work,
        model=model,
        refuses=checker.refuses if checks.limits else None,
        progress=progress,
    )
    assert everything is not None
    # Precision refers only to pairs that no check rejects.
    is_refused = refused(checker, everything, everything.pairs)
    mined = everything._replace(pairs=everything.pairs[~is_refused])
    pairs, own = known.known(mined)
    # Checks may reject all that is known to be wrong, and leave nothing to compare with.
    if not is_enough(pairs):
        pairs, _ = known.known(everything)
    notes: list[str] = []
    if known.probes is None:
        learned = learn_from_known(pairs, seed=seed)
    else:
        learned = _learn_from_probes(pairs, mined, own, checker, seed)
        notes = differences_of_kind(
            languages, _texts_of_probes(known.probes), _texts_of_sides(mined, known.probes)
        )
    scores = np.array(mined.pairs["score"][own])
    found = learned.calibration(
        languages=languages, model=model, scoring=config.scoring, basis=known.basis
    )
    words = "pairs found"
    if known.basis == "labels":
        found = relative_to_list(found, scores)
    elif known.basis == "probes":
        # ``mine`` searches without them, and finds slightly different pairs and scores.
        words += " with the held-out texts mixed in"
    found = found.of_pairs(scores)
    save_calibration(found, output)
    lines = [*mined.notes, *pairs.notes, *report(learned.fit, found, scores, words), *notes]
    # The curve was not fitted to the gold pairs, so that they measure its accuracy.
    if known.gold is not None and known.basis != "gold":
        lines += against_gold(found, mined, own, known.gold)
    return LearnedCalibration(found, [*lines, f"written: {output}"])


def relative_to_list(found: Calibration, scores: Float64[ndarray, " n"]) -> Calibration:
    """Move the prior of a calibration from the judged pairs to all pairs of the list.

    Judged pairs may have been chosen by their scores, for example the worst first, so that the
    share of right ones among them says nothing about the list. The curves are valid for all pairs,
    and the mean of a curve over all pairs is their share of right pairs.

    Args:
        found: fitted to the judged pairs, with their share of right ones as its prior.
        scores: of all pairs.
    """
    share = float(found.probability(scores).mean())
    alternatives = []
    for curve in found.alternatives:
        own = float(found.with_curve(curve).probability(scores).mean())
        # A calibration has a single prior for all curves. The share of right pairs by this curve
        # differs from it, so the curve's log odds are moved by the difference.
        move = log_odds_of(share) - log_odds_of(own)
        alternatives.append(curve._replace(log_odds=tuple(odds + move for odds in curve.log_odds)))
    return replace(found, fitted_prior=share, prior=share, alternatives=tuple(alternatives))


def _learn_from_probes(
    known: Known, mined: Mined, own: Bool[ndarray, " n"], checker: Checker, seed: int
) -> Learned:
    """Learn from held-out pairs and, if there are enough, from hidden ones."""
    right = known.scores[known.right]
    wrong = known.scores[~known.right]
    scores = np.array(mined.pairs["score"][own])
    hidden = hidden_scores(mined, own, right, wrong, checker, seed=seed)
    if len(hidden) < LEAST_HIDDEN:
        return learn_from_samples(right, [wrong], scores, seed=seed)
    return learn_from_samples(right, [hidden], scores, others=[wrong], seed=seed)


def hidden_scores(
    mined: Mined,
    own: Bool[ndarray, " n"],
    right: Float64[ndarray, " r"],
    wrong: Float64[ndarray, " w"],
    checker: Checker,
    *,
    seed: int = 0,
) -> Float64[ndarray, " h"]:
    """Score the pairs that translated texts form while their translations are hidden.

    Half of the pairs that seem right are hidden. The other half stays, so that most of the best
    partners are taken, as they are for a text without a translation.

    Args:
        mined: all pairs that were found.
        own: marks the pairs of the texts themselves.
        right: scores of known right pairs.
        wrong: of known wrong pairs.
        checker: pairs that it rejects are left out.
        seed: of the draw.
    """
    places = np.flatnonzero(own)
    if (
        mined.retrieve_without is None
        or min(len(right), len(wrong), len(places)) < MIN_CALIBRATION_PAIRS
    ):
        return np.zeros(0)
    scores = np.array(mined.pairs["score"][places])
    # The pairs are in order of score. At most the better half is taken as right. If a hidden
    # pair is wrong, the new pairs of its texts score less, and give too little information.
    share = fit_mixture(scores, right, [wrong]).right
    count = round(len(places) * min(max(share, 0.02), 0.5))
    best = places[np.argsort(-scores, kind="stable")[:count]]
    rng = np.random.default_rng(seed)
    hidden = rng.choice(best, min(MOST_HIDDEN, len(best) // 2), replace=False)
    found = mined.retrieve_without(mined.pairs[np.sort(hidden)])
    # A held-out text must not be a partner of a text whose translation is hidden.
    is_own = np.zeros(len(mined.x), bool), np.zeros(len(mined.y), bool)
    for side, marks in zip(("x", "y"), is_own, strict=True):
        marks[mined.pairs[side][places]] = True
    found = found[is_own[0][found["x"]] & is_own[1][found["y"]]]
    return np.array(found["score"][~refused(checker, mined, found)])


def _texts_of_probes(probes: Probes) -> tuple[list[str], list[str]]:
    """Return the held-out texts of both sides."""
    return [line.text for line in probes.source], [line.text for line in probes.target]


def _texts_of_sides(mined: Mined, probes: Probes) -> tuple[list[str], list[str]]:
    """Return texts of both sides, evenly spaced, without the held-out ones at the end."""
    found = []
    for side, held_out in ((mined.x, probes.source), (mined.y, probes.target)):
        count = max(1, len(side) - len(held_out))
        places = np.linspace(0, count - 1, min(count, COMPARED)).round().astype(int)
        found.append([side.texts[place] for place in places.tolist()])
    return found[0], found[1]


def report(
    fit: Fit, found: Calibration, scores: Float64[ndarray, " n"], pairs: str = "pairs found"
) -> list[str]:
    """Return the lines that report the curve, its quality and its expectations for the pairs.

    Args:
        fit: the curve.
        found: the calibration.
        scores: of the pairs that the expectations are for.
        pairs: these pairs in words.
    """
    measures = found.measures
    compared = fit.compared
    lines = [
        f"{found.pairs:,} pairs with a known answer, {100 * fit.prior:.1f} % right;"
        f" {found.shape} curve (log loss on unseen pairs: logistic {compared['logistic']:.4f},"
        f" isotonic {compared['isotonic']:.4f})",
        f"on unseen pairs: calibration error (ECE) {measures['ece']:.4f}, Brier"
        f" {measures['brier']:.4f}",
        *_curve(found.bins),
    ]
    interval = share_interval(found, scores)
    lines += [
        share_line(f"the {len(scores):,} {pairs}", found.prior, interval, len(scores)),
        f"right pairs score more than wrong ones {measures['separation']:.0%} of the time",
    ]
    for cut in found.cuts:
        if cut.precision in SHOWN_PRECISIONS:
            lines.append(cut_line(cut, precision_interval(found, scores, cut.score)))
    if found.basis == "probes":
        lines.append(JUDGE)
        doubt = doubted(found)
        if doubt:
            lines.append(f"warning: {doubt}")
    return lines


def against_gold(
    found: Calibration, mined: Mined, own: Bool[ndarray, " n"], gold: Sequence[tuple[str, str]]
) -> list[str]:
    """Return lines that compare the probabilities with the gold pairs."""
    known, _ = gold_pairs(gold, mined.x, mined.y)
    right = is_gold(mined, known)[own]
    scores = mined.pairs["score"][own]
    probabilities = found.probability(scores)
    measures = measure_calibration(probabilities, right)
    lines = [
        (
            f"according to the gold pairs, {right.mean():.1%} of the pairs found are right"
            f" ({int(right.sum()):,}); calibration error (ECE) {measures['ece']:.4f}, Brier"
            f" {measures['brier']:.4f}"
        ),
        *_curve(reliability_by_tenths(probabilities, right, scores)),
    ]
    for cut in expected_cuts(scores, probabilities, SHOWN_PRECISIONS):
        is_right = right[scores >= cut.score]
        if len(is_right):
            lines.append(
                f"precision {cut.precision:.2f} requested: {is_right.mean():.3f} found, of"
                f" {len(is_right):,} pairs"
            )
    return lines


def _curve(bins: Sequence[Bin]) -> list[str]:
    """Return the reliability curve as the lines of a table: column names, then one bin per line."""
    rows = [
        f"{one.probability:9.3f}  {one.right:5.3f}  {one.pairs:6,}  {one.lowest:10.4f}"
        for one in bins
    ]
    return ["predicted  right   pairs  from score", *rows]


def _probed(mined: Mined, probes: Probes, answered: Answers) -> Known:
    """Return the mined pairs for which the probes provide an answer."""
    right = answered.right[answered.known]
    both = len(np.intersect1d(probes.source_pairs, probes.target_pairs))
    note = (
        f"held-out pairs: {len(probes.source) + len(probes.target):,} sides mixed in; of {both:,}"
        f" pairs with both sides, {int(right.sum()):,} were found; {answered.excluded:,} left out"
        " because one side is also in the texts"
    )
    return Known(mined.pairs["score"][answered.known], right, [note])


def _judged(mined: Mined, labels: Judgments, path: Path | None) -> Known:
    """Return the mined pairs that a person has judged."""
    # Numbers of the judged texts, of either side; -1 marks a missing text, which no mined pair
    # contains.
    texts = [
        numbers_of_texts(mined.x, {source for source, _ in labels.answers}),
        numbers_of_texts(mined.y, {target for _, target in labels.answers}),
    ]
    by_number = {
        (texts[0].get(a, -1), texts[1].get(b, -1)): answer
        for (a, b), answer in labels.answers.items()
    }
    pairs = list(zip(mined.pairs["x"].tolist(), mined.pairs["y"].tolist(), strict=True))
    at = np.array([place for place, pair in enumerate(pairs) if pair in by_number], dtype=np.int64)
    if not len(at):
        raise DataError(
            "none of the judged pairs was mined; judge pairs that `interlingua mine` wrote",
            path=path,
        )
    right = np.array([by_number[pairs[place]] for place in at.tolist()])
    note = f"{len(at)} of {len(labels.answers)} judged pairs are among the mined pairs"
    return Known(mined.pairs["score"][at], right, [*labels.notes, note])


def _golden(mined: Mined, gold: Sequence[tuple[str, str]]) -> Known:
    """Return all mined pairs; a pair is wrong if it is not among the gold pairs."""
    known, lost = gold_pairs(gold, mined.x, mined.y)
    right = is_gold(mined, known)
    note = (
        f"{int(right.sum())} of {len(known)} gold pairs were found; {lost} have a text that is"
        " not in the input"
    )
    return Known(np.array(mined.pairs["score"]), right, [note])


def check_learning(learn: Path | None, labels: PathLike | None, parallel: PathLike | None) -> bool:
    """Return whether a calibration of ``interlingua score`` is learned.

    Args:
        learn: the calibration file to write.
        labels: judged pairs; without ``learn`` they decide which pairs are kept.
        parallel: held-out translations.

    Raises:
        ConfigError: not exactly one of ``labels`` and ``parallel`` is passed with ``learn``, or
            ``parallel`` is passed without it.
    """
    if learn is None:
        if parallel is not None:
            raise ConfigError("--parallel requires --learn (the calibration file to write)")
        return False
    if learn.is_file():
        load_calibrations(learn)  # raises an error if it is another kind of file
    if (labels is None) == (parallel is None):
        raise ConfigError(
            "--learn requires either --labels (judged pairs) or --parallel (held-out"
            " translations); pass exactly one of them"
        )
    return True


def learn_scores(
    stream: Stream,
    encode: Encode,
    config: ScoreConfig,
    checks: CheckPlan = NO_CHECKS,
    *,
    output: Path,
    labels: Path | None = None,
    parallel: str | None = None,
    model: str,
    seed: int = 0,
    progress: Progress = SILENT,
) -> list[str]:
    """Score a bitext, learn the probabilities of its scores, and write the calibration.

    Args:
        stream: the bitext, see ``open_stream``.
        encode: gives vectors of length 1.
        config: how scores are made.
        checks: these exclude pairs from the fit.
        output: the calibration file; other language pairs in it stay.
        labels: pairs of the stream that were judged, 1 or 0 TAB source TAB target.
        parallel: held-out translations in any format of bitext, mixed into the stream, see
            ``MixedStream``.
        model: identity of the model and its settings.
        seed: of the folds of the fit, and of the draws.
        progress: receives the progress of the work.

    Returns:
        The report, in lines.

    Raises:
        ConfigError: not exactly one of ``labels`` and ``parallel`` is passed.
        DataError: too few pairs with a known answer are in the stream.
    """
    check_learning(output, labels, parallel)
    with contextlib.ExitStack() as stack:
        stack.enter_context(stream.bad)
        folder = None
        if stream.path is not None:
            temporary = tempfile.TemporaryDirectory(prefix="interlingua-")
            folder = Path(stack.enter_context(temporary))
        checker = Checker(checks, stream.languages, folder)
        progress.start(stream.total, "pairs", "scoring")
        scorer = BitextScorer(encode, config, progress=progress)
        pairs = itertools.islice(stream.pairs, _MOST)
        if labels is not None:
            scores, known = score_judged_pairs(scorer, pairs, read_labels(labels), checker)
            learned = learn_from_known(known, seed=seed)
            notes = list(known.notes)
        else:
            held_out = _held_out(str(parallel), stream.languages, seed)
            made = MixedStream(held_out, similar_targets(held_out, encode), seed=seed)
            # Spread the held-out pairs over the whole stream: its first pairs may be of another
            # kind than the others, for example if the stream is sorted by length.
            if stream.total is not None:
                made.every = max(EVERY, min(stream.total, _MOST) // len(held_out))
            scores, right, wrong = made.scored(scorer, pairs, checker)
            learned = learn_from_samples(right, wrong, scores, measured=made.measured(), seed=seed)
            notes = [*made.notes(), *made.differences(stream.languages)]
    found = learned.calibration(
        languages=stream.languages,
        model=model,
        scoring=config.scoring,
        basis="probes" if labels is None else "labels",
    )
    if labels is not None:
        found = relative_to_list(found, scores)
    found = found.of_pairs(scores)
    save_calibration(found, output)
    return [
        *report(learned.fit, found, scores, "pairs that no check rejects"),
        quantile_line(scores),
        *notes,
        f"written: {output}",
        *stream.bad.lines(),
    ]


def _held_out(path: str, languages: tuple[str, str], seed: int) -> list[TextPair]:
    """Return the translations to mix in, in random order."""
    found = list(read_pairs(path, source_language=languages[0], target_language=languages[1]))
    # The wrong target of a pair comes from another pair, so at least two pairs are needed.
    if len(found) < 2:
        raise DataError(
            "expected at least 2 pairs to learn from, found fewer; add held-out translations",
            path=path,
        )
    # In random order, because in a sorted file short pairs are combined only with short ones.
    random.Random(seed).shuffle(found)
    return found


def score_judged_pairs(
    scorer: BitextScorer,
    pairs: Iterable[TextPair],
    labels: Judgments,
    checker: Checker,
) -> tuple[Float64[ndarray, " n"], Known]:
    """Score all pairs; return the scores of the pairs that pass all checks, and the known pairs."""
    scores = [np.zeros(0)]
    marks = [np.zeros(0, bool)]
    answers: list[Answer] = []
    for block in scorer.score(pairs):
        scores.append(block.scores)
        marks.append(~refused_of_block(checker, block.pairs))
        for pair in block.pairs:
            answers.append(labels.answer(pair.source, pair.target))
    notes = [*labels.notes, *labels.unmatched()]
    found = np.concatenate(scores)
    accepted = np.concatenate(marks)
    is_known = np.array([answer is not None for answer in answers], bool)
    right = np.array([bool(answer) for answer in answers], bool)
    known = Known(found[is_known & accepted], right[is_known & accepted], notes)
    # Checks may reject all pairs that were judged wrong; then nothing is left to compare with.
    if not is_enough(known):
        known = Known(found[is_known], right[is_known], notes)
    return found[accepted], known
