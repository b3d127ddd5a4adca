from __future__ import annotations

import math

import numpy as np
import pytest

from interlingua.mining.speed import SearchSpeed, search_speed


def test_seconds_by_hand():
    """1000 x 10 pairs, 2 neighbours, x in two blocks of rows."""
    speed = SearchSpeed(1e-6, 1e-3, 1e-2)
    places = 1000 * 2 * (1 + math.log(5)) + 10 * 2 * (1 + math.log(500))
    assert speed.seconds(1000, 10, 2, 500) == pytest.approx(0.01 + 1e-3 * places + 1e-2 * (1000 + 2 * 10))


def test_the_search_is_timed_on_real_vectors():
    rng = np.random.default_rng(0)
    speed = search_speed(*(rng.standard_normal((5, 16)).astype(np.float32) for _ in "xy"), 4)
    assert 0 < speed.pair < 1e-4
    assert speed.place >= 0
    assert speed.vector > 0
