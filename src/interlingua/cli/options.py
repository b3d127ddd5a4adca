"""Generation of a verb's command line from its options dataclass.

Typer reads the signature of a function. Therefore a function is made for each verb; its parameters
are the fields of the dataclass and the switches that only the command line has. ``--help`` shows
them under the headings of ``options.GROUPS``.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from interlingua.config import AtLeast, Between
from interlingua.config.bounds import bounds_of
from interlingua.config.options import (
    ARGUMENT_TYPES,
    GENERAL,
    GROUPS,
    Declaration,
    declared,
    kinds_of,
)
from interlingua.errors import ConfigError
from interlingua.storage.limits import MAX_LINE_CHARACTERS, line_limit

T = TypeVar("T")
_READ = (bool, int, float, str, Path)
"""Types of default values; an option has the same type as its default value."""


def make_command(
    options: type[T],
    *,
    quiet: str | None = "Show no progress bar.",
    json: str | None = None,
    variables: str | None = None,
) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator that converts a function of options to one that typer can run.

    Args:
        options: the dataclass of the verb.
        quiet: help text of ``--quiet``, which exists only on the command line; None = the verb has
            no such option.
        json: help text of ``--json``; None = the verb has no such option. Its value is the third
            argument of the function.
        variables: prefix of the environment variables that set the options by name; None = no
            variables.
    """
    switches = {name: help for name, help in (("quiet", quiet), ("json", json)) if help is not None}

    def decorate(show: Callable[..., None]) -> Any:
        def call(**values: Any) -> None:
            # The switches are removed, because the dataclass has no fields for them.
            of_terminal = [values.pop("quiet", False)]
            if json is not None:
                of_terminal.append(values.pop("json"))
            with line_limit(values.get("max_line", MAX_LINE_CHARACTERS)):
                show(options(**values), *of_terminal)

        made: Any = call
        made.__name__ = show.__name__
        made.__doc__ = show.__doc__
        parameters = _parameters(options, variables)
        parameters += [_switch(name, help) for name, help in switches.items()]
        made.__signature__ = inspect.Signature(parameters)
        made.options = options  # for GroupedCommand
        return call

    return decorate


def _parameters(options: type, variables: str | None) -> list[inspect.Parameter]:
    parameters = []
    for field, declaration in declared(options):
        if declaration.is_in_memory:
            continue
        if variables is not None and not declaration.is_argument:
            declaration = dataclasses.replace(declaration, envvar=variables + field.name.upper())
        default = field.default
        if default is dataclasses.MISSING or declaration.is_required:
            default = inspect.Parameter.empty
        annotation = _annotation(options, field, default, declaration)
        parameters.append(_keyword(field.name, default, annotation))
    return parameters


def _keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _range(options: type, name: str) -> dict[str, float]:
    """Return the inclusive ends of an option's range, which ``--help`` shows."""
    bounded = bounds_of(options).get(name)
    rule = bounded and bounded.rule
    if isinstance(rule, Between):
        return {"min": rule.low, "max": rule.high}
    if isinstance(rule, AtLeast):
        return {"min": rule.low}
    return {}


def _annotation(
    options: type, field: dataclasses.Field[Any], default: Any, declaration: Declaration
) -> Any:
    kinds = kinds_of(options, field)
    kind: Any = declaration.kind or ARGUMENT_TYPES.get(kinds[0])
    if kind is None:
        # bool comes before int, because a bool is also an int.
        kind = next((known for known in _READ if isinstance(default, known)), str)
    if default is None:
        kind = kind | None
    more: dict[str, Any] = {
        "help": declaration.help,
    }
    more |= _range(options, field.name)
    more |= {"envvar": declaration.envvar, "metavar": declaration.metavar}
    if declaration.is_argument:
        return Annotated[kind, typer.Argument(**more)]
    more["rich_help_panel"] = declaration.group
    return Annotated[kind, typer.Option(*_flags(field.name, default, declaration), **more)]


def _flags(name: str, default: Any, declaration: Declaration) -> list[str]:
    """Return the flags of an option; one that is on by default has a second flag to turn it off."""
    flags = list(declaration.flags)
    if not flags:
        spelled = name.replace("_", "-")
        flags = [f"--{spelled}"]
        if default is True:
            flags = [f"--{spelled}/--no-{spelled}"]
    if declaration.short:
        flags.append(declaration.short)
    return flags


def _switch(name: str, help: str) -> inspect.Parameter:
    annotation = Annotated[bool, typer.Option(f"--{name}", help=help, rich_help_panel=GENERAL)]
    return _keyword(name, False, annotation)


