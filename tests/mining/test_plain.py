from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.mining import plain
from interlingua.mining.lists import Lists
from interlingua.mining.plain import TorchScanner, multiplies_bfloat16
from interlingua.mining.scan import Block, Centres
from tests.mining.scanners import check, crowded

DTYPES = [torch.float32, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "m", "d", "k"), [(1, 1, 5, 1), (3, 200, 16, 4), (200, 3, 16, 4), (300, 410, 40, 4)])
def test_it_finds_what_the_oracle_finds(dtype, n, m, d, k):
    check(lambda centres: TorchScanner(centres, dtype=dtype), *crowded(n + m, n, m, d), k)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tiles_and_blocks_decide_nothing(dtype, monkeypatch):
    x, y = crowded(7, 290, 333, 24)
    whole = check(lambda centres: TorchScanner(centres, dtype=dtype), x, y, 5)
    monkeypatch.setattr(plain, "TILE_ROWS", 64)
    monkeypatch.setattr(plain, "TILE_COLUMNS", 128)
    small = check(lambda centres: TorchScanner(centres, dtype=dtype), x, y, 5, cut=100)
    for one, other in zip(whole, small, strict=True):
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_array_equal(one.values, other.values)


def test_centres_far_from_the_means_cost_time_alone():
    x, y = crowded(8, 120, 150, 24)
    far = Centres(np.full(24, 3.0, np.float32), np.full(24, -2.0, np.float32))
    check(lambda centres: TorchScanner(centres, dtype=torch.bfloat16), x, y, 4, centres=far)


def test_opposite_vectors_are_neighbours_too_where_there_are_no_better_ones():
    x = np.eye(4, dtype=np.float32)
    check(TorchScanner, x, -x, 3, centres=Centres(np.zeros(4, np.float32), np.zeros(4, np.float32)))


def test_few_pairs_are_computed_exactly(monkeypatch):
    computed = []
    original = plain.exact
    monkeypatch.setattr(plain, "exact", lambda x, y, *at: computed.append(len(at[0])) or original(x, y, *at))
    x, y = crowded(9, 2000, 2000, 64)
    scanner = TorchScanner(Centres(x.mean(axis=0), y.mean(axis=0)))
    left, right = scanner.prepare(Block(x, 0), of_x=True), scanner.prepare(Block(y, 0), of_x=False)
    scanner.scan(left, right, Lists.empty(2000, 4), None)
    assert 2000 * 4 <= sum(computed) < 2000 * 40


def test_the_choice_of_the_type_is_the_processors():
    native = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    assert multiplies_bfloat16(torch.device("cpu")) == native
    assert not multiplies_bfloat16(torch.device("mps"))
