from pathlib import Path

import pytest

from interlingua.cli.main import main
from interlingua.quickstart import run
from tests.quickstart.findings import made_up


@pytest.fixture
def asked(monkeypatch):
    """The settings the command asks for; the job itself is left out."""
    settings = []

    def quickstart(wanted):
        settings.append(wanted)
        return made_up(model=0.3, tfidf=0.1)

    monkeypatch.setattr(run, "quickstart", quickstart)
    return settings


def call(*arguments):
    with pytest.raises(SystemExit) as stop:
        main(["quickstart", *arguments])
    return stop.value.code


def test_options_reach_the_settings(asked):
    assert (
        call(
            "--budget-seconds",
            "90",
            "-o",
            "here",
            "--catalogues",
            "a",
            "--catalogues",
            "b",
            "--no-fetch",
        )
        == 0
    )
    assert asked[0].budget_seconds == 90
    assert asked[0].output == Path("here")
    assert asked[0].catalogues == (Path("a"), Path("b"))
    assert asked[0].packages == ()
    assert asked[0].steps is None


def test_packages_are_fetched_by_default(asked):
    assert call("--steps", "5") == 0
    assert (asked[0].packages, asked[0].steps) == (None, 5)


def test_required_ratio_decides_the_exit_code(asked, capsys):
    assert call("--require-ratio", "2.9") == 0
    assert call("--require-ratio", "3.1") == 2
    assert "3.00 times that of character n-grams; 3.1 times" in capsys.readouterr().err
