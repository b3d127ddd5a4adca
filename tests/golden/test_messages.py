"""The wording of every error and warning, in one file: UPDATE_GOLDEN=1 regenerates it after a
change of wording.

The templates are read from the source, with the expressions of f-strings as placeholders. The file
holds each template once, sorted, with the number of places that use it. Moving code between modules
therefore leaves the file as it is. Other tests match the class, the option or the path.
"""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

import interlingua

SOURCE = Path(interlingua.__file__).parent
FROZEN = Path(__file__).with_name("messages.txt")
SPEAKERS = {"warn", "warning"}
"""Functions that show their first argument to the user, besides exceptions."""


def templates(tree: ast.AST) -> list[str]:
    """Return the texts of exceptions and warnings of a module, in the order of its lines."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            found.append((node.lineno, _name(node.exc.func), node.exc.args))
        elif isinstance(node, ast.Call) and _name(node.func) in SPEAKERS:
            found.append((node.lineno, _name(node.func), node.args))
    found.sort(key=lambda entry: entry[0])
    return [f"{name}: {text}" for _, name, arguments in found if (text := _first_text(arguments))]


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _first_text(arguments: list[ast.expr]) -> str:
    """Return the first argument with ``{...}`` in place of inserted values."""
    return _text(arguments[0]).replace("\n", "\\n") if arguments else ""


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return f"{{{ast.unparse(node.value)}}}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return f"{{{ast.unparse(node)}}}"


def counted(found: Iterable[str]) -> list[str]:
    """Return each template once, sorted, after the number of times that it occurs."""
    return [f"{count} {template}" for template, count in sorted(Counter(found).items())]


def test_the_wording_of_messages_is_the_frozen_one():
    found = []
    for path in SOURCE.rglob("*.py"):
        found += templates(ast.parse(path.read_text(encoding="utf-8")))
    lines = counted(found)
    if os.environ.get("UPDATE_GOLDEN"):
        FROZEN.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert lines == FROZEN.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "raise ConfigError(f'{where}: got {x!r}; ' 'give one')",
            ["ConfigError: {where}: got {x}; give one"],
        ),
        ("raise errors.DataError('no line') from error", ["DataError: no line"]),
        ("def f():\n    warn('slow: ' + name)", ["warn: slow: {name}"]),
        ("raise ConfigError(message)", ["ConfigError: {message}"]),
        ("raise ValueError", []),
        ("x = ConfigError('kept for later')", []),
    ],
)
def test_templates_of_a_module(source, expected):
    assert templates(ast.parse(source)) == expected


def test_moving_a_message_to_another_module_changes_no_line():
    first, second = ["DataError: no line", "warn: slow"], ["ConfigError: got {x}", "warn: slow"]
    expected = ["1 ConfigError: got {x}", "1 DataError: no line", "2 warn: slow"]
    assert counted([*first, *second]) == counted([*second, *first]) == expected
