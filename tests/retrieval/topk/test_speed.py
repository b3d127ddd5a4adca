from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.retrieval.topk import speed
from interlingua.retrieval.topk.speed import SearchSpeed, _kth_best, search_speed
from interlingua.storage.arrays import unit_rows


def test_seconds_by_hand():
    """Use 1000 x 10 pairs, 2 neighbors, x in two blocks of rows."""
    found = SearchSpeed(1e-6, 1e-3, 1e-2)
    places = 1000 * 2 * (1 + math.log(5)) + 10 * 2 * (1 + math.log(500))
    assert found.seconds(1000, 10, 2, 500) == pytest.approx(
        0.01 + 1e-3 * places + 1e-2 * (1000 + 2 * 10)
    )


def test_the_search_is_timed_on_real_vectors():
    rng = np.random.default_rng(0)
    found = search_speed(
        *(rng.standard_normal((5, 16)).astype(np.float32) for _ in "xy"), 4, (9000, 8000)
    )
    assert 0 < found.pair < 1e-4
    assert found.place >= 0
    assert found.vector > 0


def test_broken_vectors_and_thousands_of_neighbors_do_not_stop_the_trial(monkeypatch):
    """Use a broken vector, which the run itself reports with its text."""
    monkeypatch.setattr("interlingua.retrieval.topk.speed.TRIED_VECTORS", 256)
    vectors = np.eye(5, dtype=np.float32)
    vectors[1] = np.nan
    assert search_speed(vectors, vectors, 4000, (5, 5)).pair > 0


@pytest.fixture
def tried(monkeypatch):
    """The number of vectors of each trial."""
    sizes, make_frame = [], speed.make_frame

    def counted(x, y, **options):
        sizes.append(len(x))
        return make_frame(x, y, **options)

    monkeypatch.setattr(speed, "make_frame", counted)
    return sizes


def test_a_small_search_is_tried_on_few_vectors(tried):
    """Use copies of two texts, all tied: 4,096 of them took half a minute."""
    x = unit_rows(np.random.default_rng(0).standard_normal((2, 16)).astype(np.float32))
    assert search_speed(x, x, 4, (2, 2)).pair > 0
    assert tried == [256]


@pytest.mark.parametrize(("step", "expected"), [(0.1, [256, 1024, 4096]), (0.2, [256])])
def test_a_slow_pass_is_not_tried_on_more_vectors(tried, step, expected):
    x = unit_rows(np.random.default_rng(0).standard_normal((1024, 16)).astype(np.float32))
    ticks = itertools.count(step=step)
    assert search_speed(x, x, 4, (10_000, 10_000), clock=lambda: next(ticks)).pair > 0
    assert tried == expected


def test_vectors_of_two_widths():
    with pytest.raises(DataError, match="same dimension"):
        search_speed(np.ones((3, 8), np.float32), np.ones((3, 4), np.float32), 1, (3, 3))


@pytest.mark.parametrize("d", [4, 12, 48])
def test_what_a_neighbor_will_reach_among_sixteen_times_as_many(d):
    rng = np.random.default_rng(d)
    queries, candidates = (
        unit_rows(rng.standard_normal((n, d)).astype(np.float32)) for n in (200, 16_384)
    )
    true = np.sort(queries @ candidates.T, axis=1)[:, -4].mean()
    told, now = (_kth_best(queries, candidates[:1024], 4, size).mean() for size in (16_384, 1024))
    assert abs(told - true) < 0.15 * (true - now)


def test_copies_come_no_nearer():
    x = np.tile(
        unit_rows(np.random.default_rng(1).standard_normal((1, 24)).astype(np.float32)), (200, 1)
    )
    assert _kth_best(x, x, 4, 10_000).tolist() == pytest.approx([1.0] * 200, abs=1e-6)
    assert search_speed(x, x, 4, (10_000, 10_000)).pair > 0


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_does_not_stop_the_trial(broken):
    x = unit_rows(np.random.default_rng(2).standard_normal((64, 16)).astype(np.float32))
    x[3, 5] = broken
    assert search_speed(x, x, 4, (100, 100)).pair > 0


def test_too_few_vectors_to_tell_how_neighbors_come_nearer():
    x = unit_rows(np.random.default_rng(0).standard_normal((9, 8)).astype(np.float32))
    np.testing.assert_allclose(_kth_best(x, x, 4, 1000), np.sort(x @ x.T, axis=1)[:, -4], atol=1e-6)


def test_a_quarter_of_as_many_vectors_as_neighbors_is_enough():
    """Use sixteen vectors and four neighbors: a quarter has four, and shows the nearer ones."""
    x = unit_rows(np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32))
    assert (_kth_best(x, x, 4, 10_000) > _kth_best(x, x, 4, 16)).all()


def test_many_vectors_whose_first_coordinates_say_most_take_less_time_a_pair():
    rng = np.random.default_rng(1)
    x = (rng.standard_normal((1024, 384)) * 0.97 ** np.arange(384)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    few, many = (
        search_speed(x, x, 4, (size, size), clock=time.process_time).pair
        for size in (4096, 1_000_000)
    )
    assert many < 0.8 * few
