"""InfoNCE over translations, and over a sentence and itself: mSimCSE (Wang, Wu and Neubig 2022).

A sentence's vector has to be closer to its positive's vector than to those of all other sentences
of the batch. The positive is a translation, or the sentence itself encoded a second time: dropout
gives it a different vector (SimCSE).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from interlingua.batches.feeds import FeedName, SentenceBatch
from interlingua.batches.sentences import Meanings, join
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.config import CheckedSettings
from interlingua.config.method_options import Temperature
from interlingua.encoder.encoder import Encoder
from interlingua.functional.contrastive import (
    bidirectional_contrastive,
    infonce,
    semantic_contrastive,
)
from interlingua.methods.matryoshka import full_width
from interlingua.methods.objective import LossOutput, Objective


@dataclass(frozen=True, kw_only=True, slots=True)
class InfoNCEConfig(CheckedSettings):
    """The contrastive loss of embeddings on the sphere."""

    positives: Literal["translation", "dropout"] = "translation"
    """The positive of a sentence. translation: its translation, from parallel data; dropout: the
    sentence itself encoded with other dropout, from monolingual data, as in mSimCSE."""
    temperature: Temperature = 0.05
    """Divisor of the cosines."""
    direction: Literal["both", "forward", "all"] = "both"
    """Direction of the ranking. both: each side ranks the other, averaged; forward: the first side
    ranks the second, as in SimCSE; all: each of the 2B sentences ranks the other 2B - 1, including
    those of its own side (NT-Xent)."""
    projection: bool = False
    """Contrast the outputs of a tanh layer over the embeddings, as in SimCSE's training; the layer
    is not exported."""
    negatives: Literal["processes", "micro_batch"] = "processes"
    """Source of negatives: all processes' micro-batches, or a process's own."""
    exclude_repeats: bool = False
    """Don't count other translations of the positive as negatives (in n-way parallel corpora)."""


class InfoNCE(Objective):
    """Objective that makes each sentence find its translation, or itself, in the batch.

    Args:
        config: the options.
        encoder: pools by the first token in mSimCSE.
    """

    Config = InfoNCEConfig
    nested_terms = ("infonce",)
    takes_forms = True
    config: InfoNCEConfig

    def __init__(self, config: InfoNCEConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        self.project: nn.Module = nn.Identity()
        # The head is made even if it is not used, so that later random numbers do not depend on
        # this option.
        head = nn.Sequential(nn.Linear(encoder.dim, encoder.dim), nn.Tanh())
        if config.projection:
            self.project = head

    @classmethod
    def feeds_for(cls, config: InfoNCEConfig) -> tuple[FeedName, ...]:
        """Return the feed of translations, or that of sentences."""
        if config.positives == "translation":
            return ("parallel",)
        return ("monolingual",)

    def forward(self, batch: ParallelBatch | SentenceBatch) -> LossOutput:
        """Compute the contrast of translations, or of each sentence with itself."""
        _, (both, meanings) = self.prepared(batch)
        contrast = partial(self.contrast, meanings)
        return self.weighted(infonce=self.nested(contrast, self.encoder(both)))

    def prepare(self, batch: ParallelBatch | SentenceBatch) -> tuple[TokenBatch, Meanings | None]:
        """Return both sides in one batch, and the meanings of the pairs."""
        a, b = self.sides(batch)
        read = join(self.as_written(a, batch), self.as_written(b, batch))
        return read, self.meanings(a, b)

    def sides(self, batch: ParallelBatch | SentenceBatch) -> tuple[TokenBatch, TokenBatch]:
        """Return the sentences, and the positive of each."""
        if isinstance(batch, ParallelBatch):
            return batch.a, batch.b
        # The batch twice in one pass: each of the two copies has dropout of its own.
        return batch.sentences, batch.sentences

    def contrast(
        self, meanings: Meanings | None, embeddings: Float[Tensor, "2*b d"]
    ) -> Float[Tensor, ""]:
        """Compute -log e^(cos(h_i, h_i+) / T) / sum_j e^(cos(h_i, h_j+) / T), a mean over i."""
        config = self.config
        gather = self.choose_gather(config.negatives)
        excluded = self.repeats(meanings, gather)
        if config.projection:
            embeddings = self.project(full_width(embeddings, self.encoder.dim))
        h, positive = (gather(side) for side in embeddings.chunk(2))
        self.need_others(
            len(h), "pair of translations" if config.positives == "translation" else "sentence"
        )
        if config.direction == "all":  # NT-Xent
            return semantic_contrastive(
                h, positive, temperature=config.temperature, excluded=excluded
            )
        if config.direction == "forward":  # SimCSE
            return infonce(h, positive, temperature=config.temperature, excluded=excluded)
        both = bidirectional_contrastive(
            h, positive, temperature=config.temperature, excluded=excluded
        )
        return both / 2  # the mean of the two directions, not their sum
