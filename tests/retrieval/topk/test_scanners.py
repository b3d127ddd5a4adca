"""Equality of all scanners: they find the same, to the bit."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch

from interlingua.kernels import KERNEL_VARIANTS
from interlingua.retrieval.topk import device_scanner, kernel_scanner, torch_scanner
from interlingua.retrieval.topk.device_scanner import DeviceScanner
from interlingua.retrieval.topk.kernel_scanner import CompiledScanner
from interlingua.retrieval.topk.lists import NeighborLists
from interlingua.retrieval.topk.torch_scanner import TorchScanner
from tests.retrieval.topk.scanners import (
    assert_equal,
    centered,
    check,
    crowded,
    decaying,
    empty_lists,
    oracle,
    scan_all,
    turned,
)

ON_CPU = functools.partial(DeviceScanner, device="cpu", tile=(128, 256))
WAYS = {
    "torch float32": functools.partial(TorchScanner, dtype=torch.float32),
    "torch bfloat16": functools.partial(TorchScanner, dtype=torch.bfloat16),
    "device float32": functools.partial(ON_CPU, dtype=torch.float32),
    "device bfloat16": functools.partial(ON_CPU, dtype=torch.bfloat16),
}


@pytest.fixture(params=[*WAYS, *KERNEL_VARIANTS])
def scanner_of(use_variant, request):
    """A scanner, or a variant of the kernel that this processor runs, by its frame."""
    if request.param in WAYS:
        return WAYS[request.param]
    use_variant(request.param)
    if not CompiledScanner.available():
        pytest.skip(f"needs the compiled kernel and a processor that runs {request.param}")
    return functools.partial(CompiledScanner, threads=3)


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles so small that a side of some hundred vectors has several, for several threads."""
    monkeypatch.setattr(torch_scanner, "_TILE_ROWS", 64)
    monkeypatch.setattr(torch_scanner, "_TILE_COLUMNS", 128)
    monkeypatch.setattr(kernel_scanner, "_ROWS_AT_ONCE", 32)


@pytest.mark.parametrize(
    ("n", "m", "d", "k"), [(1, 1, 5, 1), (3, 200, 17, 4), (200, 3, 16, 4), (301, 410, 40, 4)]
)
def test_it_finds_what_the_oracle_finds(scanner_of, n, m, d, k):
    check(scanner_of, *crowded(n + m, n, m, d), k)


@pytest.mark.usefixtures("small_tiles")
def test_tiles_blocks_and_threads_decide_nothing(scanner_of):
    x, y = crowded(7, 290, 333, 24)
    expected = check(WAYS["torch float32"], x, y, 5)
    assert_equal(check(scanner_of, x, y, 5, cut=100), expected)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("rate", [1.0, 0.99, 0.9])
def test_stages_decide_nothing(scanner_of, rate):
    x, y = decaying(11, 700, 900, 200, rate)
    staged = check(scanner_of, x, y, 4, frame=turned(x, y), cut=450)
    assert_equal(staged, check(WAYS["torch float32"], x, y, 4))


def test_rows_alone(scanner_of):
    x, y = crowded(3, 70, 90, 16)
    lists = NeighborLists.empty(70, 4)
    scan_all(scanner_of(centered(x, y)), x, y, lists)
    assert_equal([lists], check(scanner_of, x, y, 4)[:1])


@pytest.mark.parametrize(
    ("module", "exact", "way"),
    [
        (torch_scanner, "dot_float64", TorchScanner),
        (device_scanner, "exact_products", functools.partial(ON_CPU, tile=(512, 1024))),
    ],
    ids=["torch", "device"],
)
def test_few_pairs_are_computed_exactly(monkeypatch, module, exact, way):
    computed = []
    original = getattr(module, exact)

    def counted(x, y, *at):
        computed.append(len(at[0]))
        return original(x, y, *at)

    monkeypatch.setattr(module, exact, counted)
    x, y = crowded(9, 2000, 2000, 64)
    scan_all(way(centered(x, y)), x, y, NeighborLists.empty(2000, 4))
    assert 2000 * 4 <= sum(computed) < 2000 * 40


def check_values(scanner_of, x, y, frame):
    """Check that the similarities of the five best are the oracle's up to the last bit."""
    lists = empty_lists(x, y, 5)
    scan_all(scanner_of(frame), x, y, *lists)
    for found, (values, _) in zip(lists, (oracle(x, y, 5), oracle(y, x, 5)), strict=True):
        assert (np.abs(found.values - values) <= np.spacing(np.abs(values))).all()


@pytest.mark.parametrize("axes", [False, True])
@pytest.mark.parametrize("size", [1e-3, 1e-5, 1e-6])
def test_means_at_right_angles_of_which_the_vectors_hardly_differ(scanner_of, axes, size):
    """Use terms that are differences of large products, with large rounding errors."""
    for seed in range(4):
        x, y = (side * np.float32(size) for side in crowded(seed, 150, 130, 16))
        turns = np.linalg.qr(np.random.default_rng(seed).standard_normal((16, 2)))[0]
        means = turns.T.astype(np.float32)
        x, y = (side - side.mean(axis=0) + mean for side, mean in zip((x, y), means, strict=True))
        check_values(scanner_of, x, y, (turned if axes else centered)(x, y))


@pytest.mark.parametrize(
    "sizes", [(3e-23, 1.0), (1e-25, 1e15), (1e20, 1e-3), (1e-3, 1e20), (1e15, 1e15)]
)
def test_vectors_too_short_or_too_long_for_their_squares(scanner_of, sizes):
    for d in (3, 16, 70):
        sides = zip(crowded(d, 60, 130, d), sizes, strict=True)
        x, y = (side * np.float32(size) for side, size in sides)
        check_values(scanner_of, x, y, centered(x, y))


def test_sums_are_rounded_in_one_order_to_the_last_bit(scanner_of):
    rng = np.random.default_rng(13)
    few = np.float32([1, 2.0**-24, 2.0**-53, 2.0**-54])
    for d in (3, 16, 45, 72):
        x, y = rng.choice(few, (600, d), p=[0.03, 0.03, 0.47, 0.47]), np.ones((1, d), np.float32)
        found = []
        for way in (scanner_of, WAYS["torch float32"]):
            found.append(empty_lists(x, y, 9))
            scan_all(way(centered(x[:1], y)), x, y, *found[-1])
        np.testing.assert_array_equal(found[0][0].values, found[1][0].values)
