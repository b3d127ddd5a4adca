"""The backbone in one call of compiled code, for inference on a CPU: layers of every shape.

The kernel ``layers`` takes a batch through all layers. The operations between two products (biases,
activations, residual sums, norms, softmax) are done while the rows are in the cache. This module
lays out its weights: matrices in panels, with the numbers in the order that the kernel reads them,
and everything in ``struct``s of pointers. A panel is a group of outputs. Within it, each output has
four adjacent bytes of inputs (one float32, two bfloat16 or int16, four int8), since one instruction
multiplies that many; a variant may take eight int8 at once.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64, Shaped
from numpy import ndarray
from torch import Tensor, nn

from interlingua.encoder.executors.fused import FUSED_LANES, struct_fields
from interlingua.encoder.executors.quantize import (
    attention_dtypes,
    mixed,
    quantize,
    quantize_to_int16,
)
from interlingua.encoder.modeling.alibi import alibi_slopes
from interlingua.encoder.modeling.attention import inverse_frequencies
from interlingua.encoder.modeling.backbone import Backbone, BackboneConfig
from interlingua.encoder.modeling.layer import Layer
from interlingua.encoder.modeling.layer_weights import ACTIVATIONS
from interlingua.kernels import library
from interlingua.runtime.portions import ceil_div

_ALIGNMENT = 64
"""Alignment in bytes, as in kernels/products.h."""
_TYPES = {torch.float32: 0, torch.bfloat16: 1, torch.int8: 2}
WIDENED = 3
"""Weights in bfloat16 for activations in float32; as in kernels/products.h."""
INT16 = 4
"""Weights as quantize_to_int16 gives them; as in kernels/products.h."""
_PAIRS = 5
"""Float32 weights as sums of two bfloats, which tiles multiply; as in kernels/tile_products.h."""
TILE_HEAD_WIDTH = 32
TILE_WIDTH = 64
"""Products by tiles require widths of heads and of rows that are multiples of these numbers."""
UNSIGNED = 128
"""Added to weights in bytes: the instruction multiplies unsigned bytes by signed bytes."""
MAX_ROTARY_POSITIONS = 1 << 17
"""Angles of this number of positions take 32 MB with heads of width 64. A model's config can state
any number, as no weights depend on it."""
MIN_PRODUCTS = 1 << 25
"""Number of multiplications of weights by activations that is worth one more thread: they take 0.2
to 1 millisecond, depending on the dtype."""


# The four structures repeat those of the kernel, field by field and in the same order.
class _Linear(ctypes.Structure):
    _fields_ = [
        *struct_fields(ctypes.c_void_p, "weights", "bias", "scales"),
        *struct_fields(ctypes.c_int64, "inputs", "outputs", "type"),
    ]


class _Norm(ctypes.Structure):
    _fields_ = struct_fields(ctypes.c_void_p, "weight", "bias")


class _Layer(ctypes.Structure):
    _fields_ = [
        *struct_fields(_Linear, "qkv", "attention_output", "intermediate", "output"),
        *struct_fields(_Norm, "attention_norm", "output_norm"),
        *struct_fields(_Norm, "second_attention_norm", "query_norm", "key_norm"),
        *struct_fields(ctypes.c_void_p, "rotary"),
        *struct_fields(ctypes.c_int64, "window"),
    ]


class _Model(ctypes.Structure):
    _fields_ = [
        *struct_fields(ctypes.c_int64, "width", "heads", "inner", "layers"),
        *struct_fields(ctypes.c_int64, "type", "activation", "first", "position_width"),
        *struct_fields(ctypes.c_int64, "norm_first", "gated", "by_tiles"),
        *struct_fields(ctypes.c_float, "eps"),
        *struct_fields(ctypes.c_void_p, "words", "positions", "slopes"),
        *struct_fields(_Norm, "norm", "final_norm"),
        *struct_fields(ctypes.POINTER(_Layer), "layer"),
    ]


class WeightLayout(NamedTuple):
    """Layout of weights that a variant of the kernel requires.

    Attributes:
        panel: outputs that are stored together.
        bfloats: whether it multiplies bfloats; if not, activations are float32, and weights are
            converted to float32 on the way to a product.
        tiles: whether it multiplies by tiles (AMX): bfloats, bytes, and float32 as pairs of
            bfloats.
        bytes_together: number of inputs of an output that are adjacent if weights are int8.
        bytes_to_bfloats: whether products of bytes give bfloats; otherwise an int8 encoder uses
            float32 for everything except int8.
        int16s: whether it multiplies int16; activations are then float32 between products.
    """

    panel: int
    bfloats: bool
    tiles: bool = False
    bytes_together: int = 4
    bytes_to_bfloats: bool = False
    int16s: bool = False

    def between(self, dtype: torch.dtype) -> torch.dtype:
        """Return the dtype of activations between products, and of products that are not in bytes.

        Args:
            dtype: of the encoder.
        """
        if dtype == torch.float32 or not self.bfloats:
            return torch.float32
        if dtype == torch.int8 and not self.bytes_to_bfloats:
            return torch.float32
        return torch.bfloat16

    def filled(self, outputs: int) -> int:
        """Return the number of outputs rounded up to whole panels."""
        return ceil_div(outputs, self.panel) * self.panel


NO_LAYOUT = WeightLayout(panel=FUSED_LANES, bfloats=False)
"""Layout if no kernel is available."""


def layout_of(kernel: ctypes.CDLL | None) -> WeightLayout:
    """Return the layout that the variant of ``layers`` in use requires."""
    if kernel is None:
        return NO_LAYOUT
    # The library has a variant for each kind of processor, and reports what the chosen one takes.
    kernel.panel_columns.restype = ctypes.c_int64
    kernel.bytes_together.restype = ctypes.c_int64
    return WeightLayout(
        panel=kernel.panel_columns(),
        bfloats=bool(kernel.has_bfloats()),
        tiles=bool(kernel.has_tiles()),
        bytes_together=kernel.bytes_together(),
        bytes_to_bfloats=bool(kernel.has_bytes_to_bfloats()),
        int16s=bool(kernel.has_int16s()),
    )


def fits_tiles(config: BackboneConfig) -> bool:
    """Return whether a backbone has BERT's layers, and all its widths fit whole tiles."""
    if not config.num_hidden_layers or not all(spec.is_plain for spec in config.layer_specs):
        return False
    widths = (config.hidden_size, config.intermediate_size)
    head_width = config.hidden_size // config.num_attention_heads
    return head_width % TILE_HEAD_WIDTH == 0 and all(width % TILE_WIDTH == 0 for width in widths)


