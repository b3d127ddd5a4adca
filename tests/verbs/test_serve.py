"""``interlingua.serve`` hands its options on to the server."""

from __future__ import annotations

import inspect

import pytest

import interlingua
from interlingua.config.registry import DEFAULT_MODEL
from interlingua.errors import ConfigError
from interlingua.serving import server
from interlingua.verbs.serve import ServeOptions


def test_all_options_reach_the_server(monkeypatch):
    seen = {}
    monkeypatch.setattr(
        server,
        "served_model",
        lambda model, **options: seen.update(options, model=model) or "encoder",
    )
    monkeypatch.setattr("interlingua.verbs.serve.check_inputs", lambda options: None)
    monkeypatch.setattr(server, "calibrations_for", lambda *given: given)
    monkeypatch.setattr(
        server, "serve_forever", lambda *given, **options: seen.update(options, given=given)
    )
    given = {
        "name": "n",
        "prompt": "p",
        "dtype": "int8",
        "device": "cpu",
        "threads": 2,
        "host": "h",
        "port": 1,
    }
    given |= {"workers": 2, "index": "i", "calibration": "c", "max_texts": 3}
    interlingua.serve("m", **given)
    encoder, settings = seen.pop("given")
    assert encoder == "encoder"
    assert seen.pop("calibrations") == ("encoder", "m", given.pop("calibration"))
    assert (settings.max_texts, settings.batch_tokens) == (
        given.pop("max_texts"),
        ServeOptions().batch_tokens,
    )
    names = [given.pop("name")]
    assert seen == {"model": "m", "names": names, **given}


def test_a_model_need_not_be_named():
    assert inspect.signature(interlingua.serve).parameters["model"].default == DEFAULT_MODEL


def test_a_number_out_of_range_is_refused():
    with pytest.raises(ConfigError, match="port: expected"):
        interlingua.serve(port=65_536)
