"""Heads that predict tokens from token states.

Masked language models and representation translation learning use them.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Int64
from torch import Tensor, nn

from interlingua.batches.masking import IGNORED, LabeledTokens
from interlingua.batches.sentences import Tails, chained
from interlingua.encoder.modeling.backbone import Backbone
from interlingua.runtime.devices import gather_rows, on_device


class TokenPredictions(NamedTuple):
    """The arguments of ``linear_cross_entropy`` for some tokens, in its order."""

    hidden: Float[Tensor, "n d"]
    """A vector for each token to be predicted."""
    output_embeddings: Float[Tensor, "v d"]
    bias: Float[Tensor, " v"]
    targets: Int64[Tensor, " n"]
    """The tokens."""


class MaskedTokenHead(nn.Module):
    """The prediction head of masked language models.

    Logits are inner products with word embeddings, plus the head's own bias.

    Args:
        dim: width D of the states.
        vocab_size: V.
        transform: whether BERT's and RoBERTa's linear layer, GELU and LayerNorm come before the
            inner products; False: as in XLM.
    """

    def __init__(self, dim: int, vocab_size: int, *, transform: bool) -> None:
        super().__init__()
        # Without layers, ``transform`` returns its input.
        layers: list[nn.Module] = []
        if transform:
            layers = [nn.Linear(dim, dim), nn.GELU(), nn.LayerNorm(dim)]
        self.transform = nn.Sequential(*layers)
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(
        self,
        states: Float[Tensor, "t d"],
        labeled: LabeledTokens,
        word_embeddings: Float[Tensor, "v d"],
    ) -> TokenPredictions:
        """Return the predictions of the labeled tokens; other states are ignored."""
        # Few tokens are predicted: those are picked before the layers, not after them.
        hidden = self.transform(gather_rows(states, labeled.at))
        return TokenPredictions(hidden, word_embeddings, self.bias, labeled.ids)


class TranslationArrangement(NamedTuple):
    """The order of the states of sentences and their translations; on the host."""

    source: Int64[Tensor, " s"]
    """Indices of the sentences' states that are kept."""
    target: Int64[Tensor, " t"]
    """Indices of the translations' states that are kept."""
    rows: Int64[Tensor, " t"]
    """Number of the translation that each kept state of ``target`` belongs to."""
    is_hidden: Bool[Tensor, " t"]
    """True for tokens that are predicted and replaced by masks."""
    order: Int64[Tensor, " n"]
    """Order of [sources; targets]: each sentence in front of its translation."""
    cu_seqlens: Int[Tensor, " b+1"]
    """Boundaries of the pairs in this order."""
    positions: Int64[Tensor, " n"]
    """Positions of the tokens in this order, each counted in its own sentence."""
    labeled: LabeledTokens
    """The tokens to predict, in this order."""


class TranslationHead(nn.Module):
    r"""Head that reconstructs a sentence from its translation's token states, DAP (Li et al. 2023).

    Eq. (4):

    .. math:: g^0(h, y) = (h_1, \dots, h_{S_x}, [MASK] \times S_y)

    K transformer layers over g^0, and a masked language model's head. As in the released code it
    starts as a copy of the encoder's embeddings and last K layers, and then learns
    separately from the encoder.

    Differs from the released code: positions count from 0 on either side. In the released
    code the positions of the masks are added twice, the second time as positions behind the
    source's padding.

    Args:
        backbone: the source of the initial weights.
        num_layers: K.
        mask_id: the mask token.
        skip: number of first tokens to leave out on either side (``[CLS]``, which has to carry the
            sentence's embedding).
    """

    def __init__(self, backbone: Backbone, num_layers: int, *, mask_id: int, skip: int) -> None:
        super().__init__()
        self.mask_id = mask_id
        self.skip = skip
        # All layers except the last K are removed; embeddings and the last norm stay.
        self.backbone = copy.deepcopy(backbone)
        del self.backbone.layers[: len(backbone.layers) - num_layers]
        self.tell = MaskedTokenHead(
            backbone.config.hidden_size, backbone.config.vocab_size, transform=True
        )

    def arranged(
        self,
        sources: Int[Tensor, " b+1"],
        targets: Int[Tensor, " b+1"],
        labels: Int64[Tensor, " t"],
    ) -> TranslationArrangement:
        """Return how ``forward`` joins the states of packed sentences and their translations.

        Args:
            sources: where each sentence starts, and the total at the end; best on the host.
            targets: the same for the translations.
            labels: the translations' tokens, ``IGNORED`` at those that are shown.
        """
        # The tokens of either side after the first ones, which are left out.
        a = Tails.of(sources, self.skip)
        b = Tails.of(targets, self.skip)
        labels = labels[b.kept]
        # Each source in front of its target, in inputs, positions and labels.
        order, cu_seqlens = chained(a.cu_seqlens, b.cu_seqlens)
        positions = torch.cat([a.positions, b.positions])[order]
        in_order = torch.cat([torch.full_like(a.rows, IGNORED), labels])[order]
        return TranslationArrangement(
            source=a.kept,
            target=b.kept,
            rows=b.rows,
            is_hidden=labels != IGNORED,
            order=order,
            cu_seqlens=cu_seqlens,
            positions=positions,
            labeled=LabeledTokens.of(in_order),
        )

    def forward(
        self,
        sources: Float[Tensor, "s d"],
        targets: Float[Tensor, "t d"],
        arrangement: TranslationArrangement,
        *,
        language: Float[Tensor, "b d"] | None = None,
    ) -> TokenPredictions:
        """Return the predictions of the labeled tokens of the translations.

        Args:
            sources: the encoder's states of the sentences.
            targets: those of the translations, which are shown in the place of tokens that are not
                predicted.
            arrangement: of these sentences, see ``arranged``.
            language: vectors of the target languages, which are added to each mask; None if there
                is only one target language.
        """
        order = arrangement.order
        device = targets.device
        # Input at the targets' places: a mask where a token is predicted, else its state.
        mask_ids = torch.full(arrangement.target.shape, self.mask_id, device=device)
        masks = self.backbone.word_embeddings(mask_ids)
        if language is not None:
            masks = masks + language[on_device(arrangement.rows, device)]
        is_hidden = on_device(arrangement.is_hidden, device)
        target_states = gather_rows(targets, arrangement.target).to(masks.dtype)
        shown = torch.where(is_hidden[:, None], masks, target_states)
        # g^0: each source in front of its target.
        source_states = gather_rows(sources, arrangement.source).to(shown.dtype)
        inputs = gather_rows(torch.cat([source_states, shown]), order)
        # g^1 ... g^K. The backbone only uses the length of the first argument, as it receives
        # embeddings.
        states = self.backbone(
            order, arrangement.cu_seqlens, word_embeddings=inputs, positions=arrangement.positions
        )
        return self.tell(states, arrangement.labeled, self.backbone.word_embeddings.weight)  # type: ignore[no-any-return]
