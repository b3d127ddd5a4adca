"""Encoders that several tests have in common."""

from __future__ import annotations

import numpy as np
import torch

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig


def tiny_encoder(vocabulary):
    """Return an encoder of this library, equal for each call with a vocabulary."""
    torch.manual_seed(0)
    config = BackboneConfig.preset("ems-tiny", vocab_size=vocabulary.size)
    return Encoder.from_scratch(config, vocabulary).eval()


class Letters:
    """Encoder by the frequency of each byte."""

    def encode(self, texts, *, prompt=None, language=None, batch_tokens=16_384):
        rows = [
            np.bincount(np.frombuffer(text.encode(), dtype=np.uint8), minlength=256)
            for text in texts
        ]
        return np.sqrt(np.array(rows, dtype=np.float32))


class Hashes:
    """The first 64 bytes."""

    def encode(self, texts, *, language=None):
        rows = [
            np.frombuffer(text.encode().ljust(64, b"\0")[:64], dtype=np.uint8) for text in texts
        ]
        return np.array(rows, dtype=np.float32) / 100


class Positions:
    """The same point for line n of every language, whatever it says."""

    def encode(self, texts, *, language=None):
        return np.random.default_rng(0).standard_normal((len(texts), 64))
