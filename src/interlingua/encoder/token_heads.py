"""Heads that predict tokens from token states.

They are those of masked language models and of representation translation learning.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from interlingua.batches.masking import IGNORED
from interlingua.batches.sentences import Tails, chained
from interlingua.batches.tokens import TokenBatch
from interlingua.devices import gathered, on_device
from interlingua.encoder.backbone import Backbone
from interlingua.encoder.pooling import HiddenStates


class TokenPredictions(NamedTuple):
    """All that the cross-entropy of some tokens needs, in the order of ``linear_cross_entropy``."""

    hidden: Float[Tensor, "n d"]
    """A vector for each token to be predicted."""
    output_embeddings: Float[Tensor, "v d"]
    bias: Float[Tensor, " v"]
    targets: Int64[Tensor, " n"]
    """The tokens."""


class MaskedTokenHead(nn.Module):
    """The prediction head of masked language models.

    Logits are inner products with word embeddings, plus a bias of its own.

    Args:
        dim: width D of the states.
        vocab_size: V.
        transform: BERT's and RoBERTa's linear layer, GELU and LayerNorm before it; False: none, as
            in XLM.
    """

    def __init__(self, dim: int, vocab_size: int, *, transform: bool) -> None:
        super().__init__()
        # Without layers it gives back what it is given.
        layers: list[nn.Module] = []
        if transform:
            layers = [nn.Linear(dim, dim), nn.GELU(), nn.LayerNorm(dim)]
        self.transform = nn.Sequential(*layers)
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(
        self,
        states: Float[Tensor, "t d"],
        labels: Int64[Tensor, " t"],
        word_embeddings: Float[Tensor, "v d"],
    ) -> TokenPredictions:
        """What predicts the labels that are not ``IGNORED``.

        The other states are not looked at. The labels are on the host.
        """
        # Few tokens are predicted: those are picked before the layers, not after them.
        rows = (labels != IGNORED).nonzero()[:, 0]
        hidden = self.transform(gathered(states, rows))
        return TokenPredictions(hidden, word_embeddings, self.bias, labels[rows])


class TranslationHead(nn.Module):
    r"""Reconstructs a sentence from the token states of its translation, DAP (Li et al. 2023).

    Eq. (4):

    .. math:: g^0(h, y) = (h_1, \dots, h_{S_x}, [MASK] \times S_y)

    K transformer layers over g^0, and a masked language model's head. As in the released code it
    begins as a copy of the encoder's embeddings and last K layers, and learns apart from it.

    Differs from the released code: positions count from 0 on either side, where there those of the
    masks are added twice, the second time behind the source's padding.

    Args:
        backbone: where it begins.
        num_layers: K.
    """

    def __init__(self, backbone: Backbone, num_layers: int) -> None:
        super().__init__()
        # All but the last K layers go; embeddings and the last norm stay.
        self.backbone = copy.deepcopy(backbone)
        del self.backbone.layers[: len(backbone.layers) - num_layers]
        self.tell = MaskedTokenHead(
            backbone.config.hidden_size, backbone.config.vocab_size, transform=True
        )

    def forward(
        self,
        source: HiddenStates,
        targets: TokenBatch,
        labels: Int64[Tensor, " t"],
        mask_id: int,
        *,
        states: Float[Tensor, "t d"],
        skip: int = 0,
        language: Float[Tensor, "b d"] | None = None,
    ) -> TokenPredictions:
        """What tells the labeled tokens of the targets.

        Args:
            source: the encoder's states of the translations.
            targets: the sentences to be predicted.
            labels: their tokens, ``IGNORED`` at those that are shown.
            mask_id: the mask token.
            states: the encoder's states of the targets, which are shown in the place of tokens that
                are not predicted.
            skip: first tokens of either side to leave out (``[CLS]``, which has the sentence's
                embedding to carry).
            language: added to each mask: the target language, where it is not always the same.
        """
        # The tokens of either side behind the first `skip` ones.
        a = Tails.of(source.cu_seqlens, skip)
        b = Tails.of(targets.cu_seqlens, skip)
        labels = labels[b.kept]
        device = states.device
        # What stands at the targets' places: a mask where a token is predicted, else its state.
        masks = self.backbone.word_embeddings(torch.full(labels.shape, mask_id, device=device))
        if language is not None:
            masks = masks + language[on_device(b.rows, device)]
        is_hidden = on_device(labels != IGNORED, device)
        target_states = states[on_device(b.kept, device)].to(masks.dtype)
        shown = torch.where(is_hidden[:, None], masks, target_states)
        # g^0: each source in front of its target, in inputs, labels and positions.
        order, cu_seqlens = chained(a.cu_seqlens, b.cu_seqlens)
        source_states = source.states[on_device(a.kept, device)].to(shown.dtype)
        inputs = torch.cat([source_states, shown])[on_device(order, device)]
        labels = torch.cat([torch.full_like(a.rows, IGNORED), labels])[order]
        positions = torch.cat([a.positions, b.positions])[order]
        # g^1 ... g^K. The labels stand in for ids, of which only the number is looked at.
        states = self.backbone(labels, cu_seqlens, word_embeddings=inputs, positions=positions)
        return self.tell(states, labels, self.backbone.word_embeddings.weight)  # type: ignore[no-any-return]
