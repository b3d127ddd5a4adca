from __future__ import annotations

import re
import time

import pytest

from interlingua.cli import minute_lines as module
from interlingua.cli.minute_lines import minute_lines


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setattr(module, "EVERY_SECONDS", 0.02)


def test_a_line_comes_every_time_though_nothing_is_told(fast, capsys):
    lines = []

    def read():
        for line in capsys.readouterr().err.splitlines():
            assert re.match(r"after \d+\.\d s: ", line)
            lines.append(line.partition(": ")[2])

    begin = time.perf_counter()
    with minute_lines(False, last=False) as tell:
        while lines[-1:] != ["preparing"]:  # however late the other thread gets its turn
            read()
        tell(lambda seconds: f"half of {seconds < 60}")
        while lines[-3:] != ["half of True"] * 3:
            read()
    assert len(lines) <= (time.perf_counter() - begin) / module.EVERY_SECONDS + 1


def test_short_work_is_silent_unless_its_last_state_is_wanted(capsys):
    for last in (False, True):
        with minute_lines(False, last=last) as tell:
            tell(lambda seconds: "first")
            tell(lambda seconds: "second")
        assert capsys.readouterr().err == ("after 0.0 s: second\n" if last else "")


def test_quiet_work_is_silent(fast, capsys):
    with minute_lines(True, last=True) as tell:
        tell(lambda seconds: "x")
        time.sleep(0.1)
    assert capsys.readouterr() == ("", "")


def test_no_thread_goes_on_after_an_error(fast, capsys):
    with pytest.raises(KeyError), minute_lines(False, last=False):
        raise KeyError
    capsys.readouterr()
    time.sleep(0.1)
    assert capsys.readouterr().err == ""
