from __future__ import annotations

import dataclasses
import json
import sys

import pytest
import torch

from interlingua.errors import CheckpointError, MissingExtraError
from interlingua.export.verify import SAMPLES, verify
from interlingua.languages import resolve

pytest.importorskip("sentence_transformers")


def change(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_an_untouched_model_passes(encoder, model):
    verification = verify(encoder, model)
    assert verification.texts == sum(len(texts) for texts in SAMPLES.values())
    assert verification.worst.keys() == SAMPLES.keys()
    assert 1 - 1e-5 < verification.minimum == min(verification.worst.values())


def test_samples_are_known_languages_and_hold_a_text_beyond_any_limit():
    assert all(resolve(code).code == code for code in SAMPLES)
    assert max(len(text.split()) for texts in SAMPLES.values() for text in texts) > 512


def test_another_pooling_is_named(encoder, model):
    change(model / "1_Pooling" / "config.json", pooling_mode="cls")
    with pytest.raises(CheckpointError, match=r"cosine 0\.\d+.*pooling or normalisation differ .*pools by mean"):
        verify(encoder, model)


def test_another_limit_is_named(encoder, model):
    change(model / "sentence_bert_config.json", max_seq_length=30)
    change(model / "tokenizer_config.json", model_max_length=30)
    with pytest.raises(CheckpointError, match="it cuts texts at 30 tokens, the encoder at 120"):
        verify(encoder, model)


def test_other_tokens_are_named(encoder, model):
    definition = json.loads((model / "tokenizer.json").read_text())
    definition["normalizer"] = {"type": "Lowercase"}
    (model / "tokenizer.json").write_text(json.dumps(definition))
    with pytest.raises(CheckpointError, match=r"the tokens differ, from place \d+: ids \[.*\] and \["):
        verify(encoder, model)


def test_other_weights_are_named(encoder, model):
    with torch.no_grad():
        encoder.backbone.layers[0].output.weight.normal_()
    with pytest.raises(CheckpointError, match="the hidden states differ by up to"):
        verify(encoder, model)


def test_prompts_are_checked_too(encoder, tmp_path):
    encoder.settings = dataclasses.replace(encoder.settings, prompts={"query": "ask: "})
    encoder.save(tmp_path / "m")
    assert verify(encoder, tmp_path / "m", prompts=(None, "query")).minimum > 1 - 1e-5
    change(tmp_path / "m" / "config_sentence_transformers.json", prompts={"query": "tell: "})
    assert verify(encoder, tmp_path / "m").minimum > 1 - 1e-5
    with pytest.raises(CheckpointError, match="its prompt is 'tell: ', the encoder's 'ask: '"):
        verify(encoder, tmp_path / "m", prompts=("query",))


def test_a_missing_package_is_named(encoder, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'interlingua\[sentence-transformers\]'"):
        verify(encoder, model)
