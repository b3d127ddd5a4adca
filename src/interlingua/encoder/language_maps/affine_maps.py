"""Affine maps that take the language out of sentence vectors, estimated without training.

An encoder leaves a trace of the language in its vectors: the mean vector of German sentences is not
that of Thai ones, so sentences of one language are nearer to each other than to their translations.
The maps of this module remove this trace. They are estimated from the means and covariances of
vectors whose language is known, without translations. With L languages and D dimensions, all
statistics fit into L means and one D x D matrix, so any number of vectors can be streamed.

- ``center``: x - mu, where mu is the mean of the languages' means.
- ``project``: (I - U U')(x - mu), where the columns of U span the differences of the languages'
  means.
- ``erase``: least-squares concept erasure (LEACE): no linear classifier can distinguish the
  languages afterwards, and of all maps with that property it moves the vectors least.
- ``shift``: x - mu_l for a sentence of language l, so the language has to be known when a text is
  embedded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Float64
from numpy import ndarray

from interlingua.errors import DataError, count_of
from interlingua.storage.arrays import unit_rows

MapMethod = Literal["project", "erase", "shift", "center"]
MAP_METHODS: tuple[MapMethod, ...] = ("project", "erase", "shift", "center")
RELATIVE_TOLERANCE = 1e-6
"""Singular values below this share of the largest are taken for rounding errors."""


class LanguageStatistics(NamedTuple):
    """Statistics from which the maps are estimated.

    Attributes:
        languages: their codes.
        counts: number of vectors of each language.
        means: mean vector of each.
        covariance: of all vectors around ``center``; every language has the same weight.
    """

    languages: tuple[str, ...]
    counts: tuple[int, ...]
    means: Float64[ndarray, "l d"]
    covariance: Float64[ndarray, "d d"]

    @property
    def center(self) -> Float64[ndarray, " d"]:
        """Mean of the languages' means: a language with more texts has no more weight."""
        center: Float64[ndarray, " d"] = self.means.mean(axis=0)
        return center


def language_statistics(
    vectors: Iterable[tuple[str, Float[ndarray, "n d"]]], *, need_covariance: bool = True
) -> LanguageStatistics:
    """Compute means and covariance of vectors by language, in one pass over blocks of them.

    Args:
        vectors: pairs of a language and a block of its vectors, any number of them in any order.
        need_covariance: if False, the D x D sums are skipped (only ``erase`` reads them) and the
            covariance is zero.

    Raises:
        DataError: there are fewer than two languages, or a vector is not finite.
    """
    counts: dict[str, int] = {}
    sums: dict[str, Float64[ndarray, " d"]] = {}
    squares: dict[str, Float64[ndarray, "d d"]] = {}
    for language, block in vectors:
        # Sums of millions of squares lose their small differences in float32.
        rows = np.asarray(block, dtype=np.float64)
        if not np.isfinite(rows).all():
            row = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
            raise DataError(
                f"vector {row + 1} of a block of {language} contains NaN or infinity; embed its"
                " text again"
            )
        counts[language] = counts.get(language, 0) + len(rows)
        sums[language] = sums.get(language, 0.0) + rows.sum(axis=0)
        if need_covariance:
            squares[language] = squares.get(language, 0.0) + rows.T @ rows
    languages = tuple(sorted(language for language, count in counts.items() if count))
    if len(languages) < 2:
        raise DataError(f"expected texts of at least 2 languages, found {len(languages)}")
    means = np.stack([sums[language] / counts[language] for language in languages])
    width = means.shape[1]
    covariance = np.zeros((width, width))
    if need_covariance:
        # E[x x'] - mu mu', each expectation the mean of the languages' means.
        moments = [squares[language] / counts[language] for language in languages]
        second_moment = np.mean(moments, axis=0)
        center = means.mean(axis=0)
        covariance = second_moment - np.outer(center, center)
    counts_in_order = tuple([counts[language] for language in languages])
    return LanguageStatistics(languages, counts_in_order, means, covariance)


