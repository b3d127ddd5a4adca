"""Exact search on the simulated device."""

import numpy as np
import torch

from interlingua.retrieval.topk import exact, torch_scanner
from interlingua.retrieval.topk.device_scanner import DeviceScanner
from interlingua.retrieval.topk.exact import exact_topk, mutual_topk, search_device
from tests.accelerator.simulated import Device
from tests.retrieval.topk.scanners import crowded

WAITS_OF_A_BLOCK = 18
"""Four to bring its lists back, and the others for sizes that only the device knows; a tile has a
billion pairs."""
WAITS_TO_PREPARE = 8
"""Four numbers of each vector of either side, from which the host makes the bounds."""


def test_neighbors_on_cuda_are_those_of_the_cpu(cuda: Device, monkeypatch):
    x, y = crowded(3, 700, 900, 40)
    expected = mutual_topk(x, y, k=4)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (2**30, 2**30), raising=False)
    monkeypatch.setattr(exact, "LARGE", 1)
    with cuda.recorded():
        found = mutual_topk(x, y, k=4, rows=300, columns=400, device="cuda")
        one_way = exact_topk(x, y, k=4, device="cuda")
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one.similarities, other.similarities)
        assert torch.equal(one.indices, other.indices)
    assert torch.equal(one_way.indices, expected[0].indices)


def test_a_block_waits_a_few_times_however_large(cuda: Device, monkeypatch):
    # Several parts of each block are made ready one after the other.
    monkeypatch.setattr(torch_scanner, "PART", 200)
    counts = []
    for size in (100, 800):
        x, y = crowded(3, size, size, 16)
        with cuda.recorded() as waits:
            scanner = exact.make_scanner(exact.make_frame(x, y), device="cuda")
            assert isinstance(scanner, DeviceScanner)
            left = scanner.prepare(exact.read_block(x, 0, size), of_x=True)
            right = scanner.prepare(exact.read_block(y, 0, size), of_x=False)
            prepared = waits.total()
            # Nothing that goes to the device is waited for.
            assert {kind for kind, _ in waits} == {"cpu"}
            waits.clear()
            lists = [exact.NeighborLists.empty(size, 4) for _ in range(2)]
            scanner.scan(left, right, *lists)
            counts.append((prepared, waits.total()))
        assert np.isfinite(lists[0].values).all()
    assert counts == [(WAITS_TO_PREPARE, WAITS_OF_A_BLOCK)] * 2


def test_a_small_search_stays_on_the_cpu(cuda: Device):
    assert search_device(1000, 1000) == torch.device("cpu")
    assert search_device(10_000, 1_000_000) == torch.device("cuda")


def test_without_a_gpu_every_search_is_on_the_cpu():
    assert search_device(10_000, 1_000_000) == torch.device("cpu")
