from __future__ import annotations

import numpy as np
import pytest

from interlingua.analysis.language_gap import accuracy_gap, language_gap
from interlingua.evaluation.metrics.pool import Pool, search_pool
from tests.analysis.conftest import random_vectors, unit


def test_worked_by_hand():
    """Use two languages of two vectors: (1, 0), (-1, 0), and twice (0, 1): means 1 apart."""
    vectors = np.float32([[[1, 0], [-1, 0]], [[0, 1], [0, 1]]])
    share, distance = language_gap(vectors, ["a", "b"])
    assert distance.value == pytest.approx(1)
    assert distance.by_language == {"a": pytest.approx(1), "b": pytest.approx(1)}
    # center (0, .5); between .25; total (1.25 + 1.25 + .25 + .25) / 4 = .75
    assert share.value == pytest.approx(1 / 3)


def test_the_share_is_one_for_points_and_zero_for_translations():
    corners = np.repeat(np.eye(3, dtype=np.float32)[:, None], 5, axis=1)
    assert language_gap(corners, "abc")[0].value == pytest.approx(1)
    assert language_gap(np.tile(random_vectors(1, 5, 3), (3, 1, 1)), "abc")[
        0
    ].value == pytest.approx(0)
    assert language_gap(unit(np.ones((2, 3, 4))), "ab")[0].value == 0.0


def test_the_share_is_eta_squared():
    vectors = random_vectors(4, 25, 6).astype(np.float64)
    flat = vectors.reshape(-1, 6)
    within = ((vectors - vectors.mean(axis=1, keepdims=True)) ** 2).sum()
    total = ((flat - flat.mean(axis=0)) ** 2).sum()
    assert language_gap(vectors.astype(np.float32), "abcd")[0].value == pytest.approx(
        1 - within / total, rel=1e-5
    )


def test_accuracy_gap_worked_by_hand():
    """Rank so that a finds all of b, b half of a, and c neither finds nor is found."""
    found = np.zeros((3, 2, 3), bool)
    found[0, :, 1] = True
    found[1, 0, 0] = True
    gap = accuracy_gap(Pool(found, *[found] * 3, *[np.zeros((3, 2), int)] * 2, 1), "abc")
    assert gap.by_language == {"a": (1 + 0.5) / 4, "b": (1 + 0.5) / 4, "c": 0.0}
    assert gap.value == 1.5 / 4
    assert gap.low <= gap.value <= gap.high


def test_it_is_the_mean_of_both_directions():
    pool = search_pool(random_vectors(3, 30, 4))
    gap = accuracy_gap(pool, "abc")
    alone = pool.found_alone.mean(axis=1)
    assert gap.by_language["b"] == pytest.approx(
        (alone[1, 0] + alone[1, 2] + alone[0, 1] + alone[2, 1]) / 4
    )
