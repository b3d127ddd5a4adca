"""The loader: strict conversion of plain values to typed ones, with the same errors for any source.

The frozen dataclasses are the only source of truth: names, types and bounds of the fields decide
what is accepted. The same functions read TOML, JSON, ``--set``, keyword arguments and the files of
third-party models; a ``ValueOrigin`` holds the differences between these sources. An error names
the file, the key, the value that was found, the expected value and the nearest name.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import os
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union

from interlingua.config.bounds import NUMBER_RULES, Bounded, NumberRule, bounds_of, hints_of
from interlingua.config.paths import PathText, expand_path, from_folder
from interlingua.config.toml import load_toml
from interlingua.errors import ConfigError, InterlinguaError, did_you_mean

T = TypeVar("T")
MAX_WHOLE_NUMBER = 2**63 - 1
"""The largest integer that torch, numpy and the files of a run hold."""
_SHOWN_CHARACTERS = 100
"""Maximum number of characters of a value in an error."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ValueOrigin:
    """The source of values, and how they are read.

    Attributes:
        place: the file, option or call that errors name.
        error: class of the errors.
        remedy: text at the end of every error.
        is_foreign: whether the source is a JSON file of a third party: unknown keys are ignored,
            null counts as a missing key, and a text with an unpaired surrogate is refused.
        numbers: bound for numbers whose types have no bound.
    """

    place: str = "config"
    error: type[InterlinguaError] = ConfigError
    remedy: str = ""
    is_foreign: bool = False
    numbers: NumberRule | None = None


class MisfitError(Exception):
    """A value that a type does not accept.

    Attributes:
        key: key of the value; None if the message is about something else.
    """

    def __init__(self, message: str, key: str | None = None) -> None:
        super().__init__(message)
        self.key = key


def load_config(cls: type[T], path: str | os.PathLike[str], *, overrides: Sequence[str] = ()) -> T:
    """Read a TOML file into a (nested) frozen dataclass.

    Args:
        cls: the dataclass.
        path: the TOML file.
        overrides: ``"section.key=value"`` strings; the value is TOML, or a plain string if it is
            not valid TOML.

    Raises:
        ConfigError: the file is missing or not TOML, a key is unknown (the nearest one is named), a
            value has the wrong type or is out of range, or a required key is missing.
    """
    return from_mapping(cls, load_toml(path, overrides=overrides), where=os.fspath(path))


def from_mapping(cls: type[T], table: Mapping[str, Any], *, where: str = "config") -> T:
    """Build a dataclass from nested mappings, and check every key, type and bound.

    Args:
        cls: the dataclass.
        table: its fields.
        where: the file or option that errors name.

    Raises:
        ConfigError: see ``load_config``.
    """
    return convert_to_type(cls, table, ValueOrigin(place=where))


def convert_to_type(kind: type[T], content: Any, origin: ValueOrigin) -> T:
    """Convert plain values to a type: a dataclass, or any type that a field may have.

    Raises:
        InterlinguaError: the content does not fit; its class is ``origin.error``.
    """
    try:
        found: T = _convert(kind, content, "", origin)
    except MisfitError as error:
        raise origin.error(f"{origin.place}: {error}{origin.remedy}") from error.__cause__
    return found


def check_arguments(cls: Any, given: Mapping[str, Any]) -> None:
    """Check the keyword arguments of a dataclass: their names, that none is missing, their bounds.

    Raises:
        ConfigError: a name is unknown (the nearest one is offered), a value is missing or out of
            range.
    """
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
    for name in given:
        if name not in fields:
            raise ConfigError(
                f"{cls.__name__}: unknown option {name!r}{_nearest(cls, name, fields)}"
            )
    for name, field in fields.items():
        if name not in given and _is_required(field):
            raise ConfigError(f"{cls.__name__} requires {name}; set it")
    for name, bounded in bounds_of(cls).items():
        if name in given:
            _check_numbers(name, given[name], bounded)


