"""The GPU's search, on the CPU: nothing in it depends on the device."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from interlingua.retrieval.topk import device_scanner, exact
from interlingua.retrieval.topk.bounds import dot_float64
from interlingua.retrieval.topk.device_scanner import DeviceScanner, exact_products
from interlingua.retrieval.topk.torch_scanner import TorchScanner
from tests.retrieval.topk.scanners import (
    assert_equal,
    centered,
    check,
    crowded,
    empty_lists,
    scan_all,
)


def on_cpu(dtype=None, tile=(128, 256)):
    return lambda frame: DeviceScanner(frame, device="cpu", dtype=dtype, tile=tile)


@pytest.mark.parametrize("tile", [(64, 64), (64, 512), (512, 64)])
def test_tiles_and_blocks_decide_nothing(tile):
    x, y = crowded(7, 290, 333, 24)
    whole = check(on_cpu(torch.bfloat16), x, y, 5)
    small = check(on_cpu(torch.bfloat16, tile), x, y, 5, cut=100)
    assert_equal(whole, small)


def test_a_tile_of_equal_vectors_is_cut_until_it_fits(monkeypatch):
    monkeypatch.setattr(device_scanner, "_PAIRS_AT_ONCE", 5000)
    monkeypatch.setattr(device_scanner, "LEAST_TILE", 64)
    looked_at = []
    original = device_scanner.exact_products

    def watched(x, y, rows, columns):
        looked_at.append(len(rows))
        # An error that is being handled would keep the tensors of the larger tiles in memory.
        assert sys.exc_info()[0] is None
        return original(x, y, rows, columns)

    monkeypatch.setattr(device_scanner, "exact_products", watched)
    x = np.tile(np.full(16, 0.25, np.float32), (200, 1))
    of_x, _ = check(on_cpu(torch.float32, tile=(256, 256)), x, x, 3)
    assert of_x.indices.tolist() == [[0, 1, 2]] * 200
    assert max(looked_at) <= 5000


@pytest.mark.parametrize("width", [1, 16, 40, 384])
def test_exact_products_have_the_bits_of_the_cpu(width):
    rng = np.random.default_rng(width)
    x, y = rng.standard_normal((2, 50, width)).astype(np.float32)
    rows, columns = rng.integers(0, 50, (2, 3000))
    found = exact_products(*map(torch.from_numpy, (x, y, rows, columns)))
    np.testing.assert_array_equal(found.numpy(), dot_float64(x, y, rows, columns))


def test_lists_that_know_similarities_but_no_neighbors_are_overwritten():
    # as the trial of a search makes them
    x, y = crowded(3, 100, 100, 16)
    found = []
    for way in (on_cpu(), TorchScanner):
        lists = empty_lists(x, y, 3)
        for of in lists:
            of.values[:] = 0.5
        scan_all(way(centered(x, y)), x, y, *lists)
        found.append(lists)
    assert_equal(*found)


def test_a_gpu_keeps_what_fits_into_half_of_its_memory(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (10, 20))
    assert exact.kept_bytes(torch.device("cuda")) == 5
    assert exact.kept_bytes(torch.device("cpu")) == exact._KEPT_BYTES
