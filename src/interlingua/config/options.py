"""The options of a verb, declared once: fields of a frozen dataclass with help, group and unit.

A verb is a subcommand such as ``mine``. The command line, its ``--help``, the Python function of
the verb and docs/reference are all made from that dataclass. A field that is made by ``argument``
is positional; a field that is made by ``option`` is passed by name.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import numbers
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from interlingua.config import CheckedSettings
from interlingua.config.bounds import bounds_of
from interlingua.errors import ConfigError, count_of, did_you_mean
from interlingua.storage.limits import MAX_LINE_CHARACTERS, line_limit

INPUT = "Input"
MODEL = "Model"
SEARCH = "Search"
FILTERING = "Filtering"
OUTPUT = "Output"
GENERAL = "Options"
GROUPS = (INPUT, MODEL, SEARCH, FILTERING, OUTPUT, GENERAL)
"""Headings of ``--help``, in their order."""
DECLARATION = "interlingua"
"""Key of a field's metadata."""
ARGUMENT_TYPES = {
    "int": int,
    "float": float,
    "Sequence[str]": list[str],
    "Sequence[PathLike]": list[Path],
}
"""Annotation of a field, without ``| None`` -> the type that the command line reads."""
Names = str | Iterable[str]
"""Names separated by commas, or an iterable of names."""
P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True, slots=True)
class Declaration:
    """The declaration of an option besides its name, type and default.

    Attributes:
        help: one line.
        group: heading of ``--help``, one of ``GROUPS``.
        unit: unit of the option's number, such as tokens, characters or cosine.
        kind: type that the command line reads; by default that of the annotation
            (``ARGUMENT_TYPES``) or of the default value, or else a text.
        flags: flags on the command line, if they do not follow from the field's name.
        short: one-letter flag.
        envvar: environment variable that provides the default on the command line.
        metavar: name of the value in ``--help``.
        is_argument: whether it is positional, on the command line and in Python.
        is_positional: whether it may be passed without its name in Python.
        is_in_memory: whether only Python has it, because its value is not a text.
        is_required: whether the command line requires it, because the command writes the result to
            a file; the Python function returns the result instead.
        reads: kind of input that the option names ("file", "model");
            ``verbs.parts.input_checks.check_inputs`` checks it before torch is imported.
    """

    help: str
    group: str
    unit: str | None = None
    kind: Any = None
    flags: tuple[str, ...] = ()
    short: str | None = None
    envvar: str | None = None
    metavar: str | None = None
    is_argument: bool = False
    is_required: bool = False
    is_positional: bool = False
    is_in_memory: bool = False
    reads: str | None = None


def option(
    default: Any = dataclasses.MISSING, help: str = "", *, group: str = GENERAL, **more: Any
) -> Any:
    """Declare a field of an options dataclass that is passed by name.

    Args:
        default: without one the option is required.
        help: one line.
        group: heading of ``--help``.
        more: see ``Declaration``.
    """
    return _field(default, Declaration(help=help, group=group, **more))


def argument(help: str, default: Any = dataclasses.MISSING, **more: Any) -> Any:
    """Declare a positional field of an options dataclass.

    Args:
        help: one line.
        default: without one the argument is required.
        more: see ``Declaration``.
    """
    return _field(default, Declaration(help=help, group=INPUT, is_argument=True, **more))


def _field(default: Any, declaration: Declaration) -> Any:
    is_keyword = not (declaration.is_argument or declaration.is_positional)
    return dataclasses.field(
        default=default, kw_only=is_keyword, metadata={DECLARATION: declaration}
    )


def listed(names: Names | None) -> list[str] | None:
    """Return names as a list, or None for None."""
    if names is None:
        return None
    if not isinstance(names, str):
        return list(names)
    return [part.strip() for part in names.split(",") if part.strip()]


