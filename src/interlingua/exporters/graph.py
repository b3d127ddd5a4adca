"""An encoder as an ONNX graph: token ids and their mask in, one vector per text out.

The graph computes what the encoder does, operator by operator, with pooling and normalization
inside, so that running it needs only a tokenizer. Every function here adds nodes to the graph and
returns the name of the tensor that the nodes compute; the computation itself takes place later.
Unlike the encoder, which packs texts without gaps, a graph takes padded batches: a mask excludes
padding from attention, positions and pooling.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Literal

import numpy as np
from torch import Tensor, nn

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.alibi import alibi_slopes
from interlingua.encoder.modeling.attention import inverse_frequencies
from interlingua.encoder.modeling.backbone import Backbone
from interlingua.encoder.modeling.layer import Layer
from interlingua.encoder.modeling.layer_weights import run_layer
from interlingua.encoder.post_pooling import Dense
from interlingua.encoder.static import StaticBackbone
from interlingua.exporters.graph_nodes import OUTPUT_NODE, Graph
from interlingua.exporters.graph_weights import FLOAT, FloatWeights, Matrix, Weights
from interlingua.storage.arrays import SMALLEST_LENGTH

BOOL = 9
"""Number that ONNX has for the type."""
MASKED = -10_000.0
"""Value added to the attention scores of padding. It makes the softmax 0, and is in the range of
half precision."""


def build_graph(encoder: Encoder, weights: Weights, *, exact: FloatWeights | None = None) -> Any:
    """Build the graph of an encoder, a ``ModelProto`` of opset 20 with dynamic batch and length.

    Texts may be padded on either side. Vectors are cut, and have length 1, if the model's settings
    require it.

    Args:
        encoder: the model.
        weights: object that stores the encoder's matrices.
        exact: object that stores the matrices after pooling; default: in the graph, in float32.

    Raises:
        MissingExtraError: the package ``onnx`` is not installed.
    """
    graph = Graph()
    backbone = encoder.backbone
    settings = encoder.settings
    # (batch, length): 1 for tokens and 0 for padding, as a number to multiply by.
    mask = graph.add("Cast", "attention_mask", to=FLOAT)
    states = weights.lookup(graph, _array(backbone.word_embeddings.weight), "word_embeddings")
    if not isinstance(backbone, StaticBackbone):
        states = _transformer(graph, backbone, weights, states, mask)
    if not settings.include_special and settings.pooling != "cls":
        mask = _without_special(graph, encoder, mask)
    pooled = _pooled(graph, states, mask, settings.pooling)
    exact = exact or FloatWeights()
    for number, layer in enumerate(encoder.post_pooling):
        pooled = _after_pooling(graph, exact, pooled, layer, f"post_pooling.{number}")
    # Cut the vector before normalization, so that the cut vector has length 1.
    if encoder.dim < encoder.full_dim:
        start = graph.constant(np.array([0]))
        end = graph.constant(np.array([encoder.dim]))
        pooled = graph.add("Slice", pooled, start, end, graph.constant(np.array([1])))
    if settings.normalize:
        pooled = _normalized(graph, pooled)
    # Whichever tensor is the last one, this node gives it the name of the output.
    graph.add("Identity", pooled, name=OUTPUT_NODE)
    facts = {
        "digest": encoder.digest(),
        "pooling": settings.pooling,
        "max_tokens": str(encoder.max_tokens),
        "weights": weights.name,
    }
    return graph.model(dim=encoder.dim, metadata=facts)


def _transformer(graph: Graph, backbone: Backbone, weights: Weights, words: str, mask: str) -> str:
    """Add the transformer; return the last layer's hidden states (batch, length, D).

    Inside, all tokens are in one dimension: (batch * length, D).
    """
    width = backbone.config.hidden_size
    places = _places(graph, backbone)
    x = _embedded(graph, backbone, weights, words, places)
    x = graph.add("Reshape", x, graph.constant(np.array([-1, width])))
    x = _norm(graph, x, backbone.embedding_norm, "embedding_norm")
    sentences = _Sentences(graph, backbone, places, mask)
    for number, layer in enumerate(backbone.layers):
        assert isinstance(layer, Layer)
        steps = _GraphSteps(graph, layer, weights, sentences, f"layers.{number}")
        x = run_layer(layer.spec, steps, x)
    if backbone.final_norm is not None:
        x = _norm(graph, x, backbone.final_norm, "final_norm")
    # Back to (batch, length, D); the first two are known only when the graph runs.
    shape = graph.add("Shape", "input_ids")
    shape = graph.add("Concat", shape, graph.constant(np.array([width])), axis=0)
    return graph.add("Reshape", x, shape)


def _places(graph: Graph, backbone: Backbone) -> str:
    """Return each token's row in the position table (batch, length); padding has row 0."""
    # The first real token has count 1 wherever it is, so padding on the left shifts no position.
    counted = graph.add("CumSum", "attention_mask", graph.constant(np.int64(1)))
    places = graph.add("Add", counted, graph.constant(np.int64(backbone.config.first_position - 1)))
    # Padding on the left has count 0, which may give a row number below 0.
    return graph.add("Max", places, graph.constant(np.int64(0)))


