from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest

from interlingua.errors import ConfigError, MissingExtraError
from interlingua.retrieval.topk import approximate
from interlingua.retrieval.topk.approximate import Approximate, find_approximately, recall
from interlingua.retrieval.topk.exact import exact_topk, mutual_topk
from tests.retrieval.topk.scanners import assert_equal, crowded, read_neighbors, small_plan

BIG = 2**30
needs_faiss = pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="needs FAISS")


def search(x, y, folder, kind, effort, memory=BIG):
    """Return the report and the result of ``find_approximately``."""
    plan = small_plan(x, y, rows=700, columns=500)
    _, said = find_approximately(x, y, plan, folder, Approximate(kind, effort), memory=memory)
    return said, read_neighbors(plan, folder)


@needs_faiss
@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_with_all_effort_nothing_is_missed(tmp_path, kind):
    """Search all cells, or keep as many candidates as there are vectors.

    Similarities are exact.
    """
    x, y = crowded(0, 2000, 1500, 24)
    said, found = search(x, y, tmp_path, kind, 3000)
    expected = mutual_topk(x, y, k=4)
    if kind == "ivf":
        assert_equal(found, expected)
        assert said.startswith(
            "approximate neighbors (ivf:3000): recall@4 1.0000 of source and 1.0000 of target"
        )
    for one, other in zip(found, expected, strict=True):
        assert (one.similarities == other.similarities).float().mean() > 0.99


@needs_faiss
@pytest.mark.parametrize(("size", "cells"), [(100, 2), (100_000, 1264)])
def test_cells_grow_by_the_root_of_the_vectors(size, cells):
    """Put few vectors 39 to a cell; many have four times the root of their number."""
    vectors = np.random.default_rng(0).standard_normal((size, 2)).astype(np.float32)
    assert approximate._index(vectors, Approximate("ivf", 8), None).nlist == cells


@needs_faiss
def test_with_little_effort_the_recall_is_what_is_missed(tmp_path, monkeypatch):
    monkeypatch.setattr(approximate, "_MEASURED", 5000)  # all
    x, y = crowded(1, 2000, 1500, 24)
    said, found = search(x, y, tmp_path, "ivf", 2)
    shares = [
        float((one.similarities >= other.similarities[:, -1:]).float().mean())
        for one, other in zip(found, mutual_topk(x, y, k=4), strict=True)
    ]
    assert 0.1 < shares[0] < 0.99
    assert f"recall@4 {shares[0]:.4f} of source and {shares[1]:.4f} of target" in said


@pytest.mark.parametrize("kind", ["binary", "int8"])
def test_with_all_candidates_scored_codes_miss_nothing(tmp_path, kind):
    x, y = crowded(0, 1500, 1500, 24)
    said, found = search(x, y, tmp_path, kind, 375)
    assert_equal(found, mutual_topk(x, y, k=4))
    assert said.startswith(
        f"approximate neighbors ({kind}:375): recall@4 1.0000 of source and 1.0000 of target"
    )


def test_codes_are_scored_exactly_and_miss_some(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)  # is not needed
    x, y = crowded(0, 800, 700, 24)
    shares = {}
    expected = mutual_topk(x, y, k=4)
    for kind, effort in (("binary", 1), ("binary", 8), ("int8", 2)):
        _, (of_x, _) = search(x, y, tmp_path / f"{kind}-{effort}", kind, effort)
        pairs = of_x.similarities.numpy(), np.einsum("nd,nkd->nk", x, y[of_x.indices.numpy()])
        assert np.allclose(*pairs, atol=1e-6)
        is_found = of_x.similarities >= expected[0].similarities[:, -1:]
        shares[kind, effort] = float(is_found.float().mean())
    assert 0 < shares["binary", 1] < shares["binary", 8] < shares["int8", 2]
    assert shares["int8", 2] > 0.99


def test_codes_take_a_byte_or_a_bit_for_each_number():
    assert Approximate("int8", 1).index_bytes(10, 384) == 3840
    assert Approximate("binary", 1).index_bytes(10, 380) == 480


def test_the_recall_by_hand():
    """Find one of the first vector's two nearest, and both of the second's."""
    own, other = np.eye(2, dtype=np.float32), np.array([[3, 1], [2, 2], [1, 3]], np.float32)
    near = exact_topk(own, other, k=2)
    near.similarities[0, 1] = 1.0
    assert recall(own, other, 2, [(0, near)]) == 0.75


@needs_faiss
def test_where_an_index_finds_too_few_the_search_is_exact(tmp_path):
    """Search one of two cells, which has only three vectors."""
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.standard_normal((75, 8)) + 9, rng.standard_normal((3, 8)) - 9])
    y = y.astype(np.float32)
    x = np.concatenate([y[-3:], y[:5]]) + np.float32(0.01)
    _, (of_x, _) = search(x, y, tmp_path, "ivf", 1)
    assert (of_x.indices >= 0).all()
    assert of_x.indices[:3].tolist() == exact_topk(x[:3], y, k=4).indices.tolist()


@needs_faiss
def test_blocks_that_are_there_are_not_searched_again(tmp_path, monkeypatch):
    x, y = crowded(2, 2000, 1500, 24)
    searched, real = [], approximate._search

    def stops(*arguments):
        searched.append(1)
        if len(searched) == 4:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(approximate, "_search", stops)
    with pytest.raises(KeyboardInterrupt):
        search(x, y, tmp_path / "a", "ivf", 8)
    _, found = search(x, y, tmp_path / "a", "ivf", 8)
    assert len(searched) == 3 + 1 + 3  # three blocks of either side, one of them twice
    assert_equal(found, search(x, y, tmp_path / "b", "ivf", 8)[1])


def test_ways_of_searching():
    for text, *expected in (("ivf", "ivf", 32), ("hnsw:128", "hnsw", 128), ("int8:3", "int8", 3)):
        assert Approximate.parse(text) == Approximate(*expected)
    for text in ("flat", "ivf:", "ivf:0", "ivf:x", ""):
        with pytest.raises(ConfigError, match=r"unknown .*ivf, hnsw, binary, int8"):
            Approximate.parse(text)


def test_what_does_not_fit_is_refused(tmp_path, monkeypatch):
    x, y = crowded(3, 200, 100, 16)
    with pytest.raises(ConfigError, match=r"require 0 MiB, .*--memory"):
        search(x, y, tmp_path, "ivf", 1, memory=1000)
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[faiss\]'"):
        search(x, y, tmp_path, "ivf", 1)
