"""Classes that all rules share: a file of the project, a finding, and a rule."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import ClassVar, NamedTuple

STRINGS_AND_COMMENTS = re.compile(
    r'"""(?:\\.|[^\\])*?"""'
    r"|'''(?:\\.|[^\\])*?'''"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'"
    r"|(?P<comment>#[^\n]*)",
    re.DOTALL,
)
"""Twenty times as fast as ``tokenize``, with the same comments. Strings are matched to skip the
``#`` in them. An f-string that repeats its own quotes (Python 3.12) is not supported."""


class Finding(NamedTuple):
    """A violation of a rule.

    Attributes:
        path: relative to the root of the project.
        line: number of the line, from 1.
        text: what is wrong and what the rule allows.
    """

    path: str
    line: int
    text: str


class SourceFile:
    """A file of the project.

    Content, syntax tree and comments are computed at their first use and kept, so that all rules
    share them.

    Attributes:
        path: relative to the root of the project, with ``/``.
        location: the file on the disk.
        is_tracked: whether git tracks the file. Other files are new and not ignored.
    """

    def __init__(self, root: Path, path: str, *, is_tracked: bool = True) -> None:
        self.path = path
        self.location = root / path
        self.is_tracked = is_tracked

    @cached_property
    def content(self) -> bytes:
        """The bytes of the file."""
        return self.location.read_bytes()

    @cached_property
    def text(self) -> str:
        """The content, decoded as UTF-8."""
        return self.content.decode("utf-8")

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text, without line breaks."""
        return self.text.splitlines()

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the syntax tree, in the order of ``ast.walk``."""
        return list(ast.walk(ast.parse(self.text)))

    @cached_property
    def comments(self) -> dict[int, str]:
        """The comments of a Python file by line number."""
        found = {}
        line = 1
        end = 0
        for match in STRINGS_AND_COMMENTS.finditer(self.text):
            if match["comment"]:
                line += self.text.count("\n", end, match.start())
                end = match.start()
                found[line] = match["comment"]
        return found

    @cached_property
    def imports(self) -> dict[str, int]:
        """The imported modules and names of a Python file, each with the line of its first import.

        ``from a import b`` imports ``a`` and ``a.b``. Imports in functions and for type checkers
        count.
        """
        found: dict[str, int] = {}
        for node in self.nodes:
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                module = node.module or "."
                names = [module, *(f"{module}.{name}" for name in names)]
            for name in names:
                found[name] = min(found.get(name, node.lineno), node.lineno)
        return found

    @property
    def is_python(self) -> bool:
        """True if the file is a Python module or script."""
        return self.path.endswith(".py")

    @property
    def is_source(self) -> bool:
        """True if the file is a module of the library."""
        return self.is_python and self.path.startswith("src/interlingua/")

    @property
    def is_test(self) -> bool:
        """True if the file is a Python file of the tests."""
        return self.is_python and self.path.startswith("tests/")

    @property
    def path_in_package(self) -> str:
        """The path of a module of the library, relative to ``src/interlingua``."""
        return self.path.removeprefix("src/interlingua/")

    @property
    def module(self) -> str:
        """The dotted name of a module of the library; of a package for its ``__init__.py``."""
        parts = self.path_in_package.removesuffix(".py").split("/")
        return ".".join(("interlingua", *parts)).removesuffix(".__init__")

    def find_lines(self, text: str) -> list[int]:
        """Return the numbers of the lines that contain a text. The file may be binary."""
        pattern = text.encode()
        if pattern not in self.content:
            return []
        lines = self.content.split(b"\n")
        return [number for number, line in enumerate(lines, 1) if pattern in line]


class Rule:
    """A rule. It checks every file once, one after the other.

    Attributes:
        name: how the rule is called in findings and on the command line.
    """

    name: ClassVar[str]

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Yield the violations in a file, or store facts for ``finish``."""
        yield from ()

    def finish(self) -> Iterator[Finding]:
        """Yield violations that involve several files, after the last file."""
        yield from ()

    def summary(self) -> Iterator[str]:
        """Yield lines to print after the findings, also without any."""
        yield from ()
