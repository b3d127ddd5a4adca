"""One pass over all similarities of a pool of many languages: what is nearest to each sentence, and in which language.

Each sentence is a query against the sentences of every language, its own included, itself excluded. Of the similarities
only what the measures need is kept: a few flags per query and language, and how often each sentence was a neighbour.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int64
from numpy import ndarray
from torch import Tensor

from interlingua.evaluation.task import Progress, silent
from interlingua.mining.dense import merge, nobody, padded_block, top_k
from interlingua.mining.knn import Neighbours

ROWS, COLUMNS = 2048, 4096


class Pool(NamedTuple):
    """What the pass keeps. L languages, N lines; equal similarities never count as nearer.

    Attributes:
        found_alone: of query (language, line) and target language: its translation is nearer than all other lines of
            the target language. Meaningless for the query's own language, False.
        found_among_all: the same against the other lines of all languages, the query's own included.
        own_language: a sentence of the query's language is nearer than all sentences of all others, translations among
            them.
        own_language_without_translations: the same with the query's translations taken out of the pool.
        occurrences: how often each sentence is among the k nearest of another one.
        k: neighbours counted.
    """

    found_alone: Bool[ndarray, "l n l"]
    found_among_all: Bool[ndarray, "l n l"]
    own_language: Bool[ndarray, "l n"]
    own_language_without_translations: Bool[ndarray, "l n"]
    occurrences: Int64[ndarray, "l n"]
    k: int


class _Nearest(NamedTuple):
    """Of a block of queries: cosine of the translation, and the highest of other lines, in each language."""

    translation: Float32[Tensor, "r l"]
    other: Float32[Tensor, "r l"]
    neighbours: Neighbours


def search_pool(
    vectors: Float32[ndarray, "l n d"],
    *,
    k: int = 10,
    rows: int = ROWS,
    columns: int = COLUMNS,
    progress: Progress = silent,
) -> Pool:
    """Runs the pass.

    Args:
        vectors: unit vectors of line-aligned sentences, in memory or mapped.
        k: neighbours counted for hubness; fewer where the pool is smaller.
        rows: queries held at once.
        columns: candidates held at once.
        progress: told after each block of queries.
    """
    count, n, _ = vectors.shape
    k = min(k, count * n - 1)
    alone, among_all = (np.zeros((count, n, count), dtype=bool) for _ in range(2))
    own, own_without = (np.zeros((count, n), dtype=bool) for _ in range(2))
    occurrences = np.zeros(count * n, dtype=np.int64)
    for language in range(count):
        others = torch.arange(count) != language
        for start in range(0, n, rows):
            here = slice(start, min(n, start + rows))
            found = _search(vectors, language, here, k=k, columns=columns)
            nearest_other = found.other.max(dim=1, keepdim=True).values
            alone[language, here] = ((found.translation > found.other) & others).numpy()
            among_all[language, here] = ((found.translation > nearest_other) & others).numpy()
            abroad = torch.where(others, found.other, -torch.inf).max(dim=1).values
            translated = torch.where(others, found.translation, -torch.inf).max(dim=1).values
            at_home = found.other[:, language]
            own_without[language, here] = (at_home > abroad).numpy()
            own[language, here] = ((at_home > abroad) & (at_home > translated)).numpy()
            occurrences += np.bincount(found.neighbours.indices.flatten().numpy(), minlength=count * n)
            progress("nearest neighbours", language * n + here.stop, count * n)
    return Pool(alone, among_all, own, own_without, occurrences.reshape(count, n), k)


@torch.inference_mode()
def _search(vectors: Float32[ndarray, "l n d"], language: int, here: slice, *, k: int, columns: int) -> _Nearest:
    count, n, _ = vectors.shape
    queries, size = padded_block(vectors[language], here.start, here.stop - here.start)
    translation, other = (torch.full((size, count), -torch.inf) for _ in range(2))
    best = nobody(size)
    for candidates in range(count):
        for first in range(0, n, columns):
            block, width = padded_block(vectors[candidates], first, columns)
            tile = (queries @ block.T)[:size, :width]
            begin = max(here.start, first)
            shared = torch.arange(begin, max(begin, min(here.stop, first + width)))  # lines on both sides of the tile
            at = shared - here.start, shared - first
            translation[at[0], candidates] = tile[at]
            if candidates != language:
                best = merge(best, top_k(tile, k), offset=candidates * n + first, k=k)
            tile[at] = -torch.inf
            if candidates == language:  # without the query itself
                best = merge(best, top_k(tile, k), offset=candidates * n + first, k=k)
            other[:, candidates] = torch.maximum(other[:, candidates], tile.max(dim=1).values)
    return _Nearest(translation, other, best)
