"""An encoder as an ONNX graph: token ids and their mask in, one vector per text out.

Pooling and length are inside.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from torch import Tensor, nn

from interlingua.arrays import SMALLEST_LENGTH
from interlingua.encoder.attention import inverse_frequencies
from interlingua.encoder.backbone import Backbone
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.layer import Layer, run_layer
from interlingua.encoder.post_pooling import Dense
from interlingua.encoder.static import StaticBackbone
from interlingua.export.graph_nodes import OUTPUT, Graph
from interlingua.export.graph_weights import FLOAT, FloatWeights, Matrix, Weights

BOOL = 9
"""ONNX's number of the type."""
MASKED = -10_000.0
"""Added to the attention to padding: its softmax is 0, and half precision can hold it."""


def build_graph(encoder: Encoder, weights: Weights, *, exact: FloatWeights | None = None) -> Any:
    """The graph of an encoder, as a ``ModelProto`` of opset 20 with dynamic batch and length.

    Texts may be padded on either side. Vectors are cut, and have length 1, where the model's
    settings say so.

    Args:
        encoder: the model.
        weights: how its matrices are kept.
        exact: how those after pooling are kept; default: in the graph, in float32.

    Raises:
        MissingExtraError: the package ``onnx`` is not installed.
    """
    graph = Graph()
    backbone = encoder.backbone
    settings = encoder.settings
    mask = graph.add("Cast", "attention_mask", to=FLOAT)
    states = weights.lookup(graph, _array(backbone.word_embeddings.weight), "word_embeddings")
    if not isinstance(backbone, StaticBackbone):
        states = _transformer(graph, backbone, weights, states, mask)
    if not settings.include_special and settings.pooling != "cls":
        mask = _without_special(graph, encoder, mask)
    pooled = _pooled(graph, states, mask, settings.pooling)
    for number, layer in enumerate(encoder.post_pooling):
        pooled = _after_pooling(
            graph, exact or FloatWeights(), pooled, layer, f"post_pooling.{number}"
        )
    if encoder.dim < encoder.full_dim:
        start = graph.constant(np.array([0]))
        end = graph.constant(np.array([encoder.dim]))
        pooled = graph.add("Slice", pooled, start, end, graph.constant(np.array([1])))
    if settings.normalize:
        pooled = _normalized(graph, pooled)
    graph.add("Identity", pooled, name=OUTPUT)
    facts = {
        "digest": encoder.digest(),
        "pooling": settings.pooling,
        "max_tokens": str(encoder.max_tokens),
        "weights": weights.name,
    }
    return graph.model(dim=encoder.dim, metadata=facts)


def _transformer(graph: Graph, backbone: Backbone, weights: Weights, words: str, mask: str) -> str:
    """Hidden states (batch, length, D) of the last layer.

    Between them tokens stand in one row, (batch * length, D).
    """
    width = backbone.config.hidden_size
    places = _places(graph, backbone)
    x = _embedded(graph, backbone, weights, words, places)
    x = graph.add("Reshape", x, graph.constant(np.array([-1, width])))
    x = _norm(graph, x, backbone.embedding_norm, "embedding_norm")
    sentences = _Sentences(graph, backbone, places, mask)
    for number, layer in enumerate(backbone.layers):
        assert isinstance(layer, Layer)
        x = run_layer(
            layer.spec, _GraphSteps(graph, layer, weights, sentences, f"layers.{number}"), x
        )
    if backbone.final_norm is not None:
        x = _norm(graph, x, backbone.final_norm, "final_norm")
    shape = graph.add("Shape", "input_ids")
    return graph.add(
        "Reshape", x, graph.add("Concat", shape, graph.constant(np.array([width])), axis=0)
    )


def _places(graph: Graph, backbone: Backbone) -> str:
    """Row of each token in the position table (batch, length); padding has row 0."""
    counted = graph.add("CumSum", "attention_mask", graph.constant(np.int64(1)))
    places = graph.add("Add", counted, graph.constant(np.int64(backbone.config.first_position - 1)))
    return graph.add("Max", places, graph.constant(np.int64(0)))  # padding on the left counts 0


def _embedded(graph: Graph, backbone: Backbone, weights: Weights, words: str, places: str) -> str:
    """Word embeddings (batch, length, D) with those of position and token type."""
    types = backbone.token_type_embeddings
    row = None
    if types is not None:
        row = graph.constant(_array(types.weight[0]), "token_type_embedding")
    if backbone.position_embeddings is None:
        return words if row is None else graph.add("Add", words, row)
    table = weights.floats(
        graph, _array(backbone.position_embeddings.weight), "position_embeddings"
    )
    if row is not None:
        table = graph.add("Add", table, row)
    return graph.add("Add", words, graph.add("Gather", table, places))


