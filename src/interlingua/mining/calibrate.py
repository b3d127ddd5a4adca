"""Learns what a score is worth from pairs with known answers, for ``mine`` and for ``score``.

``CalibrateJob`` mines, and learns from held-out translations that are mixed into the texts
(probes), from judged pairs, or from all right pairs. Both sides of half of the probes are mixed in.
Only one side of the others is, so that whatever it is paired with is wrong. These wrong pairs come
from the same search and the same retrieval as the wrong pairs among the texts themselves.

``LearnJob`` scores a bitext, and learns from judged pairs of it, or from translations mixed in,
each followed by its source with a wrong target.
"""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numpy import ndarray
from numpy.typing import NDArray

from interlingua.corpus.formats import TextPair, read_pairs
from interlingua.corpus.reservoir import reservoir
from interlingua.encoder.protocol import Encode
from interlingua.errors import ConfigError, DataError
from interlingua.files import tab_rows
from interlingua.mining import defaults
from interlingua.mining.calibration import (
    FITS,
    Basis,
    Bin,
    Calibration,
    Fit,
    doubted,
    expected_cuts,
    fit_calibration,
    load_calibrations,
    measure,
    reliability_by_tenths,
    save_calibration,
    separation,
    share_interval,
)
from interlingua.mining.filter import quantile_line
from interlingua.mining.gold import gold_pairs, is_gold, numbers_of_texts, read_gold
from interlingua.mining.mine import SHOWN_PRECISIONS
from interlingua.mining.pipeline import MineConfig, Mined, TextFile, mine_files, with_lines
from interlingua.mining.score import BitextScorer, ScoreConfig, Stream, counted
from interlingua.mining.texts import Line, NumberedTexts
from interlingua.mining.vectors import embed_texts
from interlingua.mining.work_folder import at_work
from interlingua.remote import check_writable
from interlingua.runtime import Progress, Streamed, silent

LEAST = 80
"""Pairs of held-out text, so that there is something in every quarter."""
MOST = 1_000_000
"""Pairs of a stream that are looked at."""
EVERY = 4
"""Pairs of the stream from one held-out pair to the next."""
Answer = bool | None
"""Whether a pair is right; None where it is not known."""


class Probes(NamedTuple):
    """Lines to put behind those of the source and of the target.

    Attributes:
        source: lines.
        target: lines.
        source_pairs: number of the pair that each line of the source is a side of.
        target_pairs: of the target.
    """

    source: list[Line]
    target: list[Line]
    source_pairs: Int64[ndarray, " s"]
    target_pairs: Int64[ndarray, " t"]


class Answers(NamedTuple):
    """What is known of mined pairs.

    Attributes:
        known: pairs of a probe's two sides, or of one side and one of the texts themselves. A pair
            of two different probes is not known: probes often come from one source and are near
            each other, so such a pair says nothing about the texts.
        right: both sides of one probe; of no meaning where not known.
        own: pairs without a probe.
        excluded: probes left out, since the texts themselves hold a side of them, or two share one.
    """

    known: Bool[ndarray, " n"]
    right: Bool[ndarray, " n"]
    own: Bool[ndarray, " n"]
    excluded: int


