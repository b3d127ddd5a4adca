from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.errors import DataError
from interlingua.retrieval.topk import exact
from interlingua.retrieval.topk.exact import exact_topk, mutual_topk
from tests.retrieval.topk.scanners import assert_equal

TILES = [(2048, 4096), (64, 64), (5, 7), (1, 1000), (1000, 1), (33, 128)]


def oracle(x, y, k):
    """Compute every similarity in turn, sorted by value and then by index."""
    rows = []
    for a in x:
        scored = sorted(
            (-float(np.dot(a.astype(np.float64), b.astype(np.float64))), j) for j, b in enumerate(y)
        )
        rows.append([[-score, j] for score, j in scored[:k]])
    return rows


def integers(rng, n, d=3):
    """Draw small integers: products are exact, and equal similarities frequent."""
    return rng.integers(-2, 3, (n, d)).astype(np.float32)


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize(("n", "m", "k"), [(1, 1, 1), (7, 40, 3), (70, 30, 5), (130, 200, 4)])
def test_both_directions_are_the_oracle_with_the_lower_index_first(tile, n, m, k):
    rng = np.random.default_rng(n * m + k)
    x, y = integers(rng, n), integers(rng, m)
    of_x, of_y = mutual_topk(x, y, k=k, rows=tile[0], columns=tile[1])
    for found, expected in ((of_x, oracle(x, y, k)), (of_y, oracle(y, x, k))):
        assert torch.stack([found.similarities, found.indices], dim=2).tolist() == expected


@pytest.mark.parametrize("tile", TILES[1:])
@pytest.mark.parametrize("d", [7, 64, 300])
def test_repeated_vectors_are_equal_in_every_tile(tile, d):
    rng = np.random.default_rng(d)
    few = rng.standard_normal((30, d)).astype(np.float32)
    x, y = few[rng.integers(0, 30, 150)], few[rng.integers(0, 30, 217)]
    whole, tiled = mutual_topk(x, y, k=6), mutual_topk(x, y, k=6, rows=tile[0], columns=tile[1])
    assert_equal(tiled, whole)
    first_of_its_kind = [
        next(j for j in range(217) if np.array_equal(y[j], y[i])) for i in whole[0].indices[:, 0]
    ]
    assert whole[0].indices[:, 0].tolist() == first_of_its_kind


def test_one_direction_is_half_of_both():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((50, 8)), rng.standard_normal((90, 8))
    one = exact_topk(x, y, k=4, rows=16, columns=32)
    both, _ = mutual_topk(x, y, k=4, rows=16, columns=32)
    assert_equal([one], [both])


def test_fewer_candidates_than_k():
    of_x, of_y = mutual_topk(np.eye(5)[:, :3], np.eye(3), k=4)
    assert of_x.indices.shape == (5, 3)
    assert of_y.indices.shape == (3, 4)
    assert of_x.indices[1].tolist() == [1, 0, 2]


class Counted:
    """A memory map that remembers how much of it was read at once."""

    def __init__(self, mapped):
        self.mapped, self.most = mapped, 0
        self.ndim, self.shape = mapped.ndim, mapped.shape

    def __len__(self):
        return len(self.mapped)

    def __getitem__(self, rows):
        block = self.mapped[rows]
        self.most = max(self.most, len(block))
        return block


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_memory_maps_are_read_block_by_block(tmp_path, dtype):
    rng = np.random.default_rng(3)
    sides = []
    for name, n in (("x", 300), ("y", 500)):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal((n, 16)).astype(dtype))
        sides.append(Counted(np.load(tmp_path / f"{name}.npy", mmap_mode="r")))
    of_x, _ = mutual_topk(*sides, k=2, rows=64, columns=128)
    assert [side.most for side in sides] == [60, 125]  # even blocks of 64 and 128 at most
    whole = np.asarray(sides[0].mapped, np.float32) @ np.asarray(sides[1].mapped, np.float32).T
    assert of_x.indices[:, 0].tolist() == whole.argmax(axis=1).tolist()


def test_blocks_of_y_are_made_ready_once_where_they_fit(monkeypatch):
    rng = np.random.default_rng(4)
    x, y = (rng.standard_normal((n, 8)).astype(np.float32) for n in (90, 50))
    read, real = [], exact.read_block
    monkeypatch.setattr(
        exact, "read_block", lambda side, *at: read.append(len(side)) or real(side, *at)
    )
    kept = mutual_topk(x, y, k=3, rows=30, columns=25)
    assert (read.count(90), read.count(50)) == (3, 2)
    monkeypatch.setattr(exact, "_KEPT_BYTES", 50 * 8 * 8 - 1)
    again = mutual_topk(x, y, k=3, rows=30, columns=25)
    assert (read.count(90), read.count(50)) == (6, 2 + 6)
    assert_equal(kept, again)


