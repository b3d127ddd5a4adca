"""The single description of a transformer layer: its operations, their order, and its weights.

Encoders differ in small choices: where the norm is, whether matrices have biases, how a token's
position is known, whether the feed-forward block is gated, and whether a layer sees the whole
sentence or a window of it. ``LayerSpec`` holds these choices. ``run_layer`` holds the order of the
steps, which is the same for all of them. An executor is a class with the ``LayerSteps``: torch with
gradients (``eager.py``), one pass over memory per step in training (``fused.py`` on the CPU,
``fused_by_compiler.py`` if a run wants it), matrices packed for oneDNN (``inference.py``), and
nodes of an ONNX graph (``exporters/graph.py``). Only the encoding kernel has the order written out,
in C (``kernels/layers.c``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from interlingua.encoder.modeling.attention import flash_available

T = TypeVar("T")


class LayerActivation(NamedTuple):
    """An activation, with its name in each executor."""

    function: Callable[[Tensor], Tensor]
    onednn: tuple[str, str]
    """Its name in oneDNN, and its formula if oneDNN has two for this name."""
    kernel: int
    """Its number in kernels/training.c and kernels/layers.c."""


_TANH_GELU = LayerActivation(functools.partial(F.gelu, approximate="tanh"), ("gelu", "tanh"), 2)
_SILU = LayerActivation(F.silu, ("swish", ""), 4)
ACTIVATIONS = {
    "gelu": LayerActivation(F.gelu, ("gelu", "none"), 1),
    "gelu_new": _TANH_GELU,
    "gelu_pytorch_tanh": _TANH_GELU,
    "relu": LayerActivation(F.relu, ("relu", ""), 3),
    "silu": _SILU,
    "swish": _SILU,
    "tanh": LayerActivation(torch.tanh, ("tanh", ""), 5),
}
"""Activations by their names in Hugging Face's ``config.json``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerSpec:
    """Specification of one layer, without its weights."""

    width: int
    """D of the hidden states."""
    heads: int
    """Attention heads; a divisor of the width."""
    inner: int
    """Width of the feed-forward block."""
    activation: str = "gelu"
    """A key of ``ACTIVATIONS``."""
    gated: bool = False
    """Multiply the activated half of the first feed-forward product by its other half (GeGLU,
    SwiGLU)."""
    norm_first: bool = False
    """Normalize what goes into attention and feed-forward block (pre-LN), not the sums after them
    (post-LN)."""
    attention_norm: bool = True
    """True if attention has a norm at all: ModernBERT's first layer gets states that are normalized
    already."""
    norm_bias: bool = True
    norm_eps: float = 1e-12
    """Added to the variance."""
    query_key_norm: bool = False
    """Normalize queries and keys, all heads of a token together, before they are multiplied."""
    adds_input_twice: bool = False
    """Add the layer's input once more to attention's normalized sum, and normalize that too."""
    attention_bias: bool = True
    """Biases of query, key, value, and of attention's output."""
    intermediate_bias: bool = True
    """Bias of the first product of the feed-forward block."""
    output_bias: bool = True
    """Bias of the second product of the feed-forward block."""
    rotary_base: float | None = None
    """Turn queries and keys by angles that grow with the position (RoPE); None: positions are in
    the states."""
    alibi: bool = False
    """Subtract from each score the distance of its tokens, times a slope of the head (ALiBi)."""
    window: int | None = None
    """Number of neighbors that a token sees on either side; None: its whole sentence."""
    dropout_rate: float = 0.0
    """Probability of zeroing an activation before each residual sum."""
    attention_dropout_rate: float = 0.0
    """Probability of zeroing an attention weight."""

    @property
    def head_width(self) -> int:
        """Width of a head's queries, keys and values."""
        return self.width // self.heads

    @property
    def is_plain(self) -> bool:
        """True if it is BERT's layer; only this one has compiled training passes and AMX tiles."""
        has_biases = (
            self.attention_bias and self.intermediate_bias and self.output_bias and self.norm_bias
        )
        sees_all = self.rotary_base is None and self.window is None and not self.alibi
        has_its_norms = self.attention_norm and not (self.query_key_norm or self.adds_input_twice)
        return has_biases and sees_all and has_its_norms and not (self.gated or self.norm_first)


class LayerSteps(Protocol[T]):
    """The operations of a layer that an executor implements.

    The arguments ``norm`` and ``linear`` are names of parts in ``LayerWeights``.
    """

    def normalized(self, x: T, norm: str) -> T:
        """Apply the norm named ``norm``."""
        ...

    def attended(self, x: T) -> T:
        """Compute attention, before its output matrix."""
        ...

    def activated(self, x: T) -> T:
        """Compute the first product of the feed-forward block, its activation and its gate."""
        ...

    def added(self, x: T, y: T, linear: str, norm: str | None) -> T:
        """Compute ``x + linear(y)``, and then the norm if ``norm`` is not None."""
        ...

    def summed(self, x: T, y: T, norm: str) -> T:
        """Compute the norm of ``x + y``."""
        ...


