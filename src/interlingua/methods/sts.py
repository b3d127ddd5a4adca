"""Sentence-BERT's second objective: the cosine as a score of similarity (Reimers, Gurevych 2019).

The objective is a regression of the cosine of two embeddings on scores that people gave. It is the
second training stage of the English teacher of the calibrated-similarity paper, on gold pairs of
the STS benchmark and on silver pairs (Augmented SBERT, Thakur et al. 2021).

CoSENT, which is not in the paper, can be added to the regression or replace it. It is a loss of
pairs whose cosines are not in the order of their scores, and does not determine the scale of the
cosines.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from interlingua.batches.feeds import LabeledBatch
from interlingua.batches.sentences import join
from interlingua.batches.tokens import TokenBatch
from interlingua.config import CheckedSettings, refuse_unread
from interlingua.config.method_options import Temperature, Weight
from interlingua.functional.score_ranking import cosent
from interlingua.methods.objective import LossOutput, Objective, Term, need_a_loss
from interlingua.runtime.devices import on_device


@dataclass(frozen=True, kw_only=True, slots=True)
class STSConfig(CheckedSettings):
    """Weights of regression and order; scores from 0 to 5 are divided by 5 as they are read."""

    sts_weight: Weight = 1.0
    """Weight of the squared error of the cosines."""
    cosent_weight: Weight = 0.0
    """Weight of CoSENT, which compares the pairs of a micro-batch of all processes; 0 in the
    paper."""
    temperature: Temperature = 0.05
    """Divisor of CoSENT's cosines."""

    def __post_init__(self) -> None:
        need_a_loss(self, "sts_weight", "cosent_weight")
        refuse_unread(self, "temperature", reason="cosent_weight = 0", when=not self.cosent_weight)


class STS(Objective):
    """Objective that trains the cosines of pairs to equal their scores or follow their order."""

    Config = STSConfig
    nested_terms = ("sts", "cosent")
    config: STSConfig
    feeds = ("labeled",)
    label_kind = "sts"
    takes_forms = True

    def forward(self, batch: LabeledBatch) -> LossOutput:
        """Compute w_s mean_i (cos(u_i, v_i) - y_i / 5)^2 + w_c CoSENT."""
        batch, both = self.prepared(batch)
        u, v = self.encoder(both).chunk(2)
        labels = on_device(batch.labels, u.device)
        terms: dict[str, Term] = {}
        if self.config.sts_weight:
            terms["sts"] = self.nested(partial(squared_error, labels), u, v)
        if self.config.cosent_weight:
            # CoSENT compares the pairs of all processes.
            u, v, labels = (self.all_gather(tensor) for tensor in (u, v, labels))
            self.need_others(len(u), "scored pair", "data.labeled.batch_size")
            terms["cosent"] = self.nested(partial(self.order_error, labels), u, v)
        return self.weighted(**terms)

    def prepare(self, batch: LabeledBatch) -> TokenBatch:
        """Return both sides in one batch."""
        return join(self.as_written(batch.a, batch), self.as_written(batch.b, batch))

    def order_error(
        self, labels: Float[Tensor, " n"], u: Float[Tensor, "n d"], v: Float[Tensor, "n d"]
    ) -> Float[Tensor, ""]:
        """Compute CoSENT of the pairs' cosines."""
        return cosent(cosines_of_pairs(u, v), labels, temperature=self.config.temperature)


def squared_error(
    labels: Float[Tensor, " n"], u: Float[Tensor, "n d"], v: Float[Tensor, "n d"]
) -> Float[Tensor, ""]:
    """Compute the mean over the pairs of (cos(u_i, v_i) - y_i / 5)^2."""
    return F.mse_loss(cosines_of_pairs(u, v), labels)


def cosines_of_pairs(u: Float[Tensor, "n d"], v: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
    """Compute cosines in float32, because the resolution of bfloat16 near 1 is 0.004."""
    return F.cosine_similarity(u.float(), v.float())
