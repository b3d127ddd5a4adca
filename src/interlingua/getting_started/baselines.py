"""Baselines of the quickstart: chance, and character n-grams.

These match names, loan words and punctuation across languages without having learned anything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from interlingua.errors import import_extra

NGRAMS = (2, 4)
"""Lengths of the shortest and longest character n-gram, within words and including their edges."""


def random_accuracy(candidates: int) -> float:
    """Compute the expected P@1 of a candidate drawn at random."""
    return 1 / candidates


def tfidf_accuracy(sources: Sequence[str], targets: Sequence[str]) -> tuple[float, float]:
    """Compute P@1 of TF-IDF cosines over character n-grams, from sources to targets and back.

    The weights are learned from both sides' texts, without their alignment. This is the most that
    the baseline can know.

    Args:
        sources: texts.
        targets: their translations, in the same order; every one is a candidate for every source.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    text = import_extra(
        "sklearn.feature_extraction.text", package="scikit-learn", extra="quickstart"
    )
    vectorizer = text.TfidfVectorizer(analyzer="char_wb", ngram_range=NGRAMS, sublinear_tf=True)
    vectorizer.fit([*sources, *targets])
    # The rows have length 1, so the products are cosines.
    similarity = (vectorizer.transform(sources) @ vectorizer.transform(targets).T).toarray()
    return expected_accuracy(similarity), expected_accuracy(similarity.T)


def expected_accuracy(similarity: Float[ndarray, "n n"]) -> float:
    """Compute P@1 if candidate i is right for query i and ties are broken at random."""
    best = similarity.max(axis=1, keepdims=True)
    # All best candidates are equally likely to be drawn. Many texts share no n-gram with any
    # candidate; then all candidates tie at 0.
    is_best = similarity >= best
    return float((np.diagonal(is_best) / is_best.sum(axis=1)).mean())
