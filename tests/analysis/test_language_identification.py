from __future__ import annotations

import numpy as np
import pytest

from interlingua.analysis.language_identification import _predict, _train, language_identification
from interlingua.errors import DataError
from tests.analysis.conftest import random_vectors, unit


def test_languages_apart_are_told_and_twins_are_not():
    rng = np.random.default_rng(0)
    corners = unit(3 * np.eye(4)[:, None] + 0.1 * rng.standard_normal((4, 20, 4)))
    told = language_identification(corners, "abcd")
    assert told.value == 1
    assert (told.better, told.ideal) == ("lower", 0.25)
    twins = np.tile(random_vectors(1, 20, 6), (4, 1, 1))
    assert language_identification(twins, "abcd").value == 0.25  # one guess for all four


def test_identical_vectors_are_chance():
    assert language_identification(unit(np.ones((5, 6, 3))), "abcde").value == pytest.approx(0.2)


def test_it_is_scikit_learns_probe():
    linear_model = pytest.importorskip("sklearn.linear_model")
    vectors = random_vectors(3, 60, 8, seed=3) + 0.15 * np.random.default_rng(1).standard_normal(
        (3, 1, 8)
    )
    vectors = vectors.astype(np.float32)
    lines = np.arange(0, 60, 2)
    probe = _train(vectors, lines, 1e-2)
    x = vectors[:, lines].reshape(-1, 8).astype(np.float64)
    x = (x - x.mean(0)) / np.sqrt(((x - x.mean(0)) ** 2).mean())
    y = np.repeat(np.arange(3), len(lines))
    theirs = linear_model.LogisticRegression(C=1 / (1e-2 * len(x)), tol=1e-9, max_iter=2000).fit(
        x, y
    )
    np.testing.assert_allclose(probe.parameters[:-1].T.numpy(), theirs.coef_, atol=2e-4)
    bias = probe.parameters[-1].numpy()
    np.testing.assert_allclose(
        bias - bias.mean(), theirs.intercept_ - theirs.intercept_.mean(), atol=2e-4
    )
    assert (
        _predict(probe, vectors[1])
        == theirs.predict((vectors[1] - probe.center.numpy()) / probe.scale)
    ).all()


def test_the_scale_of_the_vectors_is_nothing():
    vectors = random_vectors(3, 40, 5)
    first, second = (
        language_identification(scale * vectors, "abc") for scale in (1, np.float32(100))
    )
    np.testing.assert_array_equal(first.items, second.items)


def test_no_translation_of_a_test_line_is_trained_on():
    """Use lines that differ in parity by noise only, which the probe could memorize."""
    rng = np.random.default_rng(0)
    vectors = unit(rng.standard_normal((2, 10, 200)))
    assert language_identification(vectors, "ab").value < 0.9


def test_one_line_is_too_few():
    with pytest.raises(DataError, match="one line in each"):
        language_identification(random_vectors(2, 1, 3), "ab")
