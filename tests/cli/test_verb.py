from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("mine m a b -o p.tsv --k 0", "Invalid value for '--k': "),
        ("mine --kk 3", "No such option: --kk"),
        ("score", "Missing argument"),
        ("align m a b surplus", "Got unexpected extra argument"),
        ("train --steps x", "No such option: --steps"),
    ],
)
def test_a_slip_in_the_options_is_one_line(refused, command, line):
    told = refused(command).err
    assert told.startswith(f"interlingua: {line}")
    assert told.endswith(f"; see: interlingua {command.split()[0]} --help\n")


@pytest.mark.parametrize(
    ("command", "option", "after"),
    [
        ("evaluate m --data --output x", "--data", "--output"),
        ("evaluate m --data -o x", "--data", "-o"),
        ("mine m a b -o --threshold 1", "-o", "--threshold"),
        ("score a.tsv --calibration --check all", "--calibration", "--check"),
        ("look a.tsv --tests --json", "--tests", "--json"),
        ("train a.toml --resume --quiet", "--resume", "--quiet"),
    ],
)
def test_an_option_is_no_value_of_the_one_before(refused, command, option, after):
    message = refused(command).err
    assert message.startswith(f"interlingua: {option} has no value, because {after} follows")
    assert "shell variable" in message


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("evaluate m --data=", "--data"),
        ("mine m '' b -o x", "SOURCE"),
        ("look a.tsv ''", "FILES"),
        ("embed '' a -o x", "MODEL"),
        ("serve ''", "MODEL"),
        ("score a.tsv --parallel ''", "--parallel"),
    ],
)
def test_an_empty_path_is_refused(refused, command, name):
    message = refused(command).err
    assert message.startswith(f"interlingua: {name} is empty")
    assert "shell variable" in message


def test_a_value_may_begin_with_dashes_behind_an_equals_sign(refused):
    assert "has no value" not in refused("evaluate m --data=--x").err
    assert "has no value" not in refused("look -- --tests --x").err


def test_help_ends_with_0(done):
    assert "Usage: interlingua mine" in done("mine --help").out


@pytest.mark.parametrize(
    ("words", "expected"),
    [("interlingua tr", "train"), ("interlingua align --sk", "--skip-quantile")],
)
def test_the_shell_gets_the_rest_of_a_word(words, expected):
    given = {
        "_INTERLINGUA_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    result = subprocess.run(
        [sys.executable, "-m", "interlingua"],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split() == [expected]


def test_completion_is_installed_for_the_shell_in_use(tmp_path):
    code = "from interlingua.cli import main; main.main(['--install-completion', 'bash'])"
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    [script] = (tmp_path / ".bash_completions").iterdir()
    assert "_INTERLINGUA_COMPLETE" in script.read_text()
