"""Expected results of both ways to scan pairs."""

from __future__ import annotations

import numpy as np
import torch

from interlingua.retrieval.topk.bounds import Block, Frame
from interlingua.retrieval.topk.exact import Neighbors
from interlingua.retrieval.topk.lists import NeighborLists
from interlingua.retrieval.topk.tiles import TilePlan, neighbor_blocks, sides_digest


def crowded(seed, n, m, d):
    """Draw unit vectors with cosines near 0.8, like a sentence encoder's, and (near) repeats."""
    rng = np.random.default_rng(seed)
    center = rng.standard_normal(d)
    x, y = (rng.standard_normal((size, d)) * 0.5 + center for size in (n, m))
    near = min(n, m) // 2
    y[:near] = x[:near] + 1e-3 * rng.standard_normal((near, d))
    y[near : near + near // 2] = y[: near // 2]
    return tuple(map(scaled, (x, y)))


def scaled(vectors):
    """Scale vectors to length 1."""
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def oracle(x, y, k):
    """Compute all similarities in float64, rounded; sorted by value, then by index."""
    similarities = (x.astype(np.float64) @ y.T.astype(np.float64)).astype(np.float32)
    order = np.argsort(-similarities, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(similarities, order, axis=1), order


def decaying(seed, n, m, d, rate):
    """Draw vectors with coordinates that shrink by a rate each along separate axes.

    Half of them with a pair.
    """
    rng = np.random.default_rng(seed)
    spread = rate ** np.arange(d) * np.linalg.qr(rng.standard_normal((d, d)))[0]
    x, y = (rng.standard_normal((size, d)) for size in (n, m))
    near = min(n, m) // 2
    y[:near] = x[:near] + 0.3 * rng.standard_normal((near, d))
    return tuple(scaled(side @ spread.T) for side in (x, y))


def turned(x, y):
    """Return the frame of two sides, with at least a few axes."""
    rest = np.concatenate([x - x.mean(axis=0), y - y.mean(axis=0)])
    axes = np.linalg.eigh(rest.T @ rest)[1][:, ::-1]
    return Frame(x.mean(axis=0), y.mean(axis=0), np.ascontiguousarray(axes, np.float32))


def centered(x, y):
    """Return the frame of two sides without axes."""
    return Frame(x.mean(axis=0), y.mean(axis=0))


def empty_lists(x, y, k):
    """Return empty lists of both sides."""
    of_x = NeighborLists.empty(len(x), min(k, len(y)))
    return of_x, NeighborLists.empty(len(y), min(k, len(x)))


def scan_all(scanner, x, y, of_x, of_y=None):
    """Update the lists of two sides with all pairs at once."""
    left = scanner.prepare(Block(x, 0), of_x=True)
    right = scanner.prepare(Block(y, 0), of_x=False)
    scanner.scan(left, right, of_x, of_y)


def assert_equal(found, expected):
    """Compare lists or neighbors of both sides, to the bit."""
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.indices, other.indices)
        values = "values" if hasattr(one, "values") else "similarities"
        np.testing.assert_array_equal(getattr(one, values), getattr(other, values))


def read_neighbors(plan, folder):
    """Return the neighbors of both sides from a search on disk."""

    def joined(side):
        parts = [near for _, near in neighbor_blocks(plan, folder, side)]
        return Neighbors(*map(torch.cat, zip(*parts, strict=True)))

    return joined("x"), joined("y")


def small_plan(x, y, *, k=4, rows=50, columns=40):
    sizes = {"n": len(x), "m": len(y), "width": x.shape[1]}
    return TilePlan(rows=rows, columns=columns, k=k, digest=sides_digest(x, y), **sizes)


def check(scanner_of, x, y, k, *, cut=None, frame=None):
    """Compare NeighborLists of both sides, built block by block, with the oracle's."""
    scanner = scanner_of(frame or centered(x, y))
    of_x, of_y = empty_lists(x, y, k)
    cut = cut or max(len(x), len(y))
    for i in range(0, len(x), cut):
        for j in range(0, len(y), cut):
            left = scanner.prepare(Block(x[i : i + cut], i), of_x=True)
            right = scanner.prepare(Block(y[j : j + cut], j), of_x=False)
            for _ in range(2 if i == 0 else 1):  # a part that is done again changes nothing
                scanner.scan(left, right, of_x.part(i, i + cut), of_y.part(j, j + cut))
    for lists, (values, indices) in ((of_x, oracle(x, y, k)), (of_y, oracle(y, x, k))):
        np.testing.assert_allclose(lists.values, values, rtol=0, atol=1e-7)
        same = lists.indices == indices
        # float64 sums in another order
        close = np.abs(np.diff(values, axis=1)).min(axis=1, initial=1.0) < 2e-7
        assert same[~close].all()
        assert same.mean() > 0.98
    return of_x, of_y
