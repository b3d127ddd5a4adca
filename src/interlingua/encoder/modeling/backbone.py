"""A transformer encoder over packed tokens: one (T, D) tensor throughout, no padding.

Its shape is a ``BackboneConfig``; ``families.py`` reads those of BERT, XLM-R, ModernBERT and
others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from interlingua.config import CheckedSettings
from interlingua.config.registry import check_choice, did_you_mean
from interlingua.encoder.modeling.attention import Layout
from interlingua.encoder.modeling.dropout import dropout
from interlingua.encoder.modeling.layer import Layer, layout_for
from interlingua.encoder.modeling.layer_weights import ACTIVATIONS, LayerSpec
from interlingua.errors import ConfigError
from interlingua.runtime.devices import on_device
from interlingua.runtime.fusion import switch
from interlingua.vocabulary.model_files import (
    DropoutRate,
    HiddenSize,
    IntermediateSize,
    NormEps,
    NumHeads,
    NumLayers,
    NumPositions,
    NumTypes,
    TokenId,
    VocabularySize,
)

ModelType = Literal[
    "bert",
    "roberta",
    "xlm-roberta",
    "electra",
    "distilbert",
    "modernbert",
    "nomic_bert",
    "gte",
    "jina_bert",
    "jina_bert_qk_norm",
    "alibi_bert",
    "static",
]
# The shape of EMS (Mao et al. 2023) and two smaller ones.
PRESETS: dict[str, dict[str, Any]] = {
    "ems-base": {
        "hidden_size": 1024,
        "num_hidden_layers": 6,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    },
    "ems-small": {
        "hidden_size": 384,
        "num_hidden_layers": 4,
        "num_attention_heads": 6,
        "intermediate_size": 1536,
    },
    "ems-tiny": {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
    },
}
EMS_MAX_TOKENS = 120


@dataclass(frozen=True, kw_only=True, slots=True)
class BackboneConfig(CheckedSettings):
    """The shape of a backbone, under the names that Hugging Face's ``config.json`` uses."""

    vocab_size: VocabularySize
    """Rows of the word-embedding table."""
    hidden_size: HiddenSize = 384
    """Width D of the hidden states."""
    num_hidden_layers: NumLayers = 4
    """Transformer layers, each attention then feed-forward."""
    num_attention_heads: NumHeads = 6
    """Heads per layer; must divide ``hidden_size``."""
    intermediate_size: IntermediateSize = 1536
    """Width of the feed-forward block."""
    hidden_act: str = "gelu"
    """gelu, relu, silu (= swish), tanh, or gelu by its tanh formula: gelu_new (=
    gelu_pytorch_tanh)."""
    hidden_dropout_prob: DropoutRate = 0.1
    """Probability of zeroing an activation before each residual sum, and after the embeddings."""
    attention_probs_dropout_prob: DropoutRate = 0.1
    """Probability of zeroing an attention weight."""
    max_position_embeddings: NumPositions = 512
    """Rows of the position table; RoBERTa-shaped models do not use the first ``pad_token_id + 1``
    of them. Without such a table: the longest sentence, in tokens."""
    type_vocab_size: NumTypes = 0
    """Rows of the token-type table, of which row 0 is added to every token; 0 = no such table."""
    layer_norm_eps: NormEps = 1e-12
    """Added to the variance in every LayerNorm."""
    pad_token_id: TokenId = 0
    """Id of the padding token; sets the first of RoBERTa's positions."""
    model_type: ModelType = "bert"
    """Family that it is saved as, which also sets the first position; static: no layers, see
    ``encoder/static.py``."""
    positions: Literal["learned", "rotary", "alibi"] = "learned"
    """learned: a table of vectors is added to the embeddings; rotary: queries and keys are turned
    by their position; alibi: scores fall with the distance."""
    rotary_base: float = 10_000.0
    """Base of the angles of rotary positions."""
    local_layers: tuple[int, ...] = ()
    """Numbers, from 0, of the layers in which a token sees a window of its sentence."""
    local_window: int = 64
    """Neighbors on either side that a token sees in these layers."""
    local_rotary_base: float = 10_000.0
    """Base of the angles in these layers."""
    norm_first: bool = False
    """True if layers normalize the inputs of their blocks, and the last layer's states are
    normalized once more (pre-LN); otherwise layers normalize the sums (post-LN)."""
    gated: bool = False
    """Feed-forward blocks have a gate (GeGLU with gelu, SwiGLU with silu)."""
    query_key_norm: bool = False
    """True if queries and keys are normalized, all heads of a token together."""
    adds_input_twice: bool = False
    """True if a layer's input is added twice to its attention's output, with a norm each time."""
    norm_bias: bool = True
    """True if norms add a vector."""
    attention_bias: bool = True
    """True if the products of attention add a vector."""
    intermediate_bias: bool = True
    """True if the first product of a feed-forward block adds a vector."""
    output_bias: bool = True
    """True if the second product of a feed-forward block adds a vector."""

    @classmethod
    def preset(cls, name: str, *, vocab_size: int, pad_token_id: int = 0) -> BackboneConfig:
        """Return a shape of ``PRESETS``: post-LN, SiLU, 120 learned positions, no token types.

        Raises:
            ConfigError: there is no such preset.
        """
        if name not in PRESETS:
            raise ConfigError(f"unknown preset {name!r}{did_you_mean(name, PRESETS)}")
        shape: dict[str, Any] = {
            "vocab_size": vocab_size,
            "pad_token_id": pad_token_id,
            "hidden_act": "silu",
            "max_position_embeddings": EMS_MAX_TOKENS,
        }
        return cls(**shape, **PRESETS[name])

    def __post_init__(self) -> None:
        # The types of the fields limit each size separately, so divisors are positive.
        if self.num_hidden_layers and not self.intermediate_size:
            raise ConfigError("intermediate_size: expected a whole number of at least 1, found 0")
        if self.pad_token_id >= self.vocab_size:
            raise ConfigError(
                f"pad_token_id: expected an id of the vocabulary of {self.vocab_size} entries,"
                f" found {self.pad_token_id}"
            )
        if self.max_tokens < 1:
            raise ConfigError(
                f"max_position_embeddings: expected more than the {self.first_position} reserved"
                f" positions, found {self.max_position_embeddings}"
            )
        if self.hidden_size % self.num_attention_heads:
            raise ConfigError(
                f"hidden_size {self.hidden_size} is not divisible by {self.num_attention_heads}"
                " attention heads; use a multiple"
            )
        check_choice("hidden_act", self.hidden_act, ACTIVATIONS)
        if self.positions == "rotary" and self.hidden_size // self.num_attention_heads % 2:
            raise ConfigError(
                "rotary positions require heads of an even width, found"
                f" {self.hidden_size // self.num_attention_heads}; change hidden_size or"
                " num_attention_heads"
            )

    @property
    def weight_bytes(self) -> int:
        """Bytes of its matrices in float32."""
        width = self.hidden_size
        rows = self.vocab_size + self.type_vocab_size
        if self.positions == "learned":
            rows += self.max_position_embeddings
        # In rows of the width: query, key, value and output of attention, then the feed-forward
        # block's first product, its gate where there is one, and its second product.
        layer_rows = 4 * width + (2 + self.gated) * self.intermediate_size
        return 4 * width * (rows + self.num_hidden_layers * layer_rows)

    @property
    def first_position(self) -> int:
        """Index of the position row that a sentence's first token gets."""
        # As fairseq counted: padding has the row of its id, and text starts after it.
        if self.model_type in ("roberta", "xlm-roberta"):
            return self.pad_token_id + 1
        return 0

    @property
    def max_tokens(self) -> int:
        """Longest sentence, in tokens, that has positions."""
        return self.max_position_embeddings - self.first_position

    @property
    def layer_specs(self) -> list[LayerSpec]:
        """Specification of each of its layers."""
        return [self.layer_spec(number) for number in range(self.num_hidden_layers)]

    def layer_spec(self, number: int = 0) -> LayerSpec:
        """Return the specification of a layer.

        Args:
            number: of the layer, from 0.
        """
        is_local = number in self.local_layers
        window: int | None = None
        rotary_base: float | None = None
        if is_local:
            window = self.local_window
        if self.positions == "rotary":
            rotary_base = self.local_rotary_base if is_local else self.rotary_base
        return LayerSpec(
            width=self.hidden_size,
            heads=self.num_attention_heads,
            inner=self.intermediate_size,
            activation=self.hidden_act,
            gated=self.gated,
            norm_first=self.norm_first,
            # The first layer's input has just been normalized, with the embeddings.
            attention_norm=not (self.norm_first and number == 0),
            norm_bias=self.norm_bias,
            norm_eps=self.layer_norm_eps,
            query_key_norm=self.query_key_norm,
            adds_input_twice=self.adds_input_twice,
            attention_bias=self.attention_bias,
            intermediate_bias=self.intermediate_bias,
            output_bias=self.output_bias,
            rotary_base=rotary_base,
            alibi=self.positions == "alibi",
            window=window,
            dropout_rate=self.hidden_dropout_prob,
            attention_dropout_rate=self.attention_probs_dropout_prob,
        )


