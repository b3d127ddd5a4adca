"""The backbone with weights laid out once for many forward passes without gradients."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from interlingua.devices import on_device
from interlingua.encoder.attention import Layout, attend, flash_available
from interlingua.encoder.backbone import Backbone
from interlingua.encoder.eager import ACTIVATIONS
from interlingua.encoder.layer import Layer, run_layer
from interlingua.encoder.quantize import quantize, whole_product

TYPICAL_TOKENS = 2048
LEAST_STEP = 8
STEPS_OF_OCTAVE = 16
"""Between a power of two and the next one there are so many sizes of a batch, at least
``LEAST_STEP`` tokens apart."""
FUSED_ACTIVATIONS = {  # oneDNN's name, and which formula where it has two
    "gelu": ("gelu", "none"),
    "gelu_new": ("gelu", "tanh"),
    "gelu_pytorch_tanh": ("gelu", "tanh"),
    "relu": ("relu", ""),
    "silu": ("swish", ""),
    "swish": ("swish", ""),
    "tanh": ("tanh", ""),
}


class FrozenBackbone:
    """A snapshot of a backbone for inference, to be made anew when the weights change.

    On the CPU the matrices are reordered for oneDNN, which runs float32 at over twice the speed of
    the default product at the same precision, and adds bias, activation and residual on the way.
    With int8 all that is no product of bytes is float32.

    Args:
        backbone: where the weights come from; not changed.
        dtype: to compute in.
    """

    packs = True
    """Whether matrices are reordered for oneDNN."""

    def __init__(self, backbone: Backbone, dtype: torch.dtype) -> None:
        config = backbone.config
        cast = _Cast(torch.float32 if dtype == torch.int8 else dtype, packs=self.packs)
        self.config = config
        self.dtype = dtype
        self.between = cast.dtype
        self.words = (
            backbone.word_embeddings.weight.detach()
        )  # looked up, then cast: most rows are never used
        self.positions = cast(backbone.position_table())
        self.norm = _Norm(backbone.embedding_norm, cast)
        self.final_norm = None if backbone.final_norm is None else _Norm(backbone.final_norm, cast)
        linear = _ByteLinear if dtype == torch.int8 else _PackedLinear
        self.layers = [
            _FrozenLayer(layer, cast, linear)
            for layer in backbone.layers
            if isinstance(layer, Layer)
        ]

    @classmethod
    def refusal(cls, backbone: Backbone, dtype: torch.dtype) -> str | None:
        """Why it would be nothing but plain torch, or None."""
        if backbone.word_embeddings.weight.device.type != "cpu":
            return "the weights are not on the CPU"
        if _onednn(torch.float32 if dtype == torch.int8 else dtype) is None:
            return f"oneDNN has no {str(dtype).removeprefix('torch.')} here"
        return None

    @torch.inference_mode()
    def __call__(
        self, input_ids: Int[Tensor, " t"], cu_seqlens: Int[Tensor, " b+1"]
    ) -> Float[Tensor, "t d"]:
        """Hidden states of the last layer, in the order of the tokens."""
        head_width = self.config.hidden_size // self.config.num_attention_heads
        device = self.words.device
        tokens = len(input_ids)
        if device.type == "cpu":
            input_ids, cu_seqlens = _filled_up(input_ids, cu_seqlens)
        uses_flash = flash_available(device, self.between, head_width)
        layout = Layout.of(cu_seqlens, flash=uses_flash, device=device)
        words = F.embedding(layout.arrange(on_device(input_ids, device)), self.words).to(
            self.between
        )
        # with rotary positions the table is one row: the token type, or zeros
        rotary = self.config.positions == "rotary"
        places = (
            self.positions
            if rotary
            else F.embedding(layout.positions + self.config.first_position, self.positions)
        )
        x = self.norm(words + places)
        for layer in self.layers:
            x = layer(x, layout)
        return layout.restore(x if self.final_norm is None else self.final_norm(x))[:tokens]


class PlainBackbone(FrozenBackbone):
    """The same with torch's own products, on any device."""

    packs = False

    @classmethod
    def refusal(cls, backbone: Backbone, dtype: torch.dtype) -> str | None:
        """None: it can be made of every backbone."""
        return None


class _FrozenLayer:
    """The steps of a layer with packed matrices, see ``encoder/layer.py``."""

    def __init__(
        self, layer: Layer, cast: _Cast, linear: type[_PackedLinear | _ByteLinear]
    ) -> None:
        spec = layer.spec
        self.spec = spec
        self.qkv = _PackedLinear(
            *layer.joint_projection(), cast
        )  # never of bytes: errors matter most in attention
        self.attention_output = linear(
            layer.attention_output.weight, layer.attention_output.bias, cast
        )
        # the activated half by itself, so that its activation is part of the product
        first = slice(0, spec.inner)
        self.intermediate = linear(
            *_rows(layer.intermediate, first), cast, activation=spec.activation
        )
        self.gate = (
            linear(*_rows(layer.intermediate, slice(spec.inner, None)), cast)
            if spec.gated
            else None
        )
        self.output = linear(layer.output.weight, layer.output.bias, cast)
        self.attention_norm = (
            None if layer.attention_norm is None else _Norm(layer.attention_norm, cast)
        )
        self.output_norm = _Norm(layer.output_norm, cast)

    def __call__(self, x: Tensor, layout: Layout) -> Tensor:
        return run_layer(self.spec, _FrozenSteps(self, layout), x)


