"""Every verb that is called wrongly from Python names the right call in one line."""

from __future__ import annotations

import re

import pytest

import interlingua
from interlingua.config.options import declaration_of
from interlingua.errors import InterlinguaError

OTHERS = ("Encoder", "Index", "InterlinguaError", "__version__", "load", "split")
VERBS = [name for name in interlingua.__all__ if name not in OTHERS]
NEEDS_NOTHING = ("info", "quickstart", "serve")
"""Verbs that start their work without an argument."""


class Stranger:
    """An object of no use to any verb."""


def options_of(verb):
    function = getattr(interlingua, verb)
    return getattr(function, "verb", function).options.__dataclass_fields__.values()


def message_of(verb, *arguments, **options):
    with pytest.raises(InterlinguaError) as caught:
        getattr(interlingua, verb)(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    # The command's syntax would not be the remedy here.
    assert not re.match(r"(?!.*interlingua\.).*(--\w|SOURCE|MODEL)", message), message
    assert not re.search(r"\ba [aeio]\w+\b|\b1 \w+s\b", message), message
    return message


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in NEEDS_NOTHING])
def test_no_arguments(verb):
    assert f"interlingua.{verb}(" in message_of(verb)


@pytest.mark.parametrize("verb", VERBS)
def test_an_unknown_keyword(verb):
    message = message_of(verb, zyxwv=1)
    assert "zyxwv" in message
    assert next(iter(options_of(verb))).name in message


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in NEEDS_NOTHING])
def test_none(verb):
    assert f"interlingua.{verb}(" in message_of(verb, None)


@pytest.mark.parametrize("value", [3, b"bytes", ["a", 1], {1: 2}, Stranger()], ids=type)
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "quickstart"])
def test_a_wrong_first_argument(verb, value):
    first = next(field for field in options_of(verb) if not field.kw_only)
    needed = [one for one in options_of(verb) if not one.kw_only and one is not first]
    others = {field.name: "no-such-file.txt" for field in needed}
    takes = str(first.type)
    if (isinstance(value, list) and "Sequence" in takes) or (
        isinstance(value, dict) and "Mapping" in takes
    ):
        pytest.skip("may be right")
    message = message_of(verb, value, **{**others, **keyword_only(verb)})
    assert f"interlingua.{verb}(" in message


def keyword_only(verb):
    return {
        field.name: "out"
        for field in options_of(verb)
        if field.kw_only and declaration_of(field).is_required and str(field.type) == "PathLike"
    }


@pytest.mark.parametrize("verb", VERBS)
def test_a_list_for_a_path(verb):
    paths = [f for f in options_of(verb) if str(f.type) in ("PathLike", "PathLike | None")]
    needed = {f.name: "no-such-file.txt" for f in options_of(verb) if "MISSING" in repr(f.default)}
    needed = {name: ["no"] if name == "arguments" else value for name, value in needed.items()}
    for field in paths:
        message = message_of(verb, **{**needed, field.name: ["a", "b"]})
        assert field.name in message
        assert f"interlingua.{verb}(" in message


@pytest.mark.parametrize("verb", VERBS)
def test_too_many_arguments(verb):
    assert f"interlingua.{verb}(" in message_of(verb, *"abcdefgh")
