from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.errors import DataError
from interlingua.retrieval.topk.dense import EDGE, merge, no_neighbors, padded_block, top_k
from interlingua.retrieval.topk.exact import exact_topk


def test_top_k_takes_the_lower_index_where_the_edge_is_open():
    similarities = torch.tensor([[1.0, 3.0, 2.0, 3.0, 2.0, 2.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    assert top_k(similarities, 3).indices.tolist() == [[1, 3, 2], [0, 1, 2]]
    assert top_k(similarities, 9).indices.tolist() == [[1, 3, 2, 4, 5, 0], [0, 1, 2, 3, 4, 5]]


@pytest.mark.parametrize("columns", [1, 7, 64, 1000])
def test_tiles_merged_are_the_nearest_neighbors(columns):
    rng = np.random.default_rng(0)
    x, y = (
        rng.integers(-2, 3, (n, 3)).astype(np.float32) for n in (9, 90)
    )  # equal similarities abound
    queries, n = padded_block(x, 0, 9)
    best = no_neighbors(n)
    for start in range(0, len(y), columns):
        block, width = padded_block(y, start, columns)
        best = merge(best, top_k((queries @ block.T)[:n, :width], 4), offset=start, k=4)
    expected = exact_topk(x, y, k=4)
    assert torch.equal(best.indices, expected.indices)
    assert torch.equal(best.similarities, expected.similarities)


def test_a_block_is_filled_with_zeros_and_a_broken_vector_named():
    block, n = padded_block(np.ones((70, 2)), 5, 30)
    assert (block.shape, n) == ((EDGE, 2), 30)
    assert block.sum() == 60
    broken = np.ones((70, 2))
    broken[8, 1] = np.inf
    with pytest.raises(DataError, match="vector 8 "):
        padded_block(broken, 5, 30)
