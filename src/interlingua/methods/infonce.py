"""InfoNCE over translations, and over a sentence and itself: mSimCSE (Wang, Wu and Neubig 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from interlingua.batches.feeds import FeedName, SentenceBatch
from interlingua.batches.sentences import join, same_meaning
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError
from interlingua.functional.contrastive import (
    bidirectional_contrastive,
    infonce,
    semantic_contrastive,
)
from interlingua.methods.matryoshka import full_width
from interlingua.methods.objective import LossOutput, Objective, itself


@dataclass(frozen=True, kw_only=True, slots=True)
class InfoNCEConfig:
    """The contrastive loss of embeddings on the sphere."""

    positives: Literal["translation", "dropout"] = "translation"
    """What a sentence has to find: its translation, in parallel data, or itself through other
    dropout, in monolingual data as mSimCSE does."""
    temperature: float = 0.05
    """Divides the cosines."""
    direction: Literal["both", "forward", "all"] = "both"
    """What ranks what: each side the other, averaged; the first the second, as in SimCSE; or each
    of the 2B sentences the other 2B - 1, those of its own side too (NT-Xent)."""
    projection: bool = False
    """Contrast a tanh layer over the embeddings, which is not exported, as in SimCSE's training."""
    negatives: Literal["processes", "micro_batch"] = "processes"
    """Where negatives come from: all processes' micro-batches, or a process's own."""
    exclude_repeats: bool = False
    """Don't count as negatives what translates the positive too (as in n-way parallel corpora)."""

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise ConfigError(f"temperature is {self.temperature}; it must be positive")


class InfoNCE(Objective):
    """A sentence has to find its translation, or itself, among those of the batch.

    Args:
        config: the options.
        encoder: pools by the first token in mSimCSE.
    """

    Config = InfoNCEConfig
    nested_terms = ("infonce",)
    config: InfoNCEConfig

    def __init__(self, config: InfoNCEConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        head = nn.Sequential(nn.Linear(encoder.dim, encoder.dim), nn.Tanh())
        self.project = head if config.projection else nn.Identity()

    @classmethod
    def feeds_for(cls, config: InfoNCEConfig) -> tuple[FeedName, ...]:
        """Translations, or sentences."""
        return ("parallel",) if config.positives == "translation" else ("monolingual",)

    def forward(self, batch: ParallelBatch | SentenceBatch) -> LossOutput:
        """Of a sentence and itself each goes through the encoder by itself, so each has dropout of
        its own.
        """
        sides = (
            (batch.a, batch.b)
            if isinstance(batch, ParallelBatch)
            else (batch.sentences, batch.sentences)
        )
        return self.weighted(
            infonce=self.nested(partial(self.contrast, *sides), self.encoder(join(*sides)))
        )

    def contrast(
        self, a: TokenBatch, b: TokenBatch, embeddings: Float[Tensor, "2*b d"]
    ) -> Float[Tensor, ""]:
        """-log e^(cos(h_i, h_i+) / T) / sum_j e^(cos(h_i, h_j+) / T), a mean over i."""
        config = self.config
        gather = self.all_gather if config.negatives == "processes" else itself
        excluded = same_meaning(a, b, gather) if config.exclude_repeats else None
        if config.projection:
            embeddings = self.project(full_width(embeddings, self.encoder.dim))
        h, positive = (gather(side) for side in embeddings.chunk(2))
        self.need_others(
            len(h), "pair of translations" if config.positives == "translation" else "sentence"
        )
        if config.direction == "all":
            return semantic_contrastive(
                h, positive, temperature=config.temperature, excluded=excluded
            )
        if config.direction == "forward":
            return infonce(h, positive, temperature=config.temperature, excluded=excluded)
        return (
            bidirectional_contrastive(
                h, positive, temperature=config.temperature, excluded=excluded
            )
            / 2
        )
