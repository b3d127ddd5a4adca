from __future__ import annotations

import numpy as np
import pytest

from interlingua.kernels import KERNEL_VARIANTS
from interlingua.retrieval.topk import kernel_scanner
from interlingua.retrieval.topk.bounds import Frame
from interlingua.retrieval.topk.exact import make_scanner, mutual_topk
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
    scan_all,
    turned,
)


@pytest.fixture(params=KERNEL_VARIANTS)
def variant(use_variant, request):
    """Each variant of the kernel that this processor runs."""
    use_variant(request.param)
    if not CompiledScanner.available():
        pytest.skip(f"needs the compiled kernel and a processor that runs {request.param}")
    return request.param


needs_kernel = pytest.mark.usefixtures("variant")


@needs_kernel
def test_blocks_are_made_ready_in_parts(monkeypatch):
    monkeypatch.setattr(kernel_scanner, "PART", 64)
    check(CompiledScanner, *crowded(6, 200, 150, 18), 4)


@needs_kernel
@pytest.mark.parametrize("rate", [1.0, 0.9])
def test_as_many_stages_are_taken_as_the_vectors_ask_for(rate):
    x, y = decaying(12, 2000, 6400, 256, rate)
    scanner = CompiledScanner(turned(x, y))
    scan_all(scanner, x, y, *empty_lists(x, y, 2))
    assert (scanner.stage[0] >= 2) == (rate == 1.0)


@needs_kernel
def test_a_vector_that_is_the_center_is_no_division_by_nothing():
    x, y = crowded(4, 20, 30, 16)
    check(CompiledScanner, x, y, 3, frame=Frame(x[0].copy(), y[0].copy()))
    check(CompiledScanner, np.repeat(x[:1], 9, axis=0), np.repeat(y[:1], 70, axis=0), 3)


def test_the_kernel_is_taken_where_it_is_and_the_results_are_those_of_torch(monkeypatch):
    x, y = crowded(5, 80, 90, 16)
    frame = centered(x, y)
    assert isinstance(make_scanner(frame), CompiledScanner) == CompiledScanner.available()
    assert isinstance(make_scanner(frame, device="meta"), TorchScanner)
    found = mutual_topk(x, y, k=4)
    monkeypatch.setattr(kernel_scanner, "library", lambda name: None)
    assert isinstance(make_scanner(frame), TorchScanner)
    assert_equal(found, mutual_topk(x, y, k=4))


@needs_kernel
def test_a_thread_s_own_lists_hold_only_what_is_better_than_known(monkeypatch):
    monkeypatch.setattr(kernel_scanner, "_ROWS_AT_ONCE", 64)
    x, y = crowded(13, 256, 300, 24)
    joined, real, scans = [], NeighborLists.join, []
    scan_rows = kernel_scanner._scan_rows

    def join(self, other):
        joined.append(int((other.indices >= 0).sum()))
        real(self, other)

    def recorded(*arguments):
        scans.append((arguments[4], arguments[4].copy()))
        scan_rows(*arguments)

    monkeypatch.setattr(NeighborLists, "join", join)
    monkeypatch.setattr(kernel_scanner, "_scan_rows", recorded)
    scanner = CompiledScanner(turned(x, y), threads=2)
    lists = empty_lists(x, y, 4)
    scan_all(scanner, x, y, *lists)
    known = [of.values.copy() for of in lists]
    scan_all(scanner, x, y, *lists)  # all is known: only the neighbors themselves come again
    for (one, _), (other, _) in (scans[:2], scans[2:]):
        assert one is other  # both threads share the values to reach
    assert np.isinf(scans[0][1][:300]).all()
    np.testing.assert_array_equal(scans[2][1][:300], lists[1].kth_best)
    np.testing.assert_array_equal(scans[3][1][:300], lists[1].kth_best)
    assert joined[1] < 0.75 * 300 * 4
    for of, before in zip(lists, known, strict=True):
        np.testing.assert_array_equal(of.values, before)
