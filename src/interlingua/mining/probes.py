"""Held-out translations among the texts that are mined: pairs with answers that are known without judges.

Of a half of them both sides go in. Of the others one side goes in alone, so that whatever it is paired with is wrong:
wrong pairs come about in the same search and by the same retrieval as those among the texts themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int64
from numpy import ndarray
from numpy.typing import NDArray

from interlingua.corpus.reservoir import reservoir
from interlingua.errors import DataError
from interlingua.mining.texts import Line, Side

LEAST = 80
"""Pairs of held-out text, so that there is something in every quarter."""


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
        known: pairs of a probe's two sides, or of one side and one of the texts themselves; two sides of different
            probes, which are often of one source and near each other, tell nothing of the texts.
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
        raise DataError(f"{len(drawn)} held-out pairs are too few for a calibration; give at least {LEAST}")
    order = np.random.default_rng(seed).permutation(len(drawn))
    half = np.sort(order[: len(order) // 2])
    rest = order[len(order) // 2 :]
    numbers = [np.concatenate([half, np.sort(rest[place::2])]) for place in (0, 1)]

    def lines_of(place: int) -> list[Line]:
        """The drawn texts of one side, each on one line."""
        return [Line(" ".join(drawn[number][place].split()), f"probe:{number}") for number in numbers[place].tolist()]

    return Probes(lines_of(0), lines_of(1), numbers[0], numbers[1])


def answers(pairs: NDArray[np.void], x: Side, y: Side, probes: Probes) -> Answers:
    """What the probes tell of mined pairs.

    Args:
        pairs: ``FOUND`` records.
        x: the texts of the source, the probes' behind them.
        y: those of the target.
        probes: as they were put in.
    """
    sides = (x, probes.source_pairs, pairs["x"]), (y, probes.target_pairs, pairs["y"])
    found = []
    clean = np.ones(len(pairs), bool)
    excluded = set[int]()
    for side, numbers, texts in sides:
        probe_of, bad = _probe_of_text(side, numbers)
        found.append(probe_of[texts])
        clean &= ~np.isin(texts, [text for text, _ in bad])
        excluded |= {number for _, number in bad}
    is_probe = [numbers >= 0 for numbers in found]
    right = is_probe[0] & (found[0] == found[1])
    one_side = is_probe[0] ^ is_probe[1]
    return Answers((right | one_side) & clean, right, ~(is_probe[0] | is_probe[1]), len(excluded))


def _probe_of_text(side: Side, numbers: Sequence[int] | NDArray[np.integer]) -> tuple[ndarray, list[tuple[int, int]]]:
    """The pair that each text is a side of, -1 for the texts themselves; the texts that are both, or of two probes."""
    probe_of = np.full(len(side), -1, np.int64)
    texts = np.asarray(side.text_of_line[len(side.text_of_line) - len(numbers) :])
    bad = []
    for text, number in zip(texts.tolist(), np.asarray(numbers).tolist(), strict=True):
        if text < 0:
            continue
        probe_of[text] = number
        if len(side.lines_of(text)) > 1:
            bad.append((text, number))
    return probe_of, bad
