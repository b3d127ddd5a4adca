from __future__ import annotations

import dataclasses

import pytest

from tests.tiny import tiny_encoder

PROMPTS = {"query": "en1 ", "passage": "de1 "}


@pytest.fixture(scope="session")
def model(tmp_path_factory, word_vocabulary):
    """A tiny model with a prompt for queries and another one for passages."""
    encoder = tiny_encoder(word_vocabulary)
    encoder.settings = dataclasses.replace(encoder.settings, prompts=PROMPTS)
    folder = tmp_path_factory.mktemp("models") / "tiny"
    encoder.save(folder)
    return str(folder)
