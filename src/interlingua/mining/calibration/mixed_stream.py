"""Mix pairs with known answers into a bitext that is scored as a stream.

``MixedStream`` mixes in held-out translations, and gives some of the bitext's own pairs wrong
targets of the kinds that are frequent in bitexts. The scores of these right and wrong pairs
calibrate all scores.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float64
from numpy import ndarray

from interlingua.corpus.formats.bitext import TextPair
from interlingua.encoder.protocol import Encode
from interlingua.errors import DataError
from interlingua.mining.calibration.calibration import MIN_CALIBRATION_PAIRS
from interlingua.mining.calibration.kinds import COMPARED, differences_of_kind
from interlingua.mining.checks import Checker, CopiedWords, copied_share
from interlingua.mining.score import BitextScorer
from interlingua.mining.vectors import embed_texts

EVERY = 4
"""Minimum number of pairs of the stream from one held-out pair to the next."""
WrongKind = Literal["another line", "part", "copy", "similar"]
WRONG_KINDS: tuple[WrongKind, ...] = get_args(WrongKind)


class MixedStream:
    """A bitext, with held-out right pairs and with wrong pairs mixed in.

    The wrong pairs are made from pairs of the bitext and from held-out pairs.

    At regular intervals, a pair of the bitext gets a wrong target of a frequent kind: the target of
    another line, a part of its own, or a copy of the source. The original pair is left out;
    otherwise its target would be among the neighbors with which the wrong pair is compared. A
    held-out pair follows. Every fourth held-out pair gets the most similar target of another
    held-out pair.

    Args:
        held_out: translations.
        similar: a wrong target for each of them.
        seed: of the random lengths of parts.

    Attributes:
        every: pairs of the bitext from one held-out pair to the next.
    """

    def __init__(
        self, held_out: Sequence[TextPair], similar: Sequence[str], *, seed: int = 0
    ) -> None:
        self.held_out = held_out
        self.similar = similar
        self.every = EVERY
        self._draw = random.Random(seed)
        # The scorer reads a window ahead of its output. The kinds of pairs are queued meanwhile: a
        # kind of wrong pair, "right" or "own", and the number of the held-out pair or -1.
        self._kinds: deque[tuple[str, int]] = deque()
        self._numbers: dict[str, set[int]] = {}
        for number, pair in enumerate(held_out):
            for text in (pair.source, pair.target):
                self._numbers.setdefault(text.strip(), set()).add(number)
        self._in_bitext: set[int] = set()
        self._some: list[TextPair] = []
        self._read = 0

    def scored(
        self, scorer: BitextScorer, pairs: Iterable[TextPair], checker: Checker
    ) -> tuple[Float64[ndarray, " n"], Float64[ndarray, " r"], list[Float64[ndarray, " w"]]]:
        """Score all pairs that no check rejects.

        Returns:
            The scores of the bitext's own pairs, of right pairs, and of wrong pairs by kind.
        """
        scores: dict[str, list[tuple[float, int]]] = {
            kind: [] for kind in ("own", "right", *WRONG_KINDS)
        }
        refused_ones: dict[str, list[tuple[float, int]]] = {kind: [] for kind in scores}
        for block in scorer.score(self._pairs(pairs)):
            marks = refused_of_block(checker, block.pairs).tolist()
            for score, is_refused in zip(block.scores.tolist(), marks, strict=True):
                kind, number = self._kinds.popleft()
                (refused_ones if is_refused else scores)[kind].append((score, number))
        # Checks may reject all that is known to be wrong, and leave nothing to compare with.
        if sum(len(scores[kind]) for kind in WRONG_KINDS) < MIN_CALIBRATION_PAIRS:
            scores |= {kind: refused_ones[kind] for kind in WRONG_KINDS}
        # Only now is it known which held-out pairs are also in the bitext. They are left out: they
        # are right or wrong like the bitext's own pairs, and do not show how many of those are
        # right.
        found = {}
        for kind, some in scores.items():
            left = [score for score, number in some if number not in self._in_bitext]
            found[kind] = np.array(left)
        if not len(found["right"]):
            raise DataError(
                f"all {len(self.held_out):,} held-out pairs share a side with the bitext or are"
                " rejected by checks, so nothing can be learned from them; pass pairs of another"
                " text"
            )
        return found["own"], found["right"], [found[kind] for kind in WRONG_KINDS]

    def measured(self) -> dict[int, float]:
        """Return the share of copies in the bitext.

        Scores cannot distinguish copies from right pairs.
        """
        shares = [copied_share(pair.source, pair.target) for pair in self._some]
        is_copy = np.array(shares) >= CopiedWords.default_limit
        return {WRONG_KINDS.index("copy"): float(is_copy.mean()) if shares else 0.0}

    def notes(self) -> list[str]:
        """Return a note on the number of held-out pairs that were left out."""
        if not self._in_bitext:
            return []
        return [
            f"{len(self._in_bitext):,} of {len(self.held_out):,} held-out pairs left out because"
            " one side is also in the bitext"
        ]

    def differences(self, languages: tuple[str, str]) -> list[str]:
        """Return warnings if held-out pairs differ in kind from those of the bitext."""
        sides = []
        for pairs in (self.held_out, self._some):
            sides.append(([pair.source for pair in pairs], [pair.target for pair in pairs]))
        return differences_of_kind(languages, sides[0], sides[1])

    def _pairs(self, pairs: Iterable[TextPair]) -> Iterator[TextPair]:
        """Yield all pairs in the order of scoring."""
        probes = enumerate(zip(self.held_out, self.similar, strict=True))
        other: TextPair | None = None
        kinds = itertools.cycle(WRONG_KINDS[:3])
        for number, pair in enumerate(pairs, 1):
            self._note(pair)
            if number % self.every != 0:
                yield self._as("own", pair)
                continue
            probe = next(probes, None)
            if probe is None:
                yield self._as("own", pair)
                continue
            kind = next(kinds)
            wrong = self._wrong(kind, pair, other)
            other = pair
            yield self._as("own" if wrong is pair else kind, wrong)
            at, (trusted, similar) = probe
            if at % 4 != 3:
                yield self._as("right", trusted, at)
            elif trusted.target.strip() != similar.strip():
                yield self._as("similar", trusted._replace(target=similar), at)

    def _as(self, kind: str, pair: TextPair, number: int = -1) -> TextPair:
        """Record the kind of the pair and return the pair."""
        self._kinds.append((kind, number))
        return pair

    def _note(self, pair: TextPair) -> None:
        """Look for held-out texts in the bitext, and keep some pairs to compare."""
        for text in (pair.source, pair.target):
            self._in_bitext |= self._numbers.get(text.strip(), set())
        # Keep at least one pair for each held-out pair, spread over the whole stream.
        self._read += 1
        if self._read % max(1, self.every // 2) == 0 and len(self._some) < COMPARED:
            self._some.append(pair)

    def _wrong(self, kind: str, pair: TextPair, other: TextPair | None) -> TextPair:
        """Return the pair with a wrong target, or the pair itself if there is none of that kind."""
        target = pair.source
        if kind == "part":
            target = first_part(pair.target, self._draw.uniform(0.2, 0.7))
        elif kind == "another line":
            target = other.target if other is not None else pair.target
        if not target.strip() or target.strip() == pair.target.strip():
            return pair
        return pair._replace(target=target)


def similar_targets(pairs: Sequence[TextPair], encode: Encode) -> list[str]:
    """Return for each pair the most similar target of another pair, as in a wrong match."""
    targets = [pair.target.strip() for pair in pairs]
    distinct = list(dict.fromkeys(targets))
    if len(distinct) < 2:
        return targets
    vectors = embed_texts(functools.partial(encode, language=pairs[0].target_language), distinct)
    row = {text: number for number, text in enumerate(distinct)}
    found = []
    for target in targets:
        # The most similar target is the pair's own, which is excluded.
        similar = vectors @ vectors[row[target]]
        similar[row[target]] = -np.inf
        found.append(distinct[int(similar.argmax())])
    return found


def first_part(text: str, share: float = 0.5) -> str:
    """Return the first words of a text, or the first characters of a text without spaces."""
    words = text.split()
    if len(words) > 1:
        return " ".join(words[: max(1, int(len(words) * share))])
    return text[: int(len(text) * share)]


def refused_of_block(checker: Checker, pairs: Sequence[TextPair]) -> Bool[ndarray, " n"]:
    """Mark the pairs with a blank side, and those that checks of single pairs reject."""
    sources = [pair.source for pair in pairs]
    targets = [pair.target for pair in pairs]
    blank = [not (pair.source.strip() and pair.target.strip()) for pair in pairs]
    return np.asarray(checker.refuses(sources, targets) | np.array(blank, bool))