@dataclass(frozen=True)
class Options(CheckedSettings):
    """Base of the options of a verb."""

    @classmethod
    def left_out(cls, first: Any, given: Mapping[str, Any]) -> Any:
        """Return the value of the first argument if the caller omitted it.

        A class whose first argument can be omitted overrides this method; in this class the first
        argument cannot be omitted.

        Args:
            first: the first value that was passed without a name. If the caller omitted the first
                argument, this is the value of the second one. None = no value was passed without a
                name.
            given: all values passed by name.

        Returns:
            The value to put in front; None = nothing was left out.
        """
        return None


def filled(kind: Callable[..., T], options: Options, **made: Any) -> T:
    """Build a dataclass whose fields take the values of the options with the same names.

    Args:
        kind: the dataclass; a field that is neither an option nor in ``made`` keeps its default.
        options: a verb's options. Values that the command line reads as paths become paths.
        made: values of fields that are not simply the values of options.
    """
    given = {field.name: declaration_of(field) for field in dataclasses.fields(options)}
    needed: Any = kind
    for field in dataclasses.fields(needed):
        if field.name in made or field.name not in given:
            continue
        value = getattr(options, field.name)
        if given[field.name].kind is Path and value is not None:
            value = Path(value)
        made[field.name] = value
    return kind(**made)


def recorded(options: Options) -> dict[str, Any]:
    """Return the options by name, as a record on disk holds them.

    A value in memory, such as texts or an encoder, is replaced by the name of its type.
    """
    values = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    return {name: _recorded(value) for name, value in values.items()}


