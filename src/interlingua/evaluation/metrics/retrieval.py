"""Retrieval of translations by cosine: whether the nearest candidate is the right one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64
from numpy import ndarray

from interlingua.retrieval.topk.exact import mutual_topk
from interlingua.storage.arrays import normalize_rows


def nearest_both_ways(
    x: Float32[ndarray, "n d"], y: Float32[ndarray, "m d"]
) -> tuple[Int64[ndarray, " n"], Int64[ndarray, " m"]]:
    """Return the nearest y of every x and the nearest x of every y, by cosine.

    Of equals, the lower index is returned.
    """
    of_x, of_y = mutual_topk(normalize_rows(x), normalize_rows(y), k=1)
    return of_x.indices[:, 0].numpy(), of_y.indices[:, 0].numpy()


def is_right(
    predicted: Int64[ndarray, " n"], texts: Sequence[str] | None = None
) -> Bool[ndarray, " n"]:
    """Return whether candidate ``predicted[i]`` is the translation of query i.

    Args:
        predicted: an index of a candidate for each query.
        texts: the candidates' texts; if set, a candidate with the text of candidate i counts as
            right too (the way LASER's ``similarity_search`` and ``eval.py`` compare).
    """
    right = predicted == np.arange(len(predicted))
    if texts is not None:
        has_same_text = [texts[chosen] == texts[i] for i, chosen in enumerate(predicted)]
        right |= np.array(has_same_text, dtype=bool)
    return np.asarray(right)


def weighted_scores(
    predicted: Int64[ndarray, " n"], gold: Int64[ndarray, " n"]
) -> tuple[Float64[ndarray, " n"], Float64[ndarray, " n"]]:
    """Compute F1 and precision of each item's gold label.

    Their means are scikit-learn's with ``average="weighted"``.

    mteb's bitext mining treats every candidate as a label, so F1 is below accuracy if a
    candidate is retrieved for queries that are not its own.

    Args:
        predicted: the label found for each item.
        gold: its true label.
    """
    labels, of_gold, in_gold = np.unique(gold, return_inverse=True, return_counts=True)
    # the index of each predicted label among the gold labels; without meaning if it is not gold
    indices = np.minimum(np.searchsorted(labels, predicted), len(labels) - 1)
    is_gold_label = labels[indices] == predicted
    times_predicted = np.bincount(indices[is_gold_label], minlength=len(labels))
    hits = np.bincount(of_gold[predicted == gold], minlength=len(labels))
    # 2 TP / (2 TP + FN + FP) = 2 TP / (times gold + times predicted)
    f1 = 2 * hits / (in_gold + times_predicted)
    precision = hits / np.maximum(times_predicted, 1)
    # a mean over items weighs each label by how often it is gold
    return f1[of_gold], precision[of_gold]