class _FrozenSteps:
    def __init__(self, layer: _FrozenLayer, layout: Layout) -> None:
        self.layer = layer
        self.layout = layout

    def normalized(self, x: Tensor, norm: str) -> Tensor:
        normed: Tensor = getattr(self.layer, norm)(x)
        return normed

    def attended(self, x: Tensor) -> Tensor:
        spec = self.layer.spec
        qkv = self.layer.qkv(x)
        return attend(
            qkv, self.layout, heads=spec.heads, rotary_base=spec.rotary_base, window=spec.window
        )

    def activated(self, x: Tensor) -> Tensor:
        inner = self.layer.intermediate(x)
        return inner if self.layer.gate is None else inner * self.layer.gate(x)

    def added(self, x: Tensor, y: Tensor, linear: str, norm: str | None) -> Tensor:
        total: Tensor = getattr(self.layer, linear)(y, plus=x)
        return total if norm is None else self.normalized(total, norm)


def batch_size(tokens: int) -> int:
    """The next size that batches on the CPU have: at most a sixteenth more, or ``LEAST_STEP`` - 1
    tokens.

    oneDNN generates code for each size that it has not met before, about a megabyte for the four
    products of a small model. Its cache bounds only a part of that, so that a server with batches
    of every size would grow for days.
    """
    octave = 1 << max(0, tokens - 1).bit_length() >> 1  # the largest power of two below the tokens
    step = max(LEAST_STEP, octave // STEPS_OF_OCTAVE)
    return -(-tokens // step) * step  # rounded up


def _filled_up(
    input_ids: Int[Tensor, " t"], cu_seqlens: Int[Tensor, " b+1"]
) -> tuple[Int[Tensor, " n"], Int[Tensor, " c+1"]]:
    """A batch with sentences of one token behind it, up to a size of ``batch_size``."""
    missing = batch_size(len(input_ids)) - len(input_ids)
    if not missing:
        return input_ids, cu_seqlens
    ends = torch.arange(1, missing + 1, dtype=cu_seqlens.dtype) + cu_seqlens[-1]
    return F.pad(input_ids, (0, missing)), torch.cat([cu_seqlens, ends])


def _rows(linear: nn.Linear, rows: slice) -> tuple[Tensor, Tensor | None]:
    """Weight and bias of some outputs."""
    return linear.weight[rows], None if linear.bias is None else linear.bias[rows]


class _Cast:
    """To the dtype of the computation, detached from the parameters."""

    def __init__(self, dtype: torch.dtype, *, packs: bool = True) -> None:
        self.dtype = dtype
        self.packs = packs

    def __call__(self, tensor: Tensor) -> Tensor:
        return tensor.detach().to(self.dtype)


class _Norm:
    def __init__(self, norm: nn.LayerNorm, cast: _Cast) -> None:
        self.shape = norm.normalized_shape
        self.eps = norm.eps
        self.weight = cast(norm.weight)
        self.bias = None if norm.bias is None else cast(norm.bias)

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.shape, self.weight, self.bias, self.eps)


class _PackedLinear:
    """x W' + b, then an activation or a sum, in one oneDNN call where that exists and in plain
    torch elsewhere.
    """

    def __init__(
        self, weight: Tensor, bias: Tensor | None, cast: _Cast, activation: str | None = None
    ) -> None:
        self.weight = cast(weight).contiguous()
        self.bias = None if bias is None else cast(bias)
        self.activation = activation
        packs = cast.packs and self.weight.device.type == "cpu"
        self.fused: Any = _onednn(cast.dtype) if packs else None
        if self.fused is not None:
            self.weight = self.fused._reorder_linear_weight(self.weight, TYPICAL_TOKENS)

    def __call__(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        y: Tensor
        if self.fused is None:
            y = F.linear(x, self.weight, self.bias)
            if plus is not None:
                return y + plus
            return ACTIVATIONS[self.activation](y) if self.activation else y
        if plus is not None:
            y = self.fused._linear_pointwise.binary(x, plus, self.weight, self.bias, "add")
        else:
            after, formula = FUSED_ACTIVATIONS[self.activation] if self.activation else ("none", "")
            y = self.fused._linear_pointwise(x, self.weight, self.bias, after, [], formula)
        return y


class _ByteLinear:
    """x W' + b with rows and weights in bytes, then an activation or a sum."""

    def __init__(
        self, weight: Tensor, bias: Tensor | None, cast: _Cast, activation: str | None = None
    ) -> None:
        self.weight, scales = quantize(weight.detach())
        self.scales = scales[:, 0]
        self.bias = None if bias is None else cast(bias)
        self.activation = activation

    def __call__(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        rows, scales = quantize(x)
        y = whole_product(rows, self.weight) * scales * self.scales
        if self.bias is not None:
            y = y + self.bias
        if plus is not None:
            return y + plus
        return ACTIVATIONS[self.activation](y) if self.activation else y


NEEDED_SUPPORT = {
    torch.bfloat16: "_is_mkldnn_bf16_supported",
    torch.float16: "_is_mkldnn_fp16_supported",
}
"""oneDNN refuses to reorder matrices of a dtype that the processor has no instructions for, e.g.
with AVX2 alone."""


def _onednn(dtype: torch.dtype) -> Any:
    """Operators of oneDNN where torch has them and they take the dtype on this processor, else
    None.
    """
    operators = torch.ops.mkldnn
    if not (
        hasattr(operators, "_linear_pointwise") and hasattr(operators, "_reorder_linear_weight")
    ):
        return None
    supported = getattr(operators, NEEDED_SUPPORT[dtype], None) if dtype in NEEDED_SUPPORT else None
    if supported is not None and not supported():
        return None
    return operators if torch.backends.mkldnn.is_available() else None  # type: ignore[no-untyped-call]
