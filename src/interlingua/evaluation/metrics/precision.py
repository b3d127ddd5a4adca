"""Average precision: do the pairs that belong together have the higher scores?"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64
from numpy import ndarray


def average_precision(scores: Float[ndarray, " n"], positive: Bool[ndarray, " n"]) -> float:
    """The mean over positive pairs of the precision among all pairs that score as high or higher.

    AP = sum_k (R_k - R_{k-1}) P_k over the distinct scores, highest first, as scikit-learn's
    ``average_precision_score``; 0 where nothing is positive.
    """
    return float(resampled_average_precision(scores, positive, np.ones((1, len(scores)), np.int64))[0])


def resampled_average_precision(
    scores: Float[ndarray, " n"], positive: Bool[ndarray, " n"], counts: Int64[ndarray, "r n"]
) -> Float64[ndarray, " r"]:
    """Average precision of resamples of the pairs, without sorting again.

    Args:
        scores: a value per pair.
        positive: whether it belongs together.
        counts: how often each pair was drawn in each resample.
    """
    order = np.argsort(-np.asarray(scores), kind="stable")
    ordered, drawn = np.asarray(scores)[order], counts[:, order]
    last = np.flatnonzero(np.r_[ordered[1:] != ordered[:-1], True])  # where each distinct score ends
    found = np.cumsum(drawn * np.asarray(positive)[order], axis=1)[:, last]
    precision = found / np.maximum(np.cumsum(drawn, axis=1)[:, last], 1)
    gained = np.diff(found, axis=1, prepend=0)
    return np.asarray((gained * precision).sum(axis=1) / np.maximum(found[:, -1], 1))
