from __future__ import annotations

import functools

import numpy as np
import pytest

from interlingua.kernels import VARIANTS
from interlingua.search.topk import kernel_scanner
from interlingua.search.topk.bounds import Block, Frame
from interlingua.search.topk.exact import make_scanner, mutual_topk
from interlingua.search.topk.kernel_scanner import CompiledScanner
from interlingua.search.topk.lists import NeighborLists
from interlingua.search.topk.torch_scanner import TorchScanner
from tests.search.topk.scanners import check, crowded, decaying, oracle, turned


@pytest.fixture(params=VARIANTS)
def variant(use_variant, request):
    """Each variant of the kernel that this processor runs."""
    use_variant(request.param)
    if not CompiledScanner.available():
        pytest.skip(f"needs the compiled kernel and a processor that runs {request.param}")
    return request.param


needs_kernel = pytest.mark.usefixtures("variant")


@needs_kernel
@pytest.mark.parametrize(
    ("n", "m", "d", "k"), [(1, 1, 5, 1), (3, 200, 17, 4), (200, 3, 16, 4), (301, 410, 40, 4)]
)
def test_it_finds_what_the_oracle_finds(n, m, d, k):
    check(CompiledScanner, *crowded(n + m, n, m, d), k)


@needs_kernel
@pytest.mark.parametrize("threads", [1, 3])
def test_threads_and_blocks_decide_nothing_and_torch_finds_the_same(threads, monkeypatch):
    x, y = crowded(7, 290, 333, 24)
    plain = check(TorchScanner, x, y, 5)
    monkeypatch.setattr(kernel_scanner, "ROWS_AT_ONCE", 32)
    found = check(functools.partial(CompiledScanner, threads=threads), x, y, 5, cut=100)
    for one, other in zip(plain, found, strict=True):
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_array_equal(one.values, other.values)


@needs_kernel
def test_blocks_are_made_ready_in_parts(monkeypatch):
    monkeypatch.setattr(kernel_scanner, "PART", 64)
    check(CompiledScanner, *crowded(6, 200, 150, 18), 4)


@needs_kernel
@pytest.mark.parametrize("rate", [1.0, 0.99, 0.9])
@pytest.mark.parametrize("threads", [1, 2])
def test_stages_decide_nothing(rate, threads, monkeypatch):
    monkeypatch.setattr(kernel_scanner, "ROWS_AT_ONCE", 100)
    x, y = decaying(11, 700, 900, 200, rate)
    staged = check(
        functools.partial(CompiledScanner, threads=threads), x, y, 4, frame=turned(x, y), cut=450
    )
    for one, other in zip(staged, check(CompiledScanner, x, y, 4), strict=True):
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_array_equal(one.values, other.values)


@needs_kernel
@pytest.mark.parametrize("rate", [1.0, 0.9])
def test_as_many_stages_are_taken_as_the_vectors_ask_for(rate):
    x, y = decaying(12, 2000, 6400, 256, rate)
    scanner = CompiledScanner(turned(x, y))
    left, right = scanner.prepare(Block(x, 0), of_x=True), scanner.prepare(Block(y, 0), of_x=False)
    of_x, of_y = NeighborLists.empty(2000, 2), NeighborLists.empty(6400, 2)
    scanner.scan(left, right, of_x, of_y)
    assert (scanner.stage[0] >= 2) == (rate == 1.0)


@needs_kernel
def test_rows_alone():
    x, y = crowded(3, 70, 90, 16)
    scanner = CompiledScanner(Frame(x.mean(axis=0), y.mean(axis=0)), threads=2)
    lists, both = NeighborLists.empty(70, 4), check(CompiledScanner, x, y, 4)[0]
    scanner.scan(
        scanner.prepare(Block(x, 0), of_x=True),
        scanner.prepare(Block(y, 0), of_x=False),
        lists,
        None,
    )
    np.testing.assert_array_equal(lists.indices, both.indices)


@needs_kernel
def test_a_vector_that_is_the_center_is_no_division_by_nothing():
    x, y = crowded(4, 20, 30, 16)
    check(CompiledScanner, x, y, 3, frame=Frame(x[0].copy(), y[0].copy()))
    check(CompiledScanner, np.repeat(x[:1], 9, axis=0), np.repeat(y[:1], 70, axis=0), 3)


