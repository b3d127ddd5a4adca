from pathlib import Path

import pytest

from tests.getting_started.findings import made_up


@pytest.fixture
def asked(monkeypatch):
    """The settings that the command requests, without running the job."""
    settings = []

    def quickstart(wanted):
        settings.append(wanted)
        return made_up(model=0.3, tfidf=0.1)

    monkeypatch.setattr("interlingua.getting_started.run.show_quickstart", quickstart)
    return settings


def test_options_reach_the_settings(done, asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    done("quickstart --budget-seconds 90 -o here --catalogues a --catalogues b --no-fetch")
    assert asked[0].budget_seconds == 90
    assert asked[0].output == Path("here")
    assert asked[0].catalogues == (Path("a"), Path("b"))
    assert asked[0].packages == ()
    assert asked[0].steps is None


def test_packages_are_fetched_by_default(done, asked):
    done("quickstart --steps 5")
    assert (asked[0].packages, asked[0].steps) == (None, 5)


def test_required_ratio_decides_the_exit_code(done, refused, asked):
    done("quickstart --require-ratio 2.9")
    error = refused("quickstart --require-ratio 3.1").err
    assert "3.00 times the value of character n-grams; at least 3.1 times" in error
