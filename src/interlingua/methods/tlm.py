"""XLM's masked and translation language modeling (Conneau and Lample 2019).

Masked language modeling (MLM) hides some tokens of a sentence and predicts them from the rest of
it. Translation language modeling (TLM) puts a sentence and its translation into one sequence and
hides tokens of both: if the context is not enough, the translation shows the token, so the states
of both languages become similar. No sentence vector is trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from interlingua.batches.feeds import FeedName, SentenceBatch
from interlingua.batches.masking import LabeledTokens
from interlingua.batches.sentences import Tails, chained
from interlingua.batches.tokens import BatchPosition, ParallelBatch, TokenBatch
from interlingua.config import CheckedSettings, refuse_unread
from interlingua.config.method_options import Share, Weight
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.pooling import HiddenStates
from interlingua.errors import DataError
from interlingua.methods.heads.token_heads import MaskedTokenHead
from interlingua.methods.objective import LossOutput, Objective, need_a_loss

Chain = tuple[Int64[Tensor, " t"], Int64[Tensor, " b+1"], Int64[Tensor, " t"] | None]
"""Order of the tokens, boundaries of the sequences, and positions if they restart in a sequence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TLMConfig(CheckedSettings):
    """XLM (MLM + TLM); the defaults are the paper's, but all text is from pairs of translations."""

    tlm_weight: Weight = 1.0
    """Weight of translation language modeling, over both sentences of a pair in one sequence; 0 =
    none."""
    mlm_weight: Weight = 1.0
    """Weight of masked language modeling, over single sentences; 0 = none."""
    mlm_text: Literal["pairs", "monolingual"] = "pairs"
    """Text of masked language modeling: each side of the pairs by itself, or the monolingual
    feed."""
    mask_ratio: Share = 0.15
    """Share of tokens to hide, (0, 1]; 80 % of them become the mask, 10 % any token, 10 % stay."""
    reset_positions: bool = True
    """Restart the positions at the second sentence of a sequence, as in XLM; False: they continue,
    as in InfoXLM."""
    transform: bool = False
    """RoBERTa's layer before the output embeddings; False: none, as in XLM."""

    def __post_init__(self) -> None:
        self.refuse_unread()

    def refuse_unread(self) -> None:
        """Refuse options that have no effect."""
        need_a_loss(self, "tlm_weight", "mlm_weight")
        refuse_unread(self, "mlm_text", reason="mlm_weight = 0", when=not self.mlm_weight)
        refuse_unread(self, "reset_positions", reason="tlm_weight = 0", when=not self.tlm_weight)


class MaskedPairs(NamedTuple):
    """Pairs with tokens hidden, the two sentences of each in one sequence."""

    input_ids: Int64[Tensor, " t"]
    cu_seqlens: Int64[Tensor, " b+1"]
    positions: Int64[Tensor, " t"] | None
    """Positions of the tokens; None = in each sequence, they count from 0."""
    hidden: LabeledTokens
    """The hidden tokens."""


class MaskedSentences(NamedTuple):
    """Sentences with tokens hidden."""

    batch: TokenBatch
    hidden: LabeledTokens
    """The hidden tokens."""


class MaskedText(NamedTuple):
    """The inputs of the two language models."""

    pairs: MaskedPairs | None
    """Pairs for TLM, if it has a weight."""
    alone: tuple[MaskedSentences, ...]
    """Text for MLM: the two sides of the pairs, or the sentences; none if it has no weight."""


