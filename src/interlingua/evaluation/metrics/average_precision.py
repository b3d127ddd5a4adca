r"""Mean average precision over a whole pool, without a limit to the ranks that count.

Average precision of a question is the mean, over its relevant passages, of the precision at each
one's rank: with ranks $k_1 < \dots < k_R$ it is $\frac{1}{R} \sum_i i / k_i$. Only the ranks of the
relevant passages are needed, and a rank is one more than the number of candidates that score
higher. So nothing is sorted: for each block of questions, the similarities with the whole pool are
computed, the higher ones are counted, and the similarities are discarded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64, Int64
from numpy import ndarray

from interlingua.retrieval.topk.dense import padded_block

CELLS = 2**24
"""Similarities held at once: 64 MiB."""
_COLUMNS = 4096
"""Candidates in one matrix product."""
NO_PASSAGE = -1
"""Padding of the rows of questions with fewer relevant passages than others."""


def relevant_ranks(
    queries: Float32[ndarray, "n d"],
    candidates: Float32[ndarray, "m d"],
    relevant: Int64[ndarray, "n r"],
    *,
    cells: int = CELLS,
) -> Int64[ndarray, "n r"]:
    """Compute the rank of each relevant candidate among all, from 1; 0 for padding.

    Of candidates with equal similarity the earlier row is ranked first.

    Args:
        queries: vectors of the questions.
        candidates: vectors of the pool, in memory or mapped.
        relevant: rows of ``candidates``, padded with ``NO_PASSAGE``.
        cells: maximum number of similarities held at once; those of a single question are held
            even if there are more.

    Raises:
        DataError: a vector is not finite.
    """
    n = len(queries)
    m = len(candidates)
    rows = max(1, cells // max(1, m))
    ranks = np.zeros(relevant.shape, dtype=np.int64)
    for start in range(0, n, rows):
        # padded, so that equal vectors have equal similarities at any row of a block
        block, size = padded_block(queries, start, rows)
        similarities = np.empty((size, m), dtype=np.float32)
        for first in range(0, m, _COLUMNS):
            part, width = padded_block(candidates, first, _COLUMNS)
            with torch.inference_mode():
                similarities[:, first : first + width] = (block @ part.T)[:size, :width].numpy()
        ranks[start : start + size] = _ranks(similarities, relevant[start : start + size])
    return ranks


def _ranks(
    similarities: Float32[ndarray, "b m"], relevant: Int64[ndarray, "b r"]
) -> Int64[ndarray, "b r"]:
    """Compute the ranks in a block of similarities, one relevant passage per question at a time."""
    ranks = np.zeros(relevant.shape, dtype=np.int64)
    columns = np.arange(similarities.shape[1])
    for number in range(relevant.shape[1]):
        column = relevant[:, number]
        # an entry NO_PASSAGE reads column 0 here; its rank is set to 0 below
        own = np.take_along_axis(similarities, np.maximum(column, 0)[:, None], axis=1)
        higher = (similarities > own).sum(axis=1)
        # of equals the earlier row is ranked first
        equal_and_earlier = ((similarities == own) & (columns < column[:, None])).sum(axis=1)
        ranks[:, number] = np.where(column == NO_PASSAGE, 0, 1 + higher + equal_and_earlier)
    return ranks


def question_average_precision(
    ranks: Int64[ndarray, "n r"], counts: Int64[ndarray, " n"]
) -> Float64[ndarray, " n"]:
    """Compute the average precision of each question, trec_eval's ``map``.

    It is 0 for a question without a relevant passage.

    Args:
        ranks: ranks of each question's relevant passages in any order, padded with 0.
        counts: number of relevant passages, including those missing from the pool.
    """
    # a missing rank counts as infinite, so that it adds nothing
    ordered = np.sort(np.where(ranks > 0, ranks.astype(np.float64), np.inf), axis=1)
    # i-th relevant passage at rank k_i: precision i / k_i
    number = np.arange(1, ranks.shape[1] + 1)
    return np.asarray((number / ordered).sum(axis=1) / np.maximum(counts, 1))


def ranks_without(
    ranks: Int64[ndarray, "n r"], removed: Bool[ndarray, "n r"]
) -> Int64[ndarray, "n r"]:
    """Compute the ranks after removing some relevant passages from the pool; those get rank 0.

    Args:
        ranks: of the relevant passages, padded with 0.
        removed: which of them to take out.
    """
    # passages that stay get the largest integer, which is never less than a rank
    gone = np.where(removed & (ranks > 0), ranks, np.iinfo(np.int64).max)
    # (n, r): each passage moves up by as many as were removed above it
    above = (gone[:, None, :] < ranks[:, :, None]).sum(axis=2)
    return np.where(removed | (ranks == 0), 0, ranks - above)


def padded_rows(rows: Sequence[Sequence[int]]) -> Int64[ndarray, "n r"]:
    """Return rows of unequal length as one table, padded with ``NO_PASSAGE``."""
    width = max((len(row) for row in rows), default=0)
    table = np.full((len(rows), width), NO_PASSAGE, dtype=np.int64)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table
