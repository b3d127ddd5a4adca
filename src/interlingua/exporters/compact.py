"""One directory for every runtime, with the weights kept once, in eight bits.

The matrices are float8 (e4m3: 4 bits of exponent, 3 of mantissa), a type that transformers and
sentence-transformers read from a weight file like any other type. ``onnx/weights.safetensors``
holds the matrices, and these files refer to it:

- ``model.safetensors.index.json``, from which transformers, sentence-transformers and interlingua
  load the model;
- ``onnx/model.onnx``: its tensors are ranges of bytes of that file, widened to float32 when a
  session starts;
- ``onnx/model_quantized.onnx``, the same graph with products of integers: it rounds the rows of the
  widened matrices to int8; onnxruntime also does this only once, when the session starts.

ONNX allows no file outside the graph's folder, so the weights are in this folder and not next to
``config.json``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32
from numpy import ndarray
from torch import Tensor

from interlingua.encoder.directories.model_directory import read_json, write_model_json
from interlingua.encoder.directories.static_directory import LARGEST
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.families import FAMILIES
from interlingua.encoder.modeling.meta_device import meta_device
from interlingua.encoder.modeling.weights import huggingface_name, to_huggingface_names
from interlingua.encoder.static import StaticBackbone
from interlingua.errors import ConfigError
from interlingua.exporters.graph import build_graph
from interlingua.exporters.graph_nodes import Graph
from interlingua.exporters.graph_weights import (
    FINER,
    FLOAT,
    SMALLEST,
    FloatWeights,
    Int8Weights,
    Matrix,
    biased,
)
from interlingua.exporters.runtimes import ONNX_FILES
from interlingua.storage.json_text import parse_json
from interlingua.storage.tensor_files import write_safetensors

FLOAT8 = torch.float8_e4m3fn
NAME = "float8"
"""Name of the weights' format in the graphs and ``config.json``."""
WEIGHTS_FILE = "weights.safetensors"
EXACT_FILE = "dense.bin"
"""File of the float32 matrices after pooling, which need more precision than eight bits have."""
INDEX_FILE = "model.safetensors.index.json"
UINT8 = 2
INT8 = 3
INT32 = 6
ONNX_FLOAT8 = 17
"""Numbers that ONNX has for the types."""


def write_compact(encoder: Encoder, folder: Path) -> None:
    """Write the weights, their index and both graphs.

    Args:
        encoder: the model.
        folder: written by ``encoder.save(folder, weights=False)``.

    Raises:
        ConfigError: the encoder consists of token vectors, or has a weight that float8 can't hold.
        MissingExtraError: the package ``onnx`` is not installed.
    """
    if isinstance(encoder.backbone, StaticBackbone):
        raise ConfigError(
            "--compact supports only transformers; for token vectors use --dtype int8"
        )
    # A graph can refer only to whole tensors of the weight file, so each of our matrices must be
    # one tensor.
    family_name = encoder.backbone.config.model_type
    family = FAMILIES[family_name]
    if any(len(stack.ours) != len(stack.theirs) or stack.swaps_halves for stack in family.layer):
        raise ConfigError(
            f"--compact does not support the matrices of a {family_name} model; export without"
            " --compact"
        )
    # All runtimes get the rounded values, so the graphs are built from them too.
    rounded = rounded_encoder(encoder)
    graphs = (folder / ONNX_FILES["onnx"]).parent
    graphs.mkdir(exist_ok=True)
    weights = graphs / WEIGHTS_FILE
    tensors = to_huggingface_names(rounded.backbone.state_dict(), rounded.backbone.config)
    stored = {
        name: tensor.to(FLOAT8 if _is_matrix(tensor) else torch.float32)
        for name, tensor in tensors.items()
    }
    # transformers recognizes weights of PyTorch by this metadata entry.
    write_safetensors(weights, stored, {"format": "pt"})
    # transformers uses this index to load several weight files; here it names only one.
    size = sum(tensor.nbytes for tensor in stored.values())
    weight_map = dict.fromkeys(sorted(stored), f"{graphs.name}/{WEIGHTS_FILE}")
    write_model_json(
        folder / INDEX_FILE, {"metadata": {"total_size": size}, "weight_map": weight_map}
    )
    # Both graphs use the same object, so that the second finds the matrices of the first in it.
    exact = SharedFloats(graphs / EXACT_FILE)
    for kind, keeps in (("onnx", Float8Weights), ("onnx int8", Float8AsInt8Weights)):
        graph = build_graph(rounded, keeps(weights, family_name), exact=exact)
        (folder / ONNX_FILES[kind]).write_bytes(graph.SerializeToString())
    exact.write()
    described = read_json(folder / "config.json")
    write_model_json(folder / "config.json", {**described, "embedding_dtype": NAME})


