import os
import signal
import subprocess
import sys
import time

import pytest

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


def test_prepare(done, tmp_path, config):
    said = done(f"prepare {config} --set vocabulary.size=60 -o {tmp_path}/out")
    out = said.out
    assert "Dropped, by rule" in out
    assert f"written: {tmp_path / 'out'}" in out.replace("\n", "")
    assert Manifest.load(tmp_path / "out").train == 100
    said = done(f"prepare {config} --set vocabulary.size=50 -o {tmp_path}/out --overwrite --quiet")
    assert said.out == ""
    assert Manifest.load(tmp_path / "out").vocabulary["size"] == 50


def test_what_is_no_corpus_is_not_overwritten(refused, tmp_path, config):
    mine = tmp_path / "mine" / "notes.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    said = refused(f"prepare {config} -o {mine.parent} --overwrite")
    assert "mine: the folder contains other files" in said.err
    assert "expected a folder" in refused(f"prepare {config} -o {mine} --overwrite").err
    assert mine.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_what_was_ended(done, tmp_path, config, number):
    """Check SIGTERM like Ctrl-C. The next run removes the files that SIGKILL leaves."""
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
        assert error.splitlines()[-1].startswith("interlingua: stopped; no incomplete files remain")
    else:
        assert list(tmp_path.glob(".out.*.tmp"))
        done(f"prepare {config} --set vocabulary.size=60 -o {tmp_path}/out --quiet")
    assert list(tmp_path.glob(".out.*.tmp")) == []


def test_users_errors_are_one_line(refused, tmp_path, config):
    (tmp_path / "de-en.tsv").write_text("one column\n")
    error = refused(f"prepare {config} -o {tmp_path}/out --quiet").err
    assert error.startswith(f"interlingua: {tmp_path / 'de-en.tsv'}:1: found 1 column")


def test_a_variable_that_is_not_set_is_named(refused, tmp_path, config, monkeypatch):
    monkeypatch.delenv("INTERLINGUA_DATA")
    assert (
        "$INTERLINGUA_DATA is not set" in refused(f"prepare {config} -o {tmp_path}/out --quiet").err
    )
