"""xsim: the error of margin-based retrieval, as LASER's ``xsim.py`` computes it."""

from __future__ import annotations

from jaxtyping import Float32, Int64
from numpy import ndarray

from interlingua.evaluation.metrics.retrieval import normalized
from interlingua.functional.margin import MARGINS, Margin, best_neighbour, score_neighbours
from interlingua.mining.knn import mutual_neighbours


def xsim_predictions(
    x: Float32[ndarray, "n d"], y: Float32[ndarray, "m d"], *, k: int = 4
) -> dict[Margin, Int64[ndarray, " n"]]:
    """The candidate that each margin retrieves for every query, MEXMA (Janeiro et al. 2024), xsim of LASER.

    Only the k nearest candidates of a query are scored. The mean of a candidate is taken over its k nearest queries.

    Args:
        x: queries.
        y: candidates; the first n are the translations, any others are distractors.
        k: neighbours, fewer where a side is smaller.
    """
    of_x, of_y = mutual_neighbours(normalized(x), normalized(y), k=k)
    x_means, y_means = of_x.similarities.mean(dim=1), of_y.similarities.mean(dim=1)
    return {
        margin: best_neighbour(
            score_neighbours(of_x.similarities, of_x.indices, x_means, y_means, margin=margin), of_x.indices
        ).numpy()
        for margin in MARGINS
    }