class Backbone(nn.Module):
    """Embeddings, LayerNorm, dropout, the layers, and with pre-LN a last norm, over packed tokens.

    Args:
        config: the shape.
    """

    def __init__(self, config: BackboneConfig) -> None:
        super().__init__()
        self.config = config
        width = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, width)
        self.position_embeddings: nn.Embedding | None = None
        if config.positions == "learned":
            self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings: nn.Embedding | None = None
        if config.type_vocab_size:
            self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.embedding_norm = nn.LayerNorm(width, config.layer_norm_eps, bias=config.norm_bias)
        self.layers = nn.ModuleList(map(Layer, config.layer_specs))
        self.final_norm = final_norm(config)

    def forward(
        self,
        input_ids: Int[Tensor, " t"],
        cu_seqlens: Int[Tensor, " b+1"],
        *,
        word_embeddings: Float[Tensor, "t d"] | None = None,
        positions: Int[Tensor, " t"] | None = None,
        num_layers: int | None = None,
    ) -> Float[Tensor, "t d"]:
        """Compute the hidden states of the last layer, in the order of the tokens.

        Args:
            input_ids: the sentences' ids one after another; they and ``cu_seqlens`` should be on
                the host, see ``devices.py``.
            cu_seqlens: where each sentence starts, and the total at the end.
            word_embeddings: looked-up rows to use instead of the table's (gradients with respect to
                inputs).
            positions: position of each token, from 0, if it differs from its place in the sentence.
            num_layers: stop after this number of layers, before the last norm; default: all.
        """
        device = self.word_embeddings.weight.device
        layout = layout_for(self.layers, cu_seqlens, device)
        if positions is not None:
            layout = layout.with_positions(layout.arrange(on_device(positions, device)))
        x = self.embed(input_ids, layout, word_embeddings)
        for layer in self.layers[:num_layers]:
            x = layer(x, layout)
        # The last norm was not trained on the output of an inner layer.
        if self.final_norm is not None and num_layers in (None, len(self.layers)):
            x = self.final_norm(x)
        return layout.restore(x)

    def set_attention_dropout(self, rate: float) -> None:
        """Set the attention dropout for training.

        ``config``, which is saved, keeps the model's own rate.

        Raises:
            ConfigError: it is not a probability below 1.
        """
        if not 0 <= rate < 1:
            raise ConfigError(
                f"attention dropout: expected a number from 0 to below 1, found {rate}"
            )
        for layer in self.layers:
            layer.attention_dropout = rate  # type: ignore[assignment]

    def embed(
        self,
        input_ids: Int[Tensor, " t"],
        layout: Layout,
        word_embeddings: Float[Tensor, "t d"] | None = None,
        positions: Int[Tensor, " t"] | None = None,
    ) -> Float[Tensor, "t d"]:
        """Compute the normalized sum of the embeddings, in the layout's order."""
        device = layout.positions.device
        if word_embeddings is None:
            # Ids are put in order before they are looked up: they are smaller than their vectors.
            x = self.word_embeddings(layout.arrange(on_device(input_ids, device)))
        else:
            x = layout.arrange(word_embeddings)
        if positions is None:
            positions = layout.positions
        else:
            positions = layout.arrange(on_device(positions, device))
        x = self.embedding_norm(self._with_positions(x, positions))
        kind = x.device.type
        # Autocast leaves norms in float32, and so every residual sum would be promoted again. On a
        # GPU `EagerSteps` keeps the sums in float32, see `fused_by_compiler.py`.
        if torch.is_autocast_enabled(kind) and (kind == "cpu" or switch.is_on):
            x = x.to(torch.get_autocast_dtype(kind))
        rate = self.config.hidden_dropout_prob if self.training else 0.0
        return dropout(x, rate)

    def positional(self, positions: Int[Tensor, " t"]) -> Float[Tensor, "t d"] | None:
        """Return the vectors of positions, counted from 0; None if positions are not learned."""
        if self.position_embeddings is None:
            return None
        return F.embedding(positions + self.config.first_position, self.position_embeddings.weight)

    def position_table(self) -> Float[Tensor, "p d"]:
        """Return the rows added to word embeddings: one per position, with the token type.

        There is only one row if positions are not learned.
        """
        types = self.token_type_embeddings
        positions = self.position_embeddings
        if positions is None:
            if types is None:
                return self.embedding_norm.weight.new_zeros(1, self.config.hidden_size)
            return types.weight[:1]
        if types is None:
            return positions.weight
        # Every token is of type 0, since a text is never a pair here.
        return positions.weight + types.weight[0]

    def _with_positions(
        self, x: Float[Tensor, "t d"], positions: Int[Tensor, " t"]
    ) -> Float[Tensor, "t d"]:
        """Add the embeddings of position and token type to word embeddings."""
        if self.position_embeddings is not None:
            return x + F.embedding(positions + self.config.first_position, self.position_table())
        if self.token_type_embeddings is not None:
            return x + self.token_type_embeddings.weight[0]
        return x

    def initialize(self, scheme: Literal["torch", "bert"]) -> None:
        """Draw fresh weights from torch's global generator.

        Args:
            scheme: "torch" = torch's defaults, embeddings N(0, 1), as EMS; "bert" = N(0, 0.02),
                biases 0.
        """
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding | nn.LayerNorm):
                module.reset_parameters()
            if scheme == "bert" and isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
                if isinstance(module, nn.Linear) and module.bias is not None:
                    nn.init.zeros_(module.bias)
        # Zero, as in transformers; packed batches have no padding that would use this row.
        with torch.no_grad():
            self.word_embeddings.weight[self.config.pad_token_id].zero_()


def final_norm(config: BackboneConfig) -> nn.LayerNorm | None:
    """Return the norm after the last layer; None if layers normalize the sums (post-LN)."""
    if not config.norm_first:
        return None
    return nn.LayerNorm(config.hidden_size, config.layer_norm_eps, bias=config.norm_bias)
