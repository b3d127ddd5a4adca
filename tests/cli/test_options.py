"""The command line of a verb has the options of its dataclass: the same names, defaults, help texts and groups."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from pathlib import Path

import pytest

import interlingua
from interlingua.cli import main
from interlingua.cli.main import VERBS
from interlingua.cli.options import GroupedCommand, command
from interlingua.cli.verb import command as app_of
from interlingua.options import GROUPS, SEARCH, Options, argument, declaration_of, option


def function_of_verb(verb):
    return getattr(importlib.import_module(f"interlingua.cli.{verb}"), verb)


CONVERTED = [verb for verb in VERBS if hasattr(function_of_verb(verb), "options")]
NOT_OF_PYTHON = {"quiet"}
"""Options that are about the terminal."""


def parameters(verb):
    import typer

    return {parameter.name: parameter for parameter in typer.main.get_command(app_of(verb, VERBS[verb])).params}


def test_these_verbs_are_made_from_dataclasses():
    assert {
        "prepare", "train", "evaluate", "compare", "analyse", "embed", "mine", "calibrate", "score", "align",
        "export", "quickstart",
    } <= set(CONVERTED)  # fmt: skip


@pytest.mark.parametrize("verb", CONVERTED)
def test_command_line_and_function_have_equal_options(verb):
    options = function_of_verb(verb).options
    fields = {field.name: field for field in dataclasses.fields(options)}
    found = parameters(verb)
    assert set(found) - NOT_OF_PYTHON == set(fields)
    for name, field in fields.items():
        declaration = declaration_of(field)
        is_required = field.default is dataclasses.MISSING or declaration.is_required
        assert found[name].required == is_required, name
        if not is_required:
            assert found[name].default == field.default, name
        assert found[name].help.startswith(declaration.help), name
        assert declaration.group in GROUPS


@pytest.mark.parametrize("verb", CONVERTED)
def test_the_public_function_takes_each_option(verb):
    options = function_of_verb(verb).options
    public = getattr(importlib.import_module(f"interlingua.verbs.{verb}"), verb)
    assert verb in interlingua.__all__
    assert inspect.signature(getattr(interlingua, verb)) == inspect.signature(public)
    assert public.options is options
    assert list(inspect.signature(public).parameters) == list(inspect.signature(options).parameters)
    for field in dataclasses.fields(options):
        assert f"{field.name}: " in public.__doc__


@pytest.mark.parametrize("verb", CONVERTED)
def test_a_type_of_the_command_line_is_one_of_the_field(verb):
    for field in dataclasses.fields(function_of_verb(verb).options):
        kind = declaration_of(field).kind
        names = {Path: "PathLike", float: "float", int: "int"}
        assert kind not in names or names[kind] in str(field.type), field.name


@dataclasses.dataclass(frozen=True)
class Small(Options):
    """Options of an invented verb."""

    text: str = argument("A text.")
    many: int = option(3, "How many.", group=SEARCH, minimum=1, unit="texts")
    fast: bool = option(True, "Hurry.")


def test_help_stands_under_the_headings_of_the_groups(capsys):
    import typer

    seen = []

    @command(Small)
    def small(options, quiet):
        """Does little."""
        seen.append((options, quiet))

    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(cls=GroupedCommand)(small)
    app(["a", "--many", "5", "--no-fast", "--quiet"], standalone_mode=False)
    assert seen == [(Small("a", many=5, fast=False), True)]
    app(["--help"], standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Arguments:", "Search:", "Options:"]


def test_a_line_limit_ends_with_the_command(monkeypatch, tmp_path):
    from interlingua.limits import max_line_characters

    (tmp_path / "a.tsv").write_text("long line\tlong line\n")
    before = max_line_characters()
    with pytest.raises(SystemExit):
        main.main(["score", "m", str(tmp_path / "a.tsv"), "--max-line", "5", "--quiet"])
    assert max_line_characters() == before
