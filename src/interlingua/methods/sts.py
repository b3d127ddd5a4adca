"""Sentence-BERT's second objective: the cosine as a score of similarity (Reimers, Gurevych 2019).

The objective is a regression of the cosine of two embeddings on scores that people gave. It is the
second training stage of the English teacher of the calibrated-similarity paper, on gold pairs of
the STS benchmark and on silver pairs (Augmented SBERT, Thakur et al. 2021).
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F

from interlingua.batches.feeds import LabeledBatch
from interlingua.batches.sentences import join
from interlingua.batches.tokens import TokenBatch
from interlingua.config import CheckedSettings
from interlingua.methods.objective import LossOutput, Objective
from interlingua.runtime.devices import on_device


@dataclass(frozen=True, kw_only=True, slots=True)
class STSConfig(CheckedSettings):
    """No options: scores from 0 to 5 are divided by 5 as they are read."""


class STS(Objective):
    """Objective that trains the cosine of two embeddings to equal their score."""

    Config = STSConfig
    nested_terms = ("sts",)
    config: STSConfig
    feeds = ("labeled",)
    label_kind = "sts"
    takes_forms = True

    def forward(self, batch: LabeledBatch) -> LossOutput:
        """Compute the squared error of the cosine, a mean over the pairs."""
        batch, both = self.prepared(batch)
        u, v = self.encoder(both).chunk(2)
        labels = on_device(batch.labels, u.device)

        def error(u: Tensor, v: Tensor) -> Tensor:
            # (cos(u, v) - y / 5)^2; in float32, as the resolution of bfloat16 near 1 is 0.004
            return F.mse_loss(F.cosine_similarity(u.float(), v.float()), labels)

        return self.weighted(sts=self.nested(error, u, v))

    def prepare(self, batch: LabeledBatch) -> TokenBatch:
        """Return both sides in one batch."""
        return join(self.as_written(batch.a, batch), self.as_written(batch.b, batch))