class _Sentences:
    """What attention has to know of the batch: its shape, its padding, and where each token stands.

    Args:
        graph: that it becomes part of.
        backbone: with the shape of a head.
        places: each token's position.
        mask: 1 for tokens and 0 for padding.
    """

    def __init__(self, graph: Graph, backbone: Backbone, places: str, mask: str) -> None:
        config = backbone.config
        self.graph = graph
        self.places = places
        self.max_tokens = config.max_tokens
        self.head_width = config.hidden_size // config.num_attention_heads
        hidden = graph.add("Sub", graph.constant(np.float32(1)), mask)
        hidden = graph.add("Mul", hidden, graph.constant(np.float32(MASKED)))
        self.padding = graph.add(
            "Unsqueeze", hidden, graph.constant(np.array([1, 2]))
        )  # (batch, 1, 1, length)
        shape = graph.add("Shape", "input_ids")
        by_head = graph.constant(np.array([config.num_attention_heads, self.head_width]))
        self.by_head = graph.add("Concat", shape, by_head, axis=0)
        self._biases: dict[int | None, str] = {None: self.padding}
        self._rotations: dict[float, tuple[str, str]] = {}

    def bias(self, window: int | None) -> str:
        """What is added to the scores: 0 where a token sees another, and ``MASKED`` elsewhere."""
        if window is not None and window not in self._biases:
            graph = self.graph
            length = graph.add(
                "Gather", graph.add("Shape", "input_ids"), graph.constant(np.int64(1))
            )
            zero = graph.constant(np.int64(0))
            order = graph.add("Range", zero, length, graph.constant(np.int64(1)))
            column = graph.add("Unsqueeze", order, graph.constant(np.array([1])))
            distance = graph.add("Abs", graph.add("Sub", column, order))
            far = graph.add(
                "Cast", graph.add("Greater", distance, graph.constant(np.int64(window))), to=FLOAT
            )
            outside = graph.add("Mul", far, graph.constant(np.float32(MASKED)))
            self._biases[window] = graph.add("Add", self.padding, outside)
        return self._biases[window]

    def rotated(self, x: str, base: float) -> str:
        """Queries or keys (batch, length, heads, w) turned by their positions.

        Cosines and sines are looked up: what computes in half precision could not make them of
        large angles.
        """
        graph = self.graph
        if base not in self._rotations:
            angles = np.outer(
                np.arange(self.max_tokens), inverse_frequencies(base, self.head_width).numpy()
            )
            angles = angles.astype(np.float32)
            axis = graph.constant(np.array([2]))  # equal for all heads
            cosines = graph.add(
                "Gather", graph.constant(np.cos(angles), f"cosines.{base:g}"), self.places
            )
            sines = graph.add(
                "Gather", graph.constant(np.sin(angles), f"sines.{base:g}"), self.places
            )
            self._rotations[base] = (
                graph.add("Unsqueeze", cosines, axis),
                graph.add("Unsqueeze", sines, axis),
            )
        cosine, sine = self._rotations[base]
        first, second = graph.split(x, 2)
        left = graph.add("Sub", graph.add("Mul", first, cosine), graph.add("Mul", second, sine))
        right = graph.add("Add", graph.add("Mul", second, cosine), graph.add("Mul", first, sine))
        return graph.add("Concat", left, right, axis=-1)


class _GraphSteps:
    """The steps of a layer as nodes of a graph, see ``encoder/layer.py``.

    States are (batch * length, D).
    """

    def __init__(
        self, graph: Graph, layer: Layer, weights: Weights, sentences: _Sentences, name: str
    ) -> None:
        self.graph = graph
        self.layer = layer
        self.weights = weights
        self.sentences = sentences
        self.name = name

    def normalized(self, x: str, norm: str) -> str:
        return _norm(self.graph, x, getattr(self.layer, norm), f"{self.name}.{norm}")

    def attended(self, x: str) -> str:
        graph = self.graph
        sentences = self.sentences
        spec = self.layer.spec
        projections = {
            f"{self.name}.{part}": getattr(self.layer, part) for part in ("query", "key", "value")
        }
        scale = np.ones(3 * spec.width, dtype=np.float32)
        scale[: spec.width] = 1 / math.sqrt(spec.head_width)  # of the queries, and so of the scores
        matrices = {
            f"{part}.weight": _array(projection.weight) for part, projection in projections.items()
        }
        offset = None
        if spec.attention_bias:
            offset = (
                np.concatenate([_array(projection.bias) for projection in projections.values()])
                * scale
            )
        joint = self.weights.linear(graph, x, Matrix(matrices, scale), offset, f"{self.name}.qkv")
        query, key, value = (
            graph.add("Reshape", part, sentences.by_head) for part in graph.split(joint, 3)
        )
        if spec.rotary_base is not None:
            query = sentences.rotated(query, spec.rotary_base)
            key = sentences.rotated(key, spec.rotary_base)
        query, value = (graph.add("Transpose", part, perm=[0, 2, 1, 3]) for part in (query, value))
        scores = graph.add("MatMul", query, graph.add("Transpose", key, perm=[0, 2, 3, 1]))
        attention = graph.add(
            "Softmax", graph.add("Add", scores, sentences.bias(spec.window)), axis=-1
        )
        context = graph.add("Transpose", graph.add("MatMul", attention, value), perm=[0, 2, 1, 3])
        return graph.add("Reshape", context, graph.constant(np.array([-1, spec.width])))

    def activated(self, x: str) -> str:
        spec = self.layer.spec
        inner = _linear(
            self.graph, self.weights, x, self.layer.intermediate, f"{self.name}.intermediate"
        )
        if not spec.gated:
            return _activation(self.graph, inner, spec.activation)
        first, gate = self.graph.split(inner, 2)
        return self.graph.add("Mul", _activation(self.graph, first, spec.activation), gate)

    def added(self, x: str, y: str, linear: str, norm: str | None) -> str:
        product = _linear(
            self.graph, self.weights, y, getattr(self.layer, linear), f"{self.name}.{linear}"
        )
        total = self.graph.add("Add", x, product)
        return total if norm is None else self.normalized(total, norm)


