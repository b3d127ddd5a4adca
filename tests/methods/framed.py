"""A tiny encoder of sentences that are framed by <s> and </s>, as XLM-R's, and pairs for it."""

from __future__ import annotations

import torch

from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from tests.encoder.conftest import tiny_vocabulary

VOCABULARY = tiny_vocabulary(frame=True)


def framed_encoder(**sizes) -> Encoder:
    """Build an encoder of two layers, pooling by the first token, without dropout."""
    torch.manual_seed(0)
    values = {
        "hidden_size": 12,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 20,
        **sizes,
    }
    config = BackboneConfig(
        vocab_size=VOCABULARY.size,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **values,
    )
    return Encoder.from_scratch(config, VOCABULARY, pooling="cls")


def framed_pairs(count=5, *, step=3) -> ParallelBatch:
    """Build German and French sentences, each with English ones, of different lengths."""
    generator = torch.Generator().manual_seed(4)
    begin, end = VOCABULARY.tokenizer.encode("a").ids[0], VOCABULARY.tokenizer.encode("a").ids[-1]

    def side(codes):
        lengths = torch.randint(1, 8, (count,), generator=generator).tolist()
        ids = [
            [begin, *torch.randint(5, 60, (n,), generator=generator).tolist(), end] for n in lengths
        ]
        return TokenBatch.from_lists(ids, codes)

    return ParallelBatch(
        side([("deu_Latn", "fra_Latn")[row % 2] for row in range(count)]),
        side(["eng_Latn"] * count),
        step,
    )


def rows(batch, tensor=None):
    """Split a packed tensor, or the batch's ids, by sentence."""
    return (batch.input_ids if tensor is None else tensor).split(batch.lengths.tolist())
