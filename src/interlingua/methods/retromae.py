"""RetroMAE: retrieval pre-training by an asymmetric masked auto-encoder (Xiao et al. 2022).

The encoder reads a sentence with few tokens hidden and pools it into one vector, Eq. (1). A decoder
of one layer receives that vector and little else, and has to predict all tokens of the sentence.
Such a weak decoder can't guess them, so the vector has to carry the sentence. Enhanced decoding,
Eq. (4)-(7), makes better use of each sentence: every token is predicted, each from a different
sample of the sentence's tokens.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from interlingua.batches.feeds import FeedName, SentenceBatch
from interlingua.batches.masking import IGNORED, LabeledTokens
from interlingua.batches.tokens import BatchPosition, ParallelBatch, TokenBatch
from interlingua.config import CheckedSettings
from interlingua.config.method_options import Layers, PositiveWeight, Share, Weight
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError
from interlingua.methods.decoders.masked_decoders import DecoderArrangement, MaskedDecoder
from interlingua.methods.heads.token_heads import MaskedTokenHead
from interlingua.methods.matryoshka import full_width
from interlingua.methods.objective import LossOutput, Objective


@dataclass(frozen=True, kw_only=True, slots=True)
class RetroMAEConfig(CheckedSettings):
    """RetroMAE and its ablations (Table 6 of the paper); the defaults are the paper's RetroMAE."""

    encoder_weight: Weight = 1.0
    """Weight of L_enc, the masked language model of the encoder; 0 = none."""
    decoder_weight: PositiveWeight = 1.0
    """Weight of L_dec, the reconstruction."""
    encoder_ratio: Share = 0.3
    """Share of tokens hidden from the encoder, (0, 1]."""
    decoder_ratio: Share = 0.5
    """Share of tokens hidden from the decoder, (0, 1]; with enhanced decoding, a separate sample is
    hidden from each token."""
    enhanced: bool = True
    """Predict every token, each from a different context; False: predict only the hidden tokens,
    all from the same context ("w.o.")."""
    decoder_layers: Layers = 1
    """Layers of the decoder; enhanced decoding requires 1."""
    text: Literal["monolingual", "pairs"] = "monolingual"
    """Input text: the monolingual feed, or each side of translations by itself."""

    def __post_init__(self) -> None:
        if self.enhanced and self.decoder_layers != 1:
            raise ConfigError(
                f"decoder_layers: enhanced decoding requires 1, found {self.decoder_layers}; set"
                " enhanced = false, or decoder_layers = 1"
            )


class ReadSentences(NamedTuple):
    """The sentences, or a side of the pairs, in the form that is read."""

    read: TokenBatch
    """Sentences for the encoder, with few tokens hidden."""
    hidden: LabeledTokens
    """The tokens hidden from the encoder."""
    decoder: DecoderArrangement
    """The tokens that the decoder sees, and those to predict."""
    place: BatchPosition
    """Place that determines the decoder's own random draws."""


class RetroMAE(Objective):
    """Objective for a vector from which a weak decoder predicts all tokens of the sentence.

    Args:
        config: the options.
        encoder: pools by the first token in the paper.

    Raises:
        ConfigError: the vocabulary has no mask.
    """

    Config = RetroMAEConfig
    nested_terms = ("decoder",)
    config: RetroMAEConfig

    def __init__(self, config: RetroMAEConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        encoder.require_equal_widths()
        self.head = MaskedTokenHead(encoder.dim, encoder.backbone.config.vocab_size, transform=True)
        self.decoder = MaskedDecoder(
            encoder.backbone, config.decoder_layers, skip=encoder.vocabulary.opening_tokens
        )
        self.mask = self.masking()

    @classmethod
    def feeds_for(cls, config: RetroMAEConfig) -> tuple[FeedName, ...]:
        """Return the feed of sentences, or that of pairs."""
        if config.text == "monolingual":
            return ("monolingual",)
        return ("parallel",)

    def forward(self, batch: SentenceBatch | ParallelBatch) -> LossOutput:
        """Compute L_enc + L_dec (Algorithm 1), a mean over both sides of pairs."""
        _, sides = self.prepared(batch)
        embeddings = []
        language_modeling = []
        for side in sides:
            hidden = self.encoder.tokens(side.read)
            embeddings.append(self.encoder.pool(hidden))  # h, Eq. (1)
            if self.config.encoder_weight:
                # Eq. (3)
                loss = self.masked_token_loss(self.head, hidden.states, side.hidden)
                language_modeling.append(loss)
        reconstruct = functools.partial(self.reconstruct, sides)
        terms = {"decoder": self.nested(reconstruct, *embeddings)}  # L_dec
        if language_modeling:
            terms["encoder"] = torch.stack(language_modeling).mean()  # L_enc
        return self.weighted(**terms)

    def prepare(self, batch: SentenceBatch | ParallelBatch) -> list[ReadSentences]:
        """Return every side with its hidden tokens."""
        if isinstance(batch, SentenceBatch):
            return [self.side(batch.sentences, batch.place())]
        return [self.side(batch.a, batch.place("a")), self.side(batch.b, batch.place("b"))]

    def side(self, sentences: TokenBatch, place: BatchPosition) -> ReadSentences:
        """Hide some tokens from the encoder, and hide from the decoder the tokens to predict."""
        read, labels = self.mask(sentences, place, ratio=self.config.encoder_ratio)
        hidden = LabeledTokens.of(labels)
        # A place of its own: the decoder's hidden tokens are drawn independently of the encoder's.
        place = place._replace(side=f"decoder {place.side}")
        if not self.config.enhanced:
            ratio = self.config.decoder_ratio
            shown, labels = self.mask(sentences, place, ratio=ratio, replace="always")
            return ReadSentences(read, hidden, self.decoder.arranged(shown, labels), place)
        # All tokens of the text are predicted; those that the tokenizer puts around it are not.
        text = ~self.encoder.is_special(sentences.input_ids)
        labels = torch.where(text, sentences.input_ids, IGNORED)
        return ReadSentences(read, hidden, self.decoder.arranged(sentences, labels), place)

    def reconstruct(self, sides: list[ReadSentences], *embeddings: Float[Tensor, "b d"]) -> Tensor:
        """Compute L_dec of every side from its embeddings; return their mean."""
        losses = []
        for side, h in zip(sides, embeddings, strict=True):
            states = self.decode(side, full_width(h, self.encoder.dim))
            # One head for encoder and decoder, Eq. (3) and (6).
            losses.append(self.masked_token_loss(self.head, states, side.decoder.labeled))
        return torch.stack(losses).mean()

    def decode(self, side: ReadSentences, h: Float[Tensor, "b d"]) -> Float[Tensor, "n d"]:
        """Compute the decoder's states."""
        backbone = self.encoder.backbone
        if not self.config.enhanced:
            return self.decoder(backbone, side.decoder, h)  # type: ignore[no-any-return]  # Eq. (2)
        ratio = self.config.decoder_ratio
        # Eq. (4)-(7)
        return self.decoder.enhanced(backbone, side.decoder, h, side.place, hidden=ratio)
