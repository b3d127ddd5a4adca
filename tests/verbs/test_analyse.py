"""``interlingua.analyse`` and ``interlingua analyse`` find the same."""

from __future__ import annotations

import json

import pytest

import interlingua
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError
from tests.cli.verbs.test_analyse import data as data
from tests.cli.verbs.test_analyse import models as models


def found_below(folder):
    tables = {}
    for path in folder.rglob("*.analysis.json"):
        content = json.loads(path.read_text())
        tables[path.parent.parent.name, path.name] = (
            content["measures"] if "measures" in content else content["task"]
        )
    return tables


def test_function_and_command_line_find_equal_measures(done, models, data, tmp_path):
    options = "--only agnosticism --set agnosticism.k=2"
    done("analyse", *models, f"--data {data} -o {tmp_path}/a --quiet", options)
    given = {"data": data, "only": ["agnosticism"], "settings": ["agnosticism.k=2"]}
    found = interlingua.analyse(*models, output=tmp_path / "b", **given)
    assert len(found) == 2
    assert found.page.is_file()
    assert found_below(tmp_path / "b") == found_below(tmp_path / "a") != {}
    loaded = [Encoder.load(model) for model in models]
    again = interlingua.analyse(*loaded, output=None, name="before,after", **given)
    assert again.page is None
    assert [[one.measures for one in each] for each in again] == [
        [one.measures for one in each] for each in found
    ]


def test_each_model_needs_a_name(models, data):
    with pytest.raises(ConfigError, match="--name"):
        interlingua.analyse(*models, data=data, name="one")
