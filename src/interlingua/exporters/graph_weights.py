"""Storage of an encoder's matrices in an ONNX graph: float32, float16, or int8 with row scales.

With int8, the matrix products are computed with integers too. A row w of a matrix is c * r, with
integers c from -127 to 127 and a scale r. A state x of a token is (a + b / 126) * s, with integers
a and b from -63 to 63 and a scale s, except for the error that remains after two roundings. So
x . w = s * (r * (a . c) + r / 126 * (b . c)): two products of integers, which processors compute
several times as fast as products in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Float32
from numpy import ndarray

from interlingua.encoder.directories.static_directory import int8_rows
from interlingua.exporters.graph_nodes import Graph

FLOAT = 1
"""Number that ONNX has for float32."""
LARGEST_STATE = 63
ZERO = 64
"""Zero point of states from -63 to 63, which are stored without sign: 64 represents 0. A larger
range would overflow on processors without VNNI."""
FINER = 2 * LARGEST_STATE
"""Ratio of the two scales: the second rounding covers half a step of the first on each side."""
SMALLEST = 1e-12
"""Lower limit of the largest number of a state, from which the scale is computed. Without the
limit, a state of zeros would get a scale of 0."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """W of X W' + b: one parameter of the encoder, or several stacked; rows may be scaled."""

    parts: dict[str, Float32[ndarray, "_ in"]]
    """The parameters by their names in the encoder, in order."""
    row_scales: Float32[ndarray, " out"] | None = None
    """Factors of the rows."""

    @property
    def values(self) -> Float32[ndarray, "out in"]:
        """The stacked and scaled matrix."""
        stacked: Float32[ndarray, "out in"] = np.concatenate(list(self.parts.values()))
        if self.row_scales is not None:
            stacked = stacked * self.row_scales[:, None]
        return stacked


class Weights(Protocol):
    """Interface that puts an encoder's matrices into a graph."""

    name: str
    """The type that they are stored in."""

    def floats(self, graph: Graph, values: Float32[ndarray, ...], name: str) -> str:
        """Add a tensor in the type in which it is used in computations."""
        ...

    def lookup(self, graph: Graph, table: Float32[ndarray, "v d"], name: str) -> str:
        """Look up the rows of a table by ``input_ids``."""
        ...

    def linear(
        self, graph: Graph, x: str, matrix: Matrix, bias: Float32[ndarray, " out"] | None, name: str
    ) -> str:
        """Compute X W' + b, without bias if there is none."""
        ...


class FloatWeights:
    """Matrices in float32, or in float16 on disk; computations are in float32.

    Args:
        name: float32 or float16.
    """

    def __init__(self, name: str = "float32") -> None:
        self.name = name

    def floats(self, graph: Graph, values: Float32[ndarray, ...], name: str) -> str:
        """Add a tensor in the type that computations use, see ``Weights``."""
        return self._widened(graph, graph.constant(values.astype(self.name), name))

    def lookup(self, graph: Graph, table: Float32[ndarray, "v d"], name: str) -> str:
        """Look up rows, see ``Weights``; only the rows are widened, not the table."""
        rows = graph.add("Gather", graph.constant(table.astype(self.name), name), "input_ids")
        return self._widened(graph, rows)

    def linear(
        self, graph: Graph, x: str, matrix: Matrix, bias: Float32[ndarray, " out"] | None, name: str
    ) -> str:
        """Compute X W' + b, see ``Weights``."""
        # Transpose the matrix once, here, and not by a node of the graph.
        weight = np.ascontiguousarray(matrix.values.T)
        product = graph.add("MatMul", x, self.floats(graph, weight, f"{name}.weight"))
        return biased(graph, product, bias, name)

    def _widened(self, graph: Graph, tensor: str) -> str:
        if self.name == "float32":
            return tensor
        return graph.add("Cast", tensor, to=FLOAT)


