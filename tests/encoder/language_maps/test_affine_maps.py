from __future__ import annotations

import numpy as np
import pytest

from interlingua.encoder.language_maps.affine_maps import (
    MAP_METHODS,
    fit_language_map,
    language_statistics,
)
from interlingua.errors import DataError

LANGUAGES = ("deu_Latn", "eng_Latn", "jpn_Jpan", "tha_Thai")
WIDTH = 9


@pytest.fixture
def labeled():
    """Vectors of four languages with different means and covariances, of unequal counts."""
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(WIDTH, WIDTH))
    return {
        language: (rng.normal(size=(50 + 10 * number, WIDTH)) + 3 * rng.normal(size=WIDTH)) @ mixing
        for number, language in enumerate(LANGUAGES)
    }


def blocks(labeled, size=17):
    return [
        (name, rows[i : i + size])
        for name, rows in labeled.items()
        for i in range(0, len(rows), size)
    ]


def test_statistics_streamed_equal_statistics_at_once(labeled):
    found = language_statistics(blocks(labeled))
    means = np.stack([labeled[name].mean(axis=0) for name in LANGUAGES])
    np.testing.assert_allclose(found.means, means)
    center = means.mean(axis=0)
    covariances = [(rows - center).T @ (rows - center) / len(rows) for rows in labeled.values()]
    np.testing.assert_allclose(found.covariance, np.mean(covariances, axis=0), atol=1e-9)
    assert found.counts == (50, 60, 70, 80)


@pytest.mark.parametrize(
    ("method", "rank", "points", "vectors", "expected"),
    [
        ("center", 0, ([[1, 0]], [[3, 4], [3, 4]]), [[2, 2], [3, 2]], [[0, 0], [1, 0]]),
        ("project", 1, ([[0, 0]], [[2, 0]]), [[5, 7]], [[0, 7]]),
    ],
)
def test_two_languages_by_hand(method, rank, points, vectors, expected):
    found = language_statistics(zip(("a", "b"), map(np.array, points), strict=True))
    language_map = fit_language_map(found, method)
    assert language_map.rank == rank
    mapped = language_map.apply(np.array(vectors), normalize=False)
    np.testing.assert_allclose(mapped, expected, atol=1e-7)


@pytest.mark.parametrize("method", ["project", "erase"])
def test_full_rank_makes_all_language_means_equal(labeled, method):
    language_map = fit_language_map(language_statistics(blocks(labeled)), method)
    means = [language_map.apply(labeled[name], normalize=False).mean(axis=0) for name in LANGUAGES]
    assert language_map.rank == len(LANGUAGES) - 1
    np.testing.assert_allclose(means, np.zeros((4, WIDTH)), atol=1e-5)


def test_shift_makes_all_language_means_zero(labeled):
    language_map = fit_language_map(language_statistics(blocks(labeled)), "shift")
    for name in LANGUAGES:
        shifted = language_map.apply(labeled[name], [name] * len(labeled[name]), normalize=False)
        np.testing.assert_allclose(shifted.mean(axis=0), np.zeros(WIDTH), atol=1e-6)


def test_a_zero_vector_stays(labeled):
    found = fit_language_map(language_statistics(blocks(labeled)), "shift")
    vectors = np.stack([np.zeros(WIDTH), labeled["eng_Latn"][0]])
    mapped = found.apply(vectors, ["eng_Latn"] * 2)
    assert mapped.any(axis=1).tolist() == [False, True]


def test_erase_matches_the_formula_of_the_paper(labeled):
    """Compute LEACE of the cross-covariance with one-hot languages by NumPy's pseudo-inverses."""
    weights = np.concatenate(
        [np.full(len(labeled[name]), 1 / 4 / len(labeled[name])) for name in LANGUAGES]
    )
    x = np.concatenate([labeled[name] for name in LANGUAGES])
    z = np.repeat(np.eye(4), [len(labeled[name]) for name in LANGUAGES], axis=0)
    centered = x - weights @ x
    sigma_xx = (centered * weights[:, None]).T @ centered
    sigma_xz = (centered * weights[:, None]).T @ (z - weights @ z)
    values, vectors = np.linalg.eigh(sigma_xx)
    w = np.linalg.pinv((vectors * np.sqrt(values)) @ vectors.T)
    # One of the four columns is redundant.
    p = (w @ sigma_xz) @ np.linalg.pinv(w @ sigma_xz, rcond=1e-9)
    expected = np.eye(WIDTH) - np.linalg.pinv(w) @ p @ w
    found = fit_language_map(language_statistics(blocks(labeled)), "erase")
    np.testing.assert_allclose(found.weight, expected, atol=1e-8)


def test_erase_moves_vectors_less_than_project(labeled):
    """Compare in the whitened norm, in which LEACE moves least of all maps that equalize means."""
    statistics = language_statistics(blocks(labeled))
    x = np.concatenate([labeled[name] for name in LANGUAGES]) - statistics.center
    inverse = np.linalg.inv(statistics.covariance)
    moved = {}
    for method in ("project", "erase"):
        change = x @ fit_language_map(statistics, method).weight.T - x
        moved[method] = np.einsum("nd,de,ne->", change, inverse, change)
    assert moved["erase"] < moved["project"]


def test_lower_rank_removes_the_largest_difference_first():
    found = language_statistics(
        [("a", np.array([[9.0, 0.0]])), ("b", np.array([[0.0, 1.0]])), ("c", np.zeros((1, 2)))]
    )
    language_map = fit_language_map(found, "project", rank=1)
    mapped = language_map.apply(np.array([[1.0, 0.0], [0.0, 1.0]]), normalize=False)
    assert language_map.rank == 1
    assert np.ptp(mapped[:, 0]) < 0.2
    assert np.ptp(mapped[:, 1]) > 0.8


def test_rank_zero_of_project_is_center(labeled):
    statistics = language_statistics(blocks(labeled))
    none = fit_language_map(statistics, "project", rank=0)
    center = fit_language_map(statistics, "center")
    np.testing.assert_allclose(none.weight, center.weight, atol=1e-12)
    np.testing.assert_allclose(none.bias, center.bias, atol=1e-12)


@pytest.mark.parametrize("method", MAP_METHODS)
def test_results_have_length_one(labeled, method):
    statistics = language_statistics(blocks(labeled))
    rows = labeled["eng_Latn"][:5]
    mapped = fit_language_map(statistics, method).apply(rows, ["eng_Latn"] * 5)
    np.testing.assert_allclose(np.linalg.norm(mapped, axis=1), 1, atol=1e-6)


def test_shift_needs_known_languages(labeled):
    language_map = fit_language_map(language_statistics(blocks(labeled)), "shift")
    with pytest.raises(DataError, match="shift"):
        language_map.apply(np.zeros((2, WIDTH)))
    with pytest.raises(DataError, match="xho_Latn"):
        language_map.apply(np.zeros((1, WIDTH)), ["xho_Latn"])


def test_one_language_or_nan_is_refused(labeled):
    with pytest.raises(DataError, match="at least 2"):
        language_statistics([("a", np.ones((3, 2)))])
    with pytest.raises(DataError, match="NaN or infinity"):
        language_statistics([("a", np.array([[1.0, np.nan]]))])


def test_negative_rank_is_refused(labeled):
    with pytest.raises(DataError, match="rank"):
        fit_language_map(language_statistics(blocks(labeled)), rank=-1)