def _given_values(values: Sequence[Any]) -> list[str]:
    """Return the texts among the values of positional parameters, in their order."""
    found = []
    for value in values:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, Sequence):  # an argument that takes any number of values
            found += value
    return found


def _set_positional(found: dict[str, Any], places: Sequence[Any], values: list[str]) -> list[str]:
    """Set the values of positional parameters, and return surplus values.

    Args:
        found: parsed values by the name of the parameter.
        places: the positional parameters, in their order.
        values: the values of all positional parameters.
    """
    left = list(values)
    for number, one in enumerate(places):
        count = 1
        if one.nargs == -1:
            # The parameters behind it take one value each.
            count = max(0, len(left) - (len(places) - number - 1))
        taken, left = left[:count], left[count:]
        if one.nargs == -1:
            found[one.name] = tuple(taken)
        elif taken:
            found[one.name] = taken[0]
    return left


def _refuse_missing_values(parameters: Sequence[Any], arguments: Sequence[str]) -> None:
    """Refuse an option whose value is the next option.

    Otherwise ``--data $UNSET --output x`` would read ``--output`` as the value of ``--data``.

    Raises:
        ConfigError: an option has no value.
    """
    options = [one for one in parameters if one.param_type_name == "option"]
    flags = {flag for one in options for flag in (*one.opts, *one.secondary_opts)}
    flags_with_value = {
        flag: one.opts[0] for one in options if not one.is_flag for flag in one.opts
    }
    following = iter(arguments)
    for argument in following:
        if argument == "--":  # only positional arguments follow
            return
        if argument not in flags_with_value:
            continue
        value = next(following, None)
        # At the end of the line, click reports the missing value.
        if value is not None and (value.startswith("--") or value in flags):
            raise ConfigError(
                f"{argument} has no value, because {value} follows it; pass a value (a shell"
                f" variable may be unset), or write {flags_with_value[argument]}=VALUE if the value"
                " begins with --"
            )


def _refuse_empty_paths(options: type, found: dict[str, Any]) -> None:
    """Refuse an empty text as a path, which would mean the working directory.

    Raises:
        ConfigError: a path is empty.
    """
    for field, declaration in declared(options):
        value = found.get(field.name)
        values = value if isinstance(value, list | tuple) else [value]
        is_path = "PathLike" in str(field.type) or declaration.reads is not None
        if not is_path or "" not in values:
            continue
        name = _flags(field.name, field.default, declaration)[0]
        if declaration.is_argument:
            name = field.name.upper()
        raise ConfigError(f"{name} is empty; pass a path (a shell variable may be unset)")


class GroupedCommand(TyperCommand):
    """A command that is made from an options dataclass.

    Its help has the headings of ``options.GROUPS``. If the user leaves out the first argument, the
    command uses the value that ``Options.left_out`` returns.
    """

    def make_parser(self, ctx: Any) -> Any:
        """Return the parser, which inserts the first argument if the user left it out."""
        parser: Any = super().make_parser(ctx)
        options = getattr(self.callback, "options", None)
        if options is None:
            return parser
        parse = parser.parse_args
        names = {field.name for field, declaration in declared(options) if declaration.is_argument}
        places = [one for one in self.get_params(ctx) if one.name in names]

        def parse_once(args: list[str]) -> tuple[dict[str, Any], list[str], list[Any]]:
            _refuse_missing_values(self.get_params(ctx), args)
            found, left, order = parse(args=args)
            _refuse_empty_paths(options, found)
            given = {name: value for name, value in found.items() if name not in names}
            positional = _given_values([found.get(str(one.name)) for one in places]) + left
            in_front = options.left_out(next(iter(positional), None), given)
            if in_front is not None:
                left = _set_positional(found, places, [str(in_front), *positional])
            return found, left, order

        parser.parse_args = parse_once
        return parser

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options of ``--help``."""
        options = getattr(self.callback, "options", None)
        may_be_left_out = options is not None and options.left_out(None, {}) is not None
        sections: dict[str, list[tuple[str, str]]] = {}
        for title in ("Arguments", *GROUPS):  # the order of the headings
            sections[title] = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            title = getattr(parameter, "rich_help_panel", None) or GENERAL
            if parameter.param_type_name == "argument":
                title = "Arguments"
                if may_be_left_out and not sections[title]:
                    # Typer considers the first argument required; ``parse_args`` inserts it.
                    record = (record[0], record[1].removesuffix("[required]").rstrip())
            sections[title].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
