"""An option is added by a change of one file: the verb's options."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from pathlib import Path

import pytest

import interlingua
from interlingua.cli.main import main
from interlingua.errors import ConfigError
from tests.docs.test_python_reference import section
from tests.mining.invented import corpora, embed, write_lines

OPTION = """
    patience: Annotated[int, AtLeast(2)] = option(
        7, "How long this test waits.", group=SEARCH, unit="days", short="-y"
    )
"""
PLACES = {
    "mine": (
        "    plan: bool = option(\n"
        '        False, "Print the estimated time, disk space and memory, and do nothing else."\n'
        "    )\n"
    ),
    "calibrate": '    seed: int = option(0, "Seed of the choice of held-out pairs.")\n',
    "score": "    # How a pair is scored.\n",
}
"""Verb -> a line of its module, behind which the option is added."""
IMPORTS = """
from typing import Annotated
from interlingua.config import AtLeast
from interlingua.config.options import SEARCH
"""


@pytest.fixture(params=PLACES)
def verb(request, monkeypatch):
    """A verb with one more option: its module is loaded from a changed copy of its source."""
    name = request.param
    module = importlib.import_module(f"interlingua.verbs.{name}")
    importlib.import_module(f"interlingua.cli.verbs.{name}")
    source = Path(inspect.getsourcefile(module)).read_text(encoding="utf-8")
    place = PLACES[name]
    assert source.count(place) == 1
    head = "from __future__ import annotations\n"
    changed = source.replace(place, place + OPTION).replace(head, head + IMPORTS, 1)
    copy = type(sys)(module.__name__)
    copy.__file__ = module.__file__
    monkeypatch.setitem(sys.modules, module.__name__, copy)
    exec(compile(changed, module.__file__, "exec"), copy.__dict__)
    # The command line's module imports the verb's anew.
    monkeypatch.delitem(sys.modules, f"interlingua.cli.verbs.{name}")
    return copy


@pytest.fixture
def files(tmp_path):
    sources, targets, pairs = corpora(120, 40)
    right = [f"{sources[a]}\t{targets[b]}" for a, b in pairs]
    return {
        "source": write_lines(tmp_path / "a.de", sources),
        "target": write_lines(tmp_path / "a.en", targets),
        "bitext": write_lines(tmp_path / "a.de-en.tsv", right),
        "gold": write_lines(tmp_path / "gold.tsv", right),
        "work": tmp_path / "work",
    }


def arguments_of(name, files):
    """Return the command line of a verb that keeps its work folder."""
    read = {"score": [files["bitext"]]}.get(name, [files["source"], files["target"]])
    more = ["--gold", files["gold"]] if name == "calibrate" else []
    output = ["-o", files["work"].with_name("out.tsv"), "--work", files["work"]]
    model = ["tests.mining.invented:embed", "--backend", "function"]
    return [name, *map(str, [model[0], *read, *model[1:], *output, *more])]


def name_of(verb):
    return verb.__name__.rpartition(".")[2]


def test_help_and_reference_have_it(verb, capsys):
    with pytest.raises(SystemExit):
        main([name_of(verb), "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "--patience" in shown
    assert "How long this test waits." in shown
    assert "7" in shown
    function = getattr(verb, name_of(verb))
    row = "| `patience` | `7` | How long this test waits. Unit: days. |"
    assert row in section(name_of(verb), function)


def test_the_command_line_takes_it_and_the_record_keeps_it(verb, files, capsys):
    arguments = arguments_of(name_of(verb), files)
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--patience", "4"])
    assert not ended.value.code, capsys.readouterr().err
    [record] = files["work"].glob("*.json")
    assert json.loads(record.read_text())["settings"]["options"]["patience"] == 4
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--patience", "1"])
    assert ended.value.code == 2
    assert "patience" in capsys.readouterr().err


def test_python_takes_it_and_its_errors_name_it(verb, files):
    name = name_of(verb)
    function = getattr(verb, name)
    parameter = inspect.signature(function).parameters["patience"]
    assert (parameter.default, parameter.kind) == (7, parameter.KEYWORD_ONLY)
    assert "patience: How long this test waits." in function.__doc__
    read = [files["bitext"]] if name == "score" else [files["source"], files["target"]]
    with pytest.raises(ConfigError, match=r"'patiense'.*'patience'"):
        function(embed, *read, output="x", patiense=3)
    with pytest.raises(ConfigError, match="patience"):
        function(embed, *read, output="x", patience=1)
    with pytest.raises(ConfigError, match=r"patience: .*'long'"):
        function(embed, *read, output="x", patience="long")
    options = {"calibrate": {"gold": files["gold"]}}.get(name, {})
    output = files["work"].with_name("out")
    function(embed, *read, output=f"{output}.tsv", work=files["work"], patience=5, **options)
    [record] = files["work"].glob("*.json")
    assert json.loads(record.read_text())["settings"]["options"]["patience"] == 5


def test_the_change_is_undone():
    assert "patience" not in inspect.signature(interlingua.mine).parameters
