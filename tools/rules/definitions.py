"""Rules on functions and classes of the library."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.rules.base import Finding, Rule, SourceFile

MAX_LINES = 80
LONGER = {"src/interlingua/train/loop.py": 200}
"""Files with another limit. The training loop is one function that reads from top to bottom."""
STORAGE = "src/interlingua/storage/"
TAG = re.compile(r"interlingua-[a-z-]+-\d+")
"""Name and version of a format, see ``storage/formats.py``."""
PROGRESS_BARS = "src/interlingua/progress_bars.py"


class FunctionLength(Rule):
    """A function is short. ruff checks its complexity."""

    name = "function-length"

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Report functions with too many lines."""
        if not file.is_source:
            return
        most = LONGER.get(file.path, MAX_LINES)
        for node in file.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > most:
                    text = f"{node.name} has {lines} lines, at most {most} are allowed"
                    yield Finding(file.path, node.lineno, text)


class ClassNames(Rule):
    """No two public classes have the same name."""

    name = "class-names"

    def __init__(self) -> None:
        self.places: dict[str, str] = {}

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Report a public class if its name is already used."""
        if not file.is_source:
            return
        for node in file.nodes:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                if node.name in self.places:
                    text = f"class {node.name} is also in {self.places[node.name]}"
                    yield Finding(file.path, node.lineno, text)
                self.places.setdefault(node.name, f"{file.path}:{node.lineno}")


class ProgressBars(Rule):
    """Only ``progress_bars.py`` uses rich's progress bars."""

    name = "progress-bars"

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Report other modules that mention them."""
        if not file.is_source:
            return
        lines = file.find_lines("rich.progress")
        if file.path == PROGRESS_BARS:
            if not lines:
                yield Finding(file.path, 1, "rich.progress is not used here: adapt this rule")
            return
        for line in lines:
            yield Finding(file.path, line, "rich.progress is for progress_bars.py alone")


class JsonReaders(Rule):
    """Only ``storage/`` parses JSON with Python's parser, which fails at hostile texts."""

    name = "json-readers"

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Report other modules that do."""
        if not file.is_source or file.path.startswith(STORAGE):
            return
        for node in file.nodes:
            # Calls, and functions that are passed on.
            if (
                isinstance(node, ast.Attribute)
                and node.attr in ("load", "loads")
                and isinstance(node.value, ast.Name)
                and node.value.id == "json"
            ):
                text = f"json.{node.attr} is for storage/ alone; use storage.json_text"
                yield Finding(file.path, node.lineno, text)


class FormatTags(Rule):
    """Only ``storage/formats.py`` names formats with their version."""

    name = "format-tags"

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Report a constant with a version elsewhere."""
        if not file.is_source or file.path.startswith(STORAGE):
            return
        for node in file.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                value = node.value
                text = value if isinstance(value, str) else value.decode("latin-1")
                if TAG.fullmatch(text):
                    yield Finding(file.path, node.lineno, f"{text} belongs in storage/formats.py")
