"""Conversion of TOML to plain tables and back, and ``section.key=value`` overrides.

A relative path in a file is resolved from the file's folder, wherever the command is run. A path in
``--set``, or one that starts with an environment variable, is resolved from the working directory,
where it was typed. For this purpose every text of a file keeps the folder (``FileText``) until it
is read as a path.
"""

from __future__ import annotations

import dataclasses
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from interlingua.config.paths import FileText
from interlingua.errors import ConfigError, DataError
from interlingua.storage.limits import MAX_CONFIG_BYTES, read_limited

MAX_KEY_PARTS = 100
"""Maximum number of parts of a dotted key; the time of Python's parser grows with the square of
this number."""
# Possessive quantifiers (++, *+) never backtrack, so that a hostile file cannot make the search
# itself slow.
_PART = r"(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')"
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MAX_KEY_PARTS}}}")


def load_toml(path: str | os.PathLike[str], *, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Read a TOML file and apply ``section.key=value`` overrides.

    Raises:
        ConfigError: the file is missing or is not TOML, or an override is not ``key=value``.
    """
    try:
        with open(path, "rb") as file:
            content = read_limited(file, path, MAX_CONFIG_BYTES)
        # Editors on Windows put a byte-order mark in front.
        text = content.decode("utf-8-sig")
        table: dict[str, Any] = _with_folder(parse_toml(text), Path(path).parent)
    except FileNotFoundError as error:
        raise ConfigError(f"{os.fspath(path)}: file not found; check the path") from error
    except OSError as error:
        raise ConfigError(
            f"{os.fspath(path)}: cannot be read ({error.strerror or error}); check the path and"
            " its permissions"
        ) from error
    except DataError:
        raise
    # TOML's own error, or bytes that are not UTF-8.
    except ValueError as error:
        raise ConfigError(f"{os.fspath(path)}: not valid TOML ({error}); correct it") from error
    # Overrides stay plain texts: a path that was typed starts at the working directory.
    for override in overrides:
        apply_override(table, override)
    return table


def _with_folder(value: Any, folder: Path) -> Any:
    """Return the same tables with texts that know the folder of their file."""
    if isinstance(value, str):
        return FileText.in_folder(value, folder)
    if isinstance(value, dict):
        return {key: _with_folder(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_folder(item, folder) for item in value]
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML text.

    Raises:
        ValueError: it is not TOML, or nested too deeply.
    """
    try:
        if _LONG_KEY.search(text):
            raise ValueError(f"a key has more than {MAX_KEY_PARTS} parts")
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def config_to_toml(config: Any) -> str:
    """Write a dataclass as TOML that ``load_config`` reads back to an equal one.

    ``None`` is left out.
    """
    lines: list[str] = []
    _write_table(to_mapping(config), (), lines)
    return "\n".join(lines).lstrip("\n") + "\n"


def to_mapping(config: Any) -> dict[str, Any]:
    """Convert a dataclass to nested dictionaries, lists and scalars, without ``None`` fields."""
    plain = _plain(config)
    assert isinstance(plain, dict)
    return plain


def apply_override(table: dict[str, Any], override: str) -> None:
    """Set a key of nested tables by ``"section.key=value"``.

    Raises:
        ConfigError: it is not ``key=value``, or a parent of the key is not a section.
    """
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {override!r}: expected section.key=value")
    # Text that is not TOML is a bare string, so that a shell's user need not quote twice.
    try:
        value = parse_toml(f"value = {text.strip()}")["value"]
    except ValueError:
        value = text.strip()
    *parents, last = key.strip().split(".")
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise ConfigError(
                f"--set {override!r}: {parent!r} is a value, not a section; name a section"
            )
    table[last] = value


def _plain(value: Any) -> Any:
    """Convert a value to TOML's types; leave None out, because TOML has no null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: _plain(item) for name, item in pairs if item is not None}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return os.fspath(value)
    return value


def _write_table(table: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    """Add the lines of a table, values first, because a header ends the table before it."""
    sections = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lists = {key: value for key, value in table.items() if _is_list_of_tables(value)}
    values = {k: v for k, v in table.items() if k not in sections and k not in lists}
    # The header [a] is not needed before [a.b], but an empty table consists only of its header.
    if path and (values or not table):
        lines += ["", f"[{'.'.join(map(_key, path))}]"]
    lines += [f"{_key(k)} = {_literal(v)}" for k, v in values.items()]
    for key, value in sections.items():
        _write_table(value, (*path, key), lines)
    for key, items in lists.items():
        header = ".".join(map(_key, (*path, key)))
        for item in items:
            lines += ["", f"[[{header}]]"]
            lines += [f"{_key(k)} = {_literal(v)}" for k, v in item.items()]


def _is_list_of_tables(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(item, Mapping) for item in value)


def _key(key: str) -> str:
    """Quote a key, unless it has only ASCII letters, digits, dashes and underscores."""
    if key.replace("_", "").replace("-", "").isalnum() and key.isascii():
        return key
    return _literal(key)


def _literal(value: Any) -> str:
    """Format a value as TOML on one line."""
    # bool is checked before int, because it is a subclass of int.
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(map(_escape_control, quoted)) + '"'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(str(k))} = {_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    raise TypeError(f"{type(value).__name__} cannot be written as TOML")


def _escape_control(character: str) -> str:
    """Escape a control character, because TOML allows none in a text."""
    if character >= " " and character != "\x7f":
        return character
    return f"\\u{ord(character):04x}"
