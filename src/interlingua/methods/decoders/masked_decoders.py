"""RetroMAE's decoders, which predict a sentence's tokens from its vector, in training only.

The encoder reads a sentence with few masked tokens and gives one vector, h. A decoder of one layer
or a few layers has to reconstruct the sentence from h and little else. In the basic form it is also
shown the sentence with most tokens masked. In enhanced decoding it has to predict every token: each
token has its own attention mask, which shows it h and a random part of the other tokens. The
decoder is weak on purpose: what it can't guess from the context must be in h.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from interlingua.batches.masking import IGNORED, LabeledTokens, random_context
from interlingua.batches.packing import LengthGroups, length_groups
from interlingua.batches.sentences import Tails, chained
from interlingua.batches.tokens import BatchPosition, TokenBatch
from interlingua.encoder.modeling.attention import Layout
from interlingua.encoder.modeling.backbone import Backbone, final_norm
from interlingua.methods.decoders.visible import VisibleLayer
from interlingua.runtime.devices import gather_rows, on_device


class DecoderArrangement(NamedTuple):
    """The tokens that a decoder sees besides sentence vectors, and those that it predicts.

    All of it is on the host.
    """

    input_ids: Int64[Tensor, " t"]
    """The tokens except those that a vector replaces."""
    rows: Int64[Tensor, " t"]
    """Number of the sentence that each of these belongs to."""
    positions: Int64[Tensor, " t"]
    """Their places in the whole sentences."""
    tokens_by_length: LengthGroups
    """Groups of sentences of equal length, without the tokens that a vector replaces."""
    order: Int64[Tensor, " n"]
    """Order of [vectors; tokens]: each vector in front of its sentence's tokens."""
    by_length: LengthGroups
    """Groups of sentences of equal length, in this order."""
    labeled: LabeledTokens
    """The tokens to predict, in this order."""


class MaskedDecoder(nn.Module):
    """A few layers over a sentence's vector and its tokens: RetroMAE (Xiao et al. 2022).

    Their input is [h; e_1 + p_1; ...; e_N + p_N]. Each call receives the encoder's backbone,
    which has the token and position embeddings. If sentences start with a token such as ``[CLS]``,
    h replaces it. Otherwise h comes before the first token.

    Args:
        backbone: provides the shape of the layers.
        num_layers: number of layers.
        skip: first tokens of a sentence that h replaces (``Vocabulary.opening_tokens``).
    """

    def __init__(self, backbone: Backbone, num_layers: int, *, skip: int) -> None:
        super().__init__()
        # Every layer sees whole sentences, even if some layers of the encoder see only a window.
        config = dataclasses.replace(backbone.config, num_hidden_layers=num_layers, local_layers=())
        self.skip = skip
        self.layers = nn.ModuleList(map(VisibleLayer, config.layer_specs))
        self.final_norm = final_norm(config)

    def arranged(self, sentences: TokenBatch, labels: Int64[Tensor, " t"]) -> DecoderArrangement:
        """Arrange the vectors and tokens of sentences for the decoder.

        Args:
            sentences: with the visible tokens.
            labels: the tokens to be predicted, ``IGNORED`` elsewhere.
        """
        tails = Tails.of(sentences.cu_seqlens, self.skip)
        # One vector for each sentence: boundaries 0, 1, 2 ...
        vectors = torch.arange(sentences.batch_size + 1).to(tails.cu_seqlens)
        order, cu_seqlens = chained(vectors, tails.cu_seqlens)
        # No labels for the vectors, which are not tokens.
        none = labels.new_full((sentences.batch_size,), IGNORED)
        return DecoderArrangement(
            input_ids=sentences.input_ids[tails.kept],
            rows=tails.rows,
            positions=tails.positions,
            tokens_by_length=length_groups(tails.cu_seqlens),
            order=order,
            by_length=length_groups(cu_seqlens),
            labeled=LabeledTokens.of(torch.cat([none, labels[tails.kept]])[order]),
        )

    def forward(
        self, backbone: Backbone, arrangement: DecoderArrangement, h: Float[Tensor, "b d"]
    ) -> Float[Tensor, "n d"]:
        """Compute the states of all vectors and tokens, Eq. (2).

        Each position attends to all others of its sentence. The tokens to hide are already
        masked in the sentences.

        Args:
            backbone: the encoder's.
            arrangement: of the sentences, see ``arranged``.
            h: their vectors.
        """
        layout = Layout.by_groups(arrangement.by_length, h.device)
        # Vectors, then tokens: `order` puts each vector in front of its sentence's tokens.
        joined = torch.cat([h, self._embedded(backbone, arrangement)])
        x = layout.arrange(gather_rows(joined, arrangement.order))
        for layer in self.layers:
            x = layer(x, layout)
        return layout.restore(self._normed(x))

    def enhanced(
        self,
        backbone: Backbone,
        arrangement: DecoderArrangement,
        h: Float[Tensor, "b d"],
        place: BatchPosition,
        *,
        hidden: float,
    ) -> Float[Tensor, "n d"]:
        r"""Predict every token from a context of its own: enhanced decoding, Eq. (4)-(7).

        Each token is also shown the sentence's vector.

        .. math:: H_1 = [h + p_0, \dots, h + p_N], \quad H_2 = [h, e_1 + p_1, \dots, e_N + p_N],
        \quad
                  A = softmax(Q K' / \sqrt d + M) V, \quad Q = H_1 W_Q, K = H_2 W_K, V = H_2 W_V

        For token i, M always shows the vector, always hides token i itself, and shows each other
        token with probability 1 - ``hidden``.

        Args:
            backbone: the encoder's.
            arrangement: of the whole sentences, see ``arranged``.
            h: their vectors.
            place: decides the random draws.
            hidden: share of the other tokens to hide from each token.
        """
        layout = Layout.by_groups(arrangement.by_length, h.device)
        # h + p_i for each token i; without p_i if the layers add positions (rotary, ALiBi).
        queries = h[on_device(arrangement.rows, h.device)]
        positions = backbone.positional(on_device(arrangement.positions, h.device))
        if positions is not None:
            queries = queries + positions
        order = on_device(arrangement.order, h.device)
        h_1 = layout.arrange(torch.cat([h, queries]).index_select(0, order))
        tokens = self._embedded(backbone, arrangement)
        h_2 = layout.arrange(torch.cat([h, tokens]).index_select(0, order))

        def visible(rows: Int64[Tensor, " n"], length: int) -> Bool[Tensor, "n l l"]:
            """Draw M: a random part of the sentence, never the token itself, and always h."""
            shown = random_context(place, rows, length, hidden=hidden)
            shown &= ~torch.eye(length, dtype=torch.bool, device=shown.device)
            # h is visible to every row, also to its own, which has no label.
            shown[:, :, 0] = True
            return shown

        # Enhanced decoding has a single layer.
        states = self.layers[0](h_1, layout, context=h_2, visible=visible)
        return layout.restore(self._normed(states))

    def _normed(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        if self.final_norm is None:
            return x
        normed: Tensor = self.final_norm(x)
        return normed

    def _embedded(
        self, backbone: Backbone, arrangement: DecoderArrangement
    ) -> Float[Tensor, "t d"]:
        # Positions are counted in the whole sentences, including the `skip` tokens left out here.
        device = backbone.word_embeddings.weight.device
        layout = Layout.by_groups(arrangement.tokens_by_length, device)
        embedded = backbone.embed(arrangement.input_ids, layout, positions=arrangement.positions)
        return layout.restore(embedded)
