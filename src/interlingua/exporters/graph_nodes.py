"""Builder of the nodes and constants of an ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from interlingua import __version__
from interlingua.errors import import_extra

INPUTS = ("input_ids", "attention_mask")
OUTPUT_NODE = "sentence_embedding"
OPSET = 20
"""Version of ONNX's operators, the first with Gelu."""
IR_VERSION = 9


class Graph:
    """Nodes and constants of an ONNX graph under construction; tensors are referred to by name.

    Raises:
        MissingExtraError: the package ``onnx`` is not installed.
    """

    def __init__(self) -> None:
        self._onnx = import_extra("onnx", extra="onnx")
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._external: dict[str, Any] = {}

    def constant(self, values: Any, name: str = "") -> str:
        """Add a tensor of fixed values; equal small tensors are stored only once."""
        array = np.asarray(values)
        # The name consists of type, shape and values, so equal constants share one entry.
        name = name or f"{array.dtype}{list(array.shape)}_{array.ravel().tolist()}".replace(" ", "")
        self._constants[name] = array
        return name

    def external(
        self, name: str, kind: int, shape: Sequence[int], file: str, offset: int, length: int
    ) -> str:
        """Add a tensor of fixed values in another file of the graph's folder.

        Args:
            name: of the tensor.
            kind: ONNX's number of its type.
            shape: of the tensor.
            file: name of the file.
            offset: bytes before the values.
            length: bytes of the values.
        """
        tensor = self._onnx.TensorProto(
            name=name, data_type=kind, dims=shape, data_location=self._onnx.TensorProto.EXTERNAL
        )
        # ONNX stores the place as pairs of key and text.
        for key, value in (("location", file), ("offset", offset), ("length", length)):
            entry = tensor.external_data.add()
            entry.key = key
            entry.value = str(value)
        self._external[name] = tensor
        return name

    def add(
        self, operator: str, *inputs: str, name: str = "", domain: str = "", **attributes: Any
    ) -> str:
        """Add a node with one output; return the name that node and output share.

        ONNX requires that each node comes after the nodes whose outputs it reads.
        """
        name = name or f"{operator}_{len(self._nodes)}"
        node = self._onnx.helper.make_node(
            operator, inputs, [name], name=name, domain=domain, **attributes
        )
        self._nodes.append(node)
        return name

    def split(self, tensor: str, parts: int) -> list[str]:
        """Split the last axis into equal parts."""
        names = [f"Split_{len(self._nodes)}_{part}" for part in range(parts)]
        node = self._onnx.helper.make_node(
            "Split", [tensor], names, name=names[0], axis=-1, num_outputs=parts
        )
        self._nodes.append(node)
        return names

    def model(self, *, dim: int, metadata: dict[str, str]) -> Any:
        """Return the checked ``ModelProto``.

        Args:
            dim: width of the output.
            metadata: texts that are stored in the graph's file.
        """
        helper = self._onnx.helper
        types = self._onnx.TensorProto
        # A name instead of a number means a size that may differ from call to call.
        inputs = [
            helper.make_tensor_value_info(name, types.INT64, ["batch", "length"]) for name in INPUTS
        ]
        output = helper.make_tensor_value_info(OUTPUT_NODE, types.FLOAT, ["batch", dim])
        constants = [
            self._onnx.numpy_helper.from_array(array, name)
            for name, array in self._constants.items()
        ]
        constants += self._external.values()
        graph = helper.make_graph(self._nodes, "encoder", inputs, [output], constants)
        # Operators that are not ONNX's own belong to a domain, whose version has to be specified.
        foreign = {node.domain for node in self._nodes if node.domain}
        opsets = [
            helper.make_opsetid("", OPSET),
            *(helper.make_opsetid(domain, 1) for domain in sorted(foreign)),
        ]
        model = helper.make_model(
            graph,
            opset_imports=opsets,
            ir_version=IR_VERSION,
            producer_name="interlingua",
            producer_version=__version__,
        )
        helper.set_model_props(model, metadata)
        return model
