from __future__ import annotations

import numpy as np
import pytest

from interlingua.analysis.hubness import hubness, skewness
from interlingua.evaluation.metrics.pool import search_pool
from tests.analysis.conftest import random_vectors, unit


def test_worked_by_hand():
    """Compute 0, 0, 3: mean 1, deviations -1, -1, 2; second moment 2, third 2; 2 / 2^1.5."""
    assert skewness(np.array([0, 0, 3])) == pytest.approx(2 / 2**1.5)


def test_it_is_scipys():
    stats = pytest.importorskip("scipy.stats")
    counts = np.random.default_rng(0).poisson(3, (4, 50))
    assert skewness(counts) == pytest.approx(stats.skew(counts, axis=None))


def test_all_alike():
    assert skewness(np.full((2, 3), 10)) == 0.0


def test_one_hub():
    """Put vectors around a central one, which is the nearest of all; others are of almost none."""
    rng = np.random.default_rng(0)
    center = np.ones(60)
    around = center + 3 * rng.standard_normal((1, 39, 60))
    vectors = unit(np.concatenate([center[None, None], around], axis=1)).reshape(2, 20, 60)
    pool = search_pool(vectors, k=1)
    skew, anti = hubness(pool, "ab")
    assert pool.occurrences.argmax() == 0
    assert skew.value > 3
    assert anti.value > 0.5
    assert anti.by_language["a"] < anti.by_language["b"]


def test_antihubs_are_counted():
    pool = search_pool(random_vectors(2, 8, 3), k=2)
    assert hubness(pool, "ab")[1].value == (pool.occurrences == 0).mean()