@dataclass(frozen=True, slots=True, eq=False)
class LanguageMap:
    """The map x -> W x + b, or, for ``shift``, x - mu_l with the language l of each text.

    Attributes:
        method: which map it is.
        rank: number of directions that are removed.
        languages: codes of the languages that it was estimated on.
        weight: W.
        bias: b.
        shifts: mean vector of each language; only with ``shift``, where W and b change nothing.
    """

    method: MapMethod
    rank: int
    languages: tuple[str, ...]
    weight: Float64[ndarray, "d d"]
    bias: Float64[ndarray, " d"]
    shifts: Float64[ndarray, "l d"] | None = None

    def apply(
        self,
        vectors: Float[ndarray, "n d"],
        languages: Sequence[str] | None = None,
        *,
        normalize: bool = True,
    ) -> Float32[ndarray, "n d"]:
        """Map vectors.

        Args:
            vectors: of length 1 if the map was estimated on vectors of length 1.
            languages: code of each vector's language; needed by ``shift``.
            normalize: scale the results to length 1.

        Returns:
            the mapped vectors; a zero vector, which represents no text, stays as it is.

        Raises:
            DataError: a language is missing, or the map was not estimated on it.
        """
        mapped = np.asarray(vectors, dtype=np.float64) @ self.weight.T + self.bias
        if self.shifts is not None:
            mapped -= self.shifts[self._rows(languages, len(mapped))]
        mapped[~np.any(vectors, axis=1)] = 0.0
        if normalize:
            return unit_rows(mapped)
        rounded: Float32[ndarray, "n d"] = mapped.astype(np.float32)
        return rounded

    def _rows(self, languages: Sequence[str] | None, count: int) -> list[int]:
        """Return the row of ``shifts`` for each vector."""
        if languages is None or len(languages) != count:
            given = "none" if languages is None else f"{len(languages):,}"
            raise DataError(
                "the method shift requires the language of each of"
                f" {count_of(count, 'vectors')}, found {given}"
            )
        row_of = {language: row for row, language in enumerate(self.languages)}
        unknown = next((language for language in languages if language not in row_of), None)
        if unknown is not None:
            raise DataError(
                f"unknown language {unknown} of a shift; use one of: {', '.join(self.languages)}"
            )
        return [row_of[language] for language in languages]


def fit_language_map(
    statistics: LanguageStatistics, method: MapMethod = "project", rank: int | None = None
) -> LanguageMap:
    r"""Estimate a map.

    ``project`` takes the directions from the singular value decomposition of the centered means,
    largest differences first. ``erase`` is "LEACE: Perfect linear concept erasure in closed form"
    (Belrose et al. 2023), Theorem 4.3:

    .. math:: r(x) = x - W^+ P W (x - \mu), \qquad W = (\Sigma_{XX}^{1/2})^+, \qquad
              P = (W \Sigma_{XZ})(W \Sigma_{XZ})^+

    *Symbols*: X the vectors, Z the one-hot language, mu the mean. Differs from the paper: every
    language has the same weight; then the mean is subtracted too, which does not matter to linear
    classifiers but changes cosines; if ``rank`` is below L - 1, P projects onto the ``rank``
    directions of largest singular value.

    Args:
        statistics: of the vectors; ``erase`` needs the covariance.
        method: see the module.
        rank: largest number of directions to remove, for ``project`` and ``erase``; default:
            all, L - 1.

    Raises:
        DataError: the rank is negative.
    """
    if rank is not None and rank < 0:
        raise DataError(f"rank: expected a number of at least 0, found {rank}")
    center = statistics.center
    width = statistics.means.shape[1]
    differences = statistics.means - center
    identity = np.eye(width)
    if method == "shift":
        return LanguageMap(
            method, 0, statistics.languages, identity, np.zeros(width), statistics.means
        )
    if method == "center":
        return LanguageMap(method, 0, statistics.languages, identity, -center)
    if method == "project":
        # U U', the columns of U an orthonormal basis of the differences.
        directions = _directions(differences.T, rank)
        removed = directions @ directions.T
    else:
        # W^+ P W of Theorem 4.3. With one-hot Z the columns of Sigma_XZ are the differences, each
        # times a language's share, which is the same for all and so changes no direction.
        whitening, unwhitening = _square_roots(statistics.covariance)
        directions = _directions(whitening @ differences.T, rank)
        removed = unwhitening @ directions @ directions.T @ whitening
    # (I - R)(x - mu) as one affine map.
    weight = identity - removed
    return LanguageMap(method, directions.shape[1], statistics.languages, weight, -weight @ center)


def _directions(columns: Float64[ndarray, "d l"], rank: int | None) -> Float64[ndarray, "d r"]:
    """Compute orthonormal directions of the columns' span, the largest first, at most ``rank``."""
    left, values, _ = np.linalg.svd(columns, full_matrices=False)
    # The differences from a mean sum to zero, so the last singular value of L columns is always a
    # rounding error.
    # If all means are equal, all values are 0, and the lower bound makes sure that none is kept.
    kept = int((values > RELATIVE_TOLERANCE * max(values[0], 1e-30)).sum())
    if rank is not None:
        kept = min(rank, kept)
    return np.asarray(left[:, :kept])


def _square_roots(
    covariance: Float64[ndarray, "d d"],
) -> tuple[Float64[ndarray, "d d"], Float64[ndarray, "d d"]]:
    """Compute the pseudo-inverse of the matrix's symmetric square root, and the root."""
    values, vectors = np.linalg.eigh(covariance)
    # Values are in rising order; rounding leaves small, even negative ones where there is no
    # variance.
    kept = values > RELATIVE_TOLERANCE * values[-1]
    roots = np.sqrt(np.where(kept, values, 0.0))
    # The inner `where` keeps numpy from dividing by zero, and from warning of it.
    inverse_roots = np.where(kept, 1 / np.where(kept, roots, 1.0), 0.0)
    return (vectors * inverse_roots) @ vectors.T, (vectors * roots) @ vectors.T
