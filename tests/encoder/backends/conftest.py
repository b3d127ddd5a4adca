from __future__ import annotations

import dataclasses

import pytest
import torch

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig


@pytest.fixture
def prompted(tmp_path, word_vocabulary):
    """A model with "en1 " as the default prompt."""
    torch.manual_seed(0)
    config = BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size)
    encoder = Encoder.from_scratch(config, word_vocabulary)
    settings = {
        "prompts": {"query": "en1 ", "passage": "en2 "},
        "default_prompt": "query",
        "normalize": False,
    }
    encoder.settings = dataclasses.replace(encoder.settings, **settings)
    encoder.save(tmp_path / "prompted")
    return str(tmp_path / "prompted")