class Int8Weights:
    """Matrices in int8 with a scale per row, and products of integers.

    The embedding tables are stored in the same way.

    Each token's state is rounded twice, with its own scales: first to 7 bits, then the remainder to
    another 7 bits. One scale for all states, as in ``DynamicQuantizeLinear``, is coarse if a few
    values are large. With only one rounding the errors are ten times as large. All operators are
    ONNX's own.
    """

    name = "int8"

    def floats(self, graph: Graph, values: Float32[ndarray, ...], name: str) -> str:
        """Add a tensor in float32, see ``Weights``."""
        return graph.constant(values, name)

    def lookup(self, graph: Graph, table: Float32[ndarray, "v d"], name: str) -> str:
        """Look up the rows of a table, see ``Weights``."""
        codes, scales = int8_rows(torch.from_numpy(table))
        # Look up the rows first, then widen only these: a batch uses only a few rows of the table.
        rows = graph.add("Gather", graph.constant(codes.numpy(), name), "input_ids")
        rows = graph.add("Cast", rows, to=FLOAT)
        column = graph.constant(scales[:, None].numpy(), f"{name}.scale")
        row_scales = graph.add("Gather", column, "input_ids")
        return graph.add("Mul", rows, row_scales)

    def linear(
        self, graph: Graph, x: str, matrix: Matrix, bias: Float32[ndarray, " out"] | None, name: str
    ) -> str:
        """Compute X W' + b, see ``Weights``."""
        codes, row, finer_row = self.rounded(graph, matrix, name)
        zero = graph.constant(np.uint8(ZERO))

        def product(states: str, scale: str) -> str:
            """Compute products of integers with each row, times the row's scale."""
            whole = graph.add("Cast", graph.add("MatMulInteger", states, codes, zero), to=FLOAT)
            return graph.add("Mul", whole, scale)

        # The scale s of each token: its largest number becomes 63.
        magnitudes = graph.add("Abs", x)
        largest = graph.add("ReduceMax", magnitudes, graph.constant(np.array([-1])), keepdims=0)
        largest = graph.add("Max", largest, graph.constant(np.float32(SMALLEST)))
        scale = graph.add("Mul", largest, graph.constant(np.float32(1 / LARGEST_STATE)))
        # QuantizeLinear requires a zero point for each scale.
        zeros = graph.add("Expand", zero, graph.add("Shape", scale))
        # The result of the first rounding is "a"; the remainder is at most half a step.
        first = graph.add("QuantizeLinear", x, scale, zeros, axis=0)
        restored = graph.add("DequantizeLinear", first, scale, zeros, axis=0)
        rest = graph.add("Sub", x, restored)
        # The second rounding gives "b" from the remainder.
        finer = graph.add("Mul", scale, graph.constant(np.float32(1 / FINER)))
        second = graph.add("QuantizeLinear", rest, finer, zeros, axis=0)
        both = graph.add("Add", product(first, row), product(second, finer_row))
        token_scales = graph.add("Unsqueeze", scale, graph.constant(np.array([1])))
        states = graph.add("Mul", both, token_scales)
        return biased(graph, states, bias, name)

    def rounded(self, graph: Graph, matrix: Matrix, name: str) -> tuple[str, str, str]:
        """Return the matrix as int8, transposed, and two scales for each of its rows.

        The product with the first rounding is multiplied by the first scale, the product with the
        second rounding by the second scale.
        """
        codes, scales = int8_rows(torch.from_numpy(matrix.values))
        row = scales.numpy()
        return (
            graph.constant(codes.T.contiguous().numpy(), f"{name}.weight"),
            graph.constant(row, f"{name}.scale"),
            graph.constant(row / np.float32(FINER), f"{name}.finer_scale"),
        )


def biased(graph: Graph, x: str, bias: Float32[ndarray, " out"] | None, name: str) -> str:
    """Return ``x`` plus the bias, if there is one."""
    if bias is None:
        return x
    return graph.add("Add", x, graph.constant(bias, f"{name}.bias"))
