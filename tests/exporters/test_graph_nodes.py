from __future__ import annotations

import numpy as np

from interlingua.exporters.graph_nodes import Graph


def test_equal_constants_are_kept_once():
    graph = Graph()
    first = graph.constant(np.int64(1))
    assert graph.constant(np.int64(1)) == first
    assert graph.constant(np.float32(1)) != first
