"""What the scores of a bitext are worth: learnt from pairs of it that were judged, or from translations mixed in."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from numpy import ndarray

from interlingua.corpus.formats import TextPair, read_pairs
from interlingua.errors import ConfigError, DataError
from interlingua.mining.calibrate import read_labels, report
from interlingua.mining.calibration import Calibration, expected_cuts, load_calibrations, save_calibration
from interlingua.mining.filter import quantile_line
from interlingua.mining.fitting import Fit, fit_calibration
from interlingua.mining.score import PORTION, Encode, PairScorer, ScoreConfig
from interlingua.mining.score_job import Stream, counted

MOST = 1_000_000
"""Pairs of a stream that are looked at."""
EVERY = 4
"""Pairs of the stream from one held-out pair to the next."""
Answer = bool | None
"""Whether a pair is right; None where it is not known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnJob:
    """How a calibration of ``interlingua score`` is made.

    Attributes:
        output: the calibration file; other language pairs in it stay.
        labels: pairs of the stream that were judged, 1 or 0 TAB source TAB target.
        parallel: held-out translations in any format of bitext, mixed into the stream as right pairs, and with other
            targets as wrong ones, see ``wrong_targets``.
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
                "give one of --judged, judged pairs, and --parallel, held-out translations, to learn from"
            )

    def run(
        self,
        stream: Stream,
        encode: Encode,
        *,
        model: str,
        progress: Callable[[float, int | None], None] = lambda done, total: None,
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
        self, stream: Stream, encode: Encode, model: str, progress: Callable[[float, int | None], None]
    ) -> list[str]:
        scorer = PairScorer(encode, self.config, progress=counted(progress, stream.total))
        pairs = itertools.islice(stream.pairs, MOST)
        if self.labels is not None:
            found = judged(scorer, pairs, read_labels(self.labels))
        else:
            held_out = self._held_out(stream.languages)
            found = mixed(scorer, pairs, held_out, wrong_targets(held_out, encode))
        scores, answers = (np.array(values) for values in zip(*found, strict=True))
        known = np.array([answer is not None for answer in answers])
        fit = fit_calibration(scores[known], answers[known].astype(bool), seed=self.seed)
        own = scores if self.labels is not None else scores[~known]
        calibration = self._calibration(fit, own, int(known.sum()), stream.languages, model)
        save_calibration(calibration, self.output)
        return [*report(fit, calibration, len(own)), quantile_line(own), f"written: {self.output}"]

    def _held_out(self, languages: tuple[str, str]) -> list[TextPair]:
        found = list(read_pairs(str(self.parallel), source_language=languages[0], target_language=languages[1]))
        if len(found) < 2:
            raise DataError("holds fewer than two pairs; there is nothing to learn from", path=self.parallel)
        return found

    def _calibration(
        self, fit: Fit, own: Float64[ndarray, " n"], pairs: int, languages: tuple[str, str], model: str
    ) -> Calibration:
        found = Calibration(
            source_language=languages[0], target_language=languages[1], model=model, scoring=self.config.scoring,
            basis="labels" if self.labels is not None else "probes", shape=fit.curve.shape, scores=fit.curve.scores,
            log_odds=fit.curve.log_odds, fitted_prior=fit.prior, prior=fit.prior, pairs=pairs, measures=fit.measures,
            bins=fit.bins,
        )  # fmt: skip
        found = replace(found, prior=found.estimate_prior(own))
        return replace(found, cuts=expected_cuts(own, found.probability(own)))


def learn_job(learn: Path | None, labels: Path | None, parallel: str | None, config: ScoreConfig) -> LearnJob | None:
    """From options; None where nothing is to be learnt.

    Raises:
        ConfigError: there is nothing to learn from, or nothing to write.
    """
    if learn is not None:
        return LearnJob(output=learn, labels=labels, parallel=parallel, config=config)
    if labels is not None or parallel is not None:
        raise ConfigError("--judged and --parallel are to learn from; name the calibration to write with --learn")
    return None


def judged(
    scorer: PairScorer, pairs: Iterable[TextPair], labels: Mapping[tuple[str, str], bool]
) -> list[tuple[float, Answer]]:
    """Scores of all pairs, with the answers that are known."""
    return [
        (float(score), labels.get((pair.source.strip(), pair.target.strip())))
        for block in scorer.score(pairs)
        for pair, score in zip(block.pairs, block.scores, strict=True)
    ]


def mixed(
    scorer: PairScorer, pairs: Iterable[TextPair], held_out: Sequence[TextPair], wrong: Sequence[str]
) -> list[tuple[float, Answer]]:
    """Scores of the pairs, and of held-out pairs among them, each followed by its source with a wrong target."""
    answers: deque[Answer] = deque()

    def both() -> Iterator[TextPair]:
        probes = zip(held_out, wrong, strict=True)
        for number, pair in enumerate(pairs, 1):
            answers.append(None)
            yield pair
            probe = next(probes, None) if number % EVERY == 0 else None
            if probe is not None and probe[0].target.strip() != probe[1].strip():
                answers.extend((True, False))
                yield probe[0]
                yield probe[0]._replace(target=probe[1])

    return [(float(score), answers.popleft()) for block in scorer.score(both()) for score in block.scores]


def wrong_targets(pairs: Sequence[TextPair], encode: Encode) -> list[str]:
    """A wrong target for every pair, in turn of each kind that bitexts are full of.

    The next pair's, as where lines are misaligned; the most similar of all others, as where similar sentences were
    matched; the first half of its own, as where something is missing.
    """
    targets = [pair.target.strip() for pair in pairs]
    distinct = list(dict.fromkeys(targets))
    vectors = np.concatenate(
        [encode(distinct[start : start + PORTION], language=pairs[0].target_language)
         for start in range(0, len(distinct), PORTION)]
    )  # fmt: skip
    row = {text: number for number, text in enumerate(distinct)}
    found = []
    for number, target in enumerate(targets):
        if number % 3 == 0:
            found.append(targets[(number + 1) % len(targets)])
        elif number % 3 == 1 and len(distinct) > 1:
            similar = vectors @ vectors[row[target]]
            similar[row[target]] = -np.inf
            found.append(distinct[int(similar.argmax())])
        else:
            found.append(first_half(target))
    return found


def first_half(text: str) -> str:
    """Half of the words, or of the characters of a text without spaces."""
    words = text.split()
    return " ".join(words[: len(words) // 2]) if len(words) > 1 else text[: len(text) // 2]
