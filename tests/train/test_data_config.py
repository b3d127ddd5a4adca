from pathlib import Path

import pytest

from interlingua.errors import ConfigError
from interlingua.train.data_config import DataConfig, LabelledConfig, MonolingualConfig


def test_nothing_to_train_on():
    with pytest.raises(ConfigError, match="nothing to train on; give corpus"):
        DataConfig()


def test_all_paths_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = DataConfig(
        corpus=Path("prepared"),
        labelled=LabelledConfig(paths=(Path("a.tsv"),), valid=(Path("b.tsv"),), kind="nli"),
        monolingual=MonolingualConfig(paths=(Path("ru.txt"),)),
    ).with_absolute_paths()
    assert config.corpus == tmp_path / "prepared"
    assert (config.labelled.paths, config.labelled.valid) == ((tmp_path / "a.tsv",), (tmp_path / "b.tsv",))
    assert config.monolingual.paths == (tmp_path / "ru.txt",)
    assert config.questions is None
