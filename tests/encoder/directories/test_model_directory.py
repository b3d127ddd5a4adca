from __future__ import annotations

import json

import pytest

from interlingua.encoder.directories.model_directory import EncodingSettings, read_directory
from interlingua.encoder.encoder import Encoder
from interlingua.errors import CheckpointError, ConfigError
from tests.encoder.builders import add_module, edit_json


@pytest.fixture
def folder(encoder, tmp_path):
    encoder.save(tmp_path / "model")
    return tmp_path / "model"


def test_settings_are_read_back(encoder, tmp_path):
    encoder.settings = EncodingSettings(
        pooling="max",
        include_special=False,
        normalize=False,
        max_tokens=77,
        prompts={"query": "Frage: "},
        default_prompt="query",
    )
    encoder.save(tmp_path / "m")
    config, _, settings = read_directory(tmp_path / "m")
    assert settings == encoder.settings
    assert config == encoder.backbone.config
    assert not (tmp_path / "m" / "2_Normalize").exists()


def test_a_prompt_is_a_name_or_a_text_that_ends_as_one():
    settings = EncodingSettings(prompts={"query": "Frage: "}, default_prompt="query")
    assert settings.prompt_text("query") == settings.prompt_text(None) == "Frage: "
    for text in ("", "passage: ", "passage:", "为这个句子生成表示：", "Find this:\n"):
        assert settings.prompt_text(text) == text
    with pytest.raises(ConfigError, match=r"prompt 'passage'; .*query;"):
        settings.prompt_text("passage")
    with pytest.raises(ConfigError, match="prompt 'query'; it has no prompts"):
        EncodingSettings().prompt_text("query")
    # Its text is empty and not kept.
    assert EncodingSettings(default_prompt="document").prompt_text(None) == ""


def test_pooling_is_written_under_new_and_old_keys(folder):
    stored = json.loads((folder / "1_Pooling" / "config.json").read_text())
    assert stored["pooling_mode"] == "mean"
    assert stored["pooling_mode_mean_tokens"] is True
    assert stored["pooling_mode_cls_token"] is stored["pooling_mode_max_tokens"] is False
    assert stored["word_embedding_dimension"] == 32
    assert "embedding_dimension" not in stored  # sentence-transformers before 5.4 would refuse it


@pytest.mark.parametrize(
    ("stored", "mode"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode": ["cls"]}, "cls"),
        ({"word_embedding_dimension": 32}, "mean"),
    ],
)
def test_old_and_new_pooling_keys_are_read(stored, mode, folder):
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(stored))
    assert read_directory(folder)[2].pooling == mode


@pytest.mark.parametrize(
    "stored",
    [
        {"pooling_mode": "lasttoken"},
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
        {"pooling_mode_mean_sqrt_len_tokens": True},
        {"pooling_mode": "mean", "include_prompt": False},
    ],
)
def test_other_poolings_are_refused_not_guessed(stored, folder):
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(stored))
    with pytest.raises(CheckpointError, match=r"pooling .* supported"):
        read_directory(folder)


def test_other_modules_are_refused(folder):
    add_module(folder, "LSTM")
    with pytest.raises(CheckpointError, match="module LSTM"):
        read_directory(folder)


def test_a_plain_hugging_face_folder_pools_by_mean_and_keeps_lengths(folder):
    (folder / "modules.json").unlink()
    assert read_directory(folder)[2] == EncodingSettings(
        pooling="mean", normalize=False, max_tokens=120
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gpt2"}, "model_type 'gpt2' .*bert, roberta, xlm-roberta"),
        ({"position_embedding_type": "relative_key"}, "absolute positions"),
        ({"is_decoder": True}, "absolute positions"),
        ({"hidden_size": 64}, r"has shape \(\d+, 32\), expected \(\d+, 64\)"),
        ({"vocab_size": None}, "config.json has no vocab_size"),
    ],
)
def test_other_architectures_are_refused(changes, message, folder):
    edit_json(folder / "config.json", **changes)
    with pytest.raises(CheckpointError, match=message):
        read_directory(folder)


def test_a_broken_or_missing_config_is_one_line(folder):
    (folder / "config.json").write_text('{"model_type": "be')
    with pytest.raises(CheckpointError, match=r"config.json: cannot be read"):
        Encoder.load(folder)
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"config.json: file not found"):
        Encoder.load(folder)
