"""Rules on tests: what they match of messages, and that every module has some."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from tools.rules.base import Finding, Rule, SourceFile

MAX_WORDS = 5
"""Words of prose in a ``match=``. The wording of messages is in tests/golden/messages.txt."""


class MatchProse(Rule):
    """Tests match options, paths and numbers of a message rather than its prose."""

    name = "match-prose"

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Report patterns with too many words of prose."""
        if not file.is_test or "match" not in file.text:
            return
        found = set()
        for node in find_patterns(file.nodes):
            text = literal_text(node) or ""
            count = len(words_of_prose(text))
            if count > MAX_WORDS:
                message = f"{count} words of prose, at most {MAX_WORDS} are allowed: {text}"
                found.add(Finding(file.path, node.lineno, message))
        yield from sorted(found)


class UntestedModules(Rule):
    """A test imports every module of the library, or a file of tests has its name."""

    name = "untested-modules"

    def __init__(self) -> None:
        self.modules: dict[str, str] = {}
        self.imported: set[str] = set()
        self.tests: set[str] = set()

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Store a module, or the imports of a test."""
        if file.is_test:
            self.imported |= file.imports.keys()
            self.tests.add(file.path)
        elif file.is_source and not file.path.endswith("/__init__.py"):
            self.modules[file.module] = file.path_in_package
        yield from ()

    def finish(self) -> Iterator[Finding]:
        """Report modules without a test."""
        for module, name in self.modules.items():
            path = PurePosixPath(name)
            own_tests = str("tests" / path.with_name(f"test_{path.name}"))
            if module not in self.imported and own_tests not in self.tests:
                yield Finding(f"src/interlingua/{name}", 1, f"no test imports it, no {own_tests}")


def words_of_prose(pattern: str) -> list[str]:
    """Return the words of letters only: no names, keys, paths, options, numbers or quotes."""
    # Character classes, and values that an f-string inserts.
    text = re.sub(r"\\[sSwWdDbB]|\{[^{}]*\}", "#", pattern)
    text = re.sub(r"(?<!\\)\.[*+]", " ", text).replace("\\", "")
    pieces = re.split(r"[.:;,]+(?=\s|$)|[\s|()^$?\[\]]+", text)
    return [piece for piece in pieces if re.fullmatch(r"[A-Za-z]+(n't|'s)?", piece)]


def literal_text(node: ast.expr) -> str | None:
    """Return the text of a literal, with ``{}`` for each value that an f-string inserts."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(literal_text(part) or "{}" for part in node.values)
    return None


def find_patterns(nodes: Sequence[ast.AST]) -> list[ast.expr]:
    """Return the values of ``match=`` in functions, also those that ``parametrize`` passes."""
    found: list[ast.expr] = []
    for function in nodes:
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.keyword) and node.arg == "match":
                found.append(node.value)
                for name in ast.walk(node.value):
                    if isinstance(name, ast.Name):
                        found += parametrized_values(function, name.id)
    return found


def parametrized_values(function: ast.FunctionDef, name: str) -> list[ast.expr]:
    """Return the values that the decorators of a test pass to one of its arguments."""
    values: list[ast.expr] = []
    for call in function.decorator_list:
        if not isinstance(call, ast.Call) or not ast.unparse(call.func).endswith("parametrize"):
            continue
        names = re.findall(r"\w+", ast.unparse(call.args[0]))
        rows = call.args[1]
        if name in names and isinstance(rows, ast.List | ast.Tuple):
            values += [row_value(row, names.index(name), len(names)) for row in rows.elts]
    return values


def row_value(row: ast.expr, column: int, width: int) -> ast.expr:
    """Return a column of a row: of a tuple, of ``pytest.param``, or the row itself."""
    values = [row]
    if isinstance(row, ast.Call):
        values = row.args
    elif width > 1 and isinstance(row, ast.Tuple | ast.List):
        values = row.elts
    return values[column] if column < len(values) else row
