"""One pass over all similarities of a mixed pool: the nearest sentence and its language.

The sentences of L languages are line-aligned: line n of every language is the same sentence. Each
sentence is a query against all other sentences of every language, its own language included. A
query's candidates are of two kinds: its translations (the same line in another language) and all
other lines. For each language, the pass keeps the cosine of the translation and the highest cosine
of another line; all measures compare these numbers. The similarities are made in tiles and dropped,
so that 200 languages of 1,000 lines need no table of 200,000 by 200,000. They are computed on the
CPU even if there is a GPU: a GPU adds float32 numbers in another order, so that other sentences
would be nearest if cosines are almost equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64, Int64
from numpy import ndarray
from torch import Tensor

from interlingua.retrieval.topk.dense import merge, no_neighbors, padded_block, top_k
from interlingua.retrieval.topk.exact import Neighbors
from interlingua.runtime.progress import SILENT, Progress

_ROWS = 2048
_COLUMNS = 4096


class Pool(NamedTuple):
    """The results of one pass over L languages and N lines.

    Equal similarities never count as nearer.

    Attributes:
        found_alone: for each query (language, line) and target language, whether the query's
            translation is nearer than all other lines of the target language. It has no meaning for
            the query's own language and is False there.
        found_among_all: the same against the other lines of all languages, the query's own
            language included.
        own_language: whether a sentence of the query's language is nearer than all sentences of all
            other languages, including translations.
        own_language_without_translations: the same with the query's translations taken out of the
            pool.
        occurrences: how often each sentence is among the k nearest of another one; all 0 for k = 0.
        nearest_other: the nearest sentence of another line, as ``language * N + line``.
        k: neighbors counted.
    """

    found_alone: Bool[ndarray, "l n l"]
    found_among_all: Bool[ndarray, "l n l"]
    own_language: Bool[ndarray, "l n"]
    own_language_without_translations: Bool[ndarray, "l n"]
    occurrences: Int64[ndarray, "l n"]
    nearest_other: Int64[ndarray, "l n"]
    k: int

    @property
    def accuracy_alone(self) -> Float64[ndarray, "l n"]:
        """The share of each query's translations found among the lines of their own language."""
        return _mean_over_targets(self.found_alone)

    @property
    def accuracy_among_all(self) -> Float64[ndarray, "l n"]:
        """The share of each query's translations found among the lines of all languages."""
        return _mean_over_targets(self.found_among_all)


class _Nearest(NamedTuple):
    """The cosines of the translation and of the best other line, by language, for some queries."""

    translation: Float32[Tensor, "r l"]
    other: Float32[Tensor, "r l"]
    other_line: Int64[Tensor, "r l"]
    neighbors: Neighbors


