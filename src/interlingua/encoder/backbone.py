"""A BERT-, RoBERTa- or XLM-R-shaped transformer over packed tokens: one (T, D) tensor throughout, no padding."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from interlingua.encoder import fused
from interlingua.encoder.attention import Layout, attend, flash_available
from interlingua.encoder.dropout import dropout
from interlingua.encoder.schema import SIZES, Table
from interlingua.errors import ConfigError
from interlingua.registry import did_you_mean

PRESETS: dict[str, dict[str, Any]] = {  # hidden, layers, heads and feed-forward width of EMS and smaller brothers
    "ems-base": {"hidden_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 16, "intermediate_size": 4096},
    "ems-small": {"hidden_size": 384, "num_hidden_layers": 4, "num_attention_heads": 6, "intermediate_size": 1536},
    "ems-tiny": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64},
}
EMS_MAX_TOKENS = 120
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": functools.partial(F.gelu, approximate="tanh"),
    "gelu_pytorch_tanh": functools.partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
    "swish": F.silu,
    "tanh": torch.tanh,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class BackboneConfig:
    """The shape of a backbone, under the names that Hugging Face's ``config.json`` uses."""

    vocab_size: int
    """Rows of the word-embedding table."""
    hidden_size: int = 384
    """Width D of the hidden states."""
    num_hidden_layers: int = 4
    """Transformer layers, each attention then feed-forward, normalised after the residual sum (post-LN)."""
    num_attention_heads: int = 6
    """Heads per layer; must divide ``hidden_size``."""
    intermediate_size: int = 1536
    """Width of the feed-forward block."""
    hidden_act: str = "gelu"
    """gelu, relu, silu (= swish), tanh, or gelu by its tanh formula: gelu_new (= gelu_pytorch_tanh)."""
    hidden_dropout_prob: float = 0.1
    """Probability of zeroing an activation before each residual sum, and after the embeddings."""
    attention_probs_dropout_prob: float = 0.1
    """Probability of zeroing an attention weight."""
    max_position_embeddings: int = 512
    """Rows of the position table; RoBERTa-shaped models use the first ``pad_token_id + 1`` of them for nothing."""
    type_vocab_size: int = 0
    """Rows of the token-type table, of which row 0 is added to every token; 0 = no such table."""
    layer_norm_eps: float = 1e-12
    """Added to the variance in every LayerNorm."""
    pad_token_id: int = 0
    """Id of the padding token; sets where RoBERTa's positions begin."""
    model_type: Literal["bert", "roberta", "xlm-roberta", "static"] = "bert"
    """Which family it is saved as, and so where positions begin; static: no layers, see ``encoder/static.py``."""

    @classmethod
    def preset(cls, name: str, *, vocab_size: int, pad_token_id: int = 0) -> BackboneConfig:
        """The shape named in ``PRESETS``: post-LN layers with SiLU, 120 learned positions, no token types.

        Raises:
            ConfigError: there is no such preset.
        """
        if name not in PRESETS:
            raise ConfigError(f"no such preset {name!r}{did_you_mean(name, PRESETS)}; there are: {', '.join(PRESETS)}")
        shape: dict[str, Any] = {
            "vocab_size": vocab_size,
            "pad_token_id": pad_token_id,
            "hidden_act": "silu",
            "max_position_embeddings": EMS_MAX_TOKENS,
        }
        return cls(**shape, **PRESETS[name])

    def __post_init__(self) -> None:
        problem = Table(SIZES).problem({name: getattr(self, name) for name in SIZES}, "")
        if problem is not None:
            key, found, expected = problem
            raise ConfigError(f"{key} is {found}, expected {expected}; correct the size")
        if self.num_hidden_layers and not self.intermediate_size:
            raise ConfigError("intermediate_size is 0, expected a whole number from 1 on; correct the size")
        if self.pad_token_id >= self.vocab_size:
            raise ConfigError(
                f"pad_token_id is {self.pad_token_id}, expected one of the {self.vocab_size} ids of the vocabulary;"
                " correct the id"
            )
        if self.max_tokens < 1:
            raise ConfigError(
                f"max_position_embeddings is {self.max_position_embeddings}, expected more than the"
                f" {self.first_position} that are not for tokens; correct the size"
            )
        if self.hidden_size % self.num_attention_heads:
            raise ConfigError(
                f"hidden_size {self.hidden_size} can't be split over {self.num_attention_heads} attention heads;"
                " choose a divisor"
            )
        if self.hidden_act not in ACTIVATIONS:
            raise ConfigError(f"hidden_act {self.hidden_act!r} is unknown; there are: {', '.join(ACTIVATIONS)}")

    @property
    def weight_bytes(self) -> int:
        """What its matrices take in float32."""
        width = self.hidden_size
        tables = self.vocab_size + self.max_position_embeddings + self.type_vocab_size
        layer = 4 * width + 2 * self.intermediate_size
        return 4 * width * (tables + self.num_hidden_layers * layer)

    @property
    def first_position(self) -> int:
        """Index of the position row that a sentence's first token gets."""
        return 0 if self.model_type in ("bert", "static") else self.pad_token_id + 1

    @property
    def max_tokens(self) -> int:
        """Longest sentence, in tokens, that has positions."""
        return self.max_position_embeddings - self.first_position

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> BackboneConfig:
        """Picks the known keys out of a larger mapping such as ``config.json``."""
        return cls(**{field.name: values[field.name] for field in fields(cls) if values.get(field.name) is not None})


