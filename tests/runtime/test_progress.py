from __future__ import annotations

import io
import re
import time

import pytest
from rich.console import Console

from interlingua.errors import InterlinguaError
from interlingua.runtime import progress as module
from interlingua.runtime.progress import (
    SILENT,
    Expected,
    LineProgress,
    Progress,
    TerminalProgress,
    make_progress,
    progress_of,
)
from tests.progress_records import Recorded


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setattr(module, "EVERY_SECONDS", 0.02)


def console(*, terminal=False):
    return Console(file=io.StringIO(), force_terminal=terminal, width=200, color_system=None)


def work(progress, total=1000):
    progress.start(total, "pairs", "xsim")
    progress.note("deu-eng")
    progress.advance(250)


@pytest.mark.parametrize("given", [False, SILENT, Progress()])
def test_nothing_is_shown_unless_asked_for(fast, capsys, given):
    with progress_of(given) as progress:
        work(progress)
        time.sleep(0.05)
    with make_progress(quiet=True) as progress:
        work(progress)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar_for_each_piece_of_work(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with progress_of(True) as progress:
        work(progress)
        progress.start(8, "files", "reading")
        progress.advance(2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "━" in captured.err
    assert "250 of 1,000 pairs, " in captured.err
    assert "2 of 8 files" in captured.err


def test_columns_stand_in_their_order():
    drawn = console()
    with TerminalProgress(console=drawn) as progress:
        work(progress)
        progress._bars.refresh()
    words = drawn.file.getvalue().split()
    assert words[0] == "xsim"
    assert words[-5:-1] == ["250", "of", "1,000", "pairs,"]


def test_the_same_label_corrects_the_total():
    drawn = console()
    with TerminalProgress(console=drawn) as progress:
        work(progress)
        progress.start(500, "pairs", "xsim", done=300)
    assert drawn.file.getvalue().count("xsim") == 1
    assert "300 of 500 pairs" in drawn.file.getvalue()


def test_transient_bars_vanish():
    drawn = console()
    with TerminalProgress(console=drawn, transient=True) as progress:
        work(progress)
    assert "xsim" not in drawn.file.getvalue()


@pytest.mark.parametrize(("total", "told"), [(1000, "250 of 1,000 pairs, "), (None, "250 pairs, ")])
def test_without_a_terminal_a_line_a_minute(fast, capsys, total, told):
    with make_progress() as progress:
        work(progress, total)
        lines = ""
        while lines.count("\n") < 3:  # also while nothing advances
            lines += capsys.readouterr().err
    for line in lines.splitlines()[1:]:
        assert re.fullmatch(rf"after \d+\.\d s: xsim: {told}[\d,]+/s; deu-eng", line)


def test_work_of_less_than_a_minute_writes_no_line(capsys):
    with make_progress() as progress:
        work(progress)
    assert capsys.readouterr() == ("", "")


def test_no_line_is_written_after_an_error(fast, capsys):
    with pytest.raises(InterlinguaError), make_progress() as progress:
        work(progress)
        raise InterlinguaError("no such column")
    capsys.readouterr()
    time.sleep(0.1)
    assert capsys.readouterr() == ("", "")


def test_the_time_left_is_told_once_it_is_known(monkeypatch):
    monkeypatch.setattr(module, "LEAST_SECONDS", 0.05)
    progress = LineProgress()
    progress.start(1000, "pairs", "xsim")
    for _ in range(59):
        time.sleep(0.01)
        progress.advance()
    progress.stop()
    assert re.fullmatch(r"xsim: 59 of 1,000 pairs, [\d,]+/s, .* left", progress.line())


def test_the_time_left_is_that_of_all_expected_steps():
    progress = LineProgress()
    progress.expect(lambda: {"reading": Expected(2.0), "search": Expected(3723.0)})
    progress.start(10, "tiles", "search")
    progress.stop()
    assert progress.line() == "search: 0 of 10 tiles, 62.1 min left for all"


def test_a_part_counts_for_its_size_whatever_it_counts():
    told = Recorded()
    told.start(30, "kB", "aligning")
    part = told.within(10)
    part.start(4, "texts")
    part.advance(1)
    assert told.done == 2.5
    part.start(2, "texts", done=1)  # the total was too large
    assert told.done == 5
    part.start(100, "texts", done=1)  # nothing is taken back
    assert told.done == 5
    part.note("de")
    part.stop()
    assert (told.done, told.text) == (10, "de")
    inner = told.within(20).within(1)
    inner.start(1)
    inner.advance()
    assert told.done == 10  # the outer part has not started
