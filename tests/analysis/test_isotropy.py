from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from interlingua.analysis.isotropy import effective_rank, isotropy, partition_isotropy
from interlingua.errors import DataError
from interlingua.training.monitors import spread
from tests.analysis.conftest import random_vectors, unit


def measures(vectors):
    return {m.name: m for m in isotropy(vectors, [str(i) for i in range(len(vectors))])}


def test_mean_cosine_pair_by_pair():
    vectors = random_vectors(3, 6, 4)
    places = list(itertools.product(range(3), range(6)))
    pairs = [(p, q) for p, q in itertools.product(places, places) if p[1] != q[1]]
    expected = np.mean([vectors[p] @ vectors[q] for p, q in pairs])
    found = measures(vectors)["mean_cosine"]
    assert found.value == pytest.approx(expected, abs=1e-6)
    of_second = [vectors[1, i] @ vectors[1, j] for i, j in itertools.permutations(range(6), 2)]
    assert found.by_language["1"] == pytest.approx(np.mean(of_second), abs=1e-6)


def test_partition_function_worked_by_hand():
    """Use three vectors along one axis of two: Z is 3 e, 3 / e and 3, so the ratio is exp(-2)."""
    vectors = np.tile(np.float32([1, 0]), (1, 3, 1))
    assert partition_isotropy(vectors, vectors[0].T @ vectors[0]) == pytest.approx(np.exp(-2))


def test_partition_function_is_its_definition():
    vectors = random_vectors(2, 30, 5)
    rows = vectors.reshape(-1, 5).astype(np.float64)
    sums = [np.exp(rows @ (sign * c)).sum() for c in np.linalg.svd(rows)[2] for sign in (1, -1)]
    assert partition_isotropy(vectors, rows.T @ rows) == pytest.approx(min(sums) / max(sums))


def test_evenly_spread():
    both = unit(np.concatenate([np.eye(6), -np.eye(6)])).reshape(2, 6, 6)
    found = measures(both)
    assert found["mean_cosine"].value == pytest.approx(0, abs=1e-7)
    assert found["partition_isotropy"].value == pytest.approx(1)
    assert found["effective_rank"].value == pytest.approx(6)


def test_effective_rank_is_that_of_the_training_monitors():
    vectors = random_vectors(3, 40, 8)
    assert measures(vectors)["effective_rank"].value == pytest.approx(
        spread(torch.from_numpy(vectors.reshape(-1, 8))).effective_rank, rel=1e-4
    )


def test_identical_vectors():
    found = measures(unit(np.ones((2, 4, 3))))
    assert found["mean_cosine"].value == pytest.approx(1)
    assert found["effective_rank"].value == pytest.approx(1)
    assert np.isfinite(found["partition_isotropy"].value)
    assert effective_rank(np.zeros((3, 3))) == 1.0


def test_one_line_is_too_few():
    with pytest.raises(DataError, match="one line in each"):
        isotropy(random_vectors(2, 1, 3), "ab")
