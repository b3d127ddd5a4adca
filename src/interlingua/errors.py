"""The exceptions that a user can see. Any other exception that reaches the user is a bug.

InterlinguaError
├── ConfigError(ValueError)          a setting is unknown, contradictory or out of range
├── DataError(ValueError)            a file is missing, broken, misaligned or empty
│   ├── DamagedFileError             it is cut short or damaged in the middle
│   └── LanguageAbsentError          it has nothing in a requested language
├── CheckpointError                  a model or checkpoint can't be read or written
├── MissingExtraError(ImportError)   an optional dependency is not installed
└── TaskError                        an evaluation can't be run as requested

A message is one line: what is wrong, what was found, what was expected, what to do about it.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class InterlinguaError(Exception):
    """Base of all errors that are caused by user input.

    The command line prints them in one line and exits with 2.
    """

    vectors_not_finite: bool = False
    """True if an encoder gave NaN or infinity, so that training can raise an error of its own."""


class ConfigError(InterlinguaError, ValueError):
    """A setting is unknown, contradictory or out of range."""


class DataError(InterlinguaError, ValueError):
    """A file or folder can't be used as data.

    Args:
        message: what is wrong and what to do.
        path: the file with the problem.
        line: the 1-based line, if known.
    """

    def __init__(
        self, message: str, *, path: str | os.PathLike[str] | None = None, line: int | None = None
    ) -> None:
        self.path = path
        self.line = line
        self.problem = message
        super().__init__(f"{_place(path, line)}{message}")


def count_of(number: int, plural: str) -> str:
    """Return a number with its noun: ``1 column``, ``2,000 columns``, ``1 entry``."""
    # Nouns are regular: messages are in English, and only this library's nouns occur.
    if number != 1:
        return f"{number:,} {plural}"
    if plural.endswith("ies"):
        return f"1 {plural[:-3]}y"
    return f"1 {plural.removesuffix('s')}"


def with_article(noun: str) -> str:
    """Return a noun with its article: ``an int``, ``a list``."""
    # The first letter decides: no noun of the library is an exception, as "hour" would be.
    return f"{'an' if noun[:1].lower() in 'aeio' else 'a'} {noun}"


def _place(path: str | os.PathLike[str] | None, line: int | None) -> str:
    """Return the start of a message, formatted as compilers do, so that editors make it a link."""
    if path is None:
        return ""
    if line is None:
        return f"{os.fspath(path)}: "
    return f"{os.fspath(path)}:{line}: "


class LanguageError(DataError):
    """A text is not in the script of its language."""


class DamagedFileError(DataError):
    """A file is damaged or truncated; the part before the damage could be read."""


class LanguageAbsentError(DataError):
    """A data set has nothing in a requested language.

    Args:
        message: see ``DataError``.
        item: the requested language.
        path: the data set's folder.
    """

    def __init__(self, message: str, *, item: str, path: str | os.PathLike[str]) -> None:
        super().__init__(message, path=path)
        self.item = item


class CheckpointError(InterlinguaError):
    """A model directory or a training checkpoint can't be read or written."""


class MissingExtraError(InterlinguaError, ImportError):
    """An optional dependency is needed and is not installed.

    Args:
        package: the package that is missing, as pip calls it.
        extra: the extra of interlingua that brings it.
    """

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"the package {package} is not installed; run{pip_line(extra)}")


def pip_line(extra: str = "") -> str:
    """Return the end of "run": the pip command that installs this package with an extra.

    A clone is installed from its folder, because pip may find no package of this name elsewhere.
    """
    folder, options = _clone()
    place = ""
    target = "interlingua"
    if folder is not None:
        place = f" in {folder}"
        target = "."
    if extra:
        target = f"'{target}[{extra}]'"
    return f"{place}: pip install {options}{target}"


def _clone() -> tuple[Path | None, str]:
    """Return the folder of the clone that is installed, and pip's option if it is used in place.

    The folder is None for an installed wheel.
    """
    # Imported here, because only errors need it.
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote

    try:
        written = distribution("interlingua").read_text("direct_url.json")
    except PackageNotFoundError:
        # The source is on PYTHONPATH.
        root = Path(__file__).resolve().parents[2]
        if (root / "pyproject.toml").is_file():
            return root, "-e "
        return None, ""
    place = re.search(r'"url": *"file://([^"]+)"', written or "")
    # A wheel that was installed from a file has "archive_info" in place of "dir_info".
    if place is None or '"dir_info"' not in str(written):
        return None, ""
    folder = Path(unquote(place[1]))
    if not folder.is_dir():
        return None, ""
    if re.search(r'"editable": *true', str(written)):
        return folder, "-e "
    return folder, ""


def import_extra(module: str, *, package: str | None = None, extra: str) -> Any:
    """Import a module of an optional dependency when it is needed.

    Args:
        module: full name of the module, such as ``sklearn.linear_model``.
        package: pip name of the package that contains it; default: the name of the module.
        extra: the extra of interlingua that installs it.

    Raises:
        MissingExtraError: it is not installed.
    """
    # Type checkers see Any: most of these packages have no annotations.
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(package or module, extra) from error


def require_extra(module: str, *, package: str | None = None, extra: str) -> None:
    """Check that an optional dependency is installed, without importing it.

    Args:
        module: name of the top module, such as ``sklearn``.
        package: pip name of the package that contains it; default: the name of the module.
        extra: the extra of interlingua that brings it.

    Raises:
        MissingExtraError: it is not installed.
    """
    # A module that is imported already may have no spec.
    is_installed = sys.modules.get(module) is not None
    if not is_installed and importlib.util.find_spec(module) is None:
        raise MissingExtraError(package or module, extra)


def did_you_mean(name: str, known: Mapping[str, object] | list[str] | tuple[str, ...]) -> str:
    """Return the end of an error message: the nearest known name, or all names if none is near."""
    near: list[str] = []
    # The time of the comparison grows with the square of the length, and real names are short.
    if len(name) <= 100:
        near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    if not known:
        return ""
    return f"; use one of: {', '.join(sorted(known))}"


class TaskError(InterlinguaError):
    """An evaluation task can't be run as requested."""