def search_pool(
    vectors: Float32[ndarray, "l n d"],
    *,
    k: int = 10,
    rows: int = _ROWS,
    columns: int = _COLUMNS,
    progress: Progress = SILENT,
) -> Pool:
    """Search the pool in one pass.

    Args:
        vectors: unit vectors of line-aligned sentences, in memory or mapped.
        k: neighbors counted for hubness, fewer if the pool is smaller; 0 leaves ``occurrences``
            out and saves time.
        rows: queries held at once.
        columns: candidates held at once.
        progress: counts the queries.

    Raises:
        DataError: a vector is not finite.
    """
    count, n, _ = vectors.shape
    k = min(k, count * n - 1)
    alone = np.zeros((count, n, count), dtype=bool)
    among_all = np.zeros((count, n, count), dtype=bool)
    own = np.zeros((count, n), dtype=bool)
    own_without = np.zeros((count, n), dtype=bool)
    occurrences = np.zeros(count * n, dtype=np.int64)
    nearest_other = np.zeros((count, n), dtype=np.int64)
    progress.start(count * n, "sentences", "nearest neighbors")
    for language in range(count):
        others = torch.arange(count) != language
        for start in range(0, n, rows):
            span = slice(start, min(n, start + rows))
            found = _search(vectors, language, span, k=k, columns=columns)
            # the nearest other line of any language, (rows, 1)
            best_other = found.other.max(dim=1, keepdim=True)
            alone[language, span] = ((found.translation > found.other) & others).numpy()
            among_all[language, span] = ((found.translation > best_other.values) & others).numpy()
            line = found.other_line.gather(1, best_other.indices)
            nearest_other[language, span] = (best_other.indices * n + line)[:, 0].numpy()
            # whether the nearest line in the query's language is nearer than all other lines in
            # other languages, and also nearer than all translations
            abroad = torch.where(others, found.other, -torch.inf).max(dim=1).values
            translated = torch.where(others, found.translation, -torch.inf).max(dim=1).values
            at_home = found.other[:, language]
            own_without[language, span] = (at_home > abroad).numpy()
            own[language, span] = ((at_home > abroad) & (at_home > translated)).numpy()
            neighbors = found.neighbors.indices.flatten().numpy()
            occurrences += np.bincount(neighbors, minlength=count * n)
            progress.advance(span.stop - span.start)
    return Pool(alone, among_all, own, own_without, occurrences.reshape(count, n), nearest_other, k)


def accuracy_by_pair(pool: Pool, languages: Sequence[str]) -> Mapping[str, Mapping[str, float]]:
    """Return P@1 by pool and by ordered pair of languages, such as ``deu_Latn-eng_Latn``."""
    kept = {"accuracy_own_pool": pool.found_alone, "accuracy_mixed_pool": pool.found_among_all}

    def shares(found: Bool[ndarray, "l n l"]) -> Mapping[str, float]:
        by_pair = {}
        for (i, source), (j, target) in itertools.permutations(enumerate(languages), 2):
            by_pair[f"{source}-{target}"] = float(found[i, :, j].mean())
        return by_pair

    return {name: shares(found) for name, found in kept.items()}


def _mean_over_targets(found: Bool[ndarray, "l n l"]) -> Float64[ndarray, "l n"]:
    return np.asarray(found.sum(axis=2) / (found.shape[2] - 1))


@torch.inference_mode()
def _search(
    vectors: Float32[ndarray, "l n d"], language: int, span: slice, *, k: int, columns: int
) -> _Nearest:
    """Search the lines ``span`` of a language among all sentences, a tile at a time."""
    count, n, _ = vectors.shape
    queries, size = padded_block(vectors[language], span.start, span.stop - span.start)
    translation = torch.full((size, count), -torch.inf)
    other = torch.full((size, count), -torch.inf)
    other_line = torch.zeros((size, count), dtype=torch.int64)
    best = no_neighbors(size)
    for candidates in range(count):
        for first in range(0, n, columns):
            block, width = padded_block(vectors[candidates], first, columns)
            tile = (queries @ block.T)[:size, :width]
            # lines that are both queries and candidates of the tile: their cells hold translations,
            # or the query itself
            begin = max(span.start, first)
            shared = torch.arange(begin, max(begin, min(span.stop, first + width)))
            same_line = shared - span.start, shared - first
            translation[same_line[0], candidates] = tile[same_line]
            # the query itself must not be a neighbor, so a tile of its own language is merged after
            # these cells are blanked; a translation may be one, so any other tile is merged before
            if k and candidates != language:
                best = merge(best, top_k(tile, k), offset=candidates * n + first, k=k)
            tile[same_line] = -torch.inf
            if k and candidates == language:
                best = merge(best, top_k(tile, k), offset=candidates * n + first, k=k)
            nearest = tile.max(dim=1)
            # >, so that of equal lines the first one stays
            is_nearer = nearest.values > other[:, candidates]
            other[is_nearer, candidates] = nearest.values[is_nearer]
            other_line[is_nearer, candidates] = nearest.indices[is_nearer] + first
    return _Nearest(translation, other, other_line, best)
