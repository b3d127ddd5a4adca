"""The backbone with weights laid out once for many forward passes without gradients.

On the CPU the matrices are reordered for oneDNN, which then multiplies them at over twice the speed
of torch's default product and adds bias, activation and residual on the way. On other devices, and
if oneDNN can't do the dtype, the same classes use torch's own products. The steps of a layer are
those of ``eager.py``.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from interlingua.encoder.executors.eager import EagerSteps
from interlingua.encoder.executors.quantize import quantize, whole_product
from interlingua.encoder.modeling.attention import Layout, flash_available
from interlingua.encoder.modeling.backbone import Backbone
from interlingua.encoder.modeling.layer import Layer
from interlingua.encoder.modeling.layer_weights import ACTIVATIONS, run_layer
from interlingua.runtime.devices import on_device
from interlingua.runtime.portions import ceil_div

Norm = TypeVar("Norm", bound=nn.LayerNorm | None)
_Linear = Callable[..., Callable[..., Tensor]]
"""Constructor of a product from weight, bias and activation."""
# oneDNN orders a matrix for products with this number of rows; others work too.
TYPICAL_TOKENS = 2048
LEAST_STEP = 8
STEPS_OF_OCTAVE = 16
"""Number of batch sizes between a power of two and the next one, at least ``LEAST_STEP`` tokens
apart."""


class FrozenBackbone:
    """A snapshot of a backbone for inference; it must be rebuilt when the weights change.

    Products by oneDNN have the same precision as torch's. With int8 everything but the products of
    bytes is float32.

    Args:
        backbone: source of the weights; not changed.
        dtype: to compute in.
    """

    packs = True
    """True if matrices are reordered for oneDNN."""

    def __init__(self, backbone: Backbone, dtype: torch.dtype) -> None:
        config = backbone.config
        self.config = config
        self.dtype = dtype
        self.between = _between(dtype)
        # Not cast here: rows are cast after they are looked up, since most are never used.
        self.words = backbone.word_embeddings.weight.detach()
        self.positions = backbone.position_table().detach().to(self.between)
        self.norm = _cast_norm(backbone.embedding_norm, self.between)
        self.final_norm = _cast_norm(backbone.final_norm, self.between)
        packed = functools.partial(_PackedLinear, dtype=self.between, packs=self.packs)
        linear: _Linear = packed
        if dtype == torch.int8:
            linear = _ByteLinear
        # Any, since `EagerSteps` treats their parts as those of `LayerWeights`.
        self.layers: list[Any] = [
            _FrozenLayer(layer, self.between, packed, linear)
            for layer in backbone.layers
            if isinstance(layer, Layer)
        ]

    @classmethod
    def refusal(cls, backbone: Backbone, dtype: torch.dtype) -> str | None:
        """Return the reason why oneDNN can't compute this backbone, or None."""
        if backbone.word_embeddings.weight.device.type != "cpu":
            return "the weights are not on the CPU"
        if _onednn(_between(dtype)) is None:
            return f"oneDNN does not support {str(dtype).removeprefix('torch.')} on this processor"
        return None

    @torch.inference_mode()
    def __call__(
        self, input_ids: Int[Tensor, " t"], cu_seqlens: Int[Tensor, " b+1"]
    ) -> Float[Tensor, "t d"]:
        """Compute the hidden states of the last layer, in the order of the tokens."""
        head_width = self.config.hidden_size // self.config.num_attention_heads
        device = self.words.device
        tokens = len(input_ids)
        if device.type == "cpu":
            input_ids, cu_seqlens = _filled_up(input_ids, cu_seqlens)
        uses_flash = flash_available(device, self.between, head_width)
        if self.config.positions == "alibi":
            uses_flash = False
        layout = Layout.of(cu_seqlens, flash=uses_flash, device=device)
        ids = layout.arrange(on_device(input_ids, device))
        words = F.embedding(ids, self.words).to(self.between)
        # Without learned positions the table is one row: the token type, or zeros.
        positions = self.positions
        if self.config.positions == "learned":
            rows = layout.positions + self.config.first_position
            positions = F.embedding(rows, self.positions)
        x = self.norm(words + positions)
        for layer in self.layers:
            x = run_layer(layer.spec, _FrozenSteps(layer, layout), x)
        if self.final_norm is not None:
            x = self.final_norm(x)
        # The sentences that filled the batch up are at its end.
        return layout.restore(x)[:tokens]


