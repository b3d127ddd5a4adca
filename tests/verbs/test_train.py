"""``interlingua.train`` and ``interlingua train`` train the same encoder."""

from __future__ import annotations

import pytest

import interlingua
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError, InterlinguaError
from interlingua.training.config import train_config_from


@pytest.fixture
def config(prepared, tmp_path):
    return {
        "data": {"corpus": str(prepared), "valid_pairs": 32},
        "encoder": {"preset": "ems-tiny"},
        "method": {"name": "infonce"},
        "run": {
            "output": str(tmp_path / "run"),
            "max_steps": 3,
            "global_batch_size": 16,
            "precision": "fp32",
            "device": "cpu",
            "threads": 1,
        },
    }


TOML = """
[data]
corpus = "{corpus}"
valid_pairs = 32
[encoder]
preset = "ems-tiny"
[method]
name = "infonce"
[run]
output = "run"
max_steps = 3
global_batch_size = 16
precision = "fp32"
device = "cpu"
threads = 1
"""


def test_function_and_command_line_train_equal_weights(done, prepared, tmp_path, config):
    path = tmp_path / "train.toml"
    path.write_text(TOML.format(corpus=prepared), encoding="utf-8")
    done(f"train {path} -o {tmp_path}/a --set run.max_steps=2 --quiet")
    expected = Encoder.load(tmp_path / "a" / "model").digest()
    for name, given in (("b", path), ("c", config)):
        [result] = interlingua.train(given, output=tmp_path / name, settings=["run.max_steps=2"])
        assert result.step == 2
        assert Encoder.load(result.model).digest() == expected
    [result] = interlingua.train(train_config_from(config), output=tmp_path / "d")
    assert result.run == tmp_path / "d"
    assert result.step == 3


def test_a_config_object_is_not_changed_by_settings(config):
    with pytest.raises(ConfigError, match="settings"):
        interlingua.train(train_config_from(config), settings=["run.max_steps=2"])


def test_init_writes_a_config(tmp_path):
    made = interlingua.train(tmp_path / "new.toml", init="finetune")
    assert made == []
    assert "[data]" in made.template.read_text()
    with pytest.raises(InterlinguaError, match=r"new\.toml"):
        interlingua.train(tmp_path / "new.toml", init="finetune")


def test_without_a_config_there_is_nothing_to_train():
    with pytest.raises(InterlinguaError, match="--init"):
        interlingua.train()
