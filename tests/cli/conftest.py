"""Command lines as a user types them, and what comes of them."""

from __future__ import annotations

import shlex
from typing import NamedTuple

import pytest

from interlingua.cli import main


class Ran(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str


def words(*parts: object) -> list[str]:
    """Return the arguments of a command line. Text is split like in a shell, a path is one word."""
    lines = [part if isinstance(part, str) else shlex.quote(str(part)) for part in parts]
    return shlex.split(" ".join(lines))


@pytest.fixture
def run(capsys):
    """Run a command line that starts with the verb."""

    def run(*parts):
        with pytest.raises(SystemExit) as stop:
            main.main(words(*parts))
        return Ran(stop.value.code or 0, *capsys.readouterr())

    return run


@pytest.fixture
def done(run):
    """Run a command line that must succeed."""

    def done(*parts):
        ran = run(*parts)
        assert ran.code == 0, ran.err
        return ran

    return done


@pytest.fixture
def refused(run):
    """Run a command line with a mistake, and return its one-line message."""

    def refused(*parts):
        ran = run(*parts)
        assert ran.code == 2
        assert ran.err.startswith("interlingua: ")
        assert ran.err.count("\n") == 1
        assert len(ran.err) < 2100
        return ran

    return refused