class PlainBackbone(FrozenBackbone):
    """A snapshot with torch's own products, on any device."""

    packs = False

    @classmethod
    def refusal(cls, backbone: Backbone, dtype: torch.dtype) -> str | None:
        """Return None: it can be made of every backbone."""
        return None


class _FrozenLayer:
    """The parts of a layer with packed matrices, by their names in ``LayerWeights``."""

    def __init__(self, layer: Layer, dtype: torch.dtype, packed: _Linear, linear: _Linear) -> None:
        spec = layer.spec
        self.spec = spec
        # This product is never of bytes, because errors matter most in attention.
        self.qkv = packed(*layer.joint_projection())
        self.attention_output = linear(layer.attention_output.weight, layer.attention_output.bias)
        # The activated half by itself, so that its activation is part of the product.
        activated_rows = _rows(layer.intermediate, slice(0, spec.inner))
        self.intermediate = linear(*activated_rows, activation=spec.activation)
        self.gate: Any = None
        if spec.gated:
            self.gate = linear(*_rows(layer.intermediate, slice(spec.inner, None)))
        self.output = linear(layer.output.weight, layer.output.bias)
        self.attention_norm = _cast_norm(layer.attention_norm, dtype)
        self.second_attention_norm = _cast_norm(layer.second_attention_norm, dtype)
        self.output_norm = _cast_norm(layer.output_norm, dtype)
        self.query_norm = _cast_norm(layer.query_norm, dtype)
        self.key_norm = _cast_norm(layer.key_norm, dtype)

    def dropout_rates(self) -> tuple[float, float]:
        """Return zeros, because nothing is trained."""
        return 0.0, 0.0


class _FrozenSteps(EagerSteps):
    """The steps of a frozen layer: activation, gate and sum are parts of the products."""

    def activated(self, x: Tensor) -> Tensor:
        inner: Tensor = self.layer.intermediate(x)
        if self.layer.gate is not None:
            inner = inner * self.layer.gate(x)
        return inner

    def added(self, x: Tensor, y: Tensor, linear: str, norm: str | None) -> Tensor:
        total: Tensor = getattr(self.layer, linear)(y, plus=x)
        if norm is None:
            return total
        return self.normalized(total, norm)


