"""MEXMA: token-level objectives improve sentence representations (Janeiro et al. 2024).

Both sentences A and B of a pair are read twice, once with masked tokens and once clean. A head then
has to predict the masked tokens of A from the masked states of A and the clean sentence vector of
B, and the other way round (L_mlm). With 40 % of the tokens masked the context is not enough, so the
vector has to carry the meaning, and the loss trains all token states along with it. The clean
vectors of A and B are drawn together (L_alignment), and KoLeo keeps those of one side apart (L_K),
without negatives.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from interlingua.batches.masking import LabeledTokens, MaskedTokens, coin_flips
from interlingua.batches.sentences import Meanings, first_occurrences, join, take
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.config import CheckedSettings, refuse_unread
from interlingua.config.method_options import Dropout, Share, Temperature, Weight
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError
from interlingua.functional.contrastive import infonce
from interlingua.functional.masked_lm import group_means, linear_cross_entropy
from interlingua.functional.uniformity import koleo
from interlingua.methods.heads.unmasking_head import Arrangement, UnmaskingHead, UnmaskingHeadConfig
from interlingua.methods.objective import LossOutput, Objective, need_a_loss
from interlingua.runtime.devices import gather_rows


@dataclass(frozen=True, kw_only=True, slots=True)
class MEXMAConfig(CheckedSettings):
    """MEXMA and its ablations (Tables 6 and 11 of the paper).

    The defaults are the paper's MEXMA.
    """

    mlm_weight: Weight = 1.0
    """Weight of the cross-unmasking, a mean over both sides; 0 = none."""
    align_weight: Weight = 1.0
    """Weight of the alignment; 0 = none."""
    koleo_weight: Weight = 0.01
    """Weight of KoLeo, a mean over both sides; 0 = none."""
    symmetrical: bool = True
    """Both sides are read masked and clean; False: one side is read masked and the other clean, and
    a coin flip decides this for each pair."""
    token_gradients: bool = True
    """The unmasking trains the encoder through the masked tokens' states too; False: only through
    sentence vectors."""
    alignment: Literal["clean", "masked", "contrastive"] = "clean"
    """clean: squared error of the clean vectors; masked: squared error of a's masked vector and b's
    clean vector; contrastive: InfoNCE."""
    temperature: Temperature = 0.05
    """T of the contrastive alignment."""
    cosine: bool = True
    """The contrastive alignment compares by the cosine; False: by the inner product."""
    exclude_repeats: bool = False
    """Pairs with the same meaning (as in n-way parallel corpora) are not negatives of each other in
    the contrastive alignment."""
    koleo_normalize: bool = True
    """Compute KoLeo on vectors of length 1, as in the released code; False: on the vectors
    themselves, as printed in the paper."""
    koleo_distinct: bool = False
    """Compute KoLeo over distinct sentences only; for batches of many languages that repeat English
    sentences."""
    mask_ratio: Share = 0.4
    """Share of tokens to hide, (0, 1]."""
    mask: Literal["80-10-10", "always"] = "80-10-10"
    """Replacement of a hidden token: 80 % the mask, 10 % any token, 10 % itself; or always the
    mask."""
    random_specials: bool = True
    """Allow special tokens as "any token", as in the released code."""
    pooling: Literal["cls", "any"] = "cls"
    """cls: the encoder has to pool by its first token, as in the paper; any: the sentence vectors
    come from the encoder's own pooling."""
    attention_dropout: Dropout = 0.0
    """Probability of zeroing an attention weight in encoder and head, in place of the encoder's
    own."""
    head: UnmaskingHeadConfig = field(default_factory=UnmaskingHeadConfig)
    """Shape of the unmasking head."""

    def __post_init__(self) -> None:
        need_a_loss(self, "mlm_weight", "align_weight")
        if not self.symmetrical and (self.align_weight or self.koleo_weight):
            raise ConfigError(
                "symmetrical = false is incompatible with terms of two clean sides; set"
                " align_weight = 0 and koleo_weight = 0"
            )
        self._refuse_unread()

    def _refuse_unread(self) -> None:
        """Refuse options that have no effect."""
        contrastive = ("temperature", "cosine", "exclude_repeats")
        is_squared = self.alignment != "contrastive"
        # "masked" alignment compares vectors of masked sentences: it needs masks even without L_mlm
        masks_nothing = not self.mlm_weight and self.alignment != "masked"
        refuse_unread(
            self, "alignment", *contrastive, reason="align_weight = 0", when=not self.align_weight
        )
        refuse_unread(
            self, *contrastive, reason="alignment other than 'contrastive'", when=is_squared
        )
        koleo_options = ("koleo_normalize", "koleo_distinct")
        refuse_unread(self, *koleo_options, reason="koleo_weight = 0", when=not self.koleo_weight)
        refuse_unread(
            self, "token_gradients", "head", reason="mlm_weight = 0", when=not self.mlm_weight
        )
        mask_options = ("mask_ratio", "mask", "random_specials")
        refuse_unread(self, *mask_options, reason="mlm_weight = 0", when=masks_nothing)


