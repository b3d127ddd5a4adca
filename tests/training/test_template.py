from __future__ import annotations

import dataclasses
import re
import tomllib
from dataclasses import dataclass

import pytest

from interlingua.errors import ConfigError
from interlingua.training.config import RunConfig, load_train_config
from interlingua.training.feeds.data_config import DataConfig
from interlingua.training.template import RECIPES, field_texts, template


@pytest.fixture(params=RECIPES)
def recipe(request):
    return request.param


def written(tmp_path, text):
    path = tmp_path / "train.toml"
    path.write_text(text, encoding="utf-8")
    return path


def is_toml(line):
    """Return whether a line is TOML. Descriptions have lines such as ``auto = cuda`` too."""
    try:
        return bool(tomllib.loads(line))
    except tomllib.TOMLDecodeError:
        return False


def test_every_template_loads_as_it_is(recipe, tmp_path):
    config = load_train_config(written(tmp_path, template(recipe)))
    assert config.data.corpus == tmp_path / "prepared"
    assert config.run.output.parent == tmp_path / "runs"


def test_defaults_in_comments_are_the_defaults(recipe, tmp_path):
    text = template(recipe)
    config = load_train_config(written(tmp_path, text))
    uncommented = re.sub(
        r"^# (?=\w+ = )(.*)",
        lambda line: line[1] if is_toml(line[1]) else line[0],
        text,
        flags=re.M,
    )
    assert uncommented != text
    assert load_train_config(written(tmp_path, uncommented)) == config


def test_every_key_of_run_and_data_is_explained(recipe):
    lines = template(recipe).splitlines()
    for field in (*dataclasses.fields(RunConfig), *dataclasses.fields(DataConfig)):
        if field.name != "caps":  # a section of its own
            assert any(re.match(rf"(# )?{field.name} (=|is not set)", line) for line in lines), (
                field.name
            )
    assert max(map(len, lines)) <= 120


def test_an_unknown_recipe_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"'finetun'; .*'finetune'"):
        template("finetun")
    with pytest.raises(ConfigError) as caught:
        template("other")
    assert str(caught.value) == "--init: unknown recipe 'other'; use one of: ems, finetune, mexma"


def test_what_stands_under_a_field_is_its_meaning():
    @dataclass
    class Base:
        a: int = 0
        """First ``one``,
        in two lines."""

    @dataclass
    class Own(Base):
        b: int = 0
        """Second."""

    assert field_texts(Own) == {"a": "First `one`, in two lines.", "b": "Second."}
