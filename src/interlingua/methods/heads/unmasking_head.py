"""The head that predicts masked tokens from their states and a sentence vector, MEXMA.

It is used only in training. The sentence vector is that of the translation. This vector helps the
head only if it has the meaning of the masked sentence, so training brings the vectors of
translations together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float, Int, Int64
from torch import Tensor, nn

from interlingua.batches.sentences import Tails, chained
from interlingua.config import AtLeast, CheckedSettings
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.encoder.modeling.layer import Layer, layout_for
from interlingua.errors import ConfigError
from interlingua.runtime.devices import on_device


@dataclass(frozen=True, kw_only=True, slots=True)
class UnmaskingHeadConfig(CheckedSettings):
    """Shape of the unmasking head; the defaults are MEXMA's, for both base and large encoders."""

    layers: Annotated[int, AtLeast(1)] = 6
    """Transformer layers."""
    heads: Annotated[int, AtLeast(1)] = 8
    """Attention heads of each; must divide the encoder's width."""
    intermediate_size: Annotated[int, AtLeast(1)] = 3072
    """Width of their feed-forward blocks."""
    dropout: Annotated[float, AtLeast(0, below=1)] = 0.1
    """Probability of zeroing an activation."""


class Arrangement(NamedTuple):
    """The order of sentence vectors and token states: lists of indices on the host."""

    kept: Int64[Tensor, " k"] | None
    """Indices of the states that are kept, if a vector replaces the first state of its sentence."""
    order: Int64[Tensor, " n"]
    """Order of [S; H]: each vector in front of its sentence's states."""
    cu_seqlens: Int[Tensor, " b+1"]
    """Boundaries of the sentences in this order."""
    tokens: Int64[Tensor, " t"] | None
    """Indices of the tokens' states in this order, if a vector replaces none of them."""


class UnmaskingHead(nn.Module):
    """Transformer layers over a sentence vector and token states, MEXMA (Janeiro et al. 2024).

    Their input is [S; H], the sentence vector S before the token states H. The head has its own
    post-LN layers with torch's initial weights. It has no position embeddings, because the
    encoder's states contain their positions. Words are predicted by the inner product with the
    encoder's word embeddings, plus the head's bias.

    Args:
        config: layers, heads and so on.
        encoder: gives the states, and the vocabulary to predict. If the vocabulary starts sentences
            with a special token, S takes the place of this token's state; otherwise S is put before
            the state of the first word.
        attention_dropout: probability of zeroing an attention weight.

    Raises:
        ConfigError: the width can't be split over the heads.
    """

    def __init__(
        self, config: UnmaskingHeadConfig, encoder: Encoder, attention_dropout: float = 0.0
    ) -> None:
        super().__init__()
        encoder.require_equal_widths()
        dim = encoder.dim
        vocab_size = encoder.backbone.config.vocab_size
        if dim % config.heads:
            raise ConfigError(
                f"head: the encoder's width {dim} is not divisible by {config.heads} heads; use"
                " a divisor"
            )
        shape = BackboneConfig(
            vocab_size=vocab_size,
            hidden_size=dim,
            num_attention_heads=config.heads,
            intermediate_size=config.intermediate_size,
            hidden_dropout_prob=config.dropout,
            attention_probs_dropout_prob=attention_dropout,
        )
        self.replaces_first = encoder.vocabulary.opening_tokens > 0
        self.layers = nn.ModuleList(Layer(shape.layer_spec()) for _ in range(config.layers))
        # Initialized like the bias of torch's Linear.
        bound = dim**-0.5
        self.bias = nn.Parameter(torch.empty(vocab_size).uniform_(-bound, bound))

    def arranged(self, cu_seqlens: Int[Tensor, " b+1"]) -> Arrangement:
        """Return how ``forward`` joins the vectors and token states of packed sentences.

        Args:
            cu_seqlens: where each sentence starts, and the total at the end; best on the host.
        """
        one_each = torch.arange(len(cu_seqlens), device=cu_seqlens.device, dtype=cu_seqlens.dtype)
        if self.replaces_first:
            # S replaces the first token's state.
            behind = Tails.of(cu_seqlens, skip=1)
            order, boundaries = chained(one_each, behind.cu_seqlens)
            return Arrangement(behind.kept, order, boundaries, None)
        order, boundaries = chained(one_each, cu_seqlens)
        return Arrangement(None, order, boundaries, Tails.of(boundaries, skip=1).kept)

    def forward(
        self,
        states: Float[Tensor, "t d"],
        arrangement: Arrangement,
        vectors: Float[Tensor, "b d"],
    ) -> Float[Tensor, "t d"]:
        """Compute the states whose products with word embeddings, plus the bias, are the logits.

        Args:
            states: of the masked sentences' tokens, packed.
            arrangement: of these sentences, see ``arranged``.
            vectors: the sentence vector that the head is conditioned on.
        """
        device = states.device
        if arrangement.kept is not None:
            states = states.index_select(0, on_device(arrangement.kept, device))
        order = on_device(arrangement.order, device)
        x = torch.cat([vectors.to(states.dtype), states]).index_select(0, order)
        layout = layout_for(self.layers, arrangement.cu_seqlens, device)
        x = layout.arrange(x)
        for layer in self.layers:
            x = layer(x, layout)
        x = layout.restore(x)
        # One state for each input token: the state of S replaces that of the first token, or is
        # removed again.
        if arrangement.tokens is None:
            return x
        return x.index_select(0, on_device(arrangement.tokens, device))
