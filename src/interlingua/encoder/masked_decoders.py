"""RetroMAE's decoders: a sentence's tokens from its vector, in training only."""

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
    """Few layers over [h; e_1 + p_1.

    ...; e_N + p_N], a sentence's vector and its tokens: RetroMAE (Xiao et al. 2022).

    Token and position embeddings are the encoder's, given in each call. Where sentences begin with
    a token such as ``[CLS]``, h stands in its place, otherwise before the first.

    Args:
        backbone: gives the shape of the layers.
        num_layers: how many.
        skip: first tokens of a sentence that h stands for (``Vocabulary.opening_tokens``).
    """

    def __init__(self, backbone: Backbone, num_layers: int, *, skip: int) -> None:
        super().__init__()
        # every layer sees whole sentences
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
        """States of all tokens, each shown all others: Eq. (2), with what must not be seen hidden
        in ``sentences``.

        Args:
            backbone: the encoder's.
            sentences: what is shown.
            labels: the tokens to be predicted, ``IGNORED`` elsewhere.
            h: the sentences' vectors.

        Returns:
            the states, and the labels in their order.
        """
        tails, order, cu_seqlens = self._places(sentences)
        layout = Layout.of(cu_seqlens, device=h.device)
        x = layout.arrange(
            torch.cat([h, self._embedded(backbone, sentences, tails)])[on_device(order, h.device)]
        )
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
        r"""Enhanced decoding, Eq. (4)-(7): every token is predicted, each from the vector and a
        context of its own.

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
        tails, order, cu_seqlens = self._places(sentences)
        layout = Layout.of(cu_seqlens, device=h.device)
        places = backbone.positional(on_device(tails.positions, h.device))
        queries = h[on_device(tails.rows, h.device)]
        queries = queries if places is None else queries + places  # rotary ones come in the layer
        at = on_device(order, h.device)
        h_1 = layout.arrange(torch.cat([h, queries])[at])
        h_2 = layout.arrange(torch.cat([h, self._embedded(backbone, sentences, tails)])[at])

        def visible(rows: Int64[Tensor, " n"], length: int) -> Bool[Tensor, "n l l"]:
            shown = random_context(place, rows, length, hidden=hidden)
            shown &= ~torch.eye(length, dtype=torch.bool, device=shown.device)
            shown[:, :, 0] = True  # h; its own row too, which tells nothing
            return shown

        states = self.layers[0](h_1, layout, context=h_2, visible=visible)
        return layout.restore(self._normed(states)), self._labels(labels, tails, h)[order]

    def _normed(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        return x if self.final_norm is None else self.final_norm(x)

    def _places(
        self, sentences: TokenBatch
    ) -> tuple[Tails, Int64[Tensor, " n"], Int[Tensor, " b+1"]]:
        tails = Tails.of(sentences.cu_seqlens, self.skip)
        return tails, *chained(
            torch.arange(sentences.batch_size + 1, device=tails.rows.device), tails.cu_seqlens
        )

    def _embedded(
        self, backbone: Backbone, sentences: TokenBatch, tails: Tails
    ) -> Float[Tensor, "n d"]:
        layout = Layout.of(tails.cu_seqlens, device=backbone.word_embeddings.weight.device)
        return layout.restore(
            backbone.embed(sentences.input_ids[tails.kept], layout, positions=tails.positions)
        )

    def _labels(
        self, labels: Int64[Tensor, " t"], tails: Tails, h: Float[Tensor, "b d"]
    ) -> Int64[Tensor, " n"]:
        return torch.cat([labels.new_full((len(h),), IGNORED), labels[tails.kept]])
