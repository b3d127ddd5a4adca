from pathlib import Path

import pytest

from interlingua.config import config_to_toml, load_config
from interlingua.errors import ConfigError
from interlingua.preparation.config import (
    PrepareConfig,
    SourceConfig,
    SplitConfig,
    VocabularyConfig,
)

TOML = """
output = "out"
[[sources]]
paths = ["a.tsv"]
languages = ["de", "en"]
max_pairs = 7
"""


def test_toml_round_trip(tmp_path):
    (tmp_path / "a.toml").write_text(TOML)
    config = load_config(PrepareConfig, tmp_path / "a.toml", overrides=["vocabulary.size=9"])
    (source,) = config.sources
    assert (source.languages, source.label) == (("de", "en"), "a.tsv")
    assert config.vocabulary.size == 9
    (tmp_path / "b.toml").write_text(config_to_toml(config))
    assert load_config(PrepareConfig, tmp_path / "b.toml") == config


A = {"paths": (Path("a"),)}
WHOLE = {"output": Path("o"), "sources": (SourceConfig(**A),)}


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (SourceConfig, {"paths": ()}, "no paths"),
        (SourceConfig, A | {"weight": 0}, "weight: expected"),
        (SourceConfig, A | {"weight": 1.5}, "weight: expected"),
        (SourceConfig, A | {"max_pairs": -1}, "max_pairs: expected"),
        (SplitConfig, {"pairs": -1}, "pairs: expected"),
        (SplitConfig, {"max_share": 1}, "max_share: expected"),
        (PrepareConfig, WHOLE | {"sources": ()}, "sources are missing"),
        (PrepareConfig, WHOLE | {"processes": 0}, "processes: expected"),
        (PrepareConfig, WHOLE | {"max_tokens": 1}, "max_tokens: expected"),
        (PrepareConfig, WHOLE | {"long_pairs": "drop"}, "requires vocabulary.path"),
        (VocabularyConfig, {"trim": True}, "trim requires path"),
        (VocabularyConfig, {"max_size": 100}, "max_size"),
    ],
)
def test_impossible_settings(kind, settings, message):
    with pytest.raises(ConfigError, match=message):
        kind(**settings)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ('sources=[{paths=["a"], languages=["de", "deu"]}]', r"sources\[0\]: .*deu_Latn"),
        (
            'sources=[{paths=["a"], languages=["Germn", "en"]}]',
            r"sources\[0\]: .*'Germn'; .*deu_Latn",
        ),
        ('languages=["Germn"]', ".*'Germn'"),
    ],
)
def test_languages_are_known_and_those_of_a_source_are_two(tmp_path, override, message):
    (tmp_path / "a.toml").write_text(TOML)
    with pytest.raises(ConfigError, match=rf"a\.toml: {message}"):
        load_config(PrepareConfig, tmp_path / "a.toml", overrides=[override])


def test_the_experiments_file_is_valid(monkeypatch):
    monkeypatch.setenv("INTERLINGUA_DATA", "/data")
    path = Path(__file__).parents[2] / "experiments" / "ems" / "prepare_trainmix.toml"
    config = load_config(PrepareConfig, path)
    assert len(config.sources) == 10
    assert config.sources[0].paths == (Path("/data/train-mix/pairs/*.tatoeba_challenge.tsv"),)
