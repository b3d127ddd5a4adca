"""``interlingua.quickstart`` reads the options that ``interlingua quickstart`` reads."""

from __future__ import annotations

from pathlib import Path

import pytest

import interlingua
from interlingua.errors import InterlinguaError
from interlingua.getting_started import run
from tests.getting_started.findings import made_up


@pytest.fixture
def wanted(monkeypatch):
    """The settings of each run, without running the job."""
    settings = []

    def quickstart(given):
        settings.append(given)
        return made_up(model=0.3, tfidf=0.1)

    monkeypatch.setattr(run, "show_quickstart", quickstart)
    return settings


def test_function_and_command_line_have_equal_settings(done, wanted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    for _ in range(2):
        done("quickstart")
        interlingua.quickstart()
        done("quickstart --steps 5 -o here --catalogues a --no-fetch")
        interlingua.quickstart(steps=5, output="here", catalogues=[Path("a")], fetch=False)
    assert wanted[0] == wanted[1]
    assert wanted[2] == wanted[3]
    assert wanted[0] != wanted[2]


def test_a_ratio_that_is_not_reached_is_an_error(wanted):
    assert interlingua.quickstart(require_ratio=2.9) is not None
    with pytest.raises(InterlinguaError):
        interlingua.quickstart(require_ratio=3.1)
