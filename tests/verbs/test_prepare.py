"""``interlingua.prepare`` and ``interlingua prepare`` make the same corpus."""

from __future__ import annotations

import dataclasses

import pytest

import interlingua
from interlingua.config import from_mapping
from interlingua.errors import ConfigError
from interlingua.preparation.config import PrepareConfig


@pytest.fixture
def config(tmp_path):
    words = [f"{a}{b}" for a in "abcdefghij" for b in "klmnopqrst"]
    (tmp_path / "de-en.tsv").write_text("".join(f"der {word}en\tthe {word}\n" for word in words))
    table = {
        "output": str(tmp_path / "nowhere"),
        "processes": 1,
        "validation": {"pairs": 1},
        "vocabulary": {"size": 70},
        "sources": [{"paths": [str(tmp_path / "de-en.tsv")]}],
    }
    (tmp_path / "prepare.toml").write_text(
        f'output = "nowhere"\nprocesses = 1\nvalidation = {{pairs = 1}}\nvocabulary = {{size ='
        f" 70}}\n"
        f'[[sources]]\npaths = ["{tmp_path / "de-en.tsv"}"]\n'
    )
    return table


def test_function_and_command_line_make_equal_corpora(done, tmp_path, config):
    change = "vocabulary.size=60"
    done(f"prepare {tmp_path}/prepare.toml --set {change} -o {tmp_path}/a --quiet")
    kinds = {"b": tmp_path / "prepare.toml", "c": config, "d": from_mapping(PrepareConfig, config)}
    for name, given in kinds.items():
        made = interlingua.prepare(given, settings=[change], output=tmp_path / name)
        assert made.output == tmp_path / name
        assert made.manifest.vocabulary["size"] == 60
        for path in (tmp_path / "a").rglob("*"):
            if path.suffix in (".bin", ".model"):
                assert (
                    tmp_path / name / path.relative_to(tmp_path / "a")
                ).read_bytes() == path.read_bytes()
    assert config["vocabulary"] == {"size": 70}
    assert dataclasses.is_dataclass(kinds["d"])


def test_an_unknown_key_is_refused(config):
    with pytest.raises(ConfigError, match="processes"):
        interlingua.prepare({**config, "process": 2})
