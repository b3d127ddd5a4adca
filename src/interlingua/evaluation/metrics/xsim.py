"""xsim: the error of margin-based retrieval, as LASER's ``xsim.py`` computes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float32, Int64
from numpy import ndarray
from torch import Tensor

from interlingua.corpus.negatives.hard_negatives import Altered
from interlingua.evaluation.data.augmented_sets import MISALIGNED
from interlingua.functional.margin import (
    MARGINS,
    MarginKind,
    best_neighbor,
    margin_score,
    score_neighbors,
)
from interlingua.retrieval.topk.exact import mutual_topk
from interlingua.storage.arrays import normalize_rows


class XSimSearch(NamedTuple):
    """The candidates that xsim retrieved, and the data needed to score any pair.

    Attributes:
        predictions: the candidate that each margin retrieves for every query.
        x: queries of length 1.
        y: candidates of length 1.
        x_means: mean cosine of each query to its k nearest.
        y_means: mean cosine of each candidate to its k nearest.
    """

    predictions: dict[MarginKind, Int64[ndarray, " n"]]
    x: Float32[ndarray, "n d"]
    y: Float32[ndarray, "m d"]
    x_means: Float[Tensor, " n"]
    y_means: Float[Tensor, " m"]

    def ratio(self, i: int, j: int) -> float:
        """Compute the ratio margin of query i and candidate j."""
        # computed again for one pair: the search only keeps the scores of each query's nearest
        # candidates
        cosine = self.x_means.new_tensor(float(self.x[i] @ self.y[j]))
        return float(margin_score(cosine, self.x_means[i], self.y_means[j], margin="ratio"))


def xsim_predictions(
    x: Float32[ndarray, "n d"], y: Float32[ndarray, "m d"], *, k: int = 4
) -> dict[MarginKind, Int64[ndarray, " n"]]:
    """Return the ``predictions`` of ``xsim_search``."""
    return xsim_search(x, y, k=k).predictions


def xsim_search(
    x: Float32[ndarray, "n d"], y: Float32[ndarray, "m d"], *, k: int = 4
) -> XSimSearch:
    """Retrieve the best candidate of every query with each margin, as LASER's xsim does.

    MEXMA (Janeiro et al. 2024) reports xsim.

    Only the k nearest candidates of a query are scored. The mean of a candidate is taken over its k
    nearest queries.

    Args:
        x: queries.
        y: candidates; the first n are the translations, any others are distractors.
        k: neighbors, fewer if a side is smaller.
    """
    x = normalize_rows(x)
    y = normalize_rows(y)
    of_x, of_y = mutual_topk(x, y, k=k)
    x_means = of_x.similarities.mean(dim=1)
    y_means = of_y.similarities.mean(dim=1)
    # one search serves all margins, which only score its neighbors differently
    predictions = {}
    for margin in MARGINS:
        scores = score_neighbors(of_x.similarities, of_x.indices, x_means, y_means, margin=margin)
        predictions[margin] = best_neighbor(scores, of_x.indices).numpy()
    return XSimSearch(predictions, x, y, x_means, y_means)


def kinds_of_errors(
    predicted: Int64[ndarray, " n"],
    wrong: Bool[ndarray, " n"],
    targets: Sequence[str],
    altered: Sequence[Altered],
) -> list[str]:
    """Return the kind of each error, as LASER's ``xsim.py`` does for xsim++ (Chen et al. 2023).

    Args:
        predicted: candidates retrieved, numbered through the targets and then the altered
            sentences.
        wrong: which of them are errors.
        targets: the right candidates.
        altered: the candidates after them.

    Returns:
        For each error, in order: the kind of alteration if an altered form of the right sentence
        was retrieved, otherwise ``misaligned``.
    """
    kinds = []
    for query in np.flatnonzero(wrong).tolist():
        # the number among the altered sentences; below 0 it is another target
        number = int(predicted[query]) - len(targets)
        kind = MISALIGNED
        if number >= 0 and altered[number].original.strip() == targets[query].strip():
            kind = altered[number].kind
        kinds.append(kind)
    return kinds
