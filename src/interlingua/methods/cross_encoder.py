"""The cross-encoder that labels silver pairs for Augmented SBERT (Thakur et al. 2021).

A cross-encoder reads both sentences of a pair together and so judges their similarity better than
two embeddings can. But it has to read every pair, so it is too slow to search with. It is therefore
trained on few gold pairs and scores many others, and a bi-encoder then learns from these scores
(``sts``).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional as F

from interlingua.batches.feeds import LabeledBatch
from interlingua.batches.sentences import join
from interlingua.batches.tokens import TokenBatch
from interlingua.config import CheckedSettings
from interlingua.config.method_options import Dropout
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.pair_scorer import PairPooling, PairScorer
from interlingua.methods.objective import LossOutput, Objective
from interlingua.runtime.devices import on_device
from interlingua.storage.files import PathLike


@dataclass(frozen=True, kw_only=True, slots=True)
class CrossEncoderConfig(CheckedSettings):
    """Options for reading and scoring pairs."""

    both_orders: bool = True
    """Train on (a, b) and on (b, a), as the authors' example does."""
    pooling: PairPooling = "cls"
    """Input of the head: the state of the joined sequence's first token, or the mean of all
    states."""
    head_dropout: Dropout = 0.1
    """Probability of zeroing an element of the head's input; the head applies dropout twice."""


class CrossEncoder(Objective):
    """Objective that reads ``a </s></s> b`` as one sequence and learns its score.

    Head and encoder are exported together.

    Args:
        config: the options.
        encoder: reads the pairs; its pooling is not used.
    """

    Config = CrossEncoderConfig
    config: CrossEncoderConfig
    feeds = ("labeled",)
    label_kind = "sts"
    no_prefixes = "the method scores pairs of sentences and trains no embeddings"

    def __init__(self, config: CrossEncoderConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        self.scorer = PairScorer(encoder, pooling=config.pooling, dropout=config.head_dropout)

    def forward(self, batch: LabeledBatch) -> LossOutput:
        """Compute the mean binary cross-entropy of sigmoid(logit) and score.

        It is a mean over pairs and orders.
        """
        batch, pairs = self.prepared(batch)
        logits = self.scorer(pairs).float()
        scores = on_device(batch.labels, logits.device)  # in [0, 1]
        if self.config.both_orders:
            # A pair's similarity has no order, but the sequence of its sentences does.
            scores = torch.cat([scores, scores])
        return self.weighted(cross_encoder=F.binary_cross_entropy_with_logits(logits, scores))

    def prepare(self, batch: LabeledBatch) -> TokenBatch:
        """Return the sequences to read: ``a </s></s> b``, followed by ``b </s></s> a``."""
        a = batch.a
        b = batch.b
        if self.config.both_orders:
            a = join(batch.a, batch.b)
            b = join(batch.b, batch.a)
        return self.scorer.join(a, b)

    @property
    def evaluated(self) -> PairScorer:
        """The encoder with its head."""
        return self.scorer

    def save(self, folder: PathLike) -> None:
        """Write encoder and head; ``PairScorer.load`` reads them."""
        self.scorer.save(folder)
