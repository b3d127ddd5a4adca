"""The command line of a verb has the options of its dataclass: the same names, defaults, help texts
and groups."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import io
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

import numpy as np
import pytest

import interlingua
from interlingua.cli.main import VERBS
from interlingua.cli.options import GroupedCommand, make_command
from interlingua.cli.verb import make_verb_command as app_of
from interlingua.config import AtLeast
from interlingua.config.options import GROUPS, SEARCH, Options, argument, declaration_of, option
from interlingua.config.registry import DEFAULT_MODEL
from tests.tiny import tiny_encoder


def function_of_verb(verb):
    return getattr(importlib.import_module(f"interlingua.cli.verbs.{verb}"), verb)


CONVERTED = [verb for verb in VERBS if hasattr(function_of_verb(verb), "options")]
NOT_OF_PYTHON = {"quiet", "json"}
"""Options that are about the terminal."""


def parameters(verb):
    import typer

    return {
        parameter.name: parameter
        for parameter in typer.main.get_command(app_of(verb, VERBS[verb])).params
    }


def test_all_verbs_are_made_from_dataclasses():
    assert list(VERBS) == CONVERTED


@pytest.mark.parametrize("verb", CONVERTED)
def test_command_line_and_function_have_equal_options(verb):
    options = function_of_verb(verb).options
    fields = {
        field.name: field
        for field in dataclasses.fields(options)
        if not declaration_of(field).is_in_memory
    }
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
        assert kind is not Path or "PathLike" in str(field.type), field.name


@pytest.mark.parametrize("verb", CONVERTED)
def test_an_option_has_one_name_on_the_command_line(verb):
    for field in dataclasses.fields(function_of_verb(verb).options):
        assert len(declaration_of(field).flags) <= 1, field.name


@dataclasses.dataclass(frozen=True)
class Small(Options):
    """Options of an invented verb."""

    text: str = argument("A text.")
    many: Annotated[int, AtLeast(1)] = option(3, "How many.", group=SEARCH, unit="texts")
    fast: bool = option(True, "Hurry.")


def test_help_stands_under_the_headings_of_the_groups(capsys):
    import typer

    seen = []

    @make_command(Small)
    def small(options, quiet):
        """Return without an effect."""
        seen.append((options, quiet))

    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(cls=GroupedCommand)(small)
    app(["a", "--many", "5", "--no-fast", "--quiet"], standalone_mode=False)
    assert seen == [(Small("a", many=5, fast=False), True)]
    app(["--help"], standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Arguments:", "Search:", "Options:"]


WITH_DEFAULT = ["embed", "mine", "calibrate", "score", "align", "documents"]


def test_these_verbs_have_a_model_of_their_own(done):
    for verb in CONVERTED:
        may_be_left_out = function_of_verb(verb).options.left_out(None, {}) is not None
        assert may_be_left_out == (verb in WITH_DEFAULT), verb
    for verb in (*WITH_DEFAULT, "export"):
        shown = " ".join(done(verb, "--help").out.split())
        model = re.search(r"Arguments: model <\w+> (.*?)(?: [\w.]+ <| Model: | Input: )", shown)[1]
        assert (DEFAULT_MODEL in model) == (verb in WITH_DEFAULT), verb
        assert ("[required]" in model) == (verb not in WITH_DEFAULT), verb


@pytest.fixture
def mini(tmp_path, monkeypatch, word_vocabulary):
    """A working directory with texts, in which the default model is a tiny one."""
    tiny_encoder(word_vocabulary).save(tmp_path / "model")
    entry = SimpleNamespace(
        name=DEFAULT_MODEL, value="package:folder", load=lambda: lambda: tmp_path / "model"
    )
    monkeypatch.setattr("interlingua.config.registry.installed", lambda group: [entry])
    monkeypatch.chdir(tmp_path)
    lines = [f"{n} {n + 1}" for n in range(5)]
    (tmp_path / "a.de.txt").write_text("".join(f"de{line}\n" for line in lines))
    (tmp_path / "b.en.txt").write_text("".join(f"en{line}\n" for line in lines))
    (tmp_path / "pairs.de-en.tsv").write_text("".join(f"de{line}\ten{line}\n" for line in lines))
    (tmp_path / "list.tsv").write_text("a.de.txt\tb.en.txt\n")
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "mine a.de.txt b.en.txt -o out.tsv --quiet",
        "mine -o out.tsv --quiet --k 2 -- a.de.txt b.en.txt",
        "score pairs.de-en.tsv -o out.tsv --quiet",
        "embed -o out.npy a.de.txt --quiet",
        "embed a.de.txt b.en.txt -o out --quiet",
        "align a.de.txt b.en.txt -o out --quiet",
        "align --list list.tsv -o out --quiet",
    ],
)
def test_without_a_model_the_default_one_is_taken(done, mini, line):
    def written():
        done(*arguments)
        [out] = mini.glob("out*")
        files = sorted(
            path for path in [out, *out.rglob("*")] if path.is_file() and path.suffix != ".json"
        )
        found = {path.relative_to(mini): path.read_bytes() for path in files}
        assert found
        shutil.rmtree(out) if out.is_dir() else out.unlink()
        return found

    arguments = line.split()
    without = written()
    arguments = [arguments[0], *("model" if word == "--" else word for word in arguments[1:])]
    if "model" not in arguments:
        arguments.insert(1, "model")
    assert written() == without


def test_standard_input_is_no_model(done, mini, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"de1 de2\nde3\n")))
    done("embed - -o out.npy --quiet")
    assert np.load(mini / "out.npy").shape[0] == 2


@pytest.mark.parametrize(
    "line", ["score", "score model", "mine a.de.txt -o out.tsv", "align model a.de.txt x.txt y.txt"]
)
def test_a_missing_or_surplus_argument_is_still_one_line(refused, mini, line):
    # `mine` of one text: a folder could have both languages.
    message = refused(line).err
    assert "argument" in message or "SOURCE and TARGET" in message
    assert message.count("\n") == 1


def test_a_line_limit_ends_with_the_command(refused, tmp_path):
    from interlingua.storage.limits import max_line_characters

    (tmp_path / "a.tsv").write_text("long line\tlong line\n")
    before = max_line_characters()
    refused(f"score m {tmp_path}/a.tsv --max-line 5 --quiet")
    assert max_line_characters() == before
