r"""Words and numbers that two documents share unchanged: names, numbers, code, file names.

Translations keep many of them, in whatever scripts the languages are written. Pages of one family,
such as those of the functions ``DAY`` and ``MONTH``, have nearly the same sentences and differ in
their literals.

The overlap of two documents is the cosine of their sets of words. The weight of a word is its
rarity on the side where it is less rare:

.. math:: o(x, y) = \frac{\sum_{t \in x \cap y} w_t}{\sqrt{\sum_{t \in x} w_t \sum_{t \in y} w_t}},
    \qquad w_t = \min\left(\log\frac{n_x}{d_x(t)}, \log\frac{n_y}{d_y(t)}\right)

with n documents of a side, of which d have the word. Words that occur on only one side have
weight 0.
"""

from __future__ import annotations

import re
import zlib
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray

from interlingua.alignment.document_store import DocumentSide

_WORD = re.compile(r"\d+|[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""Digits, or letters of scripts that are written with spaces."""
_BUCKETS = 1 << 22
"""Number of possible word numbers. Words are numbered by a hash, so that memory holds no
vocabulary."""
_CHUNK = 4_096
"""Candidates worked on at once."""


class _DocumentWords(NamedTuple):
    """The distinct words of documents, one document after the other, each in ascending order."""

    numbers: Int64[ndarray, " t"]
    starts: Int64[ndarray, " n+1"]

    def lengths(self) -> Int64[ndarray, " n"]:
        """Return the number of words of each document."""
        return np.diff(self.starts)

    def totals(self, weights: Float64[ndarray, " v"]) -> Float64[ndarray, " n"]:
        """Return the sum of the weights of each document's words."""
        sums = np.append(0.0, np.cumsum(weights[self.numbers]))
        return np.diff(sums[self.starts])

    def keys(self, documents: Int64[ndarray, " c"]) -> Int64[ndarray, " k"]:
        """Return the words of some documents, each with the place of its document in the list."""
        lengths = self.lengths()[documents]
        places = np.repeat(np.arange(len(documents)), lengths)
        # Take all words of each document, from its first word on.
        firsts = np.cumsum(lengths) - lengths
        within = np.arange(len(places)) - np.repeat(firsts, lengths)
        words = self.numbers[self.starts[documents][places] + within]
        return np.asarray(places * _BUCKETS + words)


def _words_of_documents(side: DocumentSide) -> _DocumentWords:
    lengths = [0]
    parts = [np.zeros(0, np.int64)]
    for document in range(len(side.entries)):
        words = set()
        for sentence in side.sentences(document):
            words.update(_WORD.findall(sentence.casefold()))
        # Not hash(): it differs from run to run.
        numbers = (zlib.crc32(word.encode("utf-8", "replace")) % _BUCKETS for word in words)
        parts.append(np.unique(np.fromiter(numbers, np.int64, len(words))))
        lengths.append(len(parts[-1]))
    return _DocumentWords(np.concatenate(parts), np.cumsum(lengths))


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
        counts = np.bincount(own.numbers, minlength=_BUCKETS)
        rarity = np.log(len(own.lengths()) / np.maximum(counts, 1))
        weights = np.minimum(weights, np.where(counts > 0, rarity, 0.0))
    found = np.zeros(len(x))
    for start in range(0, len(x), _CHUNK):
        rows = slice(start, start + _CHUNK)
        keys = (words[0].keys(x[rows]), words[1].keys(y[rows]))
        shared = np.intersect1d(*keys, assume_unique=True)
        sums = np.bincount(shared // _BUCKETS, weights[shared % _BUCKETS], len(x[rows]))
        found[rows] = sums
    # Documents without any word of positive weight have overlap 0.
    totals = [own.totals(weights) for own in words]
    lengths = np.sqrt(totals[0][x] * totals[1][y])
    return np.asarray(found / np.where(lengths > 0, lengths, 1.0))