def _embedded(graph: Graph, backbone: Backbone, weights: Weights, words: str, places: str) -> str:
    """Add word embeddings (batch, length, D) with those of position and token type."""
    types = backbone.token_type_embeddings
    row = None
    if types is not None:
        row = graph.constant(_array(types.weight[0]), "token_type_embedding")
    # Without learned positions the layers rotate queries and keys, or add terms to the scores.
    if backbone.position_embeddings is None:
        if row is None:
            return words
        return graph.add("Add", words, row)
    positions = _array(backbone.position_embeddings.weight)
    table = weights.floats(graph, positions, "position_embeddings")
    # All tokens have the same type. So its row is added to the table, not to each token.
    if row is not None:
        table = graph.add("Add", table, row)
    return graph.add("Add", words, graph.add("Gather", table, places))


class _Sentences:
    """Properties of the batch for attention: its shape, its padding and tokens' positions.

    Args:
        graph: to add nodes to.
        backbone: backbone that defines the number and width of the heads.
        places: each token's position.
        mask: 1 for tokens and 0 for padding.
    """

    def __init__(self, graph: Graph, backbone: Backbone, places: str, mask: str) -> None:
        config = backbone.config
        self.graph = graph
        self.places = places
        self.max_tokens = config.max_tokens
        self.heads = config.num_attention_heads
        self.head_width = config.hidden_size // self.heads
        # (batch, 1, 1, length), for all heads and queries: 0 for tokens and MASKED for padding.
        hidden = graph.add("Sub", graph.constant(np.float32(1)), mask)
        hidden = graph.add("Mul", hidden, graph.constant(np.float32(MASKED)))
        self.padding = graph.add("Unsqueeze", hidden, graph.constant(np.array([1, 2])))
        # (batch, length, heads, w).
        shape = graph.add("Shape", "input_ids")
        by_head = graph.constant(np.array([self.heads, self.head_width]))
        self.by_head = graph.add("Concat", shape, by_head, axis=0)
        # Created once for all layers that share a window, or the base of a rotation.
        self._biases: dict[int | None, str] = {None: self.padding}
        self._rotations: dict[float, tuple[str, str]] = {}

    def bias(self, window: int | None) -> str:
        """Return the term added to scores: 0 if a token sees another, otherwise ``MASKED``."""
        if window is not None and window not in self._biases:
            graph = self.graph
            is_far = graph.add("Greater", self.distance, graph.constant(np.int64(window)))
            is_far = graph.add("Cast", is_far, to=FLOAT)
            outside = graph.add("Mul", is_far, graph.constant(np.float32(MASKED)))
            self._biases[window] = graph.add("Add", self.padding, outside)
        return self._biases[window]

    @functools.cached_property
    def penalties(self) -> str:
        """Terms that ALiBi adds to the scores, (heads, length, length)."""
        graph = self.graph
        slopes = -np.array(alibi_slopes(self.heads), dtype=np.float32)
        slopes_constant = graph.constant(slopes[:, None, None], "alibi_slopes")
        distance = graph.add("Cast", self.distance, to=FLOAT)
        return graph.add("Mul", slopes_constant, distance)

    @functools.cached_property
    def distance(self) -> str:
        """Distances between the tokens of a text, (length, length)."""
        graph = self.graph
        shape = graph.add("Shape", "input_ids")
        length = graph.add("Gather", shape, graph.constant(np.int64(1)))
        zero = graph.constant(np.int64(0))
        order = graph.add("Range", zero, length, graph.constant(np.int64(1)))
        column = graph.add("Unsqueeze", order, graph.constant(np.array([1])))
        # These positions may count padding, because only differences matter.
        return graph.add("Abs", graph.add("Sub", column, order))

    def rotated(self, x: str, base: float) -> str:
        """Rotate queries or keys (batch, length, heads, w) by their positions.

        Cosines and sines are looked up in a table, because a runtime in half precision could not
        compute them for large angles.
        """
        graph = self.graph
        if base not in self._rotations:
            # (positions, w / 2).
            frequencies = inverse_frequencies(base, self.head_width).numpy()
            angles = np.outer(np.arange(self.max_tokens), frequencies).astype(np.float32)
            # The rotation is equal for all heads.
            axis = graph.constant(np.array([2]))
            cosine_table = graph.constant(np.cos(angles), f"cosines.{base:g}")
            cosines = graph.add("Gather", cosine_table, self.places)
            sine_table = graph.constant(np.sin(angles), f"sines.{base:g}")
            sines = graph.add("Gather", sine_table, self.places)
            self._rotations[base] = (
                graph.add("Unsqueeze", cosines, axis),
                graph.add("Unsqueeze", sines, axis),
            )
        # An element of the first half and its counterpart in the second half form a point in a
        # plane.
        cosine, sine = self._rotations[base]
        first, second = graph.split(x, 2)
        left = graph.add("Sub", graph.add("Mul", first, cosine), graph.add("Mul", second, sine))
        right = graph.add("Add", graph.add("Mul", second, cosine), graph.add("Mul", first, sine))
        return graph.add("Concat", left, right, axis=-1)


