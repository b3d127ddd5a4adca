"""Average precision: do the pairs that belong together have the higher scores?"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Float64, Int
from numpy import ndarray


def average_precision(scores: Float[ndarray, " n"], positive: Bool[ndarray, " n"]) -> float:
    """The mean over positive pairs of the precision among all pairs that score as high or higher.

    AP = sum_k (R_k - R_{k-1}) P_k over the distinct scores, highest first, as scikit-learn's
    ``average_precision_score``; 0 where nothing is positive.
    """
    return float(
        resampled_average_precision(scores, positive, np.ones((1, len(scores)), np.int64))[0]
    )


def resampled_average_precision(
    scores: Float[ndarray, " n"], positive: Bool[ndarray, " n"], counts: Int[ndarray, "r n"]
) -> Float64[ndarray, " r"]:
    """Average precision of resamples of the pairs, without sorting again.

    0 where nothing drawn is positive.

    Args:
        scores: a value per pair.
        positive: whether it belongs together.
        counts: how often each pair was drawn in each resample.
    """
    order = np.argsort(-np.asarray(scores), kind="stable")
    ordered = np.asarray(scores)[order]
    is_positive = np.asarray(positive)[order]
    last = np.flatnonzero(
        np.r_[ordered[1:] != ordered[:-1], True]
    )  # where each distinct score ends
    positives = np.cumsum(is_positive)[last]
    rising = np.flatnonzero(
        np.diff(positives, prepend=0)
    )  # only scores of positive pairs add to the sum
    if not len(rising):
        return np.zeros(len(counts))
    drawn = np.take(counts, order, axis=1)
    found = np.cumsum(np.compress(is_positive, drawn, axis=1), axis=1, dtype=np.int32)
    found = np.take(found, positives[rising] - 1, axis=1)
    above = np.take(np.cumsum(drawn, axis=1, dtype=np.int32), last[rising], axis=1)
    gained = np.diff(found, axis=1, prepend=0)
    return np.asarray(
        (gained * (found / np.maximum(above, 1))).sum(axis=1) / np.maximum(found[:, -1], 1)
    )