def _recorded(value: Any) -> Any:
    """Return a value in its JSON form."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(key): _recorded(one) for key, one in value.items()}
    return f"in memory: {type(value).__name__}"


def declaration_of(field: dataclasses.Field[Any]) -> Declaration:
    """Return the declaration that ``option`` or ``argument`` made for a field."""
    declaration: Declaration = field.metadata[DECLARATION]
    return declaration


def declared(options: type) -> list[tuple[dataclasses.Field[Any], Declaration]]:
    """Return the fields of an options dataclass with their declarations.

    Arguments come first, then options by group.
    """
    fields = [(field, declaration_of(field)) for field in dataclasses.fields(options)]
    # The sort is stable: within a group the order of the dataclass stays.
    return sorted(fields, key=lambda pair: (not pair[1].is_argument, GROUPS.index(pair[1].group)))


def help_with_unit(declaration: Declaration) -> str:
    """Return the help text with the unit."""
    if declaration.unit is None:
        return declaration.help
    return f"{declaration.help} Unit: {declaration.unit}."


def function_of(options: Callable[P, T], run: Callable[[T], R], name: str) -> Callable[P, R]:
    """Build the Python function of a verb.

    Args:
        options: the dataclass, each field of which becomes an argument.
        run: does the work that the options describe.
        name: name of the function.

    Returns:
        A function with the signature of the dataclass, and with a docstring that describes each
        argument.
    """

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        completed = _completed(options, args, kwargs)
        check_call(options, name, completed, kwargs)
        values = options(*completed, **kwargs)
        with line_limit(getattr(values, "max_line", MAX_LINE_CHARACTERS)):
            return run(values)

    # help() and editors show the verb, not this wrapper.
    made: Any = call
    made.__name__ = made.__qualname__ = name
    made.__module__ = run.__module__
    made.__signature__ = inspect.signature(options).replace(
        return_annotation=inspect.signature(run).return_annotation
    )
    made.__doc__ = _docstring(options, run)
    made.options = options
    return call


def checked_call(function: Callable[P, R]) -> Callable[P, R]:
    """Return a public function that raises a ``ConfigError`` for a wrong call.

    Args:
        function: the function to wrap; the names of its parameters are the known options.
    """
    signature = inspect.signature(function)
    known = [name for name in signature.parameters if name != "self"]
    called = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known:
                raise ConfigError(f"{called}: unknown option {name!r}{did_you_mean(name, known)}")
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ConfigError(f"{called}: {error}; call {called}({', '.join(known)})") from None
        return function(*args, **kwargs)

    return call


def check_call(options: Any, name: str, arguments: Sequence[Any], given: Mapping[str, Any]) -> None:
    """Check the arguments of a verb's Python function, before the dataclass is made of them.

    Args:
        options: the dataclass.
        name: name of the verb.
        arguments: values without a name.
        given: values by name.

    Raises:
        ConfigError: a name is unknown (the nearest one is offered), a value is missing, passed
            twice or of another type, or there are too many without a name.
    """
    fields = {field.name: field for field in dataclasses.fields(options)}
    positional = [field.name for field in fields.values() if not field.kw_only]
    usage = f"call {_usage(name, list(fields.values()))}"
    for key in given:
        if key not in fields:
            raise ConfigError(f"{name}: unknown option {key!r}{did_you_mean(key, list(fields))}")
    if len(arguments) > len(positional):
        raise ConfigError(
            f"{name}: expected at most {count_of(len(positional), 'values')} without a name,"
            f" found {len(arguments)}; {usage}"
        )
    values = dict(zip(positional, arguments, strict=False))
    for key in values:
        if key in given:
            raise ConfigError(f"{name}: {key} is passed twice, with and without its name; {usage}")
    values |= given
    for key, field in fields.items():
        if key not in values and field.default is dataclasses.MISSING:
            raise ConfigError(f"{name} requires {key}; {usage}")
    for key, value in values.items():
        _check_type(fields[key], value, name, options)
        if declaration_of(fields[key]).reads == "model":
            _check_model(key, value, name, usage)


def _check_model(key: str, value: Any, name: str, usage: str) -> None:
    """Refuse a value that cannot embed texts as a model does; accept None, which the verb handles.

    Raises:
        ConfigError: the value is not a path, an encoder or a function.
    """
    if value is None or isinstance(value, _TEXT) or callable(getattr(value, "encode", value)):
        return
    raise ConfigError(
        f"{name}: {key}: expected an encoder (interlingua.load), a model folder or a function,"
        f" found {textwrap.shorten(repr(value), 60, placeholder='...')} of type"
        f" {type(value).__name__}; {usage}"
    )


def _usage(name: str, fields: Sequence[dataclasses.Field[Any]]) -> str:
    """Return a call of a verb with its required and its positional options."""
    parts = []
    for field in fields:
        is_required = field.default is dataclasses.MISSING
        if not field.kw_only:
            parts.append(field.name if is_required else f"[{field.name}]")
        elif is_required:
            parts.append(f"{field.name}=...")
    return f"interlingua.{name}({', '.join([*parts, 'option=value'])})"


def _check_type(
    field: dataclasses.Field[Any],
    value: Any,
    name: str,
    options: Any,
) -> None:
    """Refuse a value that has none of the types of its annotation.

    Raises:
        ConfigError: the value has none of these types.
    """
    kinds = kinds_of(options, field)
    fields = {one.name: one for one in dataclasses.fields(options)}
    # If only Python can pass a value, the code that reads it checks it. A torch.device is accepted
    # as a device name.
    if declaration_of(field).is_in_memory or "Model" in kinds:
        return
    if "Array" in kinds and hasattr(value, "__array__"):
        return
    if "DataFrame" in kinds and is_frame(value):
        return
    if field.name == "device" and type(value).__name__ == "device":
        return
    # The reader of texts in memory refuses items that are not texts, and names their positions.
    is_path = all(kind in ("PathLike", "None") for kind in kinds)
    reads = declaration_of(field).reads
    in_memory = reads in ("text", "text or folder", "pairs") and not is_path
    if in_memory and not isinstance(value, numbers.Number):
        return
    if any(_has_kind(value, kind) for kind in kinds):
        return
    words = [_KIND_WORDS.get(kind.split("[")[0], kind) for kind in kinds]
    expected = " or ".join(dict.fromkeys(words))
    shown = textwrap.shorten(repr(value), 60, placeholder="...")
    if hasattr(value, "__array__") and "PathLike" in kinds:
        shown = "an array"
        hint = "; write it with numpy.save and pass the file"
        if "vectors" in fields:
            hint += f": interlingua.{name}(vectors='FILE.npy', labels='LANGUAGES.txt')"
    else:
        hint = f"; call {_usage(name, list(fields.values()))}"
    help = declaration_of(field).help.rstrip(".")
    raise ConfigError(
        f"{name}: {field.name}: expected {expected} ({help}), found {shown} of type"
        f" {type(value).__name__}{hint}"
    )


def is_frame(value: Any) -> bool:
    """Return whether a value is a table in memory, which has named columns."""
    return hasattr(value, "columns") or hasattr(value, "column_names")


def kinds_of(options: Any, field: dataclasses.Field[Any]) -> list[str]:
    """Return the types of an annotation.

    Those of ``Annotated[int, AtLeast(1)] | None`` are ``int`` and ``None``.
    """
    kinds = [kind.strip() for kind in _UNION.split(str(field.type))]
    bound = bounds_of(options).get(field.name)
    if bound is None:
        return kinds
    # The first type is a number with a bound, whatever name the annotation uses for it.
    return [bound.kind.__name__, *kinds[1:]]


def _has_kind(value: Any, kind: str) -> bool:
    """Return whether a value has one type of an annotation, spelled as in ``PathLike | None``."""
    # numpy's bool is not a Python bool, but numpy's numbers are instances of Python's number types.
    if kind == "bool" and type(value).__name__ == "bool":
        return True
    if kind in _SCALARS:
        return isinstance(value, _SCALARS[kind])
    is_text = isinstance(value, _TEXT)
    if kind in ("Names", "Numbers", "Files") and is_text:
        return True
    if kind.startswith("Mapping"):
        return isinstance(value, Mapping)
    if kind.split("[")[0] in ("Sequence", "Iterable", "Names", "Numbers", "Files"):
        is_iterable = isinstance(value, Iterable) and not is_text
        return is_iterable and not isinstance(value, bytes | Mapping)
    # A class of this library is compared by its name, because the annotation is a text.
    return any(base.__name__ == kind for base in type(value).__mro__)


_UNION = re.compile(r" \| (?![^\[]*\])")
"""Separator of the types of an annotation, but not inside brackets."""
_TEXT = (str, os.PathLike)
_SCALARS: Mapping[str, Any] = {
    "None": type(None),
    "bool": bool,
    "int": numbers.Integral,
    "float": numbers.Real,
    "str": _TEXT,
    "PathLike": _TEXT,
    "Device": _TEXT,
    "defaults.Margin": _TEXT,
    "defaults.Retrieval": _TEXT,
    "defaults.Equal": _TEXT,
}
_KIND_WORDS = {
    "None": "None",
    "bool": "True or False",
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "Device": "a text",
    "defaults.Margin": "a text",
    "defaults.Retrieval": "a text",
    "defaults.Equal": "a text",
    "PathLike": "a path",
    "Names": "names with commas",
    "Numbers": "numbers with commas",
    "Files": "paths",
    "Sequence": "a list",
    "Iterable": "a list",
    "Mapping": "a mapping",
}
"""Type of an annotation -> its name in errors."""


def _completed(options: Any, arguments: tuple[Any, ...], given: Mapping[str, Any]) -> Any:
    """Return the positional arguments, with the first one inserted if it was left out."""
    first = None
    if arguments:
        first = arguments[0]
        # The caller passed None as the first argument, so nothing was left out.
        if first is None:
            return arguments
    in_front = options.left_out(first, given)
    if in_front is None:
        return arguments
    return (in_front, *arguments)


def _docstring(options: Any, run: Callable[..., Any]) -> str:
    """Return the docstring of a verb: that of ``run`` with the options instead of its arguments."""
    # The paragraph of Args describes the one options object; what follows it is kept.
    summary, _, rest = inspect.cleandoc(run.__doc__ or "").partition("\n\nArgs:\n")
    after = rest.partition("\n\n")[2]
    lines = []
    for field, declaration in declared(options):
        text = f"{field.name}: {help_with_unit(declaration)}"
        lines.append(textwrap.fill(text, 110, initial_indent="    ", subsequent_indent="        "))
    parts = [summary, "Args:\n" + "\n".join(lines), after]
    return "\n\n".join(part for part in parts if part)
