"""docs/reference/python.md is made from the options dataclasses.

`UPDATE_DOCS=1 make test` writes it anew.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from pathlib import Path

from interlingua.cli.main import VERBS
from interlingua.config.options import declared
from tests.docs.reference import check_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "python.md"
HEAD = """\
# The verbs as Python functions

Each command of the [command line](cli.md) is a function `interlingua.VERB` with its options."""


def functions():
    """Return the functions that are made from a dataclass, by verb, in the order of the work."""
    found = {}
    for verb in VERBS:
        try:
            found[verb] = getattr(importlib.import_module(f"interlingua.verbs.{verb}"), verb)
        except ModuleNotFoundError:
            continue
    return found


def section(verb, function):
    """Return the table of a verb."""
    summary = function.__doc__.partition("\n")[0]
    lines = [
        "",
        f"## interlingua.{verb}",
        "",
        summary,
        "",
        "| option | default | meaning |",
        "|---|---|---|",
    ]
    for field, declaration in declared(function.options):
        default = "" if field.default is dataclasses.MISSING else f"`{_shown(field.default)}`"
        meaning = declaration.help.replace("|", "\\|")
        if declaration.unit is not None and declaration.unit not in meaning:
            meaning += f" Unit: {declaration.unit}."
        lines.append(f"| `{field.name}` | {default} | {meaning} |")
    positional = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    return [
        *lines,
        "",
        f"Positional: {', '.join(f'`{name}`' for name in positional) or 'none'}.",
    ]


def _shown(value):
    return repr(str(value)) if isinstance(value, Path) else repr(value)


def test_the_page_is_what_the_dataclasses_declare():
    lines = [HEAD]
    for verb, function in functions().items():
        lines += section(verb, function)
    check_page(PAGE, "\n".join(lines) + "\n")