class Layer(nn.Module):
    """Self-attention and feed-forward block, each followed by dropout, residual sum and LayerNorm."""

    recomputes = False
    """Keep for the backward pass what the layer was given, and compute its activations a second time there."""

    def __init__(self, config: BackboneConfig) -> None:
        super().__init__()
        width = config.hidden_size
        inner = config.intermediate_size
        eps = config.layer_norm_eps
        self.config = config
        self.attention_dropout = config.attention_probs_dropout_prob
        self.activation = ACTIVATIONS[config.hidden_act]
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.attention_output = nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width, eps)
        self.intermediate = nn.Linear(width, inner)
        self.output = nn.Linear(inner, width)
        self.output_norm = nn.LayerNorm(width, eps)

    def forward(self, x: Float[Tensor, "t d"], layout: Layout) -> Float[Tensor, "t d"]:
        """Transforms the hidden states of all sentences; only the attention looks at where sentences end."""
        if self.recomputes and torch.is_grad_enabled():
            transformed: Tensor = checkpoint(self.transform, x, layout, use_reentrant=False)
            return transformed
        return self.transform(x, layout)

    def transform(self, x: Float[Tensor, "t d"], layout: Layout) -> Float[Tensor, "t d"]:
        """``forward`` with all activations kept for the backward pass."""
        if fused.takes(self, x, layout):
            return fused.transform(self, x, layout)
        attention_rate = self.dropout_rates()[1]
        qkv = F.linear(x, *self.joint_projection())
        attended = attend(qkv, layout, heads=self.config.num_attention_heads, dropout_rate=attention_rate)
        return self.after_attention(x, attended)

    def after_attention(self, x: Float[Tensor, "t d"], attended: Float[Tensor, "t d"]) -> Float[Tensor, "t d"]:
        """All of the layer that comes after what attention has brought together."""
        hidden_rate = self.dropout_rates()[0]
        x = self.attention_norm(x + dropout(self.attention_output(attended), hidden_rate))
        inner = self.activation(self.intermediate(x))
        normalised: Tensor = self.output_norm(x + dropout(self.output(inner), hidden_rate))
        return normalised

    def joint_projection(self) -> tuple[Float[Tensor, "3*d d"], Float[Tensor, " 3*d"]]:
        """Weight and bias of query, key and value stacked: one product in place of three."""
        parts = (self.query, self.key, self.value)
        return torch.cat([part.weight for part in parts]), torch.cat([part.bias for part in parts])

    def dropout_rates(self) -> tuple[float, float]:
        """Hidden and attention dropout now: zero when not training."""
        if not self.training:
            return 0.0, 0.0
        return self.config.hidden_dropout_prob, self.attention_dropout

    def uses_flash(self) -> bool:
        """Whether attention runs as FlashAttention now; its variable-length entry knows no dropout."""
        weight = self.query.weight
        config = self.config
        kind = weight.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
        drops = self.dropout_rates()[1] > 0
        return not drops and flash_available(weight.device, dtype, config.hidden_size // config.num_attention_heads)


def layout_for(layers: nn.ModuleList, cu_seqlens: Int[Tensor, " b+1"]) -> Layout:
    """The order of tokens in which a stack of layers runs fastest now."""
    return Layout.of(cu_seqlens, flash=all(layer.uses_flash() for layer in layers))  # type: ignore[operator]


class Backbone(nn.Module):
    """Word and position embeddings, LayerNorm, dropout and the layers, over packed tokens.

    Args:
        config: the shape.
    """

    def __init__(self, config: BackboneConfig) -> None:
        super().__init__()
        self.config = config
        width = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, width)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width) if config.type_vocab_size else None
        self.embedding_norm = nn.LayerNorm(width, config.layer_norm_eps)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))

    def forward(
        self,
        input_ids: Int[Tensor, " t"],
        cu_seqlens: Int[Tensor, " b+1"],
        *,
        word_embeddings: Float[Tensor, "t d"] | None = None,
        positions: Int[Tensor, " t"] | None = None,
        num_layers: int | None = None,
    ) -> Float[Tensor, "t d"]:
        """Hidden states of the last layer, in the order of the tokens.

        Args:
            input_ids: the sentences' ids one after another.
            cu_seqlens: where each sentence begins, and the total at the end.
            word_embeddings: looked-up rows to use instead of the table's (gradients with respect to inputs).
            positions: place of each token, from 0, where it is not that in its sequence.
            num_layers: stop after so many layers; default: all.
        """
        layout = layout_for(self.layers, cu_seqlens)
        x = self.embed(input_ids, layout, word_embeddings, positions)
        for layer in self.layers[:num_layers]:
            x = layer(x, layout)
        return layout.restore(x)

    def set_attention_dropout(self, rate: float) -> None:
        """Attention dropout from now on, in training; ``config``, and so what is saved, keeps the model's own.

        Raises:
            ConfigError: it is no probability below 1.
        """
        if not 0 <= rate < 1:
            raise ConfigError(f"attention dropout is {rate}; it must be at least 0 and below 1")
        for layer in self.layers:
            layer.attention_dropout = rate  # type: ignore[assignment]

    def embed(
        self,
        input_ids: Int[Tensor, " t"],
        layout: Layout,
        word_embeddings: Float[Tensor, "t d"] | None = None,
        positions: Int[Tensor, " t"] | None = None,
    ) -> Float[Tensor, "t d"]:
        """Sum of the embeddings, normalised, in the layout's order."""
        if word_embeddings is None:
            x = self.word_embeddings(layout.arrange(input_ids))
        else:
            x = layout.arrange(word_embeddings)
        places = layout.positions if positions is None else layout.arrange(positions)
        table = self.position_embeddings.weight
        if self.token_type_embeddings is not None:
            table = table + self.token_type_embeddings.weight[0]
        x = self.embedding_norm(x + F.embedding(places + self.config.first_position, table))
        if x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
            x = x.to(torch.get_autocast_dtype("cpu"))  # else every residual sum would promote to float32 again
        return dropout(x, self.config.hidden_dropout_prob if self.training else 0.0)

    def initialise(self, scheme: Literal["torch", "bert"]) -> None:
        """Draws fresh weights from torch's global generator.

        Args:
            scheme: "torch" = torch's defaults, embeddings N(0, 1), as EMS; "bert" = N(0, 0.02), biases 0.
        """
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding | nn.LayerNorm):
                module.reset_parameters()
            if scheme == "bert" and isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
                if isinstance(module, nn.Linear):
                    nn.init.zeros_(module.bias)
        with torch.no_grad():
            self.word_embeddings.weight[self.config.pad_token_id].zero_()