def rounded_encoder(encoder: Encoder) -> Encoder:
    """Return the encoder with its matrices rounded to float8.

    Raises:
        ConfigError: a weight is larger than float8 can hold.
    """
    weights = {
        name: _rounded(name, tensor).to(tensor.dtype)
        for name, tensor in encoder.backbone.state_dict().items()
    }
    # Built without memory for weights; the rounded tensors then become its weights.
    with meta_device():
        backbone = type(encoder.backbone)(encoder.backbone.config)
    backbone.load_state_dict(weights, assign=True)
    return encoder.with_backbone(backbone).eval()


def _rounded(name: str, tensor: Tensor) -> Tensor:
    """Return a matrix in float8, anything else unchanged."""
    if not _is_matrix(tensor):
        return tensor
    # torch would turn values that are too large into NaN without a warning.
    largest = tensor.abs().max().item()
    if largest > torch.finfo(FLOAT8).max:
        raise ConfigError(
            f"{name} contains {largest:g}, above the largest float8 number"
            f" {torch.finfo(FLOAT8).max:g}; export without --compact"
        )
    return tensor.to(FLOAT8)


def _is_matrix(tensor: Tensor) -> bool:
    """Return whether storing this tensor in eight bits saves memory.

    It saves none for a bias, a norm or the token types.
    """
    return tensor.ndim == 2 and len(tensor) > 2


class StoredWeights:
    """The float8 matrices of a weight file, as tensors of a graph in the same folder.

    They are read from the file, which other graphs share.

    Args:
        path: a safetensors file. It holds 8 bytes with the length of the header, the header as
            JSON, and the data.
        model_type: of the encoder, which decides the names of its parameters there.
    """

    name = NAME

    def __init__(self, path: Path, model_type: str) -> None:
        self.model_type = model_type
        self.file = path.name
        # The header counts the offsets of the data from the header's end.
        with path.open("rb") as opened:
            length = int.from_bytes(opened.read(8), "little")
            self._header: dict[str, Any] = parse_json(opened.read(length).decode("utf-8"))
        self._data_start = 8 + length

    def tensor(self, graph: Graph, name: str, kind: int) -> str:
        """Add a matrix to a graph, and return its name.

        Args:
            graph: graph to add the matrix to.
            name: name of the parameter in the encoder.
            kind: ONNX_FLOAT8, or UINT8 for the bytes of the matrix.
        """
        described = self._header[huggingface_name(name, self.model_type)]
        start, end = described["data_offsets"]
        return graph.external(
            name, kind, described["shape"], self.file, self._data_start + start, end - start
        )

    def widened(self, graph: Graph, name: str) -> str:
        """Add a matrix to a graph in float32, and return its name."""
        return graph.add("Cast", self.tensor(graph, name, ONNX_FLOAT8), to=FLOAT)

    def floats(self, graph: Graph, values: Float32[ndarray, ...], name: str) -> str:
        """Add a tensor in the type that computations use, see ``Weights``."""
        return self.widened(graph, f"{name}.weight")

    def lookup(self, graph: Graph, table: Float32[ndarray, "v d"], name: str) -> str:
        """Add a lookup, see ``Weights``; the table itself stays in eight bits.

        onnxruntime can't gather rows of float8. So the bytes of the rows are gathered, and then
        looked up in a table of the 256 values.
        """
        # Two of the 256 bytes mean NaN; no weight is stored as one of these two.
        values = torch.arange(256, dtype=torch.uint8).view(FLOAT8).float().nan_to_num().numpy()
        codes = graph.add("Gather", self.tensor(graph, f"{name}.weight", UINT8), "input_ids")
        constant = graph.constant(values, "float8_values")
        # Gather takes no indices of eight bits.
        return graph.add("Gather", constant, graph.add("Cast", codes, to=INT32))

    def matrix(self, graph: Graph, matrix: Matrix, name: str) -> str:
        """Add a matrix of several parts, scaled, in float32, and return its name."""
        parts = [self.widened(graph, part) for part in matrix.parts]
        stacked = parts[0]
        if len(parts) > 1:
            stacked = graph.add("Concat", *parts, axis=0)
        if matrix.row_scales is None:
            return stacked
        scales = graph.constant(matrix.row_scales[:, None], f"{name}.row_scales")
        return graph.add("Mul", stacked, scales)


