"""Average precision of ranked pairs: whether the positive ones have the higher scores."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Float64, Int
from numpy import ndarray


def pair_average_precision(scores: Float[ndarray, " n"], positive: Bool[ndarray, " n"]) -> float:
    """Compute the average precision of positive pairs.

    AP is the mean over positive pairs of the precision among all pairs that score at least as high:
    sum_k (R_k - R_{k-1}) P_k over the distinct scores, highest first, as in scikit-learn's
    ``average_precision_score``. It is 0 if nothing is positive.
    """
    # one resample in which every pair is drawn once
    once = np.ones((1, len(scores)), np.int64)
    return float(resampled_average_precision(scores, positive, once)[0])


def resampled_average_precision(
    scores: Float[ndarray, " n"], positive: Bool[ndarray, " n"], counts: Int[ndarray, "r n"]
) -> Float64[ndarray, " r"]:
    """Compute the average precision of resamples of the pairs, without sorting again.

    It is 0 if no drawn pair is positive.

    Args:
        scores: a value per pair.
        positive: whether the two sides of the pair belong together.
        counts: how often each pair was drawn in each resample.
    """
    order = np.argsort(-np.asarray(scores), kind="stable")
    ordered = np.asarray(scores)[order]
    is_positive = np.asarray(positive)[order]
    # where each distinct score ends: pairs of equal scores are taken together
    last = np.flatnonzero(np.r_[ordered[1:] != ordered[:-1], True])
    positives = np.cumsum(is_positive)[last]
    # only scores of positive pairs add to the sum
    rising = np.flatnonzero(np.diff(positives, prepend=0))
    if not len(rising):
        return np.zeros(len(counts))
    drawn = np.take(counts, order, axis=1)
    # for each of these scores, the drawn pairs that score at least as high: the number of positive
    # ones (found) and of all (above); P_k = found / above
    found = np.cumsum(np.compress(is_positive, drawn, axis=1), axis=1, dtype=np.int32)
    found = np.take(found, positives[rising] - 1, axis=1)
    above = np.take(np.cumsum(drawn, axis=1, dtype=np.int32), last[rising], axis=1)
    # R_k - R_{k-1} is gained / all positive pairs drawn
    gained = np.diff(found, axis=1, prepend=0)
    total = (gained * (found / np.maximum(above, 1))).sum(axis=1)
    return np.asarray(total / np.maximum(found[:, -1], 1))