def batch_size(tokens: int) -> int:
    """Return the smallest size for batches on the CPU that has room for ``tokens`` tokens.

    It is larger by at most a sixteenth, or by ``LEAST_STEP`` - 1 tokens. oneDNN generates code for
    each size that it has not met before, about a megabyte for the four products of a small model.
    Its cache limits only a part of this memory, so the memory of a server that gets batches of
    every size would grow for days.
    """
    # The largest power of two below the number of tokens.
    octave = 1 << max(0, tokens - 1).bit_length() >> 1
    step = max(LEAST_STEP, octave // STEPS_OF_OCTAVE)
    return ceil_div(tokens, step) * step


def _filled_up(
    input_ids: Int[Tensor, " t"], cu_seqlens: Int[Tensor, " b+1"]
) -> tuple[Int[Tensor, " n"], Int[Tensor, " c+1"]]:
    """Append sentences of one token to a batch, up to a size of ``batch_size``."""
    missing = batch_size(len(input_ids)) - len(input_ids)
    if not missing:
        return input_ids, cu_seqlens
    # One token each, of id 0: a single longer sentence would cost attention over all of it.
    ends = torch.arange(1, missing + 1, dtype=cu_seqlens.dtype) + cu_seqlens[-1]
    return F.pad(input_ids, (0, missing)), torch.cat([cu_seqlens, ends])


def _rows(linear: nn.Linear, rows: slice) -> tuple[Tensor, Tensor | None]:
    """Return weight and bias of some outputs."""
    return linear.weight[rows], None if linear.bias is None else linear.bias[rows]


def _between(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of states between products: float32 if the products are of bytes."""
    if dtype == torch.int8:
        return torch.float32
    return dtype


def _cast_norm(norm: Norm, dtype: torch.dtype) -> Norm:
    """Return a copy in the dtype of the computation; None for a norm that a family lacks."""
    if norm is None:
        return norm
    return copy.deepcopy(norm).to(dtype)


def _cast(tensor: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Return a weight or a bias in a dtype, detached; None if the layer has none."""
    if tensor is None:
        return None
    return tensor.detach().to(dtype)


class _PackedLinear:
    """The product x W' + b, then an activation or a sum.

    It is one call of oneDNN if available, otherwise plain torch.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        activation: str | None = None,
        *,
        dtype: torch.dtype,
        packs: bool = True,
    ) -> None:
        self.weight = weight.detach().to(dtype).contiguous()
        self.bias = _cast(bias, dtype)
        self.activation = activation
        self.fused: Any = None
        if packs and self.weight.device.type == "cpu":
            self.fused = _onednn(dtype)
        if self.fused is not None:
            self.weight = self.fused._reorder_linear_weight(self.weight, TYPICAL_TOKENS)
        # The operation of oneDNN after the product, and its formula.
        self.after = ("none", "")
        if activation:
            self.after = ACTIVATIONS[activation].onednn

    def __call__(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        y: Tensor
        if self.fused is None:
            return _finished(F.linear(x, self.weight, self.bias), plus, self.activation)
        # The operators are those that torch.compile uses on CPUs.
        if plus is not None:
            y = self.fused._linear_pointwise.binary(x, plus, self.weight, self.bias, "add")
        else:
            name, formula = self.after
            y = self.fused._linear_pointwise(x, self.weight, self.bias, name, [], formula)
        return y


class _ByteLinear:
    """The product x W' + b with rows and weights in bytes, then an activation or a sum."""

    def __init__(self, weight: Tensor, bias: Tensor | None, activation: str | None = None) -> None:
        self.weight, scales = quantize(weight.detach())
        self.scales = scales[:, 0]
        self.bias = _cast(bias, torch.float32)
        self.activation = activation

    def __call__(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        # One factor per row and one per output undo the scales of the two roundings.
        rows, scales = quantize(x)
        y = whole_product(rows, self.weight) * scales * self.scales
        if self.bias is not None:
            y = y + self.bias
        return _finished(y, plus, self.activation)


def _finished(y: Tensor, plus: Tensor | None, activation: str | None) -> Tensor:
    """Apply the step after a product: the residual, the activation, or neither."""
    if plus is not None:
        return y + plus
    if activation:
        return ACTIVATIONS[activation].function(y)
    return y


NEEDED_SUPPORT = {
    torch.bfloat16: "_is_mkldnn_bf16_supported",
    torch.float16: "_is_mkldnn_fp16_supported",
}
"""Names of torch's checks by dtype. oneDNN refuses to reorder matrices if the processor has no
instructions for their dtype, for example if it has only AVX2."""


def _onednn(dtype: torch.dtype) -> Any:
    """Return oneDNN's operators if torch has them and they support the dtype here, else None."""
    operators = torch.ops.mkldnn
    # They are private to torch, so that a later version may not have them.
    names = ("_linear_pointwise", "_reorder_linear_weight")
    if not all(hasattr(operators, name) for name in names):
        return None
    if dtype in NEEDED_SUPPORT:
        is_supported = getattr(operators, NEEDED_SUPPORT[dtype], None)
        if is_supported is not None and not is_supported():
            return None
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return None
    return operators
