from __future__ import annotations

import time
from pathlib import Path

import pytest

from interlingua.cli.common import bar, rate_bar, resumable, steps_bar
from interlingua.errors import InterlinguaError
from interlingua.runtime import Expected


def test_ctrl_c_says_where_vectors_are():
    with (
        pytest.raises(InterlinguaError, match="kept below out/results"),
        resumable(True, Path("out")),
    ):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt), resumable(False, Path("out")):
        raise KeyboardInterrupt


def test_a_quiet_bar_says_nothing(capsys):
    with bar(True) as progress:
        progress("xsim deu-eng", 1, 2)
    assert capsys.readouterr() == ("", "")


def test_an_error_before_anything_is_told_stands_alone(capsys):
    with pytest.raises(InterlinguaError), bar(False):
        raise InterlinguaError("no such column")
    assert capsys.readouterr() == ("", "")


def test_a_bar_names_the_work(capsys):
    with bar(False) as progress:
        progress("xsim deu-eng", 1, 2)
    error = capsys.readouterr().err
    assert "xsim deu-eng" in error
    assert "1/2" in error


@pytest.mark.parametrize(("total", "told"), [(1000, "250 of 1,000 pairs, "), (None, "250 pairs, ")])
def test_what_streams_by_says_how_fast_once_a_minute(total, told, capsys, monkeypatch):
    with rate_bar(False, "pairs") as progress:
        progress(250.4, total)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("interlingua.cli.minute_lines.EVERY_SECONDS", 0.02)
    with rate_bar(False, "pairs") as progress:
        progress(250.4, total)
        time.sleep(0.1)
    error = capsys.readouterr().err
    assert told in error
    assert "/s" in error
    assert " left" not in error  # not known after one report
    with rate_bar(True, "pairs") as progress:
        progress(1, total)
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "")


def test_a_minute_line_has_the_time_left_once_it_is_known(capsys, monkeypatch):
    monkeypatch.setattr("interlingua.runtime.LEAST_SECONDS", 0.05)
    with bar(False) as progress:
        for done in range(1, 60):
            time.sleep(0.01)
            progress("xsim deu-eng", done, 1000)
    assert "xsim deu-eng: 59/1,000, " in capsys.readouterr().err


def test_a_terminal_shows_a_bar(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with bar(False) as progress:
        progress("xsim deu-eng", 1, 2)
    with rate_bar(False, "pairs") as rate:
        rate(250, 1000)
    error = capsys.readouterr().err
    assert "━" in error
    assert "250 of 1,000 pairs" in error


def test_a_bar_of_steps_tells_the_time_left_for_all(capsys):
    with steps_bar(False) as progress:
        progress.expect({"reading": Expected(2.0), "search": Expected(3723.0)})
        progress("search", 0, 10)
    error = capsys.readouterr().err
    assert "search" in error
    assert "62.1 min left for all" in error
    with steps_bar(True) as progress:
        progress("search", 1, 2)
    assert capsys.readouterr() == ("", "")
