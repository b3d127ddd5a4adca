"""A tiny encoder of invented words."""

from __future__ import annotations

import torch

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig


def word_encoder(vocabulary, seed, **sizes):
    torch.manual_seed(seed)
    shape = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
    } | sizes
    config = BackboneConfig(
        vocab_size=vocabulary.size, max_position_embeddings=32, hidden_dropout_prob=0.0, **shape
    )
    return Encoder.from_scratch(config, vocabulary).eval()
