"""LaBSE's dual-encoder objective: language-agnostic BERT sentence embedding (Feng et al. 2022).

Translation ranking: a sentence has to find its translation among all sentences of the batch, on all
accelerators, Eq. (1)-(2). The translation has to score higher than the others by a margin, which
separates it from similar sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

from interlingua.batches.sentences import Meanings, join
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.config import Between, CheckedSettings
from interlingua.config.method_options import Temperature
from interlingua.functional.contrastive import additive_margin_softmax
from interlingua.methods.objective import LossOutput, Objective


@dataclass(frozen=True, kw_only=True, slots=True)
class LaBSEConfig(CheckedSettings):
    """The translation ranking task.

    The defaults are the paper's if it states them, otherwise EMS's (Mao et al. 2023).
    """

    margin: Annotated[float, Between(0, 1e6)] = 0.3
    """m, in cosine units, subtracted from the positives; 0 = without additive margin."""
    temperature: Temperature = 0.1
    """Divisor of the cosines; the paper names none."""
    margin_after_temperature: bool = False
    """Subtract the margin from the logits, after the division by the temperature."""
    negatives: Literal["processes", "micro_batch"] = "processes"
    """Source of negatives: all processes' micro-batches as in the paper, or a process's own."""
    exclude_repeats: bool = False
    """Don't count other translations of the positive as negatives (in n-way parallel corpora)."""


class LaBSE(Objective):
    """Objective that finds translations in the batch by a margin, in both directions."""

    Config = LaBSEConfig
    nested_terms = ("ranking",)
    takes_forms = True
    config: LaBSEConfig

    def forward(self, batch: ParallelBatch) -> LossOutput:
        """Compute L + L', the loss of Eq. (1) with the cosine of Eq. (2), in both directions."""
        _, (both, meanings) = self.prepared(batch)
        config = self.config
        # section "cross-accelerator negative sampling": many more negatives than one GPU can hold
        gather = self.choose_gather(config.negatives)
        x, y = (gather(side) for side in self.encoder(both).chunk(2))
        self.need_others(len(x), "pair of translations")
        rank = partial(
            additive_margin_softmax,
            margin=config.margin,
            temperature=config.temperature,
            margin_after_temperature=config.margin_after_temperature,
            excluded=self.repeats(meanings, gather),
        )
        return self.weighted(ranking=self.nested(rank, x, y))  # Eq. (1) + its reverse

    def prepare(self, batch: ParallelBatch) -> tuple[TokenBatch, Meanings | None]:
        """Return both sides in one batch, and the meanings of the pairs."""
        both = join(self.as_written(batch.a, batch), self.as_written(batch.b, batch))
        return both, self.meanings(batch.a, batch.b)