def run_layer(spec: LayerSpec, steps: LayerSteps[T], x: T) -> T:
    """Run a layer, step by step.

    Args:
        spec: specification of the layer.
        steps: the executor's operations.
        x: the hidden states.
    """
    if spec.norm_first:
        # Pre-LN: x + attention(norm(x)), then x + feed-forward(norm(x)); sums are never normalized.
        normed = x
        if spec.attention_norm:
            normed = steps.normalized(x, "attention_norm")
        x = steps.added(x, steps.attended(normed), "attention_output", None)
        normed = steps.normalized(x, "output_norm")
        return steps.added(x, steps.activated(normed), "output", None)
    # Post-LN: norm(x + attention(x)), then norm(x + feed-forward(x)).
    attended = steps.added(x, steps.attended(x), "attention_output", "attention_norm")
    if spec.adds_input_twice:
        attended = steps.summed(x, attended, "second_attention_norm")
    x = attended
    return steps.added(x, steps.activated(x), "output", "output_norm")


class LayerWeights(nn.Module):
    """The weights of a layer: self-attention and feed-forward block with residual sums.

    Args:
        spec: specification of the layer.
    """

    def __init__(self, spec: LayerSpec) -> None:
        super().__init__()
        width = spec.width
        self.spec = spec
        self.attention_dropout = spec.attention_dropout_rate
        self.activation = ACTIVATIONS[spec.activation].function
        self.query, self.key, self.value = (
            nn.Linear(width, width, bias=spec.attention_bias) for _ in range(3)
        )
        self.attention_output = nn.Linear(width, width, bias=spec.attention_bias)

        def norm() -> nn.LayerNorm:
            return nn.LayerNorm(width, spec.norm_eps, bias=spec.norm_bias)

        self.attention_norm = norm() if spec.attention_norm else None
        self.query_norm = norm() if spec.query_key_norm else None
        self.key_norm = norm() if spec.query_key_norm else None
        self.second_attention_norm = norm() if spec.adds_input_twice else None
        # With a gate the first product has two halves: the activated one, and its factors.
        first_width = (1 + spec.gated) * spec.inner
        self.intermediate = nn.Linear(width, first_width, bias=spec.intermediate_bias)
        self.output = nn.Linear(spec.inner, width, bias=spec.output_bias)
        self.output_norm = norm()

    def before_attention(self, x: Float[Tensor, "t d"]) -> Float[Tensor, "t d"]:
        """Return the states from which queries, keys and values are computed."""
        if not self.spec.norm_first or self.attention_norm is None:
            return x
        normed: Tensor = self.attention_norm(x)
        return normed

    def queries(self, x: Float[Tensor, "t d"]) -> Float[Tensor, "t d"]:
        """Compute the queries of all heads, normalized if the layer does that."""
        return _normalized(self.query(x), self.query_norm)

    def keys(self, x: Float[Tensor, "t d"]) -> Float[Tensor, "t d"]:
        """Compute the keys of all heads, normalized if the layer does that."""
        return _normalized(self.key(x), self.key_norm)

    def qkv(self, x: Float[Tensor, "t d"]) -> Float[Tensor, "t 3*d"]:
        """Compute queries, keys and values side by side, not normalized yet."""
        # One product of (t, 3 d) reads the states once, in place of three times.
        return F.linear(x, *self.joint_projection())

    def joint_projection(self) -> tuple[Float[Tensor, "3*d d"], Float[Tensor, " 3*d"] | None]:
        """Stack weight and bias of query, key and value: one product in place of three."""
        # Joined anew in each pass: the parameters stay separate, as families store them.
        parts = (self.query, self.key, self.value)
        weight = torch.cat([part.weight for part in parts])
        if not self.spec.attention_bias:
            return weight, None
        return weight, torch.cat([part.bias for part in parts])

    def dropout_rates(self) -> tuple[float, float]:
        """Return the current dropout of hidden states and attention: zero when not training."""
        if not self.training:
            return 0.0, 0.0
        return self.spec.dropout_rate, self.attention_dropout

    def uses_flash(self) -> bool:
        """Return whether attention runs as FlashAttention now."""
        # torch's FlashAttention is built without ALiBi.
        if self.spec.alibi:
            return False
        weight = self.query.weight
        kind = weight.device.type
        # FlashAttention takes only 16-bit types; under autocast the type is not the weights' type.
        dtype = weight.dtype
        if torch.is_autocast_enabled(kind):
            dtype = torch.get_autocast_dtype(kind)
        return flash_available(weight.device, dtype, self.spec.head_width)


def _normalized(x: Float[Tensor, "t d"], norm: nn.LayerNorm | None) -> Float[Tensor, "t d"]:
    if norm is None:
        return x
    # Autocast computes norms in float32: convert them back to the type of the products.
    normed: Tensor = norm(x).to(x.dtype)
    return normed
