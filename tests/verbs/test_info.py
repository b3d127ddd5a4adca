"""``interlingua.info``: the machine, the executors and every measured rate."""

from __future__ import annotations

import pytest
import torch

import interlingua
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.executors import choice
from interlingua.encoder.executors.training_passes import choose_way
from interlingua.encoder.modeling.backbone import BackboneConfig
from tests.encoder.shapes import MODERNBERT


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(choice, "_MEASURED", {})


@pytest.fixture
def model(tmp_path, word_vocabulary):
    torch.manual_seed(0)
    sizes = {
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 48,
    }
    config = BackboneConfig(vocab_size=word_vocabulary.size, **sizes, **MODERNBERT)
    Encoder.from_scratch(config, word_vocabulary).save(tmp_path / "model")
    return tmp_path / "model"


def test_every_rate_and_reason_is_named(monkeypatch, model):
    monkeypatch.delenv(choice.EXECUTOR_VARIABLE)
    found = interlingua.info(model)
    text = "\n".join(found.lines)
    remembered = choice.remembered().values()
    # float32, bfloat16, int8, and training where there is a choice
    assert len(remembered) == 3 + bool(choose_way().rates)
    for by_executor in remembered:
        for name, rate in by_executor.items():
            assert f"{name} {rate:,.0f}" in text
    assert set(found.executors) == {"float32", "bfloat16", "int8"}
    assert "not kernel: half the width of a head" in text
    assert f"--dtype auto selects {found.dtype}" in text
    assert str(choice.cache_file()) in text
    assert interlingua.info(model) == found  # rates are remembered


def test_without_a_model_it_is_the_machine():
    found = interlingua.info()
    assert (found.executors, found.dtype) == ({}, None)
    assert f"{choice.EXECUTOR_VARIABLE}: first" in found.lines
    assert any(choice.processor() in line for line in found.lines)
    # choice and reason, which the tests' environment decides
    assert any(line.startswith("exact search on the CPU: ") for line in found.lines)


def test_the_variable_is_named_as_the_reason(monkeypatch, model):
    monkeypatch.setenv(choice.EXECUTOR_VARIABLE, "torch")
    found = interlingua.info(model=model)
    assert set(found.executors.values()) == {"torch"}
    assert f"  float32: torch, {choice.EXECUTOR_VARIABLE} requests it" in found.lines
