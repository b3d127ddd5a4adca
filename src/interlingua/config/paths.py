"""Paths in configurations: their base folders, and how they become absolute."""

from __future__ import annotations

import dataclasses
import os
import typing
from pathlib import Path
from typing import Annotated, Any, TypeVar

from interlingua.config.bounds import hints_of
from interlingua.config.registry import installed_model_entry
from interlingua.errors import ConfigError

T = TypeVar("T")
PathText = Annotated[str, "path"]
"""The type of a field that holds a folder, or something else such as ``hf:owner/name``."""
HUB_PREFIX = "hf:"


class FileText(str):
    """A text from a file, with the folder of the file, which is the base of a relative path."""

    folder: Path

    @classmethod
    def in_folder(cls, text: str, folder: Path) -> FileText:
        """Mark a text as one of a file in this folder."""
        made = cls(text)
        made.folder = folder
        return made


def with_absolute_paths(config: T) -> T:
    """Return a copy of a dataclass with absolute paths.

    The copy means the same in any working directory and in any file. A ``PathText`` does not change
    if it is an address, or the name of a model of a hub or of a package.
    """
    kind: Any = type(config)
    hints = hints_of(kind)
    fields = [field.name for field in dataclasses.fields(config) if field.init]  # type: ignore[arg-type]
    absolute = {name: _absolute(hints[name], getattr(config, name)) for name in fields}
    return dataclasses.replace(config, **absolute)  # type: ignore[type-var]


def _absolute(hint: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return with_absolute_paths(value)
    if isinstance(value, Path):
        return value.absolute()
    if isinstance(value, tuple):
        # The type of the items. For tuple[X, ...] | None it is tuple[X, ...] instead, which works
        # too: the check below also looks for PathText in the arguments of a type. A bare tuple has
        # no type of items.
        inner = (*typing.get_args(hint), None)[0]
        return tuple(_absolute(inner, item) for item in value)
    # The second case is PathText | None.
    is_path_text = hint == PathText or PathText in typing.get_args(hint)
    if not is_path_text or not value:
        return value
    if _is_elsewhere(value) or is_installed_model(value, value):
        return value
    return os.path.abspath(os.path.expanduser(value))


def from_folder(path: str, value: str) -> str:
    """Resolve a path against the folder of the file that contains it.

    A value that is not a path of this machine is returned unchanged.
    """
    # The path was typed in the shell, or is the value of a variable that was set there.
    if not isinstance(value, FileText) or value.startswith("$"):
        return str(path)
    if _is_elsewhere(path) or os.path.isabs(path):
        return str(path)
    here = os.path.normpath(value.folder / path)
    if is_installed_model(path, here):
        return str(path)
    return here


def is_installed_model(name: str, here: str) -> bool:
    """Return whether a text names a model of an installed package, such as mini.

    An existing folder of that name has priority.
    """
    return not os.path.exists(here) and installed_model_entry(name) is not None


def _is_elsewhere(path: str) -> bool:
    """Return whether a text is a hub model, an address, or a reference such as {stage.best}."""
    return path.startswith((HUB_PREFIX, "{")) or "://" in path


def expand_path(value: str) -> str:
    """Return a path with ``~`` and variables filled in.

    Raises:
        ConfigError: a variable is not set.
    """
    expanded = os.path.expanduser(os.path.expandvars(value))
    # expandvars does not replace a variable that is not set; a folder called $X must not be made.
    if "$" in expanded:
        variable = expanded[expanded.index("$") :].split("/")[0]
        raise ConfigError(
            f"the environment variable {variable} is not set; export it, or write the whole path"
        )
    return expanded
