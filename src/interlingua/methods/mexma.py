"""MEXMA: token-level objectives improve sentence representations (Janeiro et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from interlingua.batches.masking import IGNORED, MaskedTokens, coin_flips, mlm_mask
from interlingua.batches.sentences import first_occurrences, join, same_meaning, take
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.config import refuse_unread
from interlingua.devices import gathered
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.unmasking_head import UnmaskingHead, UnmaskingHeadConfig
from interlingua.errors import ConfigError
from interlingua.functional.contrastive import infonce
from interlingua.functional.masked_lm import group_means, linear_cross_entropy
from interlingua.functional.uniformity import koleo
from interlingua.methods.objective import LossOutput, Objective


@dataclass(frozen=True, kw_only=True, slots=True)
class MEXMAConfig:
    """MEXMA and its ablations (Tables 6 and 11 of the paper).

    The defaults are the paper's MEXMA.
    """

    mlm_weight: float = 1.0
    """Weight of the cross-unmasking, a mean over both sides; 0 = none."""
    align_weight: float = 1.0
    """Weight of the alignment; 0 = none."""
    koleo_weight: float = 0.01
    """Weight of KoLeo, a mean over both sides; 0 = none."""
    symmetrical: bool = True
    """Both sides are read masked and clean; False: one side masked, the other clean, by a coin for
    each pair."""
    token_gradients: bool = True
    """The unmasking trains the encoder through the masked tokens' states too; False: through
    sentence vectors alone."""
    alignment: Literal["clean", "masked", "contrastive"] = "clean"
    """clean: squared error of the clean vectors; masked: of a's masked and b's clean one;
    contrastive: InfoNCE."""
    temperature: float = 0.05
    """T of the contrastive alignment."""
    cosine: bool = True
    """The contrastive alignment compares by the cosine; False: by the inner product."""
    exclude_repeats: bool = False
    """Pairs that say the same (as in n-way parallel corpora) are no negatives of the contrastive
    alignment."""
    koleo_normalize: bool = True
    """KoLeo on vectors of length 1 as in the released code; False: on the vectors themselves, as
    printed."""
    koleo_distinct: bool = False
    """KoLeo over distinct sentences only, where a batch of many languages repeats English ones."""
    mask_ratio: float = 0.4
    """Share of tokens to hide, (0, 1]."""
    mask: Literal["80-10-10", "always"] = "80-10-10"
    """What stands in a hidden token's place: 80 % the mask, 10 % any token, 10 % itself; or always
    the mask."""
    random_specials: bool = True
    """Whether "any token" may be a special one, as in the released code."""
    pooling: Literal["cls", "any"] = "cls"
    """cls: the encoder has to pool by its first token, as in the paper; any: sentence vectors are
    what it pools to."""
    attention_dropout: float = 0.0
    """Probability of zeroing an attention weight in encoder and head, in place of the encoder's
    own."""
    head: UnmaskingHeadConfig = field(default_factory=UnmaskingHeadConfig)
    """Shape of the unmasking head."""

    def __post_init__(self) -> None:
        for name in ("mlm_weight", "align_weight", "koleo_weight"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 0")
        if self.temperature <= 0:
            raise ConfigError(f"temperature is {self.temperature}; it must be positive")
        if not 0 < self.mask_ratio <= 1:
            raise ConfigError(f"mask_ratio is {self.mask_ratio}; it must be above 0 and at most 1")
        if not self.mlm_weight and not self.align_weight:
            raise ConfigError(
                "mlm_weight and align_weight are both 0, which leaves nothing to learn; raise one"
            )
        if not self.symmetrical and (self.align_weight or self.koleo_weight):
            raise ConfigError(
                "symmetrical = false leaves one clean side; set align_weight = 0 and koleo_weight"
                " = 0"
            )
        contrastive = ("temperature", "cosine", "exclude_repeats")
        squared = self.alignment != "contrastive"
        blind = not self.mlm_weight and self.alignment != "masked"
        refuse_unread(
            self, "alignment", *contrastive, reason="align_weight = 0", when=not self.align_weight
        )
        refuse_unread(self, *contrastive, reason="alignment other than 'contrastive'", when=squared)
        refuse_unread(
            self,
            "koleo_normalize",
            "koleo_distinct",
            reason="koleo_weight = 0",
            when=not self.koleo_weight,
        )
        refuse_unread(
            self, "token_gradients", "head", reason="mlm_weight = 0", when=not self.mlm_weight
        )
        refuse_unread(
            self, "mask_ratio", "mask", "random_specials", reason="mlm_weight = 0", when=blind
        )


class MEXMA(Objective):
    """Masked tokens of one language are predicted with the help of the sentence vector of the
    other.

    Raises:
        ConfigError: the encoder pools otherwise than by its first token, its vocabulary has no
            mask, or its width does not go with the head.
    """

    Config = MEXMAConfig
    nested_terms = ("align", "koleo")
    config: MEXMAConfig

    def __init__(self, config: MEXMAConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        if config.pooling == "cls" and encoder.pooling != "cls":
            raise ConfigError(
                "MEXMA's sentence vector is the first token's state, but the encoder pools by"
                f" {encoder.pooling}; set"
                ' pooling = "cls" in [encoder], or pooling = "any" in [method]'
            )
        encoder.backbone.set_attention_dropout(config.attention_dropout)
        self.sides = 2 if config.symmetrical else 1
        self.mask: partial[MaskedTokens] | None = None
        if config.mlm_weight or config.alignment == "masked":
            self.mask = partial(
                mlm_mask,
                ratio=config.mask_ratio,
                mask_id=encoder.vocabulary.mask_id,
                vocab_size=encoder.vocabulary.size,
                special_ids=encoder.vocabulary.special_ids,
                replace=config.mask,
                random_specials=config.random_specials,
            )
        self.head = (
            UnmaskingHead(config.head, encoder, config.attention_dropout)
            if config.mlm_weight
            else None
        )

    def forward(self, batch: ParallelBatch) -> LossOutput:
        """L_MEXMA = alpha L_alignment + beta L_mlm + gamma L_K."""
        config = self.config
        size = batch.a.batch_size
        masked, clean = self.views(batch)
        hidden = self.encoder.tokens(
            join(masked.batch, clean) if masked else clean
        )  # all passes, side by side
        vectors = self.encoder.pool(hidden)
        s = vectors[-clean.batch_size :]  # [S_A; S_B]
        terms = {}
        if config.align_weight:
            of_a = vectors if config.alignment == "masked" else s
            terms["align"] = self.nested(
                partial(self.align, batch=batch), of_a[:size], s[size:]
            )  # L_alignment
        if self.head is not None and masked is not None:
            terms["mlm"] = self.unmask(self.head, hidden.states, masked, s.roll(size, 0))  # L_mlm
        if config.koleo_weight:
            terms["koleo"] = self.nested(
                partial(self.spread, batch=batch), s[:size], s[size:]
            )  # L_K
        return self.weighted(**terms)

    def views(self, batch: ParallelBatch) -> tuple[MaskedTokens | None, TokenBatch]:
        """What is read masked and what clean: A and B both ways.

        Not symmetrical, one side of each pair each way.
        """
        clean = join(batch.a, batch.b)
        size = batch.a.batch_size
        if self.mask is None:
            return None, clean
        (a, labels_a), (b, labels_b) = (
            self.mask(batch.a, batch.place("a")),
            self.mask(batch.b, batch.place("b")),
        )
        masked = join(a, b)
        labels = torch.cat([labels_a, labels_b])
        if self.config.symmetrical:
            return MaskedTokens(masked, labels), clean
        rows = [
            row + size * tails
            for row, tails in enumerate(coin_flips(batch.a, batch.place("a")).tolist())
        ]
        labels = take(masked._replace(input_ids=labels), rows).input_ids
        return MaskedTokens(take(masked, rows), labels), take(
            clean, [(row + size) % (2 * size) for row in rows]
        )

    def align(
        self, a: Float[Tensor, "b d"], b: Float[Tensor, "b d"], batch: ParallelBatch
    ) -> Float[Tensor, ""]:
        """Mean squared error, or how hard it is to find a translation's vector among those of the
        batch.
        """
        if self.config.alignment != "contrastive":
            return F.mse_loss(a, b)
        excluded = (
            same_meaning(batch.a, batch.b, self.all_gather) if self.config.exclude_repeats else None
        )
        find = partial(
            infonce,
            temperature=self.config.temperature,
            cosine=self.config.cosine,
            excluded=excluded,
        )
        a, b = self.all_gather(a), self.all_gather(b)
        self.need_others(len(a), "pair of translations")
        return (find(a, b) + find(b, a)) / 2

    def unmask(
        self,
        head: UnmaskingHead,
        states: Float[Tensor, "t d"],
        masked: MaskedTokens,
        vectors: Float[Tensor, "n d"],
    ) -> Float[Tensor, ""]:
        """Cross-entropy of the hidden tokens, given the other side's sentence vectors.

        A mean over each side's.
        """
        states = states[: len(masked.labels)]
        states = head(
            states if self.config.token_gradients else states.detach(),
            masked.batch.cu_seqlens,
            vectors,
        )
        at = (masked.labels != IGNORED).nonzero()[:, 0]
        words = self.encoder.backbone.word_embeddings.weight
        side = masked.batch.sequence_ids()[at] * self.sides // masked.batch.batch_size
        losses = linear_cross_entropy(gathered(states, at), words, head.bias, masked.labels[at])
        return group_means(losses, side, self.sides).mean()

    def spread(
        self, a: Float[Tensor, "b d"], b: Float[Tensor, "b d"], batch: ParallelBatch
    ) -> Float[Tensor, ""]:
        """KoLeo of each side's sentence vectors, the mean of both."""
        if self.config.koleo_distinct:
            a, b = gathered(a, first_occurrences(batch.a)), gathered(b, first_occurrences(batch.b))
        if min(len(a), len(b)) < 2:
            raise ConfigError(
                "KoLeo needs two sentences a side; raise run.micro_batch_size or drop koleo_weight"
            )
        return (
            koleo(a, normalize=self.config.koleo_normalize)
            + koleo(b, normalize=self.config.koleo_normalize)
        ) / 2