class HiddenTokens(NamedTuple):
    """The tokens that the head has to predict."""

    tokens: int
    """Number of tokens of the masked sentences, which come first in the batch."""
    arrangement: Arrangement
    """Arrangement of these sentences and the vectors in the head."""
    at: Int64[Tensor, " h"]
    """Indices of the hidden tokens."""
    ids: Int64[Tensor, " h"]
    """Their original ids."""
    side: Int64[Tensor, " h"]
    """0 on side A, 1 on side B; all 0 if each pair has only one masked sentence."""


class MEXMAInputs(NamedTuple):
    """The sentences of a batch that are read, and the tokens that are predicted."""

    read: TokenBatch
    """Masked A, masked B, clean A, clean B; without masks only the clean ones."""
    clean_size: int
    """Number of sentences that are read clean."""
    hidden: HiddenTokens | None
    distinct: tuple[Int64[Tensor, " n"], Int64[Tensor, " m"]] | None
    """Rows of A and of B without repeated sentences, if KoLeo leaves repeats out."""
    meanings: Meanings | None
    """Meanings of the pairs, if pairs of equal meaning are not contrasted."""


class MEXMA(Objective):
    """Objective that predicts masked tokens with the sentence vector of the other language.

    Raises:
        ConfigError: the encoder does not pool by its first token, its vocabulary has no mask, or
            the head's attention heads do not divide its width.
    """

    Config = MEXMAConfig
    nested_terms = ("align", "koleo")
    config: MEXMAConfig

    def __init__(self, config: MEXMAConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        if config.pooling == "cls" and encoder.pooling != "cls":
            raise ConfigError(
                "MEXMA uses the state of the first token, but the encoder's pooling is"
                f' {encoder.pooling}; set pooling = "cls" in [encoder], or pooling = "any" in'
                " [method]"
            )
        encoder.backbone.set_attention_dropout(config.attention_dropout)
        # Number of groups of masked sentences that L_mlm averages: both sides, or 1 if each pair
        # has only one masked sentence.
        self.sides = 1
        if config.symmetrical:
            self.sides = 2
        self.mask: partial[MaskedTokens] | None = None
        if config.mlm_weight or config.alignment == "masked":
            self.mask = self.masking(
                ratio=config.mask_ratio,
                replace=config.mask,
                random_specials=config.random_specials,
            )
        self.head: UnmaskingHead | None = None
        if config.mlm_weight:
            self.head = UnmaskingHead(config.head, encoder, config.attention_dropout)

    def forward(self, batch: ParallelBatch) -> LossOutput:
        """Compute L_MEXMA = alpha L_alignment + beta L_mlm + gamma L_K."""
        batch, (read, clean_size, hidden, distinct, meanings) = self.prepared(batch)
        config = self.config
        size = batch.a.batch_size
        tokens = self.encoder.tokens(read)  # all passes, side by side
        vectors = self.encoder.pool(tokens)
        s = vectors[-clean_size:]  # [S_A; S_B]
        terms = {}
        if config.align_weight:
            vectors_a = s
            if config.alignment == "masked":
                vectors_a = vectors
            align = partial(self.align, meanings=meanings)
            terms["align"] = self.nested(align, vectors_a[:size], s[size:])  # L_alignment
        if self.head is not None and hidden is not None:
            # After the roll by one side, row i of s is the clean vector of the translation of
            # masked row i.
            terms["mlm"] = self.unmask(self.head, tokens.states, hidden, s.roll(size, 0))  # L_mlm
        if config.koleo_weight:
            spread = partial(self.spread, distinct=distinct)
            terms["koleo"] = self.nested(spread, s[:size], s[size:])  # L_K
        return self.weighted(**terms)

    def prepare(self, batch: ParallelBatch) -> MEXMAInputs:
        """Return the masked and the clean sentences in one batch, and the hidden tokens."""
        distinct = None
        if self.config.koleo_distinct:
            distinct = first_occurrences(batch.a), first_occurrences(batch.b)
        masked, read = self.views(batch)
        clean_size = read.batch_size
        hidden = None
        if masked is not None:
            read = join(masked.batch, read)
            if self.head is not None:
                hidden = self.hidden_tokens(self.head, masked)
        meanings = self.meanings(batch.a, batch.b)
        return MEXMAInputs(read, clean_size, hidden, distinct, meanings)

    def hidden_tokens(self, head: UnmaskingHead, masked: MaskedTokens) -> HiddenTokens:
        """Return the hidden tokens, and how the head reads the sentences."""
        at, ids = LabeledTokens.of(masked.labels)
        # 0 for tokens of the first half of the sentences, which is side A, and 1 for the others
        side = masked.batch.sequence_ids()[at] * self.sides // masked.batch.batch_size
        arrangement = head.arranged(masked.batch.cu_seqlens)
        return HiddenTokens(len(masked.labels), arrangement, at, ids, side)

    def views(self, batch: ParallelBatch) -> tuple[MaskedTokens | None, TokenBatch]:
        """Return the masked and the clean sentences to read: both sides of each pair in both forms.

        If the loss is not symmetrical, one side of each pair is masked and the other clean.
        """
        clean = join(batch.a, batch.b)
        size = batch.a.batch_size
        if self.mask is None:
            return None, clean
        # The places of the two sides differ, so equal sentences get different masks; in the
        # released code both sides draw from generators of one seed.
        a, labels_a = self.mask(batch.a, batch.place("a"))
        b, labels_b = self.mask(batch.b, batch.place("b"))
        masked = join(a, b)
        labels = torch.cat([labels_a, labels_b])
        if self.config.symmetrical:
            return MaskedTokens(masked, labels), clean
        # Table 11, row 1: a coin decides which side of pair i is masked, row i or row i + B.
        coins = coin_flips(batch.a, batch.place("a")).tolist()
        rows = [row + size * tails for row, tails in enumerate(coins)]
        translations = [(row + size) % (2 * size) for row in rows]
        labels = take(masked._replace(input_ids=labels), rows).input_ids
        return MaskedTokens(take(masked, rows), labels), take(clean, translations)

    def align(
        self, a: Float[Tensor, "b d"], b: Float[Tensor, "b d"], meanings: Meanings | None
    ) -> Float[Tensor, ""]:
        """Compute L_alignment: squared error, or InfoNCE both ways (section 5.2 of the paper)."""
        if self.config.alignment != "contrastive":
            return F.mse_loss(a, b)  # mean over B and d, of vectors of any length
        find = partial(
            infonce,
            temperature=self.config.temperature,
            cosine=self.config.cosine,
            excluded=self.repeats(meanings, self.all_gather),
        )
        a, b = self.all_gather(a), self.all_gather(b)
        self.need_others(len(a), "pair of translations")
        return (find(a, b) + find(b, a)) / 2

    def unmask(
        self,
        head: UnmaskingHead,
        states: Float[Tensor, "t d"],
        hidden: HiddenTokens,
        vectors: Float[Tensor, "n d"],
    ) -> Float[Tensor, ""]:
        """Compute L_mlm: cross-entropy of the hidden tokens from the other side's sentence vectors.

        It is the mean of the two sides, each a mean over its own hidden tokens.
        """
        states = states[: hidden.tokens]  # those of the masked passes, which come first
        if not self.config.token_gradients:
            # Table 11, rows 1-4. The tied word embeddings and the vectors still learn.
            states = states.detach()
        # The head reads [S_B; states of A]: the other side's vector in place of the first state.
        states = head(states, hidden.arrangement, vectors)
        words = self.encoder.backbone.word_embeddings.weight  # tied, as in the released code
        losses = linear_cross_entropy(gather_rows(states, hidden.at), words, head.bias, hidden.ids)
        return group_means(losses, hidden.side, self.sides).mean()

    def spread(
        self,
        a: Float[Tensor, "b d"],
        b: Float[Tensor, "b d"],
        distinct: tuple[Int64[Tensor, " n"], Int64[Tensor, " m"]] | None,
    ) -> Float[Tensor, ""]:
        """Compute L_K: KoLeo of each side's sentence vectors, the mean of both.

        It is computed within a process's micro-batch, never gathered, as in the released code.
        """
        if distinct is not None:
            # Equal sentences have a distance of about 0, and its logarithm would dominate the term.
            a, b = gather_rows(a, distinct[0]), gather_rows(b, distinct[1])
        if min(len(a), len(b)) < 2:
            raise ConfigError(
                "KoLeo requires at least two sentences per side; raise run.micro_batch_size, or"
                " remove koleo_weight"
            )
        spread = partial(koleo, normalize=self.config.koleo_normalize)
        return (spread(a) + spread(b)) / 2
