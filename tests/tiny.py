"""The tiny encoder that tests of the command line, the server and the guides work with."""

from __future__ import annotations

import torch

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig


def tiny_encoder(vocabulary, pooling="mean", *, seed=0):
    """Build an untrained encoder of 32 dimensions, determined by the seed."""
    torch.manual_seed(seed)
    config = BackboneConfig.preset("ems-tiny", vocab_size=vocabulary.size)
    return Encoder.from_scratch(config, vocabulary, pooling)
