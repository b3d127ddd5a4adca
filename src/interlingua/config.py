"""TOML into frozen dataclasses and back: strict, typed, with the nearest key in every complaint.

The dataclasses are the only source of truth; a file or a ``--set section.key=value`` can only fill
them.

A relative path in a file starts at the file's folder, wherever the command is run. One of
``--set``, or one that begins with an environment variable, starts at the working directory, where
it was typed. To that end every text of a file remembers the folder (``FileText``) until it is read
as a path.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import sys
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union

from interlingua.errors import ConfigError, DataError, count_of
from interlingua.limits import MAX_CONFIG_BYTES, read_document
from interlingua.registry import did_you_mean, installed_model_entry

T = TypeVar("T")
PathText = Annotated[str, "path"]
"""The type of a field that holds a folder, or something else such as ``hf:owner/name``."""
TRAIN_SECTIONS = ("data", "encoder", "method", "optimizer", "run", "schedule")
"""Of the files of ``interlingua train``."""
HUB_PREFIX = "hf:"
MAX_WHOLE_NUMBER = 2**63 - 1
"""What torch, numpy and the files of a run hold."""
ABOVE_ZERO = 1e-30
"""The smallest value of what has to be above 0."""
BELOW_ONE = 1 - 1e-9
"""The largest value of what has to be below 1."""
MAX_KEY_PARTS = 100
"""Of a dotted key; Python's parser takes time that grows with their square."""
# Possessive quantifiers (++, *+) give nothing back, so that a hostile file can't make the search
# itself take long.
_PART = r"(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')"
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MAX_KEY_PARTS}}}")


class FileText(str):
    """A text that a file holds, with the folder of the file, from which a relative path starts."""

    folder: Path

    @classmethod
    def in_folder(cls, text: str, folder: Path) -> FileText:
        """The text as one of a file in this folder."""
        made = cls(text)
        made.folder = folder
        return made


def load_config(cls: type[T], path: str | os.PathLike[str], *, overrides: Sequence[str] = ()) -> T:
    """Reads a TOML file into a (nested) frozen dataclass.

    Args:
        cls: the dataclass.
        path: the TOML file.
        overrides: ``"section.key=value"`` strings; the value is TOML, or a bare string where that
            fails to parse.

    Raises:
        ConfigError: the file is missing or no TOML, a key is unknown (the nearest one is named), a
            value has the wrong type, or a required key is missing.
    """
    return from_mapping(cls, load_toml(path, overrides=overrides), where=os.fspath(path))