def make_probes(pairs: Iterable[tuple[str, str]], limit: int, *, seed: int = 0) -> Probes:
    """Draws pairs and deals out their sides.

    Args:
        pairs: translations, read once.
        limit: pairs to take at most.
        seed: of the draw.

    Raises:
        DataError: there are too few.
    """
    drawn = reservoir(pairs, limit, seed=seed)
    if len(drawn) < LEAST:
        raise DataError(
            f"{len(drawn)} held-out pairs are too few for a calibration; give at least {LEAST}"
        )
    # Both sides of one half go in; of the rest every other pair gives its source alone, the others
    # their target alone.
    order = np.random.default_rng(seed).permutation(len(drawn))
    half = np.sort(order[: len(order) // 2])
    rest = order[len(order) // 2 :]
    numbers = [np.concatenate([half, np.sort(rest[place::2])]) for place in (0, 1)]

    def lines_of(place: int) -> list[Line]:
        """The drawn texts of one side, each on one line."""
        return [
            Line(" ".join(drawn[number][place].split()), f"probe:{number}")
            for number in numbers[place].tolist()
        ]

    return Probes(lines_of(0), lines_of(1), numbers[0], numbers[1])


def answers(pairs: NDArray[np.void], x: NumberedTexts, y: NumberedTexts, probes: Probes) -> Answers:
    """What the probes tell of mined pairs.

    Args:
        pairs: ``FOUND`` records.
        x: the texts of the source, the probes' behind them.
        y: those of the target.
        probes: as they were put in.
    """
    sides = (x, probes.source_pairs, pairs["x"]), (y, probes.target_pairs, pairs["y"])
    # The number of each mined pair's probe, of either side.
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
    # The probe's own translation is not there, or lost to a text that scores more: it is wrong.
    has_one_probe = is_probe[0] ^ is_probe[1]
    is_known = (is_right | has_one_probe) & is_clean
    is_own = ~(is_probe[0] | is_probe[1])
    return Answers(is_known, is_right, is_own, len(excluded))


def _probe_of_text(
    side: NumberedTexts, numbers: Sequence[int] | NDArray[np.integer]
) -> tuple[ndarray, list[tuple[int, int]]]:
    """Which probe each text is a side of.

    Returns:
        The number of the probe, -1 for the texts themselves; and of texts that are both, or of two
        probes, the text and its probe.
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
        # The text stands in another line as well.
        if len(side.lines_of(text)) > 1:
            bad.append((text, number))
    return probe_of, bad


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


class LearnedCalibration(NamedTuple):
    """What was learned, and the report in lines."""

    calibration: Calibration
    lines: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class CalibrateJob:
    """What ``interlingua calibrate`` does, by the names of its options.

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
    probes: int = defaults.PROBES
    seed: int = 0
    work: Path | None = None

    def __post_init__(self) -> None:
        if self.output.is_file():
            load_calibrations(self.output)  # another file of that name would be lost
        if self.parallel is not None and self.labels is not None:
            raise ConfigError(
                "held-out text and judged pairs are two ways to learn; give one of them"
            )
        if self.basis == "gold" and self.gold is None:
            raise ConfigError(
                "no right and wrong pairs are known; give --parallel held-out text,"
                " --labels or --gold"
            )
        if self.parallel is not None and self.config.documents is not None:
            raise ConfigError(
                "held-out text is part of no document; calibrate without documents, or with"
                " --labels"
            )

    @property
    def basis(self) -> Basis:
        """Where the answers come from; gold next to another basis only measures."""
        if self.parallel:
            return "probes"
        if self.labels:
            return "labels"
        return "gold"

    @property
    def folder(self) -> Path:
        """Of all that is made on the way."""
        return self.work or self.output.with_name(f"{self.output.name}.work")

    def run(
        self, source: TextFile, target: TextFile, model: str, *, progress: Progress
    ) -> LearnedCalibration:
        """Mines the texts, learns from the pairs and writes the calibration."""
        check_writable(self.output)
        languages = source.language, target.language
        # All inputs are read before the work, which takes long, so that a bad one costs nothing.
        probes = self._probes(languages)
        gold = read_gold(self.gold) if self.gold else None
        labels = read_labels(self.labels) if self.labels else {}
        if probes is not None:
            source = source._replace(extra=[*source.extra, *probes.source])
            target = target._replace(extra=[*target.extra, *probes.target])
        with at_work(self.folder, keep=self.work is not None):
            source, target = (with_lines(side, self.folder) for side in (source, target))
            mined = mine_files(
                source, target, self.config, self.folder, model=model, progress=progress
            )
            return self._learn(mined, probes, labels, gold, languages, model)

    def _learn(
        self,
        mined: Mined | None,
        probes: Probes | None,
        labels: dict[tuple[str, str], bool],
        gold: Sequence[tuple[str, str]] | None,
        languages: tuple[str, str],
        model: str,
    ) -> LearnedCalibration:
        """Writes the calibration."""
        assert mined is not None
        # Which pairs have known answers, and which are of the texts themselves.
        own = np.ones(len(mined.pairs), bool)
        if probes is not None:
            answered = answers(mined.pairs, mined.x, mined.y, probes)
            own = answered.own
            known = _probed(mined, probes, answered)
        elif self.labels is not None:
            known = _judged(mined, labels, self.labels)
        else:
            known = _golden(mined, gold or [])
        fit = fit_calibration(known.scores, known.right, seed=self.seed)
        auc = separation(known.scores, known.right)
        fit = fit._replace(measures={**fit.measures, "separation": auc})
        scores = mined.pairs["score"][own]
        found = fit.calibration(
            languages=languages, model=model, scoring=self.config.scoring, basis=self.basis
        )
        if self.basis == "labels":
            # Judged pairs may have been chosen by their score; the curve holds for all pairs, and
            # so does its mean.
            share = float(found.probability(scores).mean())
            found = replace(found, fitted_prior=share, prior=share).cut_for(scores)
        else:
            found = found.of_pairs(scores)
        save_calibration(found, self.output)
        lines = [*mined.notes, *known.notes, *report(fit, found, int(own.sum()))]
        # Judged and gold pairs are the texts' own, held-out ones may be of another kind.
        if self.basis == "probes":
            lines += self._share_lines(found, known, scores)
        # The curve was not fitted to these, so that they can tell how true it is.
        if gold is not None and self.basis != "gold":
            lines += against_gold(found, mined, own, gold)
        return LearnedCalibration(found, [*lines, f"written: {self.output}"])

    def _probes(self, languages: tuple[str, str]) -> Probes | None:
        """Held-out pairs to mix in, where they are what is learned from."""
        if self.parallel is None:
            return None
        pairs = read_pairs(
            self.parallel, source_language=languages[0], target_language=languages[1]
        )
        texts = ((pair.source, pair.target) for pair in pairs)
        return make_probes(texts, self.probes, seed=self.seed)

    def _share_lines(
        self, found: Calibration, known: Known, scores: Float64[ndarray, " n"]
    ) -> list[str]:
        """How far the estimated share can be relied on, in lines."""
        low, high = share_interval(
            found, FITS[found.shape], known.scores, known.right, scores, seed=self.seed
        )
        line = (
            f"this share: {low:.1%} to {high:.1%} by resampling, if known pairs are like the"
            f" others; right ones score more than wrong ones {found.measures['separation']:.0%} of"
            " the time"
        )
        doubt = doubted(found)
        if not doubt:
            return [line]
        return [line, f"warning: {doubt}"]


def read_labels(path: Path) -> dict[tuple[str, str], bool]:
    """Judged pairs: 1 or 0 TAB source TAB target.

    Raises:
        DataError: a line is none.
    """
    labels = {}
    for number, cells in tab_rows(path):
        if len(cells) != 3 or cells[0] not in ("0", "1"):
            raise DataError("expected 1 or 0 TAB source TAB target", path=path, line=number)
        labels[cells[1].strip(), cells[2].strip()] = cells[0] == "1"
    return labels


def report(fit: Fit, found: Calibration, own: int) -> list[str]:
    """The curve and its quality, in lines."""
    measures = found.measures
    compared = fit.compared
    lines = [
        f"{found.pairs:,} pairs with a known answer, {100 * found.fitted_prior:.1f} % right;"
        f" {found.shape} curve (log loss on unseen pairs: logistic {compared['logistic']:.4f},"
        f" isotonic {compared['isotonic']:.4f})",
        f"on unseen pairs: calibration error (ECE) {measures['ece']:.4f}, Brier"
        f" {measures['brier']:.4f}",
        *_curve(found.bins),
    ]
    lines.append(
        f"translations among the {own:,} pairs found: {found.prior:.1%}, about"
        f" {found.prior * own:,.0f}"
    )
    for cut in found.cuts:
        if cut.precision in SHOWN_PRECISIONS:
            outcome = "no pair is that likely"
            if cut.pairs:
                outcome = f"{cut.pairs:,} pairs, from score {cut.score:.4f} on"
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
        f"by the gold pairs {right.mean():.1%} of the pairs found are right"
        f" ({int(right.sum()):,}); calibration error (ECE) {measures['ece']:.4f}, Brier"
        f" {measures['brier']:.4f}",
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
    """The reliability curve as a table, a bin in a line, under the names of its columns."""
    rows = [
        f"{one.probability:9.3f}  {one.right:5.3f}  {one.pairs:6,}  {one.lowest:10.4f}"
        for one in bins
    ]
    return ["predicted  right   pairs  from score", *rows]


def _probed(mined: Mined, probes: Probes, answered: Answers) -> Known:
    """The mined pairs that the probes tell something of."""
    right = answered.right[answered.known]
    both = len(np.intersect1d(probes.source_pairs, probes.target_pairs))
    note = (
        f"held-out pairs: {len(probes.source) + len(probes.target):,} sides mixed in; of"
        f" {both:,} pairs with both sides {int(right.sum()):,} were found;"
        f" {answered.excluded:,} left out, of which a side is in the texts too"
    )
    return Known(mined.pairs["score"][answered.known], right, [note])


def _judged(mined: Mined, labels: dict[tuple[str, str], bool], path: Path) -> Known:
    """The mined pairs that someone has judged."""
    # Numbers of the judged texts, of either side; -1 stands for a text that is not there, and no
    # mined pair holds it.
    texts = [
        numbers_of_texts(side, {pair[place] for pair in labels})
        for place, side in enumerate((mined.x, mined.y))
    ]
    by_number = {
        (texts[0].get(a, -1), texts[1].get(b, -1)): answer for (a, b), answer in labels.items()
    }
    pairs = list(zip(mined.pairs["x"].tolist(), mined.pairs["y"].tolist(), strict=True))
    at = np.array([place for place, pair in enumerate(pairs) if pair in by_number], dtype=np.int64)
    if not len(at):
        raise DataError("none of its pairs was mined; judge pairs of what mine writes", path=path)
    right = np.array([by_number[pairs[place]] for place in at.tolist()])
    note = f"{len(at)} of {len(labels)} judged pairs are among those found"
    return Known(mined.pairs["score"][at], right, [note])


def _golden(mined: Mined, gold: Sequence[tuple[str, str]]) -> Known:
    """All mined pairs: one that is not among the gold pairs is wrong."""
    known, lost = gold_pairs(gold, mined.x, mined.y)
    right = is_gold(mined, known)
    note = (
        f"{int(right.sum())} of {len(known)} gold pairs were found; {lost} are of texts that are"
        " not there"
    )
    return Known(np.array(mined.pairs["score"]), right, [note])


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnJob:
    """How a calibration of ``interlingua score`` is made.

    Attributes:
        output: the calibration file; other language pairs in it stay.
        labels: pairs of the stream that were judged, 1 or 0 TAB source TAB target.
        parallel: held-out translations in any format of bitext, mixed into the stream as right
            pairs, and with other targets as wrong ones, see ``wrong_targets``.
        config: what a score is.
        seed: of the folds of the fit.
    """

    output: Path
    labels: Path | None = None
    parallel: str | None = None
    config: ScoreConfig = field(default_factory=ScoreConfig)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.output.is_file():
            load_calibrations(self.output)  # another file of that name would be lost
        if (self.labels is None) == (self.parallel is None):
            raise ConfigError(
                "give one of --labels, judged pairs, and --parallel, held-out translations, to"
                " learn from"
            )

    def run(
        self,
        stream: Stream,
        encode: Encode,
        *,
        model: str,
        progress: Streamed = silent,
    ) -> list[str]:
        """Does it; what there is to tell, in lines.

        Args:
            stream: the bitext, see ``open_stream``.
            encode: gives vectors of length 1.
            model: what tells the model.
            progress: called with how many pairs are done, and all where that is known.

        Raises:
            DataError: too few pairs of a known answer are in the stream.
        """
        with stream.bad:
            return [*self._learn(stream, encode, model, progress), *stream.bad.lines()]

    def _learn(
        self,
        stream: Stream,
        encode: Encode,
        model: str,
        progress: Streamed,
    ) -> list[str]:
        scorer = BitextScorer(encode, self.config, progress=counted(progress, stream.total))
        pairs = itertools.islice(stream.pairs, MOST)
        if self.labels is not None:
            found = judged(scorer, pairs, read_labels(self.labels))
        else:
            held_out = self._held_out(stream.languages)
            found = mixed(scorer, pairs, held_out, wrong_targets(held_out, encode))
        scores, answers = (np.array(values) for values in zip(*found, strict=True))
        known = np.array([answer is not None for answer in answers])
        fit = fit_calibration(scores[known], answers[known].astype(bool), seed=self.seed)
        # Judged pairs are the stream's own; held-out ones are not, and must not count in its share.
        own = scores
        if self.labels is None:
            own = scores[~known]
        calibration = fit.calibration(
            languages=stream.languages,
            model=model,
            scoring=self.config.scoring,
            basis="probes" if self.labels is None else "labels",
        ).of_pairs(own)
        save_calibration(calibration, self.output)
        return [*report(fit, calibration, len(own)), quantile_line(own), f"written: {self.output}"]

    def _held_out(self, languages: tuple[str, str]) -> list[TextPair]:
        """The translations to mix in."""
        pairs = read_pairs(
            str(self.parallel), source_language=languages[0], target_language=languages[1]
        )
        found = list(pairs)
        # The wrong target of the one is the other's: it takes two.
        if len(found) < 2:
            raise DataError(
                "holds fewer than two pairs; there is nothing to learn from", path=self.parallel
            )
        return found


def learn_job(
    learn: Path | None, labels: Path | None, parallel: str | None, config: ScoreConfig
) -> LearnJob | None:
    """From options; None where nothing is to be learned.

    Raises:
        ConfigError: there is nothing to learn from, or nothing to write.
    """
    if learn is not None:
        return LearnJob(output=learn, labels=labels, parallel=parallel, config=config)
    if labels is not None or parallel is not None:
        raise ConfigError(
            "--labels and --parallel are to learn from; name the calibration to write with --learn"
        )
    return None


def judged(
    scorer: BitextScorer, pairs: Iterable[TextPair], labels: Mapping[tuple[str, str], bool]
) -> list[tuple[float, Answer]]:
    """Scores of all pairs, with the answers that are known."""
    return [
        (float(score), labels.get((pair.source.strip(), pair.target.strip())))
        for block in scorer.score(pairs)
        for pair, score in zip(block.pairs, block.scores, strict=True)
    ]


def mixed(
    scorer: BitextScorer,
    pairs: Iterable[TextPair],
    held_out: Sequence[TextPair],
    wrong: Sequence[str],
) -> list[tuple[float, Answer]]:
    """Scores of the pairs, and of held-out pairs mixed in among them, with what is known.

    Each held-out pair is followed by its source with a wrong target.
    """
    # The scorer reads a window ahead of what it gives back; the answers wait here meanwhile.
    answers: deque[Answer] = deque()

    def both() -> Iterator[TextPair]:
        probes = zip(held_out, wrong, strict=True)
        for number, pair in enumerate(pairs, 1):
            answers.append(None)
            yield pair
            if number % EVERY != 0:
                continue
            probe = next(probes, None)
            # A wrong target that happens to be the right one tells nothing.
            if probe is not None and probe[0].target.strip() != probe[1].strip():
                answers.extend((True, False))
                yield probe[0]
                yield probe[0]._replace(target=probe[1])

    return [
        (float(score), answers.popleft())
        for block in scorer.score(both())
        for score in block.scores
    ]


def wrong_targets(pairs: Sequence[TextPair], encode: Encode) -> list[str]:
    """A wrong target for every pair, in turn of each kind that bitexts are full of.

    The next pair's, as where lines are misaligned; the most similar of all others, as where similar
    sentences were matched; the first half of its own, as where something is missing.
    """
    targets = [pair.target.strip() for pair in pairs]
    distinct = list(dict.fromkeys(targets))
    encode = functools.partial(encode, language=pairs[0].target_language)
    vectors = embed_texts(encode, distinct)
    row = {text: number for number, text in enumerate(distinct)}
    found = []
    for number, target in enumerate(targets):
        if number % 3 == 0:
            # The last one takes that of the first.
            found.append(targets[(number + 1) % len(targets)])
        elif number % 3 == 1 and len(distinct) > 1:
            # The most similar text is itself; it is taken out.
            similar = vectors @ vectors[row[target]]
            similar[row[target]] = -np.inf
            found.append(distinct[int(similar.argmax())])
        else:
            found.append(first_half(target))
    return found


def first_half(text: str) -> str:
    """Half of the words, or of the characters of a text without spaces."""
    words = text.split()
    if len(words) > 1:
        return " ".join(words[: len(words) // 2])
    return text[: len(text) // 2]
