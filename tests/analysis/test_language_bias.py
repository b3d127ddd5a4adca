from __future__ import annotations

import numpy as np
import pytest

from interlingua.analysis.language_bias import language_bias
from interlingua.evaluation.metrics.pool import search_pool
from tests.analysis.conftest import random_vectors, unit


def measures(vectors, languages="abc"):
    return {m.name: m for m in language_bias(search_pool(vectors), languages)}


def test_a_perfect_space():
    """Make translations nearly coincide, so that no language prefers itself."""
    rng = np.random.default_rng(0)
    vectors = unit(rng.standard_normal((1, 50, 40)) + 0.01 * rng.standard_normal((3, 50, 40)))
    found = measures(vectors)
    assert found["same_language_bias"].value == 0
    assert found["accuracy_own_pool"].value == found["accuracy_mixed_pool"].value == 1
    assert found["mixed_pool_drop"].value == 0
    assert found["same_language_bias_without_translations"].value == pytest.approx(1 / 3, abs=0.12)


def test_languages_apart():
    """Put meaning in some dimensions, and a much larger language part in three others."""
    meaning = np.tile(unit(np.random.default_rng(0).standard_normal((1, 30, 12))), (3, 1, 1))
    language = np.tile(5 * np.eye(3)[:, None], (1, 30, 1))
    found = measures(unit(np.concatenate([meaning, language], axis=2)))
    assert found["same_language_bias"].value == 1
    assert found["accuracy_mixed_pool"].value == 0
    assert found["accuracy_own_pool"].value == 1
    assert found["mixed_pool_drop"].value == found["accuracy_own_pool"].value
    assert found["same_language_bias"].ideal == 0


def test_languages_items_and_intervals():
    found = measures(random_vectors(3, 40, 6, shared=2.0))
    own = found["accuracy_own_pool"]
    assert list(own.by_language) == ["a", "b", "c"]
    assert np.mean(list(own.by_language.values())) == pytest.approx(own.value) == own.items.mean()
    assert len(own.items) == 40
    assert own.low < own.value < own.high
    drop = found["mixed_pool_drop"]
    np.testing.assert_allclose(drop.items, own.items - found["accuracy_mixed_pool"].items)
    assert drop.low >= 0
