"""Sentence-BERT's first objective: natural language inference (Reimers and Gurevych 2019).

A classifier over two embeddings has to decide whether the second sentence contradicts the first,
follows from it, or neither, so that embeddings learn what a sentence claims. This is the first
training stage of the English teacher of the calibrated-similarity paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from interlingua.batches.feeds import LabeledBatch
from interlingua.batches.sentences import join
from interlingua.batches.tokens import TokenBatch
from interlingua.config import CheckedSettings
from interlingua.encoder.encoder import Encoder
from interlingua.methods.matryoshka import full_width
from interlingua.methods.objective import LossOutput, Objective
from interlingua.runtime.devices import on_device

_CLASSES = 3
"""Contradiction, entailment, neutral."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NLIConfig(CheckedSettings):
    """The classifier on top of the two embeddings."""

    bias: bool = False
    """Add a bias to the logits, as sentence-transformers' code does; the equation has none."""


class NLI(Objective):
    """Objective that classifies pairs by two embeddings and their distance, with softmax.

    Args:
        config: the options.
        encoder: pools by the mean in the paper.
    """

    Config = NLIConfig
    nested_terms = ("nli",)
    config: NLIConfig
    feeds = ("labeled",)
    label_kind = "nli"
    takes_forms = True

    def __init__(self, config: NLIConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        self.classify = nn.Linear(3 * encoder.dim, _CLASSES, bias=config.bias)

    def forward(self, batch: LabeledBatch) -> LossOutput:
        """Compute the cross-entropy, a mean over the pairs."""
        batch, both = self.prepared(batch)
        u, v = self.encoder(both).chunk(2)
        labels = on_device(batch.labels, u.device)

        def classification(u: Tensor, v: Tensor) -> Tensor:
            # Each is padded by itself: W has three blocks, and a prefix reads the first columns of
            # each block.
            logits = self.logits(full_width(u, self.encoder.dim), full_width(v, self.encoder.dim))
            return F.cross_entropy(logits.float(), labels.long())

        return self.weighted(nli=self.nested(classification, u, v))

    def prepare(self, batch: LabeledBatch) -> TokenBatch:
        """Return both sides in one batch."""
        return join(self.as_written(batch.a, batch), self.as_written(batch.b, batch))

    def logits(self, u: Float[Tensor, "b d"], v: Float[Tensor, "b d"]) -> Float[Tensor, "b 3"]:
        """Compute W [u; v; |u - v|]."""
        logits: Tensor = self.classify(torch.cat([u, v, (u - v).abs()], dim=1))
        return logits
