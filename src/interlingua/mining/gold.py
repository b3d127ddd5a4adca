"""Mined pairs compared with the pairs known to be right: precision, recall, F1, best threshold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int64
from numpy import ndarray

from interlingua.errors import DataError, count_of
from interlingua.mining.pipeline import Mined
from interlingua.mining.texts import NumberedTexts
from interlingua.storage.files import tab_rows


class Extraction(NamedTuple):
    """Quality of the pairs above a threshold.

    Attributes:
        threshold: a score.
        extracted: pairs above it.
        precision: share of these that are right.
        recall: share of the gold pairs among them.
        f1: their harmonic mean.
    """

    threshold: float
    extracted: int
    precision: float
    recall: float
    f1: float


def best_threshold(
    scores: Float[ndarray, " n"], right: Bool[ndarray, " n"], *, gold: int
) -> Extraction:
    """Find the threshold of the best F1 among the scores in descending order.

    LASER's ``bucc.py`` and sentence-transformers' ``bucc2018.py`` do the same. The threshold is
    half-way to the next score; behind the last pair, where LASER's function fails, it is that
    pair's score. Of equal F1 the higher threshold is taken. This function counts pair by pair: if
    the two scores around the threshold are equal, ``at_threshold`` extracts more pairs than are
    counted here.

    Args:
        scores: of the candidates, in any order.
        right: whether each is a gold pair.
        gold: number of gold pairs, found or not; at least 1.

    Returns:
        The best extraction; F1 is 0 and the threshold infinite if no candidate is right.
    """
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    correct = np.cumsum(right[order])
    if not len(correct) or not correct[-1]:
        return Extraction(np.inf, 0, 0.0, 0.0, 0.0)
    # Entry i is the value for the i + 1 best candidates.
    precision = correct / np.arange(1, len(order) + 1)
    recall = correct / gold
    # This is the formula of the scripts, not 2 c / (n + gold): F1 values that differ only by
    # rounding then have the same rank as in the scripts.
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
    at = int(np.argmax(f1))
    # The last candidate has no next score, so that its own score is used.
    threshold = (float(ordered[at]) + float(ordered[min(at + 1, len(order) - 1)])) / 2
    return _extraction(threshold, at + 1, int(correct[at]), gold)


def at_threshold(
    scores: Float[ndarray, " n"], right: Bool[ndarray, " n"], *, gold: int, threshold: float
) -> Extraction:
    """Compute precision, recall and F1 of the candidates with a score of at least the threshold."""
    is_kept = scores >= threshold
    return _extraction(threshold, int(is_kept.sum()), int(right[is_kept].sum()), gold)


def cross_validated(
    scores: Float[ndarray, " n"],
    right: Bool[ndarray, " n"],
    halves: Int64[ndarray, " n"],
    *,
    gold: tuple[int, int],
) -> Bool[ndarray, " n"]:
    """Return which candidates are extracted if each half is cut at the best threshold of the other.

    Args:
        scores: of the candidates.
        right: whether each is a gold pair.
        halves: the half that each is in, 0 or 1.
        gold: number of gold pairs in either half.
    """
    is_kept = np.zeros(len(scores), dtype=bool)
    for half in (0, 1):
        other = halves != half
        threshold = best_threshold(scores[other], right[other], gold=gold[1 - half]).threshold
        is_kept |= ~other & (scores >= threshold)
    return is_kept


def _extraction(threshold: float, extracted: int, correct: int, gold: int) -> Extraction:
    """Compute the measures from counts; F1 = 2 c / (extracted + gold) is 0 if nothing is right."""
    # If nothing is extracted, there would be a division by zero.
    if not correct:
        return Extraction(threshold, extracted, 0.0, 0.0, 0.0)
    return Extraction(
        threshold, extracted, correct / extracted, correct / gold, 2 * correct / (extracted + gold)
    )


def read_gold(path: Path) -> list[tuple[str, str]]:
    """Read pairs of names or of texts, separated by TAB.

    Raises:
        DataError: a line does not have two columns, or the file has no lines.
    """
    pairs = []
    for number, cells in tab_rows(path):
        if len(cells) != 2:
            raise DataError(
                f"expected id TAB id or text TAB text, found {count_of(len(cells), 'columns')};"
                " correct the line",
                path=path,
                line=number,
            )
        pairs.append((cells[0].strip(), cells[1].strip()))
    if not pairs:
        raise DataError("the file is empty; expected id TAB id or text TAB text", path=path)
    return pairs


def gold_pairs(
    pairs: Iterable[tuple[str, str]], x: NumberedTexts, y: NumberedTexts
) -> tuple[set[tuple[int, int]], int]:
    """Return the gold pairs by the numbers of their texts.

    Args:
        pairs: names of lines, or the texts themselves.
        x: the texts of the source.
        y: those of the target.

    Returns:
        The pairs, and how many were left out because one of their sides is missing.
    """
    all_pairs = list(pairs)
    numbers: list[Mapping[str, int]] = []
    for place, side in enumerate((x, y)):
        names = {pair[place] for pair in all_pairs}
        # Only texts of gold pairs are kept, because a side may be much larger than memory. The name
        # of a line has priority over an equal text.
        by_name = {
            name: int(text)
            for name, text in zip(side.names, side.text_of_line, strict=True)
            if name in names
        }
        numbers.append(numbers_of_texts(side, names) | by_name)
    known = [
        (numbers[0][a], numbers[1][b]) for a, b in all_pairs if a in numbers[0] and b in numbers[1]
    ]
    # The text number of a blank line is -1: the line has a name, but no text.
    return {pair for pair in known if min(pair) >= 0}, len(all_pairs) - len(known)


def numbers_of_texts(side: NumberedTexts, needed: Collection[str]) -> dict[str, int]:
    """Return the numbers of the needed texts that are on a side."""
    return {text: number for number, text in enumerate(side.texts) if text in needed}


def judge_pairs(
    mined: Mined, gold: Sequence[tuple[str, str]], threshold: float | None
) -> list[str]:
    """Evaluate the mined pairs against the gold pairs."""
    known, lost = gold_pairs(gold, mined.x, mined.y)
    if not known:
        raise DataError(
            "no gold pair is in the texts; expected the ids of their lines, or the texts themselves"
        )
    right = is_gold(mined, known)
    scores = mined.pairs["score"]
    best = best_threshold(scores, right, gold=len(known))
    left_out = ""
    if lost:
        left_out = f"; {lost:,} left out because their texts are not in the input"
    lines = [
        f"gold: {len(known):,} pairs of texts{left_out}",
        f"best F1 {100 * best.f1:.2f} (precision {100 * best.precision:.2f}, recall"
        f" {100 * best.recall:.2f}) at threshold {best.threshold:.4f}, before any check",
    ]
    if threshold is not None and np.isfinite(threshold):
        at = at_threshold(scores, right, gold=len(known), threshold=threshold)
        lines.append(
            f"F1 {100 * at.f1:.2f} (precision {100 * at.precision:.2f}, recall"
            f" {100 * at.recall:.2f}) at the threshold {threshold:.4f}, before any check"
        )
    return lines


def is_gold(mined: Mined, known: set[tuple[int, int]]) -> np.ndarray:
    """Mark the mined pairs that are right."""
    # A set finds Python's own numbers several times as fast as those of numpy.
    pairs = zip(mined.pairs["x"].tolist(), mined.pairs["y"].tolist(), strict=True)
    return np.fromiter((pair in known for pair in pairs), bool, len(mined.pairs))