class CompiledBackbone:
    """A snapshot of a backbone for inference by the kernel ``layers``.

    It must be rebuilt when the weights change.

    Products are made in the dtype; residual sums, LayerNorm and softmax are float32 in any case,
    and so are the states. The vector of a sentence does not depend on the others of its batch, not
    even in the last bit. With int8 the projections of attention in the last layers multiply
    bfloat16, see ``quantize.attention_dtypes``; scores of attention never are in bytes. If the
    variant of the kernel can't multiply bfloats, weights are bfloats in memory and are converted to
    float32 for the products; activations are always float32 then.

    Args:
        backbone: source of the weights; not changed.
        dtype: float32, bfloat16 or int8.
    """

    multiplies_int16 = False
    """True if int16 is multiplied in place of bfloats."""

    def __init__(self, backbone: Backbone, dtype: torch.dtype) -> None:
        config = backbone.config
        self.config = config
        self.dtype = dtype
        # The targets of the pointers: without a reference here Python would free them.
        self._kept: list[Any] = []
        self._rotations: dict[float, int] = {}
        self._kernel = library("layers")
        self._layout = layout_of(self._kernel)
        if self.multiplies_int16:
            # Then activations are float32.
            self._layout = self._layout._replace(bfloats=False)
        self._by_tiles = self._layout.tiles and fits_tiles(config)
        layers = [layer for layer in backbone.layers if isinstance(layer, Layer)]
        self._between = self._layout.between(dtype)
        finer = torch.bfloat16 if dtype == torch.int8 else dtype
        if self.multiplies_int16:
            finer = torch.int16
        of_attention = [finer] * len(layers)
        of_feed_forward = finer
        if dtype == torch.int8:
            of_attention = attention_dtypes(dtype, finer, len(layers))
            of_feed_forward = dtype
        made = [
            self._layer(layer, attention, of_feed_forward)
            for layer, attention in zip(layers, of_attention, strict=True)
        ]
        self._layers = (_Layer * len(layers))(*made)
        self._model = _Model(
            width=config.hidden_size,
            heads=config.num_attention_heads,
            inner=config.intermediate_size,
            layers=len(layers),
            type=self._type(self._between),
            activation=ACTIVATIONS[config.hidden_act].kernel,
            first=config.first_position,
            # Without learned positions the table is one row, which every token gets.
            position_width=config.hidden_size if config.positions == "learned" else 0,
            norm_first=int(config.norm_first),
            gated=int(config.gated),
            by_tiles=int(self._by_tiles),
            eps=config.layer_norm_eps,
            words=self._floats(backbone.word_embeddings.weight),
            positions=self._floats(backbone.position_table()),
            slopes=self._slopes(),
            norm=self._norm(backbone.embedding_norm),
            final_norm=self._norm(backbone.final_norm),
            layer=self._layers,
        )

    @classmethod
    def refusal(cls, backbone: Backbone, dtype: torch.dtype) -> str | None:
        """Return the reason why it can't be made of this backbone, or None."""
        config = backbone.config
        widths = (
            config.hidden_size // config.num_attention_heads,
            config.hidden_size,
            config.intermediate_size,
        )
        if backbone.word_embeddings.weight.device.type != "cpu":
            return "the weights are not on the CPU"
        if dtype not in _TYPES:
            return f"{str(dtype).removeprefix('torch.')} is not supported"
        if any(width % FUSED_LANES for width in widths):
            return f"a width is not a multiple of {FUSED_LANES}"
        if config.positions == "rotary" and widths[0] % (2 * FUSED_LANES):
            return (
                f"half the width of a head must be a multiple of {FUSED_LANES}, because rotary"
                " positions rotate pairs of elements"
            )
        if config.positions == "rotary" and config.max_tokens > MAX_ROTARY_POSITIONS:
            return f"the rotary table would have more than {MAX_ROTARY_POSITIONS:,} positions"
        kernel = library("layers")
        if kernel is None:
            return "the kernel was not built for this processor, or is switched off"
        panel = layout_of(kernel).panel
        if config.gated and config.intermediate_size % panel:
            return f"the intermediate width is not a multiple of {panel}"
        return None

    def __call__(
        self, input_ids: Int[Tensor, " t"], cu_seqlens: Int[Tensor, " b+1"]
    ) -> Float[Tensor, "t d"]:
        """Compute the hidden states of the last layer, in the order of the tokens.

        Raises:
            IndexError: an id is not in the vocabulary, or a sentence is longer than there are
                positions.
            ValueError: the boundaries of the sentences do not rise from 0 to the number of tokens.
        """
        ids = _longs(input_ids)
        starts = _longs(cu_seqlens)
        # The kernel checks nothing: a wrong id or boundary would read memory that is not its own.
        _check_boundaries(starts, len(ids))
        if len(ids) and (ids.min() < 0 or ids.max() >= self.config.vocab_size):
            raise IndexError(
                f"expected token ids from 0 to {self.config.vocab_size - 1}, found {ids.min()}"
                f" to {ids.max()}"
            )
        if len(starts) > 1 and np.diff(starts).max() > self.config.max_tokens:
            raise IndexError(
                f"{np.diff(starts).max()} tokens, but the encoder has {self.config.max_tokens}"
                " positions"
            )
        states = np.empty((len(ids), self.config.hidden_size), np.float32)
        kernel = self._kernel
        assert kernel is not None
        failed = kernel.encode(
            ctypes.byref(self._model),
            ctypes.c_void_p(ids.ctypes.data),
            ctypes.c_void_p(starts.ctypes.data),
            ctypes.c_int64(len(starts) - 1),
            ctypes.c_void_p(states.ctypes.data),
            ctypes.c_int64(self._threads(len(ids))),
        )
        if failed:
            raise MemoryError("not enough memory for a batch; lower batch_tokens")
        return torch.from_numpy(states)

    def _threads(self, tokens: int) -> int:
        """Return the number of threads: all that torch may use, or fewer if there is little work.

        Their number changes no bit of the result.
        """
        config = self.config
        inner = (2 + config.gated) * config.intermediate_size
        weights = config.hidden_size * (4 * config.hidden_size + inner)
        products = tokens * weights * config.num_hidden_layers
        return max(1, min(torch.get_num_threads(), products // MIN_PRODUCTS))

    def _layer(self, layer: Layer, attention: torch.dtype, feed_forward: torch.dtype) -> _Layer:
        weight, bias = layer.joint_projection()
        attention_output = layer.attention_output
        spec = layer.spec
        return _Layer(
            qkv=self._linear(weight, bias, attention),
            attention_output=self._linear(
                attention_output.weight, attention_output.bias, attention
            ),
            intermediate=self._linear(
                layer.intermediate.weight, layer.intermediate.bias, feed_forward
            ),
            output=self._linear(layer.output.weight, layer.output.bias, feed_forward),
            attention_norm=self._norm(layer.attention_norm),
            output_norm=self._norm(layer.output_norm),
            second_attention_norm=self._norm(layer.second_attention_norm),
            query_norm=self._norm(layer.query_norm),
            key_norm=self._norm(layer.key_norm),
            rotary=self._rotary(spec.rotary_base),
            window=-1 if spec.window is None else spec.window,
        )

    def _rotary(self, base: float | None) -> int | None:
        """Return the address of all positions' cosines and sines; None if positions are not rotary.

        Layers with the same base share them. The cosines of a head precede its sines.
        """
        if base is None:
            return None
        if base not in self._rotations:
            head_width = self.config.hidden_size // self.config.num_attention_heads
            positions = torch.arange(self.config.max_tokens, dtype=torch.float32)
            angles = positions[:, None] * inverse_frequencies(base, head_width)
            self._rotations[base] = self._floats(torch.cat([angles.cos(), angles.sin()], dim=1))
        return self._rotations[base]

    def _slopes(self) -> int | None:
        if self.config.positions != "alibi":
            return None
        return self._floats(torch.tensor(alibi_slopes(self.config.num_attention_heads)))

    def _type(self, dtype: torch.dtype) -> int:
        """Return the kernel's number of a dtype of weights or activations."""
        if self._by_tiles and dtype == torch.float32:
            return _PAIRS
        if dtype == torch.bfloat16 and self._between == torch.float32:
            return WIDENED
        if dtype == torch.int16:
            return INT16
        return _TYPES[dtype]

    def _linear(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> _Linear:
        """Return the weights in panels, with bias, factors and scales."""
        outputs, inputs = weight.shape
        if bias is None:
            bias = weight.new_zeros(outputs)
        factors = None
        scales = None
        if dtype == torch.int8:
            rounded, factors = quantize(weight.detach())
            # Adding 128 to a byte is flipping its highest bit.
            matrix = rounded.view(torch.uint8) ^ UNSIGNED
        elif dtype == torch.int16:
            matrix, factors = quantize_to_int16(weight.detach())
        else:
            matrix = weight.detach().to(dtype)
        if factors is not None:
            # The kernel's Hadamard matrix has entries +-1; `hadamard` gives rows of length 1.
            factors = factors[:, 0] / math.prod(mixed(inputs)) ** 0.5
            scales = self._floats(self._filled(factors))
        if self._type(dtype) == _PAIRS:
            # high + low has about 16 bits of the 24 that a float32 has.
            high = matrix.bfloat16()
            low = (matrix - high.float()).bfloat16()
            panels = torch.stack([self._panels(high), self._panels(low)], dim=1)
        else:
            panels = self._panels(matrix)
        return _Linear(
            weights=self._aligned(panels),
            bias=self._floats(self._filled(bias.detach())),
            scales=scales,
            inputs=inputs,
            outputs=outputs,
            type=self._type(dtype),
        )

    def _panels(self, matrix: Shaped[Tensor, "o i"]) -> Shaped[Tensor, "p u panel step"]:
        """Return panels of outputs: [panel][input / step][output][step].

        A step has four bytes or more.
        """
        outputs, inputs = matrix.shape
        panel = self._layout.panel
        filled = self._layout.filled(outputs)
        step = 4 // matrix.element_size()
        if matrix.element_size() == 1:
            step = self._layout.bytes_together
        # A matrix that fills its panels is not copied: each copy touches new memory.
        if outputs < filled:
            matrix = torch.cat([matrix, matrix.new_zeros(filled - outputs, inputs)])
        return matrix.view(filled // panel, panel, inputs // step, step).permute(0, 2, 1, 3)

    def _filled(self, numbers: Float[Tensor, " n"]) -> Float[Tensor, " m"]:
        """Pad numbers with zeros up to whole panels."""
        missing = self._layout.filled(len(numbers)) - len(numbers)
        return torch.nn.functional.pad(numbers.float(), (0, missing))

    def _norm(self, norm: nn.LayerNorm | None) -> _Norm:
        if norm is None:
            return _Norm()
        bias: Tensor | None = norm.bias
        if bias is None:
            bias = torch.zeros_like(norm.weight)
        return _Norm(weight=self._floats(norm.weight), bias=self._floats(bias))

    def _floats(self, tensor: Tensor) -> int:
        array: Float32[ndarray, " n"] = tensor.detach().float().contiguous().numpy()
        self._kept.append(array)
        return array.ctypes.data

    def _aligned(self, panels: Tensor) -> int:
        # numpy's alignment is smaller: allocate more bytes, and start at the first aligned address.
        buffer = np.empty(panels.nbytes + _ALIGNMENT, np.uint8)
        start = -buffer.ctypes.data % _ALIGNMENT
        data = torch.from_numpy(buffer[start : start + panels.nbytes])
        data.view(panels.dtype).view(panels.shape).copy_(panels)
        self._kept.append(buffer)
        return data.data_ptr()


class Int16Backbone(CompiledBackbone):
    """``CompiledBackbone`` with products of int16 instead of bfloats, used if a trial prefers it.

    Most processors multiply two int16 in the time of one float32; Intel's without tiles have an
    instruction for bfloats that takes longer than float32. Activations are float32, and rounded to
    int16 for each product. With dtype bfloat16, vectors are several times nearer to those in
    float32 than they are with products of bfloats. In an int8 encoder, attention in the last layers
    is int16.
    """

    multiplies_int16 = True

    @classmethod
    def refusal(cls, backbone: Backbone, dtype: torch.dtype) -> str | None:
        """Return the reason why it can't be made of this backbone, or None."""
        reason = super().refusal(backbone, dtype)
        if reason is not None:
            return reason
        if dtype == torch.float32:
            return "in float32 it computes the same as the executor kernel"
        layout = layout_of(library("layers"))
        if not layout.int16s:
            return "this processor does not multiply int16"
        if layout.tiles and fits_tiles(backbone.config):
            return "tiles multiply only bfloat16 and int8"
        return None


def _check_boundaries(starts: Int64[ndarray, " b+1"], tokens: int) -> None:
    """Refuse boundaries with which the kernel would read and write outside of its arrays."""
    is_whole = len(starts) > 0 and starts[0] == 0 and starts[-1] == tokens
    if not is_whole or (np.diff(starts) < 0).any():
        raise ValueError(
            f"expected cu_seqlens that rise from 0 to the number of tokens, {tokens}; found"
            f" {starts[:9]}"
        )


def _longs(tensor: Tensor) -> ndarray:
    return np.ascontiguousarray(tensor.numpy(), dtype=np.int64)
