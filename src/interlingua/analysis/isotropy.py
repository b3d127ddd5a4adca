"""Isotropy: whether the vectors use the whole space or all point in the same direction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32, Float64
from numpy import ndarray

from interlingua.analysis.record import Measure
from interlingua.errors import DataError

_BLOCK = 8192
"""Vectors read at once."""


def isotropy(vectors: Float32[ndarray, "l n d"], languages: Sequence[str]) -> list[Measure]:
    """Compute mean cosine, partition isotropy and effective rank of unit vectors.

    - ``mean_cosine``: the exact mean cosine of two different lines in any languages (Ethayarajh
      2019, section 3.4); the value of a language is that of two lines of this language.
      Translations of one another are left out, as they should be near.
    - ``partition_isotropy``: min Z(c) / max Z(c), Z(c) = sum of exp(c'v) over the vectors v, c the
      eigenvectors of V'V (Mu and Viswanath 2018, "All-but-the-top"). Differs from the paper: the
      vectors have length 1, and both directions of each eigenvector are tried, as its sign is
      arbitrary. 1 = isotropic.
    - ``effective_rank``: exp of the entropy of the normalized singular values of the centered
      vectors (Roy and Vetterli 2007); it is the number of directions in use, from 1 to the width.

    Args:
        vectors: unit vectors of line-aligned sentences, in memory or mapped.
        languages: their codes.

    Raises:
        DataError: there are fewer than two lines.
    """
    count, n, width = vectors.shape
    if n < 2:
        raise DataError(
            "isotropy compares different lines, found one line in each language; provide at"
            " least two"
        )
    # One pass over the vectors, a language at a time: V'V, and sums by line and by language.
    gram = np.zeros((width, width))
    by_line = np.zeros((n, width))
    by_language = np.zeros((count, width))
    squares = np.zeros(count)
    for language in range(count):
        rows = np.asarray(vectors[language], np.float64)
        gram += rows.T @ rows
        by_line += rows
        by_language[language] = rows.sum(axis=0)
        squares[language] = (rows**2).sum()
    # The sum of all inner products is |sum of v|^2. Subtract the products of a line with its own
    # translations, |sum over languages|^2 for each line; L^2 n (n - 1) ordered pairs remain.
    total = by_language.sum(axis=0)
    cosine = (total @ total - (by_line**2).sum()) / (count * count * n * (n - 1))
    # The same in one language, where a line's only translation is itself.
    within = ((by_language**2).sum(axis=1) - squares) / (n * (n - 1))
    # E(v v') - E(v) E(v)'.
    mean = total / (count * n)
    centered = gram / (count * n) - np.outer(mean, mean)
    return [
        Measure(
            name="mean_cosine",
            value=float(cosine),
            unit="cosine",
            better="lower",
            ideal=0.0,
            by_language=dict(zip(languages, within.tolist(), strict=True)),
            definition="mean cosine of two different lines in any languages",
        ),
        Measure(
            name="partition_isotropy",
            value=partition_isotropy(vectors, gram),
            unit="",
            better="higher",
            ideal=1.0,
            definition="smallest over largest sum of exp(c'v) over the principal directions c",
        ),
        Measure(
            name="effective_rank",
            value=effective_rank(centered),
            unit="",
            better="higher",
            definition=f"directions in use, 1 to {width}: exp of the entropy of the singular"
            " values' shares",
        ),
    ]


def partition_isotropy(vectors: Float32[ndarray, "l n d"], gram: Float64[ndarray, "d d"]) -> float:
    """Compute min Z(c) / max Z(c), over both directions of the eigenvectors.

    Args:
        vectors: unit vectors.
        gram: V'V of all of them.
    """
    directions = np.linalg.eigh(gram).eigenvectors
    # Z(c) and Z(-c) for each eigenvector.
    sums = np.zeros((2, len(gram)))
    for rows in vectors:
        for start in range(0, len(rows), _BLOCK):
            along = np.asarray(rows[start : start + _BLOCK], np.float64) @ directions
            sums[0] += np.exp(along).sum(axis=0)
            sums[1] += np.exp(-along).sum(axis=0)
    return float(sums.min() / sums.max())


def effective_rank(covariance: Float64[ndarray, "d d"]) -> float:
    """Compute the number of directions in use.

    The singular values are the roots of a covariance's eigenvalues. The result is 1 if all are
    zero.
    """
    # Rounding makes eigenvalues that are 0 a little negative.
    values = np.sqrt(np.clip(np.linalg.eigvalsh(covariance), 0, None))
    # Values below this limit come from rounding, too.
    values = values[values > 1e-7]
    if not len(values):
        return 1.0
    shares = values / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))
