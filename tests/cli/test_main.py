from __future__ import annotations

import errno
import resource
import signal
import subprocess
import sys
import types

import pytest

from interlingua.cli import main
from interlingua.errors import ConfigError


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "interlingua.cli.main", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_lists_every_verb_and_is_quick():
    seconds = []
    for _ in range(3):
        # Processor seconds, which other processes hardly change.
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = run("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert result.returncode == 0
    assert all(verb in result.stdout for verb in main.VERBS)
    assert min(seconds) < 0.3


def test_no_arguments_shows_the_help_and_version_is_printed():
    assert "Commands" in run().stdout
    assert run("--version").stdout.startswith("interlingua 0.")


def test_unknown_verb_is_one_line_with_the_nearest():
    result = run("trian")
    assert result.returncode == 2
    assert (
        result.stderr
        == "interlingua: unknown command 'trian'; did you mean 'train'?; see: interlingua --help\n"
    )


@pytest.mark.parametrize("verb", main.VERBS)
def test_every_verb_explains_itself_without_torch(verb):
    code = (
        "import sys; from interlingua.cli import main\n"
        f"try: main.main([{verb!r}, '--help'])\n"
        "except SystemExit as stop: assert not stop.code, stop.code\n"
        "sys.exit('torch' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert verb in result.stdout


@pytest.fixture
def told(run, monkeypatch):
    """The content of standard error after a verb that fails with status 2."""

    def told(embed):
        verb = types.SimpleNamespace(embed=lambda: embed())
        monkeypatch.setitem(sys.modules, "interlingua.cli.verbs.embed", verb)
        ran = run("embed")
        assert ran.code == 2
        return ran.err

    return told


def raising(error):
    def embed():
        raise error

    return embed


def test_ctrl_c_is_one_line(told):
    assert told(raising(KeyboardInterrupt())).startswith("interlingua: stopped;")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            OSError(errno.ENOSPC, "Disk full", "/d/x"),
            "/d/x: Disk full; free some space and run the same command again",
        ),
        (
            OSError(errno.ENOTDIR, "No folder", b"/d"),
            "/d: No folder; a part of the path is a file; choose another path",
        ),
        (TimeoutError("no answer"), "no answer; check the disk and the paths"),
    ],
)
def test_what_the_system_refuses_is_one_line(told, error, line):
    assert told(raising(error)) == f"interlingua: {line}\n"


def test_one_process_of_several_tells(told, monkeypatch):
    mistake = raising(ConfigError("the same in all"))
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert told(mistake) == ""
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert told(mistake) == "interlingua: the same in all\n"


def test_sigterm_is_as_good_as_ctrl_c(told):
    before = signal.getsignal(signal.SIGTERM)
    error = told(lambda: signal.raise_signal(signal.SIGTERM))
    assert error.startswith("interlingua: stopped;")
    assert signal.getsignal(signal.SIGTERM) == before


def test_sigterm_ends_a_forked_child_without_a_word():
    code = (
        "import os, signal, sys, types; from interlingua.cli import main\n"
        "def embed():\n"
        "    child = os.fork()\n"
        "    if not child: signal.raise_signal(signal.SIGTERM)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "sys.modules['interlingua.cli.verbs.embed'] = types.SimpleNamespace(embed=embed)\n"
        "main.main(['embed'])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (result.stdout, result.stderr) == (f"{-signal.SIGTERM}\n", "")