@needs_kernel
def test_sums_are_rounded_as_those_of_torch_to_the_last_bit():
    rng = np.random.default_rng(13)
    few = np.float32([1, 2.0**-24, 2.0**-53, 2.0**-54])
    for d in (3, 16, 45, 72):
        x, y = rng.choice(few, (600, d), p=[0.03, 0.03, 0.47, 0.47]), np.ones((1, d), np.float32)
        of_x = []
        for scanner in (CompiledScanner(Frame(x[0], y[0])), TorchScanner(Frame(x[0], y[0]))):
            of_x.append(NeighborLists.empty(600, 1))
            sides = (
                scanner.prepare(Block(x, 0), of_x=True),
                scanner.prepare(Block(y, 0), of_x=False),
            )
            scanner.scan(*sides, of_x[-1], NeighborLists.empty(1, 9))
        np.testing.assert_array_equal(of_x[0].values, of_x[1].values)


@needs_kernel
@pytest.mark.parametrize("scanner_of", [CompiledScanner, TorchScanner])
@pytest.mark.parametrize("axes", [False, True])
@pytest.mark.parametrize("size", [1e-3, 1e-5, 1e-6])
def test_means_at_right_angles_of_which_the_vectors_hardly_differ(scanner_of, axes, size):
    """Terms are then differences of large products, and rounded by more than goes by their own
    size."""
    for seed in range(4):
        x, y = (side * np.float32(size) for side in crowded(seed, 150, 130, 16))
        means = np.linalg.qr(np.random.default_rng(seed).standard_normal((16, 2)))[0].T.astype(
            np.float32
        )
        x, y = (side - side.mean(axis=0) + mean for side, mean in zip((x, y), means, strict=True))
        check_values(
            scanner_of, x, y, turned(x, y) if axes else Frame(x.mean(axis=0), y.mean(axis=0))
        )


@needs_kernel
@pytest.mark.parametrize("scanner_of", [CompiledScanner, TorchScanner])
@pytest.mark.parametrize(
    "sizes", [(3e-23, 1.0), (1e-25, 1e15), (1e20, 1e-3), (1e-3, 1e20), (1e15, 1e15)]
)
def test_vectors_too_short_or_too_long_for_their_squares(scanner_of, sizes):
    for d in (3, 16, 70):
        x, y = (
            side * np.float32(size)
            for side, size in zip(crowded(d, 60, 130, d), sizes, strict=True)
        )
        check_values(scanner_of, x, y, Frame(x.mean(axis=0), y.mean(axis=0)))


def check_values(scanner_of, x, y, frame):
    """The similarities of the five best are the oracle's but for their last bit."""
    scanner, lists = (
        scanner_of(frame),
        (NeighborLists.empty(len(x), 5), NeighborLists.empty(len(y), 5)),
    )
    scanner.scan(
        scanner.prepare(Block(x, 0), of_x=True), scanner.prepare(Block(y, 0), of_x=False), *lists
    )
    for found, (values, _) in zip(lists, (oracle(x, y, 5), oracle(y, x, 5)), strict=True):
        assert (np.abs(found.values - values) <= np.spacing(np.abs(values))).all()


def test_the_kernel_is_taken_where_it_is_and_the_results_are_those_of_torch(monkeypatch):
    x, y = crowded(5, 80, 90, 16)
    frame = Frame(x.mean(axis=0), y.mean(axis=0))
    assert isinstance(make_scanner(frame), CompiledScanner) == CompiledScanner.available()
    assert isinstance(make_scanner(frame, device="meta"), TorchScanner)
    found = mutual_topk(x, y, k=4)
    monkeypatch.setattr(kernel_scanner, "library", lambda name: None)
    assert isinstance(make_scanner(frame), TorchScanner)
    for one, other in zip(found, mutual_topk(x, y, k=4), strict=True):
        assert one.indices.equal(other.indices)
        assert one.similarities.equal(other.similarities)


@needs_kernel
def test_a_thread_s_own_lists_hold_only_what_is_better_than_known(monkeypatch):
    monkeypatch.setattr(kernel_scanner, "ROWS_AT_ONCE", 64)
    x, y = crowded(13, 256, 300, 24)
    joined, real = [], NeighborLists.join

    def join(self, other):
        joined.append(int((other.indices >= 0).sum()))
        real(self, other)

    monkeypatch.setattr(NeighborLists, "join", join)
    scanner = CompiledScanner(turned(x, y), threads=2)
    left, right = scanner.prepare(Block(x, 0), of_x=True), scanner.prepare(Block(y, 0), of_x=False)
    lists = NeighborLists.empty(256, 4), NeighborLists.empty(300, 4)
    scanner.scan(left, right, *lists)
    known = [of.values.copy() for of in lists]
    scanner.scan(left, right, *lists)  # all is known: only the neighbors themselves come again
    assert joined[0] == 300 * 4
    assert joined[1] < 0.75 * 300 * 4
    for of, before in zip(lists, known, strict=True):
        np.testing.assert_array_equal(of.values, before)