def _check_numbers(name: str, value: Any, bounded: Bounded) -> None:
    """Refuse a number that is out of range, also one in a list or mapping; accept None.

    Raises:
        ConfigError: a number is out of range.
    """
    items = (value,)
    if isinstance(value, tuple | list):
        items = tuple(value)
    elif isinstance(value, Mapping):
        items = tuple(value.values())
    for item in items:
        # This accepts numpy's numbers too; their type decides whether they are whole numbers.
        is_number = isinstance(item, _NUMBERS[bounded.kind])
        if item is not None and not (is_number and bounded.rule.holds(item)):
            expected = bounded.rule.describe(_WORDS[bounded.kind])
            raise ConfigError(_misfit(name, shorten_value(item), expected))


def shorten_value(value: Any) -> str:
    """Format a value for an error: shortened, without control characters."""
    # Python refuses to format an integer of more than 4,300 digits, so only their number is shown.
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a number of about {int(value.bit_length() * math.log10(2)) + 1} digits"
    try:
        text = repr(value)
    # The value is, for example, a list that contains such a number.
    except ValueError:
        return f"a value of type {type(value).__name__}"
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]}..."


def _fill(cls: Any, table: Mapping[str, Any], key: str, origin: ValueOrigin) -> Any:
    """Fill a dataclass from a mapping."""
    hints = hints_of(cls)
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name in fields:
            values[name] = _convert(hints[name], value, _below(key, name), origin)
        elif not origin.is_foreign:
            hint = _nearest(cls, name, fields)
            raise MisfitError(f"unknown key {_below(key, name)!r}{hint}")
    for name, field in fields.items():
        if name not in values and _is_required(field):
            expected = describe_type(hints[name], origin)
            raise MisfitError(f"{_below(key, name)} is missing; expected {expected}")
    # The dataclass checks whether its values fit together, but knows neither file nor section.
    try:
        return cls(**values)
    except ConfigError as error:
        message = _without_place(str(error), f"{origin.place}: {key}".removesuffix(": "))
        place = f"{key}: " if key else ""
        raise MisfitError(f"{place}{message}") from error


