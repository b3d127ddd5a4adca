"""How sure the estimated share of right pairs is: its interval, and how well right and wrong pairs are separated.

The share is read from how the scores of all pairs lie between those of known right and known wrong ones. Where these
overlap much, a small difference between the known pairs and the others makes a large one in the share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float64
from numpy import ndarray

from interlingua.mining.calibration import Calibration
from interlingua.mining.fitting import Curve

RESAMPLES = 200
MOST_SCORES = 5000
"""Of all pairs, in a resample."""
LEAST_SEPARATION = 0.9
"""Below, the share hangs on small differences."""


def separation(scores: Float64[ndarray, " n"], right: Bool[ndarray, " n"]) -> float:
    """How often a right pair scores more than a wrong one, equal scores counted half (area under the ROC curve)."""
    wrong = np.sort(scores[~right])
    below, to = (np.searchsorted(wrong, scores[right], side=side) for side in ("left", "right"))
    return float((below + to).mean() / (2 * len(wrong)))


def doubted(calibration: Calibration) -> str:
    """What a user should know where right and wrong held-out pairs are hard to tell apart; else nothing."""
    apart = calibration.measures.get("separation", 1.0)
    if calibration.basis != "probes" or apart >= LEAST_SEPARATION:
        return ""
    return (
        f"held-out right pairs score more than wrong ones only {apart:.0%} of the time, so the share of translations"
        " hangs on small differences between your texts and the held-out ones and may be far off, precisions with it;"
        " judge some hundred pairs that mine writes, and calibrate with --judged"
    )


def share_interval(
    found: Calibration,
    fit: Callable[[Float64[ndarray, " n"], Bool[ndarray, " n"]], Curve],
    known: Float64[ndarray, " n"],
    right: Bool[ndarray, " n"],
    scores: Float64[ndarray, " m"],
    *,
    seed: int = 0,
) -> tuple[float, float]:
    """The 95 % bootstrap interval of ``found.estimate_prior(scores)``: known pairs and all pairs drawn anew.

    It does not measure how similar the two kinds of text are.

    Args:
        found: learnt from the known pairs.
        fit: makes the curve.
        known: scores of pairs with a known answer.
        right: the answers.
        scores: of all pairs.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    places = np.flatnonzero(right), np.flatnonzero(~right)
    shares = []
    for _ in range(RESAMPLES):
        drawn = np.concatenate([rng.choice(of, len(of)) for of in places])
        curve = fit(known[drawn], right[drawn])
        again = replace(found, shape=curve.shape, scores=curve.scores, log_odds=curve.log_odds)
        shares.append(again.estimate_prior(rng.choice(scores, min(len(scores), MOST_SCORES))))
    low, high = np.quantile(shares, [0.025, 0.975]).tolist()
    return low, high