class _GraphSteps:
    """The steps of a layer as nodes of a graph, see ``encoder/modeling/layer.py``.

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
        # Dividing the queries by the square root of a head's width divides the scores by it too.
        divisor = math.sqrt(spec.head_width)
        scale = np.ones(3 * spec.width, dtype=np.float32)
        # A norm of the queries would undo the division; with such a norm, its output is divided.
        if not spec.query_key_norm:
            scale[: spec.width] = 1 / divisor
        matrices = {
            f"{part}.weight": _array(projection.weight) for part, projection in projections.items()
        }
        offset = None
        if spec.attention_bias:
            biases = [_array(projection.bias) for projection in projections.values()]
            offset = np.concatenate(biases) * scale
        # One large product instead of three small ones uses the processor better.
        joint = self.weights.linear(graph, x, Matrix(matrices, scale), offset, f"{self.name}.qkv")
        # Each (batch, length, heads, w).
        query, key, value = graph.split(joint, 3)
        if spec.query_key_norm:
            query = self.normalized(query, "query_norm")
            query = graph.add("Div", query, graph.constant(np.float32(divisor)))
            key = self.normalized(key, "key_norm")
        parts = (query, key, value)
        query, key, value = [graph.add("Reshape", part, sentences.by_head) for part in parts]
        if spec.rotary_base is not None:
            query = sentences.rotated(query, spec.rotary_base)
            key = sentences.rotated(key, spec.rotary_base)
        # (batch, heads, length, w); for the keys the last two axes are exchanged.
        query = graph.add("Transpose", query, perm=[0, 2, 1, 3])
        value = graph.add("Transpose", value, perm=[0, 2, 1, 3])
        key = graph.add("Transpose", key, perm=[0, 2, 3, 1])
        scores = graph.add("MatMul", query, key)
        scores = graph.add("Add", scores, sentences.bias(spec.window))
        if spec.alibi:
            scores = graph.add("Add", scores, sentences.penalties)
        attention = graph.add("Softmax", scores, axis=-1)
        context = graph.add("MatMul", attention, value)
        context = graph.add("Transpose", context, perm=[0, 2, 1, 3])
        return graph.add("Reshape", context, graph.constant(np.array([-1, spec.width])))

    def activated(self, x: str) -> str:
        spec = self.layer.spec
        name = f"{self.name}.intermediate"
        inner = _linear(self.graph, self.weights, x, self.layer.intermediate, name)
        if not spec.gated:
            return _activation(self.graph, inner, spec.activation)
        # The matrix of a gated layer holds the weights of the first part above those of the gate.
        first, gate = self.graph.split(inner, 2)
        return self.graph.add("Mul", _activation(self.graph, first, spec.activation), gate)

    def added(self, x: str, y: str, linear: str, norm: str | None) -> str:
        module = getattr(self.layer, linear)
        product = _linear(self.graph, self.weights, y, module, f"{self.name}.{linear}")
        total = self.graph.add("Add", x, product)
        if norm is None:
            return total
        return self.normalized(total, norm)

    def summed(self, x: str, y: str, norm: str) -> str:
        return self.normalized(self.graph.add("Add", x, y), norm)


def _linear(graph: Graph, weights: Weights, x: str, linear: nn.Linear, name: str) -> str:
    matrix = Matrix({f"{name}.weight": _array(linear.weight)})
    # According to torch's type hints a layer always has a bias, but it may be None.
    bias: Tensor | None = linear.bias
    values = None if bias is None else _array(bias)
    return weights.linear(graph, x, matrix, values, name)


def _norm(graph: Graph, x: str, norm: nn.LayerNorm, name: str) -> str:
    inputs = [x, graph.constant(_array(norm.weight), f"{name}.weight")]
    if norm.bias is not None:
        inputs.append(graph.constant(_array(norm.bias), f"{name}.bias"))
    return graph.add("LayerNormalization", *inputs, axis=-1, epsilon=norm.eps)


def _activation(graph: Graph, x: str, name: str) -> str:
    if name in ("silu", "swish"):
        return graph.add("Mul", x, graph.add("Sigmoid", x))
    # Only "gelu" is exact; gelu_new and similar names mean the approximation by tanh.
    if name.startswith("gelu"):
        return graph.add("Gelu", x, approximate="none" if name == "gelu" else "tanh")
    return graph.add({"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid"}[name], x)


def _without_special(graph: Graph, encoder: Encoder, mask: str) -> str:
    """Return the mask without the tokens that the tokenizer puts around a text."""
    # A 0 or 1 for each entry of the vocabulary, which is looked up like an embedding.
    counts = np.ones(encoder.backbone.config.vocab_size, dtype=np.int8)
    counts[encoder.special_ids.cpu().numpy()] = 0
    kept = graph.add("Gather", graph.constant(counts, "pooled_tokens"), "input_ids")
    return graph.add("Mul", mask, graph.add("Cast", kept, to=FLOAT))


def _pooled(graph: Graph, states: str, mask: str, mode: Literal["cls", "mean", "max"]) -> str:
    """Pool states to (batch, D); zeros for a text without tokens."""
    column = graph.add("Unsqueeze", mask, graph.constant(np.array([2])))
    axis = graph.constant(np.array([1]))
    if mode == "mean":
        total = graph.add("ReduceSum", graph.add("Mul", states, column), axis, keepdims=0)
        count = graph.add("ReduceSum", column, axis, keepdims=0)
        # Divide by at least 1: a text without tokens has a sum of zeros, which stays zero.
        return graph.add("Div", total, graph.add("Max", count, graph.constant(np.float32(1))))
    if mode == "max":
        kept = graph.add("Cast", column, to=BOOL)
        lowest = graph.constant(np.finfo(np.float32).min)
        largest = graph.add("ReduceMax", graph.add("Where", kept, states, lowest), axis, keepdims=0)
        # Multiply by 0 for a text without tokens, whose maximum is the lowest possible number.
        return graph.add("Mul", largest, graph.add("ReduceMax", column, axis, keepdims=0))
    # The position of the first token, which is 0 unless padding is on the left.
    first = graph.add("ArgMax", mask, axis=1, keepdims=1)
    return graph.add("GatherND", states, first, batch_dims=1)


def _after_pooling(
    graph: Graph, exact: FloatWeights, vectors: str, layer: nn.Module, name: str
) -> str:
    """Add a Dense or Normalize layer.

    Weights stay in float32, because a linear map that removes a component would not remove it
    completely after rounding.
    """
    if not isinstance(layer, Dense):
        return _normalized(graph, vectors)
    transformed = _linear(graph, exact, vectors, layer.linear, name)
    if layer.activation == "identity":
        return transformed
    return _activation(graph, transformed, layer.activation)


def _normalized(graph: Graph, vectors: str) -> str:
    length = graph.add("ReduceL2", vectors, graph.constant(np.array([-1])), keepdims=1)
    # As in normalize_rows, a vector of zeros stays a vector of zeros.
    length = graph.add("Max", length, graph.constant(np.float32(SMALLEST_LENGTH)))
    return graph.add("Div", vectors, length)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().float().cpu().numpy()
