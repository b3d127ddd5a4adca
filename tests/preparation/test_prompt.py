from __future__ import annotations

import dataclasses
import logging

import pytest

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import ConfigError
from interlingua.preparation.config import VocabularyConfig
from interlingua.preparation.prompt import with_prompt
from tests.preparation.conftest import config_for


@pytest.fixture
def asked(word_vocabulary, tmp_path):
    """A function from a prompt, and the model's prompts, to the prompt of the corpus."""
    shape = BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size)
    encoder = Encoder.from_scratch(shape, word_vocabulary)

    def ask(prompt, prompts=None, default=None):
        if prompts is not None:
            encoder.settings = dataclasses.replace(
                encoder.settings, prompts=prompts, default_prompt=default
            )
            encoder.save(tmp_path / "model")
        path = "" if prompts is None else str(tmp_path / "model")
        vocabulary = VocabularyConfig(path=path)
        config = config_for(tmp_path, tmp_path, vocabulary=vocabulary, prompt=prompt)
        return with_prompt(config).prompt

    return ask


def test_a_text_a_name_and_none(asked):
    prompts = {"query": "query: ", "passage": "passage: "}
    assert asked(None) == asked("") == ""
    assert asked("find: ") == "find: "
    assert asked("query", prompts) == "query: "
    assert asked("find: ", prompts) == "find: "
    assert asked("", prompts, "query") == ""
    with pytest.raises(ConfigError, match="prompt 'qery'"):
        asked("qery", prompts)


def test_the_models_own_default_is_taken_and_prompts_without_one_are_said(asked, caplog):
    with caplog.at_level(logging.WARNING, logger="interlingua"):
        assert asked(None, {"query": "query: "}, "query") == "query: "
        assert asked(None, {}) == ""
        assert caplog.messages == []
        assert asked(None, {"query": "query: ", "passage": "passage: "}) == ""
    [message] = caplog.messages
    assert "query ('query: '), passage ('passage: ')" in message
    assert message.endswith("prompt = 'query'")
