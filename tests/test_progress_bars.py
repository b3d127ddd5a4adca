import io

import pytest
from rich.console import Console

from interlingua.progress_bars import ProgressBars


def console(*, terminal=False):
    return Console(file=io.StringIO(), force_terminal=terminal, width=200, color_system=None)


def test_columns_stand_in_the_order_given():
    drawn = console()
    with ProgressBars("padded label", "count", "note", "left", console=drawn) as bars:
        bar = bars.add("reading", total=8)
        bar.advance(2)
        bar.update(note="20 pairs", left="9 s left")
    assert drawn.file.getvalue().split() == ["reading", "2/8", "20", "pairs", "9", "s", "left"]
    assert f"{'reading':<28} 2/8" in drawn.file.getvalue()


def test_one_line_for_each_bar():
    drawn = console()
    with ProgressBars("label", "count", console=drawn) as bars:
        bars.add("first", total=2).finish()
        bars.add("second", total=4, done=1)
    lines = drawn.file.getvalue().split("\n")
    assert [line.split() for line in lines[:2]] == [["first", "2/2"], ["second", "1/4"]]


def test_bars_are_drawn_on_stderr(capsys):
    with ProgressBars("label") as bars:
        bars.add("reading")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "reading" in captured.err


@pytest.mark.parametrize(("is_kept", "shown"), [(True, True), (False, False)])
def test_transient_bars_vanish_unless_kept(is_kept, shown):
    drawn = console()
    with ProgressBars("label", console=drawn, transient=True) as bars:
        bars.add("reading")
        if is_kept:
            bars.keep()
    assert ("reading" in drawn.file.getvalue()) == shown


def test_silent_bars_draw_nothing_but_can_be_used():
    drawn = console(terminal=True)
    with ProgressBars("label", "bar", console=drawn, is_silent=True) as bars:
        bar = bars.add("reading", total=4)
        bar.advance()
        bars.refresh()
        assert bar.elapsed_seconds >= 0
    assert drawn.file.getvalue() == ""
