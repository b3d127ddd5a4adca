from __future__ import annotations

import statistics
import subprocess
import sys
import time

import pytest

from interlingua.cli import main


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "interlingua.cli.main", *arguments], capture_output=True, text=True, check=False
    )


def test_help_lists_every_verb_and_is_quick():
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        result = run("--help")
        seconds.append(time.perf_counter() - start)
    assert result.returncode == 0
    assert all(verb in result.stdout for verb in main.VERBS)
    assert statistics.median(seconds) < 0.3


def test_no_arguments_shows_the_help_and_version_is_printed():
    assert "Commands" in run().stdout
    assert run("--version").stdout.startswith("interlingua 0.")


def test_unknown_verb_is_one_line_with_the_nearest():
    result = run("trian")
    assert result.returncode == 2
    assert result.stderr == "interlingua: no such command 'trian'; did you mean 'train'?; see: interlingua --help\n"


@pytest.mark.parametrize("verb", main.VERBS)
def test_every_verb_explains_itself_without_torch(verb):
    code = (
        "import sys; from interlingua.cli import main\n"
        f"try: main.main([{verb!r}, '--help'])\n"
        "except SystemExit as stop: assert not stop.code, stop.code\n"
        "sys.exit('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert verb in result.stdout


def test_ctrl_c_is_one_line(monkeypatch, capsys):
    import types

    def embed() -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "interlingua.cli.embed", types.SimpleNamespace(embed=embed))
    with pytest.raises(SystemExit) as stop:
        main.main(["embed"])
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("interlingua: stopped;")