class TLM(Objective):
    """Objective that predicts masked tokens from a sentence, without and with its translation.

    Args:
        config: the options.
        encoder: all of its states are trained, none of them as a sentence's vector.

    Raises:
        ConfigError: the vocabulary has no mask.
    """

    Config = TLMConfig
    no_prefixes = "the method predicts tokens and trains no sentence embedding"
    # Sequences of two sentences go directly to the backbone, without ``encoder(...)``.
    in_parts = False
    config: TLMConfig

    def __init__(self, config: TLMConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        self.head = MaskedTokenHead(
            encoder.hidden_size, encoder.backbone.config.vocab_size, transform=config.transform
        )
        self.mask = self.masking(ratio=config.mask_ratio)

    @classmethod
    def feeds_for(cls, config: TLMConfig) -> tuple[FeedName, ...]:
        """Return the feed of pairs, and that of sentences if they are requested."""
        if config.mlm_text == "monolingual":
            return ("parallel", "monolingual")
        return ("parallel",)

    def forward(self, batch: ParallelBatch | Mapping[str, Any]) -> LossOutput:
        """Compute L_MLM + L_TLM."""
        _, text = self.prepared(batch)
        return self.weighted(**self.language_modeling(text))

    def prepare(self, batch: ParallelBatch | Mapping[str, Any]) -> Any:
        """Return the text with its tokens hidden."""
        return self.masked(*self.feeds_of(batch))

    def feeds_of(
        self, batch: ParallelBatch | Mapping[str, Any]
    ) -> tuple[ParallelBatch, SentenceBatch | None]:
        """Return the pairs, and the sentences if there are any."""
        if isinstance(batch, Mapping):
            return batch["parallel"], batch["monolingual"]
        return batch, None

    def masked(self, pairs: ParallelBatch, sentences: SentenceBatch | None) -> MaskedText:
        """Hide tokens separately for each term with a weight other than 0."""
        for_tlm = None
        if self.config.tlm_weight:
            for_tlm = self.masked_pairs(pairs)
        if not self.config.mlm_weight:
            return MaskedText(for_tlm, ())
        if sentences is not None:
            alone = self.masked_sentences(sentences.sentences, sentences.place())
            return MaskedText(for_tlm, (alone,))
        # The places "mlm a" and "mlm b" are not those of TLM, so MLM and TLM hide different tokens
        # of the same sentences.
        a = self.masked_sentences(pairs.a, pairs.place("mlm a"))
        b = self.masked_sentences(pairs.b, pairs.place("mlm b"))
        return MaskedText(for_tlm, (a, b))

    def masked_sentences(self, sentences: TokenBatch, place: BatchPosition) -> MaskedSentences:
        """Return sentences x with tokens hidden, each sentence in a sequence of its own."""
        batch, labels = self.mask(sentences, place)
        return MaskedSentences(batch, LabeledTokens.of(labels))

    def masked_pairs(self, pairs: ParallelBatch) -> MaskedPairs:
        """Return [x; y] with tokens of both hidden."""
        a, labels_a = self.mask(pairs.a, pairs.place("a"))
        b, labels_b = self.mask(pairs.b, pairs.place("b"))
        order, cu_seqlens, positions = self.side_by_side(a, b)
        input_ids = torch.cat([a.input_ids, b.input_ids])[order]
        hidden = LabeledTokens.of(torch.cat([labels_a, labels_b])[order])
        return MaskedPairs(input_ids, cu_seqlens, positions, hidden)

    def language_modeling(self, text: MaskedText) -> dict[str, Float[Tensor, ""]]:
        """Compute the terms with a weight other than 0."""
        terms = {}
        if text.pairs is not None:
            terms["tlm"] = self.translation_modeling(text.pairs)
        if text.alone:
            losses = [self.alone(masked) for masked in text.alone]
            terms["mlm"] = sum(losses[1:], losses[0]) / len(losses)
        return terms

    def translation_modeling(self, pairs: MaskedPairs) -> Float[Tensor, ""]:
        """Compute L_TLM: the mean -log p(hidden tokens of x and y | visible tokens of [x; y])."""
        states = self.encoder.backbone(pairs.input_ids, pairs.cu_seqlens, positions=pairs.positions)
        return self.masked_token_loss(self.head, states, pairs.hidden)

    def alone(self, masked: MaskedSentences) -> Float[Tensor, ""]:
        """Compute L_MLM: the mean -log p(hidden tokens of x | visible tokens of x)."""
        states = self.encoder.tokens(masked.batch).states
        return self.masked_token_loss(self.head, states, masked.hidden)

    def side_by_side(self, a: TokenBatch, b: TokenBatch) -> Chain:
        """Put sentence i of a and sentence i of b into one sequence.

        If positions continue, the second sentence omits the tokens that start a sequence, as in
        InfoXLM.

        Returns:
            the order that the tokens of [a; b] get, the boundaries of the sequences, and the
            tokens' positions; None = in each sequence, they count from 0.

        Raises:
            DataError: the encoder has too few positions for two sentences together.
        """
        skip = 0  # XLM keeps both sentences whole
        if not self.config.reset_positions:
            skip = self.encoder.vocabulary.opening_tokens
        first = Tails.of(a.cu_seqlens, 0)
        second = Tails.of(b.cu_seqlens, skip)
        order, cu_seqlens = chained(first.cu_seqlens, second.cu_seqlens)
        # ``kept`` holds indices within one batch. In [a; b] the tokens of b follow all tokens of a,
        # of which none is left out.
        tokens = torch.cat([first.kept, second.kept + len(first.kept)])[order]
        if self.config.reset_positions:
            return tokens, cu_seqlens, torch.cat([first.positions, second.positions])[order]
        longest = int(cu_seqlens.diff().max())
        most = self.encoder.backbone.config.max_tokens
        if longest > most:
            raise DataError(
                f"a pair of sentences has {longest} tokens, but the encoder has {most}"
                " positions; set reset_positions = true, or lower data.max_tokens"
            )
        return tokens, cu_seqlens, None

    def vectors(self, batch: TokenBatch, states: Float[Tensor, "t d"]) -> Float[Tensor, "b d"]:
        """Pool states into sentence vectors, as the encoder does."""
        special = self.encoder.is_special(batch.input_ids)
        hidden = HiddenStates(states, batch.cu_seqlens, special)
        return hidden.pool(
            self.encoder.pooling, include_special=self.encoder.settings.include_special
        )
