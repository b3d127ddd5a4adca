"""``interlingua serve``: what can't be is one line, before anything is served."""

from __future__ import annotations

from typer.main import get_command

from interlingua.cli.verb import make_verb_command
from interlingua.cli.verbs import serve as verb
from interlingua.config.registry import DEFAULT_MODEL


def test_every_flag_has_its_variable():
    parameters = [
        one
        for one in get_command(make_verb_command("serve", "")).params
        if one.name not in ("model", "help")
    ]
    assert len(parameters) >= 15
    assert [one.envvar for one in parameters] == [
        verb._PREFIX + one.name.upper() for one in parameters
    ]


def test_the_model_is_the_default_one_unless_named():
    [model] = [
        one for one in get_command(make_verb_command("serve", "")).params if one.name == "model"
    ]
    assert (model.default, model.required) == (DEFAULT_MODEL, False)
