"""From the options dataclass of a verb to its command line: typer's signature, and ``--help`` under
headings.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from interlingua.limits import MAX_LINE_CHARACTERS, line_limit
from interlingua.options import GENERAL, GROUPS, Declaration, declared

T = TypeVar("T")
READ = (bool, int, float, str, Path)
"""Types of default values that say by themselves what a command line reads."""


def command(
    options: type[T],
    *,
    quiet: str | None = "No progress bar.",
    json: str | None = None,
    variables: str | None = None,
) -> Callable[[Callable[..., None]], Any]:
    """Makes a function of options a function that typer can run.

    Args:
        options: the dataclass of the verb.
        quiet: help text of ``--quiet``, which Python does not have; None = the verb has no such
            option.
        json: help text of ``--json``, in the same way; the function is given it as a third value.
        variables: beginning of the environment variables that set the options by name; None = there
            are none.
    """
    switches = {name: help for name, help in (("quiet", quiet), ("json", json)) if help is not None}

    def decorate(show: Callable[..., None]) -> Any:
        def call(**values: Any) -> None:
            of_terminal = [
                values.pop("quiet", False),
                *(values.pop(name) for name in switches if name != "quiet"),
            ]
            with line_limit(values.get("max_line", MAX_LINE_CHARACTERS)):
                show(options(**values), *of_terminal)

        made: Any = call
        made.__name__ = show.__name__
        made.__doc__ = show.__doc__
        of_verb = _parameters(options, variables)
        made.__signature__ = inspect.Signature(
            [*of_verb, *(_switch(*one) for one in switches.items())]
        )
        made.options = options
        return call

    return decorate


def _parameters(options: type, variables: str | None) -> list[inspect.Parameter]:
    parameters = []
    for field, declaration in declared(options):
        if variables is not None and not declaration.is_argument:
            declaration = dataclasses.replace(declaration, envvar=variables + field.name.upper())
        has_default = field.default is not dataclasses.MISSING and not declaration.is_required
        default = field.default if has_default else inspect.Parameter.empty
        kind = inspect.Parameter.KEYWORD_ONLY
        annotation = _annotation(field.name, default, declaration)
        parameters.append(
            inspect.Parameter(field.name, kind, default=default, annotation=annotation)
        )
    return parameters


def _annotation(name: str, default: Any, declaration: Declaration) -> Any:
    kind: Any = declaration.kind
    if kind is None:
        # bool comes before int, which it is too
        kind = next((known for known in READ if isinstance(default, known)), str)
    if default is None:
        kind = kind | None
    more: dict[str, Any] = {
        "help": declaration.help,
        "min": declaration.minimum,
        "max": declaration.maximum,
    }
    more |= {"envvar": declaration.envvar, "metavar": declaration.metavar}
    if declaration.is_argument:
        return Annotated[kind, typer.Argument(**more)]
    more["rich_help_panel"] = declaration.group
    return Annotated[kind, typer.Option(*_flags(name, default, declaration), **more)]


def _flags(name: str, default: Any, declaration: Declaration) -> list[str]:
    """A switch that is on by default gets a second flag from typer, which turns it off."""
    flag = "--" + name.replace("_", "-")
    flags = list(declaration.flags) or [f"{flag}/--no-{flag[2:]}" if default is True else flag]
    return [*flags, declaration.short] if declaration.short else flags


def _switch(name: str, help: str) -> inspect.Parameter:
    annotation = Annotated[bool, typer.Option(f"--{name}", help=help, rich_help_panel=GENERAL)]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation
    )


class GroupedCommand(TyperCommand):
    """A command of an options dataclass: help under the headings of ``options.GROUPS``,
    ``Options.left_out``.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the command line, with the first argument where it was left out."""
        options = getattr(self.callback, "options", None)
        if options is not None:
            in_front = options.left_out(*self._given(ctx, options, list(args)))
            args = args if in_front is None else [str(in_front), *args]
        return super().parse_args(ctx, args)

    def _given(self, ctx: Any, options: type, args: list[str]) -> tuple[str | None, dict[str, Any]]:
        """The first positional value, and what is given by name."""
        found = self.make_parser(ctx).parse_args(args=args)[0]
        names = {field.name for field, declaration in declared(options) if declaration.is_argument}
        first = next(
            (argument.name for argument in self.get_params(ctx) if argument.name in names), None
        )
        value = None if first is None else found.get(first)
        if isinstance(value, Sequence) and not isinstance(
            value, str
        ):  # an argument of any number of values
            value = value[0] if value else None
        return value, {name: value for name, value in found.items() if name not in names}

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the arguments and the options of ``--help``."""
        options = getattr(self.callback, "options", None)
        may_be_left_out = options is not None and options.left_out(None, {}) is not None
        sections: dict[str, list[tuple[str, str]]] = {
            "Arguments": [],
            **{group: [] for group in GROUPS},
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            is_argument = parameter.param_type_name == "argument"
            if is_argument and may_be_left_out and not sections["Arguments"]:
                record = (record[0], record[1].removesuffix("[required]").rstrip())
            group = getattr(parameter, "rich_help_panel", None) or GENERAL
            sections["Arguments" if is_argument else group].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
