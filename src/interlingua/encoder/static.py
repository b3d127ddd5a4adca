"""Encoders without layers (Model2Vec): a text's vector is the mean of its tokens' vectors.

A token has the same vector in every text, so embedding a text costs no more than looking up its
tokens. Such models have the form of other models, with zero layers, and use the same ``Encoder``;
this module makes them fast.
"""

from __future__ import annotations

import itertools

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int, Int64
from numpy import ndarray
from torch import Tensor, nn
from torch.nn import functional as F

from interlingua.encoder.modeling.backbone import Backbone, BackboneConfig
from interlingua.encoder.post_pooling import PostPooling
from interlingua.runtime.devices import on_device
from interlingua.runtime.progress import Progress

STATIC_MAX_TOKENS = 1_000_000
"""Limit without effect in practice: without positions, texts may have any length."""


class StaticBackbone(Backbone):
    """A table of token vectors; the weight of a token is the length of its vector.

    Args:
        config: of ``static_model_config``; it has no layers.
    """

    def __init__(self, config: BackboneConfig) -> None:
        nn.Module.__init__(self)
        self.config = config
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = None
        self.token_type_embeddings = None
        self.final_norm = None
        self.layers = nn.ModuleList()

    def forward(
        self,
        input_ids: Int[Tensor, " t"],
        cu_seqlens: Int[Tensor, " b+1"],
        *,
        word_embeddings: Float[Tensor, "t d"] | None = None,
        positions: Int[Tensor, " t"] | None = None,
        num_layers: int | None = None,
    ) -> Float[Tensor, "t d"]:
        """Return the tokens' own vectors, regardless of their positions and neighbors."""
        if word_embeddings is not None:
            return word_embeddings
        rows: Tensor = self.word_embeddings(
            on_device(input_ids, self.word_embeddings.weight.device)
        )
        return rows

    def means(
        self,
        input_ids: Int[Tensor, " t"],
        cu_seqlens: Int[Tensor, " b+1"],
        kept: Bool[Tensor, " t"],
    ) -> Float[Tensor, "b d"]:
        """Compute the mean vector of each sentence's kept tokens.

        The tokens' vectors are not stored in between. A sentence without kept tokens has a vector
        of zeros.
        """
        ids, starts = without(input_ids, cu_seqlens, kept)
        weight = self.word_embeddings.weight
        return F.embedding_bag(
            on_device(ids, weight.device), weight, on_device(starts, weight.device), mode="mean"
        )


def static_model_config(vocab_size: int, dim: int, *, pad_token_id: int = 0) -> BackboneConfig:
    """Return the shape of a table, as a transformer's config."""
    return BackboneConfig(
        vocab_size=vocab_size,
        hidden_size=dim,
        num_hidden_layers=0,
        num_attention_heads=1,
        intermediate_size=0,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        max_position_embeddings=STATIC_MAX_TOKENS,
        pad_token_id=pad_token_id,
        model_type="static",
    )


def make_backbone(config: BackboneConfig) -> Backbone:
    """Create a backbone of this shape, with weights that are not initialized."""
    if config.model_type == "static":
        return StaticBackbone(config)
    return Backbone(config)


def without(
    input_ids: Int[Tensor, " t"], cu_seqlens: Int[Tensor, " b+1"], kept: Bool[Tensor, " t"]
) -> tuple[Int64[Tensor, " k"], Int64[Tensor, " b"]]:
    """Return the kept tokens, and the start of each sentence among them."""
    # Number of kept tokens before each token.
    before = F.pad(kept.cumsum(0), (1, 0))
    return input_ids[kept].long(), before[cu_seqlens[:-1].long()]


class StaticRunner:
    """Runner for ``encode`` that embeds windows of tokenized texts by a table.

    Args:
        backbone: the table.
        post_pooling: the layers after the mean.
        counted: by token id, whether a token counts in the mean.
        normalize: scale the vectors to length 1.
        shift: subtracted from every vector before it is scaled; None = nothing.
    """

    def __init__(
        self,
        backbone: StaticBackbone,
        post_pooling: PostPooling,
        counted: Bool[Tensor, " v"],
        *,
        normalize: bool,
        shift: Tensor | None = None,
    ) -> None:
        self.backbone = backbone
        self.post_pooling = post_pooling
        self.counted = counted
        self.normalize = normalize
        self.shift = shift

    def __enter__(self) -> StaticRunner:
        return self

    def __exit__(self, *error: object) -> None:
        """Release nothing, because nothing is held."""

    @torch.inference_mode()
    def __call__(
        self, window: list[list[int]], batch_tokens: int, progress: Progress
    ) -> Float32[ndarray, "n d"]:
        """Return the vectors of a window's texts.

        No token's vector is stored, so ``batch_tokens`` has no effect.
        """
        # Copied directly into arrays of known sizes: reading the lists takes most of the time here.
        lengths = np.fromiter(map(len, window), dtype=np.int64, count=len(window))
        ends = np.concatenate([np.zeros(1, dtype=np.int64), lengths.cumsum()])
        all_ids = itertools.chain.from_iterable(window)
        ids = np.fromiter(all_ids, dtype=np.int64, count=int(ends[-1]))
        tokens = torch.from_numpy(ids)
        means = self.backbone.means(tokens, torch.from_numpy(ends), self.counted[tokens])
        vectors = self.post_pooling(means)
        if self.shift is not None:
            vectors = vectors - self.shift
        if self.normalize:
            vectors = F.normalize(vectors, dim=-1)
        on_host = vectors.float().cpu().numpy()
        progress.advance(len(window))
        return np.asarray(on_host)