def load_toml(path: str | os.PathLike[str], *, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Reads a TOML file and applies ``section.key=value`` overrides.

    Raises:
        ConfigError: the file is missing or is not TOML, or an override is not ``key=value``.
    """
    try:
        with open(path, "rb") as file:
            content = read_document(file, path, MAX_CONFIG_BYTES)
        # Editors on Windows put a byte-order mark in front.
        text = content.decode("utf-8-sig")
        table: dict[str, Any] = _with_folder(parse_toml(text), Path(path).parent)
    except FileNotFoundError as error:
        raise ConfigError(f"{os.fspath(path)}: no such file; check the path") from error
    except OSError as error:
        raise ConfigError(f"{os.fspath(path)}: can't be read: {error.strerror or error}") from error
    except DataError:
        raise
    # TOML's own error, or bytes that are not UTF-8.
    except ValueError as error:
        raise ConfigError(f"{os.fspath(path)}: not valid TOML: {error}") from error
    # Overrides stay plain texts: a path that was typed starts at the working directory.
    for override in overrides:
        apply_override(table, override)
    return table


def _with_folder(value: Any, folder: Path) -> Any:
    """The same tables, in which every text knows the folder of its file."""
    if isinstance(value, str):
        return FileText.in_folder(value, folder)
    if isinstance(value, dict):
        return {key: _with_folder(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_folder(item, folder) for item in value]
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text.

    Raises:
        ValueError: it is not TOML, or nested too deeply.
    """
    try:
        if _LONG_KEY.search(text):
            raise ValueError(f"a key of more than {MAX_KEY_PARTS} parts")
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def from_mapping(cls: type[T], table: Mapping[str, Any], *, where: str = "config") -> T:
    """Builds a dataclass from nested mappings, checking every key and type.

    Raises:
        ConfigError: see ``load_config``.
    """
    # The extras keep Annotated, by which a PathText differs from any other text.
    hints = typing.get_type_hints(cls, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in fields:
            hint = _hint_for(cls, key, list(fields))
            raise ConfigError(f"{where}: unknown key {key!r}{hint}")
        values[key] = _convert(hints[key], value, f"{where}: {key}")
    for name, field in fields.items():
        is_required = (
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        )
        if is_required and name not in values:
            raise ConfigError(f"{where}: the key {name!r} is missing")
    # The dataclass checks its own values, and knows neither the file nor its section.
    try:
        return cls(**values)
    except ConfigError as error:
        raise ConfigError(f"{where}: {_without_place(str(error), where)}") from error


def _hint_for(cls: type, key: str, fields: list[str]) -> str:
    """The key that an unknown one stands for: by the class's own table, or else by its letters."""
    meant = getattr(cls, "MEANT_BY", {}).get(key)
    if meant is None:
        return did_you_mean(key, fields)
    return f"; did you mean {meant!r}?"


def config_to_toml(config: Any) -> str:
    """Writes a dataclass as TOML that ``load_config`` reads back to an equal one.

    ``None`` is left out.
    """
    lines: list[str] = []
    _write_table(to_mapping(config), (), lines)
    return "\n".join(lines).lstrip("\n") + "\n"


def to_mapping(config: Any) -> dict[str, Any]:
    """A dataclass as plain nested dictionaries, lists and scalars; ``None`` fields are left out."""
    plain = _plain(config)
    assert isinstance(plain, dict)
    return plain


def with_absolute_paths(config: T) -> T:
    """The same dataclass with absolute paths.

    So it means the same from any working directory and in any file. A ``PathText`` that names a
    model of a hub or of a package, or an address, stays as it is.
    """
    hints = typing.get_type_hints(type(config), include_extras=True)
    fields = [field.name for field in dataclasses.fields(config) if field.init]  # type: ignore[arg-type]
    absolute = {name: _absolute(hints[name], getattr(config, name)) for name in fields}
    return dataclasses.replace(config, **absolute)  # type: ignore[type-var]


def _absolute(hint: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return with_absolute_paths(value)
    if isinstance(value, Path):
        return value.absolute()
    if isinstance(value, tuple):
        # The type of the items; of tuple[X, ...] | None it is the tuple's, and its arguments hold X
        # as well. A bare tuple has none.
        inner = (*typing.get_args(hint), None)[0]
        return tuple(_absolute(inner, item) for item in value)
    # The second case is PathText | None.
    is_path_text = hint == PathText or PathText in typing.get_args(hint)
    if not is_path_text or not value:
        return value
    if _is_elsewhere(value) or _is_installed_model(value, value):
        return value
    return os.path.abspath(os.path.expanduser(value))


def refuse_unread(config: Any, *names: str, reason: str, when: bool) -> None:
    """Refuses an option that was changed from its default though nothing would read it.

    Args:
        config: a dataclass.
        names: fields that nothing reads in a certain case.
        reason: the setting that makes it so, as ``"mlp = false"``.
        when: whether it is the case.

    Raises:
        ConfigError: one of them has another value than its default.
    """
    for name in _changed(config, names, when):
        raise ConfigError(
            f"{name} is set, but with {reason} nothing reads it; remove one of the two"
        )


def refuse_without(config: Any, *names: str, needs: str, when: bool) -> None:
    """Refuses an option that was changed from its default though what it is for is not there.

    Args:
        config: a dataclass.
        names: fields that nothing reads in a certain case.
        needs: the option that would make it read.
        when: whether that one is missing.

    Raises:
        ConfigError: one of them has another value than its default.
    """
    for name in _changed(config, names, when):
        raise ConfigError(
            f"{name} is set, but without {needs} nothing reads it; give {needs}, or remove {name}"
        )


def _changed(config: Any, names: Sequence[str], when: bool) -> Iterator[str]:
    """Those of the fields that have another value than their default, if it matters."""
    if not when:
        return
    for field in dataclasses.fields(config):
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if field.name in names and getattr(config, field.name) != default:
            yield field.name


def check_bounds(config: Any, section: str, bounds: Mapping[str, tuple[float, float]]) -> None:
    """Refuses numbers out of range, beyond what any machine or method can use as well.

    Args:
        config: a dataclass.
        section: what errors call it; empty for the whole file.
        bounds: the smallest and the largest value of each field; None, and fields that the config
            has not, pass.

    Raises:
        ConfigError: a number is out of range.
    """
    place = f"{section}: " if section else ""
    for name, (low, high) in bounds.items():
        numbers = getattr(config, name, None)
        if not isinstance(numbers, tuple):
            numbers = (numbers,)
        for number in numbers:
            # Written so that NaN, which compares as neither, is refused as well.
            if number is not None and not low <= number <= high:
                expected = f"{low:.15g} to {high:.15g}"
                if low == ABOVE_ZERO:
                    expected = f"above 0, up to {high:.15g}"
                elif high == BELOW_ONE:
                    expected = f"at least {low:.15g} and below 1"
                raise ConfigError(f"{place}{name} is {number:.15g}, expected {expected}")


def apply_override(table: dict[str, Any], override: str) -> None:
    """Sets a key of nested tables as ``"section.key=value"`` says.

    Raises:
        ConfigError: it is not ``key=value``, or goes through something that is not a section.
    """
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {override!r}: expected section.key=value")
    # What is not TOML is a bare string, so that a shell's user need not quote twice.
    try:
        value = parse_toml(f"value = {text.strip()}")["value"]
    except ValueError:
        value = text.strip()
    *parents, last = key.strip().split(".")
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {override!r}: {parent!r} is a value, not a section")
    table[last] = value


def train_key_hint(section: str, values: Any) -> str:
    """Return where keys of train's files are set in other verbs; empty for any other section.

    Args:
        section: ``run`` of ``--set run.threads=1``, given to a verb that reads no such file.
        values: the keys of the section with what they are set to.
    """
    if section not in TRAIN_SECTIONS or not isinstance(values, Mapping):
        return ""
    for name, value in values.items():
        if name == "threads":
            return f"; for the number of threads, set the environment: OMP_NUM_THREADS={value}"
        if section == "run" and name in ("device", "devices"):
            return f"; say --{name} {value}"
    return f"; [{section}] is a section of the files of interlingua train; see --help"


def train_key_hint_of(setting: str) -> str:
    """Return ``train_key_hint`` of ``run.threads=1``, and of ``threads=1``."""
    key, _, value = setting.partition("=")
    section, _, name = key.strip().rpartition(".")
    if name == "threads":
        section = section or "run"
    return train_key_hint(section, {name: value.strip()})


def _without_place(message: str, where: str) -> str:
    """A section's message without the section's name, which ``where`` already ends with."""
    sections = where.split(": ")
    # A section may call itself by its own name or with those around it: "optim", "train.optim".
    names = {".".join(sections[start:]) for start in range(len(sections))}
    place, colon, rest = message.partition(": ")
    if colon and place in names:
        return rest
    return message


def _convert_literal(arguments: tuple[Any, ...], value: Any, where: str) -> Any:
    text = str(value) if isinstance(value, str) else ""
    if value not in arguments:
        allowed = tuple(str(argument) for argument in arguments)
        hint = did_you_mean(text, allowed)
        raise ConfigError(f"{where}: {_short(value)} is not one of {', '.join(allowed)}{hint}")
    # A text leaves its file's folder behind here; a number or a boolean stays what it is.
    if isinstance(value, str):
        return text
    return value


def _convert(hint: Any, value: Any, where: str) -> Any:
    """A value of a TOML file as what a field's type hint asks for."""
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        return _convert_union(arguments, value, where)
    if origin is Literal:
        return _convert_literal(arguments, value, where)
    if origin is tuple and isinstance(value, list | tuple):
        return _convert_tuple(arguments, value, where)
    if origin in (dict, Mapping) and isinstance(value, Mapping):
        return {key: _convert(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
        return from_mapping(typing.cast(type, hint), value, where=where)
    if isinstance(value, str) and (hint in (Path, str) or hint == PathText):
        return _convert_text(hint, value, where)
    if hint in (float, int, bool):
        return _convert_number(hint, value, where)
    raise ConfigError(f"{where}: expected {_name(hint)}, got {_short(value)}")


def _convert_text(hint: Any, value: str, where: str) -> str | Path:
    if hint is Path:
        return Path(_from_folder(_expand(value, where), value))
    if hint is str:
        return str(value)
    # An empty PathText means none; it must not become the folder of the file.
    if not value:
        return ""
    # Variables are not expanded: what it names need not be a path.
    return _from_folder(os.path.expanduser(value), value)


def _convert_number(hint: Any, value: Any, where: str) -> float | int | bool:
    # A whole number will do for a float. A boolean, which Python counts as an int, will not.
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        # Written so that NaN is refused as well.
        if not abs(value) <= sys.float_info.max:
            raise ConfigError(f"{where}: {_short(value)} is not a finite number")
        return float(value)
    if type(value) is not hint:
        raise ConfigError(f"{where}: expected {_name(hint)}, got {_short(value)}")
    if hint is int and abs(value) > MAX_WHOLE_NUMBER:
        raise ConfigError(f"{where}: {_short(value)} is too large; at most {MAX_WHOLE_NUMBER}")
    number: int = value
    return number


def _short(value: Any) -> str:
    """How a value is written, cut."""
    # Python refuses to write an int of more than 4,300 digits, so they are counted by the bits.
    if isinstance(value, int) and abs(value) > MAX_WHOLE_NUMBER:
        return f"a number of about {int(value.bit_length() * math.log10(2)) + 1} digits"
    text = repr(value)
    if len(text) <= 100:
        return text
    return f"{text[:100]}..."


def _convert_union(arguments: tuple[Any, ...], value: Any, where: str) -> Any:
    """As the first type of the union that takes the value."""
    complaints = []
    for argument in arguments:
        # TOML has no null, so no value of a file is None.
        if argument is type(None):
            continue
        try:
            return _convert(argument, value, where)
        except ConfigError as error:
            complaints.append(error)
    # The first type is the main one, which the message names as expected.
    raise complaints[0]


def _convert_tuple(arguments: tuple[Any, ...], value: Sequence[Any], where: str) -> tuple[Any, ...]:
    # tuple[X, ...] is as long as the list, and all of one type.
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        arguments = (arguments[0],) * len(value)
    if len(arguments) != len(value):
        raise ConfigError(
            f"{where}: expected {count_of(len(arguments), 'values')}, got {len(value)}"
        )
    return tuple(
        _convert(hint, item, f"{where}[{index}]")
        for index, (hint, item) in enumerate(zip(arguments, value, strict=True))
    )


def _from_folder(path: str, value: str) -> str:
    """The path, from the folder of the file that it stands in.

    What is not a path of this machine stays.
    """
    # Typed in the shell, or the value of a variable, which was set there.
    if not isinstance(value, FileText) or value.startswith("$"):
        return str(path)
    if _is_elsewhere(path) or os.path.isabs(path):
        return str(path)
    here = os.path.normpath(value.folder / path)
    if _is_installed_model(path, here):
        return str(path)
    return here


def _is_installed_model(name: str, here: str) -> bool:
    """Whether it names a model of an installed package, such as mini.

    A folder of that name comes first.
    """
    return not os.path.exists(here) and installed_model_entry(name) is not None


def _is_elsewhere(path: str) -> bool:
    """Whether it names a model of a hub, an address, or {stage.best}, which is filled in later."""
    return path.startswith((HUB_PREFIX, "{")) or "://" in path


def _expand(value: str, where: str) -> str:
    expanded = os.path.expanduser(os.path.expandvars(value))
    # expandvars leaves a variable that is not set as it is; a folder called $X must not be made.
    if "$" in expanded:
        variable = expanded[expanded.index("$") :].split("/")[0]
        raise ConfigError(
            f"{where}: the environment variable {variable} is not set; export it or write the path"
            " out"
        )
    return expanded


def _name(hint: Any) -> str:
    """What messages call a type."""
    if dataclasses.is_dataclass(hint):
        return "a section"
    # list[int] has a __name__ too, which is list alone.
    if typing.get_origin(hint) is not None:
        return str(hint)
    return getattr(hint, "__name__", str(hint))


def _plain(value: Any) -> Any:
    """A value as TOML can hold it, which has no null: what is None is left out."""
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
    """Adds the lines of a table: its values first, as in TOML a header ends the table before it."""
    sections = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lists = {key: value for key, value in table.items() if _is_list_of_tables(value)}
    values = {k: v for k, v in table.items() if k not in sections and k not in lists}
    # [a] is not needed before [a.b], but for an empty table it is all there is.
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
    """A key, in quotes unless TOML takes it bare: ASCII letters, digits, dashes, underscores."""
    if key.replace("_", "").replace("-", "").isalnum() and key.isascii():
        return key
    return _literal(key)


def _literal(value: Any) -> str:
    """A value as it is written in TOML, on one line."""
    # Before int, of which bool is a subclass.
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
    raise TypeError(f"{type(value).__name__} can't be written as TOML")


def _escape_control(character: str) -> str:
    """A control character as its code, as TOML allows none of them in a text."""
    if character >= " " and character != "\x7f":
        return character
    return f"\\u{ord(character):04x}"
