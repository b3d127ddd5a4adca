from pathlib import Path

import pytest

from interlingua.config import with_absolute_paths
from interlingua.errors import ConfigError
from interlingua.training.feeds.data_config import (
    DataConfig,
    LabeledConfig,
    MonolingualConfig,
    QuestionsConfig,
)


def test_nothing_to_train_on():
    with pytest.raises(ConfigError, match=r"data: .*set corpus"):
        DataConfig()


def test_data_paths_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = DataConfig(
        corpus=Path("prepared"),
        labeled=LabeledConfig(paths=(Path("a.tsv"),), valid=(Path("b.tsv"),), kind="nli"),
        monolingual=MonolingualConfig(paths=(Path("ru.txt"),), decontaminate=(Path("tests"),)),
    )
    config = with_absolute_paths(config)
    assert config.corpus == tmp_path / "prepared"
    assert (config.labeled.paths, config.labeled.valid) == (
        (tmp_path / "a.tsv",),
        (tmp_path / "b.tsv",),
    )
    assert config.monolingual.paths == (tmp_path / "ru.txt",)
    assert config.monolingual.decontaminate == (tmp_path / "tests",)
    assert config.questions is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"paths": ()}, "paths is empty"),
        ({"valid": (Path("dev.json"),), "held_out": 5}, "valid and held_out"),
        ({"hard_negatives": -1}, "hard_negatives"),
        ({"max_passage_tokens": 0}, "max_passage_tokens"),
    ],
)
def test_questions_that_contradict_themselves(options, message):
    with pytest.raises(ConfigError, match=message):
        QuestionsConfig(**{"paths": (Path("train.json"),), **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"paths": ()}, "data.monolingual: paths is empty"),
        ({"batch_size": 0}, "batch_size"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_sentences": -1}, "max_sentences"),
    ],
)
def test_texts_that_are_none(options, message):
    with pytest.raises(ConfigError, match=message):
        MonolingualConfig(**{"paths": (Path("ru.txt"),), **options})
    with pytest.raises(ConfigError, match=r"data\.labeled: paths is empty"):
        LabeledConfig(paths=(), kind="nli")


def test_a_language_pair_that_is_none():
    with pytest.raises(ConfigError, match="language pair 'en': expected two"):
        DataConfig(corpus=Path("prepared"), language_pairs=("en-ko", "en"))
