from pathlib import Path

import pytest

from interlingua.config import config_to_toml, load_config
from interlingua.errors import ConfigError
from interlingua.prepare.config import PrepareConfig, SourceConfig, SplitConfig

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
    assert (config.sources[0].languages, config.sources[0].label, config.vocabulary.size) == (
        ("de", "en"),
        "a.tsv",
        9,
    )
    (tmp_path / "b.toml").write_text(config_to_toml(config))
    assert load_config(PrepareConfig, tmp_path / "b.toml") == config


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SourceConfig(paths=()), "no paths"),
        (lambda: SourceConfig(paths=(Path("a"),), weight=0), "weight is 0"),
        (lambda: SourceConfig(paths=(Path("a"),), weight=1.5), "weight is 1.5"),
        (lambda: SourceConfig(paths=(Path("a"),), max_pairs=-1), "max_pairs is -1"),
        (lambda: SplitConfig(pairs=-1), "pairs is -1"),
        (lambda: SplitConfig(max_share=1), "max_share 1"),
        (lambda: PrepareConfig(output=Path("o"), sources=()), "no sources"),
        (
            lambda: PrepareConfig(
                output=Path("o"), sources=(SourceConfig(paths=(Path("a"),)),), processes=0
            ),
            "processes is 0",
        ),
        (
            lambda: PrepareConfig(
                output=Path("o"), sources=(SourceConfig(paths=(Path("a"),)),), max_tokens=1
            ),
            "max_tokens is 1",
        ),
        (
            lambda: PrepareConfig(
                output=Path("o"), sources=(SourceConfig(paths=(Path("a"),)),), long_pairs="drop"
            ),
            "set vocabulary.path",
        ),
    ],
)
def test_impossible_settings(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            '["de", "deu"]',
            r"a\.toml: sources\[0\]: languages: .*deu_Latn",
        ),
        (
            '["Germn", "en"]',
            r"a\.toml: sources\[0\]: languages: .*'Germn'; .*deu_Latn",
        ),
    ],
)
def test_a_sources_languages_are_two_known_ones(tmp_path, override, message):
    (tmp_path / "a.toml").write_text(TOML.replace('["de", "en"]', override))
    with pytest.raises(ConfigError, match=message):
        load_config(PrepareConfig, tmp_path / "a.toml")


def test_languages_to_keep_are_known(tmp_path):
    (tmp_path / "a.toml").write_text(TOML)
    with pytest.raises(ConfigError, match=r"a\.toml: languages: .*'Germn'"):
        load_config(PrepareConfig, tmp_path / "a.toml", overrides=['languages=["Germn"]'])


def test_the_experiments_file_is_valid(monkeypatch):
    monkeypatch.setenv("INTERLINGUA_DATA", "/data")
    path = Path(__file__).parents[2] / "experiments" / "ems" / "prepare_trainmix.toml"
    config = load_config(PrepareConfig, path)
    assert len(config.sources) == 10
    assert config.sources[0].paths == (Path("/data/train-mix/pairs/*.tatoeba_challenge.tsv"),)