@pytest.mark.parametrize("size", [1e-22, 1e19])
def test_axes_of_vectors_of_any_length(size, monkeypatch):
    monkeypatch.setattr(exact, "PAIRS_OF_AXES", 1)
    x = np.random.default_rng(6).standard_normal((90, 70)).astype(np.float32) * np.float32(size)
    axes = exact.make_frame(x, x).axes
    np.testing.assert_allclose(axes.T @ axes, np.eye(70), atol=1e-5)


def test_axes_are_those_of_the_vectors_without_their_means(monkeypatch):
    """Check that a side's position does not affect the axes of its differences."""
    monkeypatch.setattr(exact, "PAIRS_OF_AXES", 1)
    rng = np.random.default_rng(7)
    scale = np.linspace(1, 0.1, 80, dtype=np.float32)
    x, y = (rng.standard_normal((200, 80)).astype(np.float32) * scale for _ in "xy")
    places = 30 * np.eye(80, dtype=np.float32)[-2:]
    here = exact.make_frame(x, y).axes
    there = exact.make_frame(x + places[0], y + places[1]).axes
    found = [np.var(x @ axes[:, : exact.STAGE], axis=0).sum() for axes in (here, there)]
    assert found[1] == pytest.approx(found[0], rel=1e-3)


def test_blocks_are_even():
    sizes = [exact.balanced_block_size(100, most) for most in (100, 99, 65, 33, 1)]
    assert sizes == [100, 50, 50, 25, 1]
    assert exact.balanced_block_size(1, 5) == 1


def test_faiss_finds_the_same():
    faiss = pytest.importorskip("faiss")
    rng = np.random.default_rng(5)
    x, y = (rng.standard_normal((n, 48)).astype(np.float32) for n in (400, 700))
    of_x, of_y = mutual_topk(x, y, k=4, rows=128, columns=256)
    for queries, candidates, found in ((x, y, of_x), (y, x, of_y)):
        index = faiss.IndexFlatIP(48)
        index.add(candidates)
        similarities, indices = index.search(queries, 4)
        assert np.array_equal(indices, found.indices.numpy())
        np.testing.assert_allclose(similarities, found.similarities.numpy(), rtol=1e-5, atol=1e-5)


def test_errors_say_which_vector():
    good, bad = np.ones((200, 4)), np.ones((200, 4))
    bad[130, 2] = np.nan
    with pytest.raises(DataError, match="vector 130 "):
        mutual_topk(good, bad, k=1, rows=64, columns=64)
    for x, y, message in (
        (good, bad[:, :3], "dimension, found 4 and 3"),
        (good, good[0], r"shapes \(200, 4\) and \(4,\)"),
        (good[:, :0], good[:, :0], "dimension 0"),
        (good[:0], bad, "0 vectors against 200"),
    ):
        with pytest.raises(DataError, match=message):
            exact_topk(x, y, k=1)
    with pytest.raises(ValueError, match=r"k: .* 1, found 0"):
        exact_topk(good, good, k=0)


@pytest.mark.parametrize(
    "bad", [np.full(16, 1e25, np.float32), np.full(16, 1e300), np.float32([3e38, *[0] * 15])]
)
def test_vectors_whose_products_float32_does_not_hold_are_refused(bad):
    x = np.ones((5, 16), bad.dtype)
    x[3] = bad
    for sides in ((x, np.ones((4, 16))), (np.ones((4, 16)), x)):
        with pytest.raises(DataError, match=r"vector 3 .*length 1"):
            mutual_topk(*sides, k=2)
    for infinite in ([np.inf, -np.inf] * 8, [np.inf, *[0] * 15]):
        x[3] = infinite
        with pytest.raises(DataError, match=r"vector 3 .*NaN"):
            mutual_topk(x, x, k=2)


@pytest.mark.parametrize("kernel", [True, False])
def test_the_longest_vectors_have_their_neighbors(kernel, monkeypatch):
    if not kernel:
        monkeypatch.setattr("interlingua.retrieval.topk.kernel_scanner.library", lambda name: None)
    rng = np.random.default_rng(8)
    x, y = (rng.standard_normal((n, 16)) for n in (40, 50))
    x, y = (side * 0.99e18 / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y))
    x[7], y[9] = x[0], -x[0]
    x, y = x.astype(np.float32), y.astype(np.float32)
    for found, (a, b) in zip(mutual_topk(x, y, k=50), ((x, y), (y, x)), strict=True):
        products = (a.astype(np.float64) @ b.astype(np.float64).T).astype(np.float32)
        assert found.indices.sort(dim=1).values.tolist() == [list(range(len(b)))] * len(a)
        similar = np.take_along_axis(products, found.indices.numpy(), axis=1)
        np.testing.assert_allclose(found.similarities.numpy(), similar, rtol=1e-6, atol=1e29)
        assert (np.diff(found.similarities.numpy(), axis=1) <= 0).all()
