from __future__ import annotations

import numpy as np

from interlingua.export.graph_nodes import INPUTS, OPSET, Graph


def test_equal_constants_are_kept_once():
    graph = Graph()
    first = graph.constant(np.int64(1))
    assert graph.constant(np.int64(1)) == first
    assert graph.constant(np.float32(1)) != first


def test_a_model_has_the_opsets_and_inputs_of_its_nodes():
    graph = Graph()
    graph.add("Cast", "attention_mask", name="sentence_embedding", to=1)
    model = graph.model(dim=4, metadata={"pooling": "mean"})
    assert [opset.version for opset in model.opset_import] == [OPSET]
    assert tuple(given.name for given in model.graph.input) == INPUTS
    assert {fact.key: fact.value for fact in model.metadata_props} == {"pooling": "mean"}
