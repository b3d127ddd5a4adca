"""Where to cut a list of scored pairs: the threshold of the best F1, and F1 at a given threshold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int64
from numpy import ndarray


class Extraction(NamedTuple):
    """How good the pairs above a threshold are.

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


def best_threshold(scores: Float[ndarray, " n"], right: Bool[ndarray, " n"], *, gold: int) -> Extraction:
    """Walks down the scores and stops where F1 is best; LASER's ``bucc.py``, sentence-transformers' ``bucc2018.py``.

    The threshold lies half-way to the next score; behind the last pair, where LASER's function fails, it is that
    pair's score. Of equal F1 the higher threshold is taken. The walk counts pair by pair: where the two scores around
    the threshold are equal, ``at_threshold`` extracts more pairs than stand here.

    Args:
        scores: of the candidates, in any order.
        right: whether each is a gold pair.
        gold: number of gold pairs, found or not; at least 1.

    Returns:
        F1 is 0 and the threshold infinite where no candidate is right.
    """
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    correct = np.cumsum(right[order])
    if not len(correct) or not correct[-1]:
        return Extraction(np.inf, 0, 0.0, 0.0, 0.0)
    precision = correct / np.arange(1, len(order) + 1)
    recall = correct / gold
    # as the scripts have it and not 2 c / (n + gold), so that F1 that differ by rounding alone have the same rank
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
    at = int(np.argmax(f1))
    threshold = (float(ordered[at]) + float(ordered[min(at + 1, len(order) - 1)])) / 2
    return _extraction(threshold, at + 1, int(correct[at]), gold)


def at_threshold(
    scores: Float[ndarray, " n"], right: Bool[ndarray, " n"], *, gold: int, threshold: float
) -> Extraction:
    """Precision, recall and F1 of the candidates with a score of at least the threshold."""
    kept = scores >= threshold
    return _extraction(threshold, int(kept.sum()), int(right[kept].sum()), gold)


def cross_validated(
    scores: Float[ndarray, " n"], right: Bool[ndarray, " n"], halves: Int64[ndarray, " n"], *, gold: tuple[int, int]
) -> Bool[ndarray, " n"]:
    """Which candidates are extracted where each of two halves is cut at the threshold that is best for the other.

    Args:
        scores: of the candidates.
        right: whether each is a gold pair.
        halves: the half that each is in, 0 or 1.
        gold: number of gold pairs in either half.
    """
    kept = np.zeros(len(scores), dtype=bool)
    for half in (0, 1):
        other = halves != half
        threshold = best_threshold(scores[other], right[other], gold=gold[1 - half]).threshold
        kept |= ~other & (scores >= threshold)
    return kept


def _extraction(threshold: float, extracted: int, correct: int, gold: int) -> Extraction:
    if not correct:
        return Extraction(threshold, extracted, 0.0, 0.0, 0.0)
    return Extraction(threshold, extracted, correct / extracted, correct / gold, 2 * correct / (extracted + gold))