class Float8Weights(StoredWeights):
    """Matrices in float8, in a file that other graphs share; computations are in float32."""

    def linear(
        self, graph: Graph, x: str, matrix: Matrix, bias: Float32[ndarray, " out"] | None, name: str
    ) -> str:
        """Add a linear layer, see ``Weights``."""
        weight = graph.add("Transpose", self.matrix(graph, matrix, name), perm=[1, 0])
        return biased(graph, graph.add("MatMul", x, weight), bias, name)


class Float8AsInt8Weights(StoredWeights, Int8Weights):
    """Matrices of the same file, rounded to int8 at session start, for products of integers."""

    def rounded(self, graph: Graph, matrix: Matrix, name: str) -> tuple[str, str, str]:
        """Add the int8 matrix and its scales, see ``Int8Weights``.

        The graph itself computes the scales, so that no file holds them. They depend only on
        constants, so onnxruntime computes them when a session starts.
        """
        values = self.matrix(graph, matrix, name)
        magnitudes = graph.add("Abs", values)
        # The largest number of each row, (out, 1).
        largest = graph.add("ReduceMax", magnitudes, graph.constant(np.array([1])), keepdims=1)
        # The scale is a divisor, so it must not be 0 for a row of zeros.
        largest = graph.add("Max", largest, graph.constant(np.float32(SMALLEST)))
        scales = graph.add("Mul", largest, graph.constant(np.float32(1 / LARGEST)))
        codes = graph.add("Cast", graph.add("Round", graph.add("Div", values, scales)), to=INT8)
        row = graph.add("Reshape", scales, graph.constant(np.array([-1])))
        finer_row = graph.add("Mul", row, graph.constant(np.float32(1 / FINER)))
        return graph.add("Transpose", codes, perm=[1, 0]), row, finer_row


class SharedFloats(FloatWeights):
    """Tensors in float32 in a file that several graphs share.

    Args:
        path: of the file, in the folder of the graphs.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._places: dict[str, int] = {}
        self._content = bytearray()

    def floats(self, graph: Graph, values: Float32[ndarray, ...], name: str) -> str:
        """Add a tensor in the type that computations use, see ``Weights``."""
        content = values.astype("<f4").tobytes()
        if name not in self._places:
            self._places[name] = len(self._content)
            self._content += content
        return graph.external(
            name, FLOAT, values.shape, self._path.name, self._places[name], len(content)
        )

    def write(self) -> None:
        """Write the file, unless it would be empty."""
        if self._content:
            self._path.write_bytes(self._content)
