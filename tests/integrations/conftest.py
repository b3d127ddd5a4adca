from __future__ import annotations

import dataclasses

import pytest
import torch

from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.encoder import Encoder

PROMPTS = {"query": "en1 ", "passage": "de1 "}


@pytest.fixture(scope="session")
def model(tmp_path_factory, word_vocabulary):
    """A tiny model with a prompt for queries and another one for passages."""
    torch.manual_seed(0)
    encoder = Encoder.from_scratch(
        BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size), word_vocabulary
    )
    encoder.settings = dataclasses.replace(encoder.settings, prompts=PROMPTS)
    folder = tmp_path_factory.mktemp("models") / "tiny"
    encoder.save(folder)
    return str(folder)
