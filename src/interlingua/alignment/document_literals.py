r"""Words and numbers that two documents share unchanged: names, numbers, code, file names.

Translations keep many of them, in whatever scripts the languages are written. Pages of one family,
such as those of the functions ``DAY`` and ``MONTH``, have nearly the same sentences and differ in
their literals.

The overlap of two documents is the cosine of their sets of words, in which a word weighs as much as
it is rare on both sides:

.. math:: o(x, y) = \frac{\sum_{t \in x \cap y} w_t}{\sqrt{\sum_{t \in x} w_t \sum_{t \in y} w_t}},
    \qquad w_t = \min\left(\log\frac{n_x}{d_x(t)}, \log\frac{n_y}{d_y(t)}\right)

with n documents of a side, of which d have the word. Words of one side only weigh nothing.
"""

from __future__ import annotations

import re
import zlib

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray
from scipy.sparse import csr_matrix

from interlingua.alignment.document_store import DocumentSide

_WORD = re.compile(r"\d+|[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""Digits, or letters of scripts that are written with spaces."""
_BUCKETS = 1 << 22
"""Numbers of words. Words are numbered by a hash, so that memory holds no vocabulary."""
_CHUNK = 65_536
"""Candidates worked on at once."""


def _words_of_documents(side: DocumentSide) -> csr_matrix:
    """Return the distinct words of each document, as ones in a matrix of documents and words."""
    starts = [0]
    columns = [np.zeros(0, np.int32)]
    for document in range(len(side.entries)):
        words = set()
        for sentence in side.sentences(document):
            words.update(_WORD.findall(sentence.casefold()))
        # Not hash(): it differs from run to run.
        numbers = (zlib.crc32(word.encode("utf-8", "replace")) % _BUCKETS for word in words)
        columns.append(np.unique(np.fromiter(numbers, np.int32, len(words))))
        starts.append(starts[-1] + len(columns[-1]))
    joined = np.concatenate(columns)
    ones = np.ones(len(joined), np.float32)
    return csr_matrix((ones, joined, starts), (len(side.entries), _BUCKETS))


def literal_overlaps(
    sides: tuple[DocumentSide, DocumentSide], x: Int64[ndarray, " c"], y: Int64[ndarray, " c"]
) -> Float64[ndarray, " c"]:
    """Compute the overlap of pairs of documents, from 0 to 1.

    Args:
        sides: source and target.
        x: source documents.
        y: target documents.
    """
    words = [_words_of_documents(side) for side in sides]
    weights = np.full(_BUCKETS, np.inf)
    for own in words:
        counts = np.bincount(own.indices, minlength=_BUCKETS)
        rarity = np.log(own.shape[0] / np.maximum(counts, 1))
        weights = np.minimum(weights, np.where(counts > 0, rarity, 0.0))
    totals = [own @ weights for own in words]
    # The weights are multiplied into one side only, so that a product of two rows has them once.
    weighted = words[0].copy()
    weighted.data = weights[weighted.indices]
    found = np.zeros(len(x))
    for start in range(0, len(x), _CHUNK):
        rows = slice(start, start + _CHUNK)
        shared = weighted[x[rows]].multiply(words[1][y[rows]]).sum(axis=1)
        found[rows] = np.asarray(shared).ravel()
    # Documents without any such word have no overlap.
    lengths = np.sqrt(totals[0][x] * totals[1][y])
    return np.asarray(found / np.where(lengths > 0, lengths, 1.0))