def _is_required(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def _nearest(cls: Any, name: str, fields: Mapping[str, Any]) -> str:
    """Suggest a key for an unknown one, from the class's own table or by spelling."""
    meant = getattr(cls, "MEANT_BY", {}).get(name)
    if meant is None:
        return did_you_mean(str(name), list(fields))
    return f"; did you mean {meant!r}?"


def _below(key: str, name: str) -> str:
    """Return the full key of a value in a section, without control characters."""
    bare_name = shorten_value(name)[1:-1]
    return f"{key}.{bare_name}" if key else bare_name


def _without_place(message: str, where: str) -> str:
    """Remove the section's name from a message if ``where`` already ends with it."""
    sections = where.replace(".", ": ").split(": ")
    # A message may start with the section's short name or its full one: "optim", "train.optim".
    names = {".".join(sections[start:]) for start in range(len(sections))}
    place, colon, rest = message.partition(": ")
    if colon and place in names:
        return rest
    return message


def _convert(hint: Any, value: Any, key: str, origin: ValueOrigin) -> Any:
    """Convert a plain value to a type.

    Raises:
        MisfitError: the value does not fit.
    """
    origin_type = typing.get_origin(hint)
    if hint is Any:
        return value
    if hint == PathText:
        return _text(hint, value, key, origin)
    if origin_type is Annotated:
        return _convert_ruled(hint, value, key, origin)
    if origin_type in (Union, types.UnionType):
        return _convert_union(hint, value, key, origin)
    if origin_type is Literal:
        return _convert_literal(typing.get_args(hint), value, key)
    if origin_type is tuple and isinstance(value, list | tuple):
        return _convert_tuple(hint, value, key, origin)
    if isinstance(value, Mapping):
        return _convert_mapping(hint, value, key, origin)
    return _convert_scalar(hint, value, key, origin)


def _convert_mapping(hint: Any, value: Mapping[str, Any], key: str, origin: ValueOrigin) -> Any:
    if typing.get_origin(hint) in (dict, Mapping):
        inner = typing.get_args(hint)[1]
        return {k: _convert(inner, item, _below(key, k), origin) for k, item in value.items()}
    if dataclasses.is_dataclass(hint):
        return _fill(hint, value, key, origin)
    raise _unfit(hint, value, key, origin)


def _convert_scalar(hint: Any, value: Any, key: str, origin: ValueOrigin) -> Any:
    if hint in (str, Path):
        return _text(hint, value, key, origin)
    if hint in (float, int, bool):
        return _number(hint, value, key, origin)
    if hint is type(None) and value is None:
        return None
    raise _unfit(hint, value, key, origin)


def _unfit(hint: Any, value: Any, key: str, origin: ValueOrigin, got: str = "") -> MisfitError:
    return MisfitError(_misfit(key, got or shorten_value(value), describe_type(hint, origin)), key)


def _misfit(key: str, got: str, expected: str) -> str:
    """Return the message of an error about a value."""
    return f"{key or 'the content'}: expected {expected}, found {got}"


def _convert_ruled(hint: Any, value: Any, key: str, origin: ValueOrigin) -> Any:
    """Convert a value to a type with rules; do not walk a list that is too long."""
    kind, *_ = typing.get_args(hint)
    rules = [rule for rule in hint.__metadata__ if hasattr(rule, "holds")]
    is_list = typing.get_origin(kind) is tuple
    if is_list and isinstance(value, list | tuple):
        for rule in rules:
            if not rule.holds(value):
                raise _unfit(hint, value, key, origin, got=f"a list of {len(value)}")
    # A bound of the type replaces the bound for all numbers.
    if any(isinstance(rule, NUMBER_RULES) for rule in rules):
        origin = dataclasses.replace(origin, numbers=None)
    try:
        found = _convert(kind, value, key, origin)
    except MisfitError as error:
        # An error in a nested value already says what was expected there.
        if error.key != key:
            raise
        raise _unfit(hint, value, key, origin) from None
    if not is_list and not all(rule.holds(found) for rule in rules):
        raise _unfit(hint, value, key, origin)
    return found


def _convert_union(hint: Any, value: Any, key: str, origin: ValueOrigin) -> Any:
    """Convert a value to the first type of a union that accepts it."""
    alternatives = [argument for argument in typing.get_args(hint) if argument is not type(None)]
    # TOML has no null, so a value in one of our own files is never None.
    if value is None and origin.is_foreign and len(alternatives) < len(typing.get_args(hint)):
        return None
    errors = []
    for alternative in alternatives:
        try:
            return _convert(alternative, value, key, origin)
        except MisfitError as error:
            errors.append(error)
    # An alternative that failed only at a nested key fits best, so its error is raised.
    for wrong in errors:
        if wrong.key != key:
            raise wrong
    if len(errors) == 1:
        raise errors[0]
    raise _unfit(hint, value, key, origin)


def _convert_literal(arguments: tuple[Any, ...], value: Any, key: str) -> Any:
    # A list or a table is never an allowed value, and cannot be looked up.
    is_scalar = isinstance(value, str | int | float)
    if not is_scalar or value not in arguments:
        allowed = tuple(str(argument) for argument in arguments)
        near = did_you_mean(str(value), allowed)
        # If no value is near, the hint lists all values, as the message already does.
        hint = near if near.startswith("; did") else ""
        raise MisfitError(_misfit(key, shorten_value(value), _listed(allowed)) + hint, key)
    # str() removes the file's folder from a ``FileText``; numbers and booleans do not change.
    if isinstance(value, str):
        return str(value)
    return value


def _convert_tuple(
    hint: Any, value: Sequence[Any], key: str, origin: ValueOrigin
) -> tuple[Any, ...]:
    arguments = typing.get_args(hint)
    # tuple[X, ...] is as long as the list, and all of one type.
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        arguments = (arguments[0],) * len(value)
    if len(arguments) != len(value):
        raise _unfit(hint, value, key, origin, got=f"a list of {len(value)}")
    return tuple(
        _convert(inner, item, f"{key}[{index}]", origin)
        for index, (inner, item) in enumerate(zip(arguments, value, strict=True))
    )


def _text(hint: Any, value: Any, key: str, origin: ValueOrigin) -> str | Path:
    if not isinstance(value, str):
        raise _unfit(hint, value, key, origin)
    if hint is Path:
        try:
            return Path(from_folder(expand_path(value), value))
        except ConfigError as error:
            raise MisfitError(f"{key}: {error}") from error
    if hint is str:
        if origin.is_foreign and not _is_text(value):
            raise _unfit(hint, value, key, origin)
        return str(value)
    # An empty PathText means that there is no path; it must not become the folder of the file.
    if not value:
        return ""
    # Variables are not expanded: the name need not be a path.
    return from_folder(os.path.expanduser(value), value)


def _is_text(value: str) -> bool:
    """Return whether a text has no unpaired surrogate, which UTF-8 cannot encode."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _number(hint: Any, value: Any, key: str, origin: ValueOrigin) -> float | int | bool:
    found = value
    # A float may be a whole number, but not a boolean, which Python counts as an int.
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        # The comparison is negated so that NaN is refused as well.
        if not abs(value) <= sys.float_info.max:
            raise MisfitError(_misfit(key, shorten_value(value), "a finite number"), key)
        found = float(value)
    elif type(value) is not hint:
        raise _unfit(hint, value, key, origin)
    if hint is int and abs(value) > MAX_WHOLE_NUMBER:
        expected = f"a whole number of at most {MAX_WHOLE_NUMBER}"
        raise MisfitError(_misfit(key, shorten_value(value), expected), key)
    if origin.numbers is not None and hint is not bool and not origin.numbers.holds(found):
        raise _unfit(hint, value, key, origin)
    number: float | int | bool = found
    return number


_NUMBERS: Mapping[type, type] = {int: numbers.Integral, float: numbers.Real}
_WORDS: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    Path: "a path",
    PathText: "a path",
    type(None): "null",
}


def describe_type(hint: Any, origin: ValueOrigin) -> str:
    """Describe the expected values of a type, such as ``a whole number from 1 to 1024``."""
    if hint in _WORDS:
        words = _WORDS[hint]
        if origin.numbers is not None and hint in (int, float):
            return origin.numbers.describe(words)
        return words
    return _listed(tuple(dict.fromkeys(_descriptions(hint, origin))))


def _listed(words: Sequence[str]) -> str:
    """Join alternatives in words: ``auto, cpu or cuda``."""
    *before, last = words
    return " or ".join([", ".join(before), last] if before else [last])


def _descriptions(hint: Any, origin: ValueOrigin) -> Iterator[str]:
    """Return the descriptions of a type's alternatives."""
    arguments = typing.get_args(hint)
    kind = typing.get_origin(hint)
    if kind is Annotated:
        words = describe_type(arguments[0], dataclasses.replace(origin, numbers=None))
        yield arguments[1].describe(words)
    elif kind in (Union, types.UnionType):
        present = [argument for argument in arguments if argument is not type(None)]
        yield from (describe_type(argument, origin) for argument in present)
    elif kind is Literal:
        yield from (str(argument) for argument in arguments)
    elif kind is tuple and Ellipsis not in arguments:
        yield f"a list of {len(arguments)}"
    elif kind is tuple:
        yield "a list"
    elif origin.is_foreign:
        yield "an object"
    else:
        yield "a section"
