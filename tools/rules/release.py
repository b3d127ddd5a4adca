"""Rules on what a release states in several files: its version, and the oldest dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tools.oldest_versions import TARGET, render_oldest
from tools.rules.base import Finding, Rule, SourceFile

SOURCE = "src/interlingua/__init__.py"
"""The file that states the version; all other places repeat it."""
ASSIGNMENT = r'^__version__ = "([^"]+)"'
SERIES = r"\d+\.\d+"


class Place(NamedTuple):
    """A place that repeats the version.

    Attributes:
        path: the file.
        pattern: its first group is the version; the first match counts.
        is_series: whether the place has only the first two numbers, ``0.1`` of ``0.1.0``.
    """

    path: str
    pattern: str
    is_series: bool = False


PLACES = (
    Place("models/mini/src/interlingua_mini/__init__.py", ASSIGNMENT),
    Place("models/nano/src/interlingua_nano/__init__.py", ASSIGNMENT),
    Place("CITATION.cff", r"^version: (\S+)$"),
    Place("CHANGELOG.md", r"^## (\d\S*)"),
    Place("SECURITY.md", rf"^\| ({SERIES})\.x \| yes \|$", is_series=True),
    Place("pyproject.toml", rf'^mini = \["interlingua-mini>=({SERIES})"\]', is_series=True),
    Place("pyproject.toml", rf'^nano = \["interlingua-nano>=({SERIES})"\]', is_series=True),
)


class Versions(Rule):
    """All distributions and pages name the version of the library."""

    name = "versions"

    def __init__(self) -> None:
        self._version: str | None = None
        self._found: dict[Place, tuple[int, str | None]] = {}

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Store the versions that a file states."""
        if file.path == SOURCE:
            self._version = _find(file, ASSIGNMENT)[1]
        for place in PLACES:
            if place.path == file.path:
                self._found[place] = _find(file, place.pattern)
        yield from ()

    def finish(self) -> Iterator[Finding]:
        """Report the places that state another version than the library, or none."""
        if self._version is None:
            return
        series = ".".join(self._version.split(".")[:2])
        for place, (line, stated) in self._found.items():
            expected = series if place.is_series else self._version
            if stated != expected:
                text = f"version {stated or 'not found'}, {SOURCE} has {self._version}"
                yield Finding(place.path, line, text)


class OldestVersions(Rule):
    """constraints-oldest.txt has the lower bounds of pyproject.toml."""

    name = "oldest-versions"

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Store the two files."""
        if file.path in ("pyproject.toml", TARGET):
            self._texts[file.path] = file.text
        yield from ()

    def finish(self) -> Iterator[Finding]:
        """Compare the two files."""
        if "pyproject.toml" not in self._texts:
            return
        try:
            expected = render_oldest(self._texts["pyproject.toml"])
        except ValueError as error:
            yield Finding("pyproject.toml", 1, str(error))
            return
        if self._texts.get(TARGET) != expected:
            text = "differs from pyproject.toml; write it with: python tools/oldest_versions.py"
            yield Finding(TARGET, 1, text)


def _find(file: SourceFile, pattern: str) -> tuple[int, str | None]:
    """Return the line and the group of the first match, or 1 and None."""
    match = re.search(pattern, file.text, re.MULTILINE)
    if match is None:
        return 1, None
    return file.text.count("\n", 0, match.start()) + 1, match[1]
