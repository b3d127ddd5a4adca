"""``interlingua.evaluate`` and ``interlingua evaluate`` give the same scores."""

from __future__ import annotations

import json

import pytest

import interlingua
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError, DataError
from tests.cli.verbs.test_evaluate import data as data
from tests.cli.verbs.test_evaluate import model as model


def scores_below(folder):
    return {path.name: json.loads(path.read_text())["scores"] for path in folder.rglob("*.json")}


def test_function_and_command_line_give_equal_scores(done, model, data, tmp_path):
    done(
        f"evaluate {model} --data {data} -o {tmp_path}/a --quiet --languages de", "--prompt 'ru1 '"
    )
    options = {"languages": ["de"], "prompt": "ru1 "}
    for name, given in (("b", model), ("c", Encoder.load(model))):
        found = interlingua.evaluate(given, data=data, output=tmp_path / name, **options)
        assert [result.task for result in found] == ["tatoeba_heldout", "xsim_heldout"]
        assert scores_below(tmp_path / name) == scores_below(tmp_path / "a")


def test_suite_and_data_may_be_given_without_their_names(model, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [found] = interlingua.evaluate(Encoder.load(model), "tatoeba", data, output=None)
    assert found.task == "tatoeba_heldout"
    assert not (tmp_path / "results").exists()
    interlingua.evaluate(model, "tatoeba", data)
    assert (tmp_path / "results").is_dir()


def test_a_loaded_model_is_not_loaded_otherwise(model, data):
    with pytest.raises(ConfigError, match="pooling"):
        interlingua.evaluate(Encoder.load(model), data=data, pooling="cls")


def test_the_model_comes_first(data):
    with pytest.raises(ConfigError, match="evaluate"):
        interlingua.evaluate(3, "tatoeba", data)


def test_no_data_is_an_error(model, monkeypatch):
    monkeypatch.delenv("INTERLINGUA_DATA", raising=False)
    with pytest.raises(DataError, match="INTERLINGUA_DATA"):
        interlingua.evaluate(model)
