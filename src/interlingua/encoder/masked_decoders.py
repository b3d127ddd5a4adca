"""RetroMAE's decoders: a sentence's tokens from its vector, in training only.

The encoder reads a sentence with few masked tokens and gives one vector, h. A decoder of one or few
layers has to reconstruct the sentence from h and little else. In the basic form it is also shown
the sentence with most tokens masked. In enhanced decoding it has to predict every token, and each
token is shown h and a random part of the others, by an attention mask of its own. The decoder is
weak on purpose: what it can't guess from the context must be in h.
"""

from __future__ import annotations

import dataclasses

import torch
from jaxtyping import Bool, Float, Int, Int64
from torch import Tensor, nn

from interlingua.batches.masking import IGNORED, random_context
from interlingua.batches.sentences import Tails, chained
from interlingua.batches.tokens import Place, TokenBatch
from interlingua.devices import on_device
from interlingua.encoder.attention import Layout
from interlingua.encoder.backbone import Backbone, final_norm
from interlingua.encoder.visible import VisibleLayer


class MaskedDecoder(nn.Module):
    """Few layers over a sentence's vector and its tokens: RetroMAE (Xiao et al. 2022).

    Their input is [h; e_1 + p_1; ...; e_N + p_N]. Token and position embeddings are the encoder's,
    given in each call. Where sentences begin with a token such as ``[CLS]``, h stands in its place,
    otherwise before the first.

    Args:
        backbone: gives the shape of the layers.
        num_layers: how many.
        skip: first tokens of a sentence that h stands for (``Vocabulary.opening_tokens``).
    """

    def __init__(self, backbone: Backbone, num_layers: int, *, skip: int) -> None:
        super().__init__()
        # Every layer sees whole sentences, also where some of the encoder's see a window.
        config = dataclasses.replace(backbone.config, num_hidden_layers=num_layers, local_layers=())
        self.skip = skip
        self.layers = nn.ModuleList(map(VisibleLayer, config.layer_specs))
        self.final_norm = final_norm(config)

    def forward(
        self,
        backbone: Backbone,
        sentences: TokenBatch,
        labels: Int64[Tensor, " t"],
        h: Float[Tensor, "b d"],
    ) -> tuple[Float[Tensor, "n d"], Int64[Tensor, " n"]]:
        """States of all tokens, each shown all others: Eq. (2).

        What must not be seen is masked in ``sentences`` already.

        Args:
            backbone: the encoder's.
            sentences: what is shown.
            labels: the tokens to be predicted, ``IGNORED`` elsewhere.
            h: the sentences' vectors.

        Returns:
            the states, and the labels in their order.
        """
        tails, order, cu_seqlens = self._chained(sentences)
        layout = Layout.of(cu_seqlens, device=h.device)
        # Vectors, then tokens: `order` puts each vector in front of its sentence's tokens.
        joined = torch.cat([h, self._embedded(backbone, sentences, tails)])
        x = layout.arrange(joined[on_device(order, h.device)])
        for layer in self.layers:
            x = layer(x, layout)
        return layout.restore(self._normed(x)), self._labels(labels, tails, h)[order]

    def enhanced(
        self,
        backbone: Backbone,
        sentences: TokenBatch,
        labels: Int64[Tensor, " t"],
        h: Float[Tensor, "b d"],
        place: Place,
        *,
        hidden: float,
    ) -> tuple[Float[Tensor, "n d"], Int64[Tensor, " n"]]:
        r"""Enhanced decoding, Eq. (4)-(7): every token is predicted from a context of its own.

        Each token is shown the sentence's vector besides.

        .. math:: H_1 = [h + p_0, \dots, h + p_N], \quad H_2 = [h, e_1 + p_1, \dots, e_N + p_N],
        \quad
                  A = softmax(Q K' / \sqrt d + M) V, \quad Q = H_1 W_Q, K = H_2 W_K, V = H_2 W_V

        M shows token i the vector and each other token with probability 1 - ``hidden``, never
        itself.

        Args:
            backbone: the encoder's.
            sentences: the whole sentences.
            labels: the tokens to be predicted, ``IGNORED`` elsewhere.
            h: the sentences' vectors.
            place: what the draws depend on.
            hidden: share of the other tokens that a token is not shown.
        """
        tails, order, cu_seqlens = self._chained(sentences)
        layout = Layout.of(cu_seqlens, device=h.device)
        # h + p_i for each token i; None where positions come in the layer (rotary, ALiBi).
        queries = h[on_device(tails.rows, h.device)]
        positions = backbone.positional(on_device(tails.positions, h.device))
        if positions is not None:
            queries = queries + positions
        order_on_device = on_device(order, h.device)
        h_1 = layout.arrange(torch.cat([h, queries])[order_on_device])
        tokens = self._embedded(backbone, sentences, tails)
        h_2 = layout.arrange(torch.cat([h, tokens])[order_on_device])

        def visible(rows: Int64[Tensor, " n"], length: int) -> Bool[Tensor, "n l l"]:
            """M: a random part of the sentence, never the token itself, and always h."""
            shown = random_context(place, rows, length, hidden=hidden)
            shown &= ~torch.eye(length, dtype=torch.bool, device=shown.device)
            # In the row of h itself too, which has no label.
            shown[:, :, 0] = True
            return shown

        # Enhanced decoding has a single layer.
        states = self.layers[0](h_1, layout, context=h_2, visible=visible)
        return layout.restore(self._normed(states)), self._labels(labels, tails, h)[order]

    def _normed(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        if self.final_norm is None:
            return x
        normed: Tensor = self.final_norm(x)
        return normed

    def _chained(
        self, sentences: TokenBatch
    ) -> tuple[Tails, Int64[Tensor, " n"], Int[Tensor, " b+1"]]:
        """The tokens behind the first ones, and how each sentence's vector and they are joined."""
        tails = Tails.of(sentences.cu_seqlens, self.skip)
        # One vector for each sentence: boundaries 0, 1, 2 ...
        vectors = torch.arange(sentences.batch_size + 1, device=tails.rows.device)
        order, cu_seqlens = chained(vectors, tails.cu_seqlens)
        return tails, order, cu_seqlens

    def _embedded(
        self, backbone: Backbone, sentences: TokenBatch, tails: Tails
    ) -> Float[Tensor, "n d"]:
        # The positions are those of the whole sentences, from which `skip` tokens are missing.
        layout = Layout.of(tails.cu_seqlens, device=backbone.word_embeddings.weight.device)
        ids = sentences.input_ids[tails.kept]
        return layout.restore(backbone.embed(ids, layout, positions=tails.positions))

    def _labels(
        self, labels: Int64[Tensor, " t"], tails: Tails, h: Float[Tensor, "b d"]
    ) -> Int64[Tensor, " n"]:
        """The labels of what is joined: none for the vectors, which are not tokens."""
        return torch.cat([labels.new_full((len(h),), IGNORED), labels[tails.kept]])
