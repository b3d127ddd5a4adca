from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from interlingua.encoder.directories.static_directory import int8_rows
from interlingua.exporters.graph_nodes import Graph
from interlingua.exporters.graph_weights import FloatWeights, Int8Weights, Matrix


def product(weights, x, weight, bias):
    """Compute x W' + b by a graph that gets its states from an embedding table."""
    graph = Graph()
    states = graph.add(
        "Reshape", weights_free_lookup(graph, x), graph.constant(np.array([-1, x.shape[1]]))
    )
    made = weights.linear(graph, states, Matrix({"linear.weight": weight}), bias, "linear")
    graph.add("Identity", made, name="sentence_embedding")
    model = graph.model(dim=len(bias), metadata={})
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    ids = np.arange(len(x), dtype=np.int64)[:, None]
    return session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0], model


def weights_free_lookup(graph, x):
    return graph.add("Gather", graph.constant(x, "states"), "input_ids")


@pytest.fixture
def case():
    """States of very unequal size, some with one outlier of a hundred times the rest."""
    draw = np.random.default_rng(0)
    x = (
        draw.normal(size=(64, 48)).astype(np.float32)
        * np.geomspace(1e-3, 10, 64, dtype=np.float32)[:, None]
    )
    x[::4, 5] *= 100
    return x, draw.normal(size=(40, 48)).astype(np.float32), draw.normal(size=40).astype(np.float32)


def relative_error(found, x, weight, bias):
    exact = x.astype(np.float64) @ weight.T.astype(np.float64) + bias
    return float(
        (np.linalg.norm(found - exact, axis=1) / np.linalg.norm(exact - bias, axis=1)).max()
    )


def test_int8_products_round_no_state_more_than_its_weights(case):
    x, weight, bias = case
    found, _ = product(Int8Weights(), *case)
    rounded, scales = int8_rows(torch.from_numpy(weight))
    rounded_weight = (rounded * scales[:, None]).numpy()
    exact_states = x.astype(np.float64) @ rounded_weight.T.astype(np.float64) + bias
    of_weights = relative_error(exact_states, *case)
    assert relative_error(found, *case) < of_weights + 3e-4
    assert of_weights < 0.01


def test_int8_products_cannot_overflow_a_processor_without_vnni(case):
    found, model = product(Int8Weights(), *case)
    codes = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    largest_state = 64 + 63
    assert 2 * largest_state * int(np.abs(codes["linear.weight"].astype(int)).max()) < 2**15
    assert found.dtype == np.float32
    assert {node.domain for node in model.graph.node} == {""}


def test_a_row_of_zeros(case):
    x, weight, bias = case
    x[3], weight[7] = 0, 0
    found, _ = product(Int8Weights(), x, weight, bias)
    np.testing.assert_allclose(found[3], bias, atol=1e-6)
    np.testing.assert_allclose(found[:, 7], bias[7], atol=1e-6)


@pytest.mark.parametrize(("name", "error"), [("float32", 1e-5), ("float16", 1e-3)])
def test_float_products_and_rows(case, name, error):
    found, model = product(FloatWeights(name), *case)
    assert relative_error(found, *case) < error
    kept = next(tensor for tensor in model.graph.initializer if tensor.name == "linear.weight")
    assert onnx.numpy_helper.to_array(kept).dtype == name
