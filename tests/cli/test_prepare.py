import os
import signal
import subprocess
import sys
import time

import pytest

from interlingua.cli.main import main
from interlingua.corpus.manifest import Manifest

TOML = """
output = "nowhere"
processes = 1
validation = {pairs = 1}
[[sources]]
paths = ["$INTERLINGUA_DATA/de-en.tsv"]
"""


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERLINGUA_DATA", str(tmp_path))
    words = [f"{a}{b}" for a in "abcdefghij" for b in "klmnopqrst"]
    (tmp_path / "de-en.tsv").write_text("".join(f"der {word}en\tthe {word}\n" for word in words))
    (tmp_path / "prepare.toml").write_text(TOML)
    return tmp_path / "prepare.toml"


def run(*arguments):
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return caught.value.code


def test_prepare(tmp_path, config, capsys):
    assert run("prepare", config, "--set", "vocabulary.size=60", "-o", tmp_path / "out") == 0
    out = capsys.readouterr().out
    assert "Dropped, by rule" in out
    assert f"written: {tmp_path / 'out'}" in out.replace("\n", "")
    assert Manifest.load(tmp_path / "out").train == 100
    assert (
        run(
            "prepare",
            config,
            "--set",
            "vocabulary.size=50",
            "-o",
            tmp_path / "out",
            "--overwrite",
            "--quiet",
        )
        == 0
    )
    assert capsys.readouterr().out == ""
    assert Manifest.load(tmp_path / "out").vocabulary["size"] == 50


def test_what_is_no_corpus_is_not_overwritten(tmp_path, config, capsys):
    mine = tmp_path / "mine" / "notes.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    assert run("prepare", config, "-o", mine.parent, "--overwrite") == 2
    assert "mine holds other files" in capsys.readouterr().err
    assert run("prepare", config, "-o", mine, "--overwrite") == 2
    assert "a file of that name" in capsys.readouterr().err
    assert mine.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_what_was_ended(tmp_path, config, number):
    """SIGTERM is as good as Ctrl-C; what SIGKILL leaves goes when the command is run again."""
    os.mkfifo(tmp_path / "endless.tsv")  # nothing writes to it: prepare waits
    command = [
        sys.executable,
        "-m",
        "interlingua.cli.main",
        "prepare",
        str(config),
        "-o",
        str(tmp_path / "out"),
    ]
    endless = f'sources=[{{paths = ["{tmp_path}/endless.tsv"], languages = ["de", "en"]}}]'
    process = subprocess.Popen([*command, "--set", endless], stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(tmp_path.glob(".out.*.tmp/work")):
        time.sleep(0.01)
    process.send_signal(number)
    error = process.communicate(timeout=60)[1]
    if number == signal.SIGTERM:
        assert process.returncode == 2, error
        assert error.splitlines()[-1].startswith(
            "interlingua: stopped; nothing half-written was left behind"
        )
    else:
        assert list(tmp_path.glob(".out.*.tmp"))
        assert (
            run("prepare", config, "--set", "vocabulary.size=60", "-o", tmp_path / "out", "--quiet")
            == 0
        )
    assert list(tmp_path.glob(".out.*.tmp")) == []


def test_users_errors_are_one_line(tmp_path, config, capsys):
    (tmp_path / "de-en.tsv").write_text("one column\n")
    assert run("prepare", config, "-o", tmp_path / "out", "--quiet") == 2
    error = capsys.readouterr().err
    assert error.startswith(f"interlingua: {tmp_path / 'de-en.tsv'}:1: 1 columns")
    assert error.count("\n") == 1


def test_a_variable_that_is_not_set_is_named(tmp_path, config, capsys, monkeypatch):
    monkeypatch.delenv("INTERLINGUA_DATA")
    assert run("prepare", config, "-o", tmp_path / "out", "--quiet") == 2
    assert "$INTERLINGUA_DATA is not set" in capsys.readouterr().err