def _linear(graph: Graph, weights: Weights, x: str, linear: nn.Linear, name: str) -> str:
    matrix = Matrix({f"{name}.weight": _array(linear.weight)})
    return weights.linear(
        graph, x, matrix, None if linear.bias is None else _array(linear.bias), name
    )


def _norm(graph: Graph, x: str, norm: nn.LayerNorm, name: str) -> str:
    scale = graph.constant(_array(norm.weight), f"{name}.weight")
    shift = () if norm.bias is None else (graph.constant(_array(norm.bias), f"{name}.bias"),)
    return graph.add("LayerNormalization", x, scale, *shift, axis=-1, epsilon=norm.eps)


def _activation(graph: Graph, x: str, name: str) -> str:
    if name in ("silu", "swish"):
        return graph.add("Mul", x, graph.add("Sigmoid", x))
    if name.startswith("gelu"):
        return graph.add("Gelu", x, approximate="none" if name == "gelu" else "tanh")
    return graph.add({"relu": "Relu", "tanh": "Tanh"}[name], x)


def _without_special(graph: Graph, encoder: Encoder, mask: str) -> str:
    """The mask without the tokens that the tokenizer puts around a text."""
    counts = np.ones(encoder.backbone.config.vocab_size, dtype=np.int8)
    counts[encoder.special_ids.cpu().numpy()] = 0
    kept = graph.add("Gather", graph.constant(counts, "pooled_tokens"), "input_ids")
    return graph.add("Mul", mask, graph.add("Cast", kept, to=FLOAT))


def _pooled(graph: Graph, states: str, mask: str, mode: Literal["cls", "mean", "max"]) -> str:
    """(batch, D); zeros for a text without tokens."""
    column = graph.add("Unsqueeze", mask, graph.constant(np.array([2])))
    axis = graph.constant(np.array([1]))
    if mode == "mean":
        total = graph.add("ReduceSum", graph.add("Mul", states, column), axis, keepdims=0)
        count = graph.add("ReduceSum", column, axis, keepdims=0)
        return graph.add("Div", total, graph.add("Max", count, graph.constant(np.float32(1))))
    if mode == "max":
        kept = graph.add("Cast", column, to=BOOL)
        lowest = graph.constant(np.finfo(np.float32).min)
        largest = graph.add("ReduceMax", graph.add("Where", kept, states, lowest), axis, keepdims=0)
        return graph.add("Mul", largest, graph.add("ReduceMax", column, axis, keepdims=0))
    first = graph.add("ArgMax", mask, axis=1, keepdims=1)  # 0, unless padding stands on the left
    return graph.add("GatherND", states, first, batch_dims=1)


def _after_pooling(
    graph: Graph, exact: FloatWeights, vectors: str, layer: nn.Module, name: str
) -> str:
    """A Dense or Normalize layer.

    Weights stay in float32, since a map that is rounded removes nothing exactly.
    """
    if not isinstance(layer, Dense):
        return _normalized(graph, vectors)
    weight = _array(layer.linear.weight)
    bias = None if layer.linear.bias is None else _array(layer.linear.bias)
    transformed = exact.linear(graph, vectors, Matrix({f"{name}.weight": weight}), bias, name)
    if layer.activation == "identity":
        return transformed
    if layer.activation == "sigmoid":
        return graph.add("Sigmoid", transformed)
    return _activation(graph, transformed, layer.activation)


def _normalized(graph: Graph, vectors: str) -> str:
    length = graph.add("ReduceL2", vectors, graph.constant(np.array([-1])), keepdims=1)
    return graph.add(
        "Div", vectors, graph.add("Max", length, graph.constant(np.float32(SMALLEST_LENGTH)))
    )


def _array(tensor: Tensor) -> Any:
    return tensor.detach().float().cpu().numpy()
