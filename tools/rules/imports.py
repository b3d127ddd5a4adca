"""Rules on the imports of the library: their order, circles, and the order in CONTRIBUTING.md.

A top-level module is a package or a module directly in ``src/interlingua``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import cast

from tools.rules.base import Finding, Rule, SourceFile

# A top-level module may import those of the rows above it and of its own row.
ORDER: list[set[str]] = [
    {"errors", "storage", "runtime", "config", "data", "kernels"},
    {"report"},
    {"corpus"},
    {"vocabulary"},
    {"batches"},
    {"encoder"},
    {"preparation"},
    {"functional"},
    {"methods"},
    {"training"},
    {"retrieval"},
    {"mining"},
    {"alignment"},
    {"integrations"},
    {"exporters"},
    {"evaluation"},
    {"analysis"},
    {"adapt"},
    {"getting_started"},
    {"serving"},
    {"verbs"},
    {"cli"},
    {"__main__"},
]
# Modules that use an encoder do not depend on training, and training does not depend on them.
NEVER: dict[str, set[str]] = {
    "mining": {"methods", "training", "preparation", "batches"},
    "alignment": {"methods", "training", "preparation", "batches"},
    "retrieval": {"methods", "training", "preparation", "batches", "mining"},
    "integrations": {"methods", "training", "preparation", "batches", "mining"},
    "exporters": {"methods", "training", "preparation", "batches", "mining"},
    "evaluation": {"methods", "training", "preparation", "exporters"},
    "analysis": {"methods", "training", "preparation", "exporters"},
    "training": {"preparation"},
    "methods": {"preparation", "corpus"},
    "functional": {"encoder", "batches", "corpus", "preparation"},
}
TABLES = "tools/rules/imports.py"
"""The path of this module, which findings about ``ORDER`` name."""


class ImportOrder(Rule):
    """A module imports only modules of ``ORDER`` that are allowed, and CONTRIBUTING.md agrees."""

    name = "import-order"

    def __init__(self) -> None:
        self.unknown: dict[str, str] = {}

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Check the imports of a module, or the order in CONTRIBUTING.md."""
        if file.path == "CONTRIBUTING.md":
            yield from check_contributing(file)
        top = file.path_in_package.split("/")[0].removesuffix(".py")
        if not file.is_source or top == "__init__":  # the names of interlingua are lazy
            return
        allowed = allowed_imports(top)
        if allowed is None:
            self.unknown.setdefault(top, file.path)
            return
        for imported, line in top_level_imports(file).items():
            if imported not in allowed:
                yield Finding(file.path, line, f"{top} must not import {imported}")

    def finish(self) -> Iterator[Finding]:
        """Report top-level modules that ``ORDER`` names twice or not at all."""
        for top, path in self.unknown.items():
            yield Finding(path, 1, f"{top} is missing in ORDER ({TABLES})")
        counts = Counter(top for row in ORDER for top in row)
        for top, count in counts.items():
            if count > 1:
                yield Finding(TABLES, 1, f"{top} is {count} times in ORDER")


class ImportCircle(Rule):
    """No module imports itself by way of others."""

    name = "import-circle"

    def __init__(self) -> None:
        self.imports: dict[str, dict[str, int]] = {}
        self.paths: dict[str, str] = {}

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Store the imports of a module."""
        # The names of the package itself are lazy, and every module may import its version.
        if file.is_source and file.module != "interlingua":
            self.imports[file.module] = file.imports
            self.paths[file.module] = file.path
        yield from ()

    def finish(self) -> Iterator[Finding]:
        """Report one circle, if there is any."""
        graph = {}
        for module, imported in self.imports.items():
            graph[module] = sorted(imported.keys() & self.imports.keys() - {module})
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            # Each module imports the next one. The first module is repeated at the end.
            circle = cast("list[str]", error.args[1])[:0:-1]
            start = circle.index(min(circle))
            circle = [*circle[start:], *circle[: start + 1]]
            line = self.imports[circle[0]][circle[1]]
            yield Finding(self.paths[circle[0]], line, " imports ".join(circle))


def allowed_imports(top: str) -> set[str] | None:
    """Return what a top-level module may import, or None if ``ORDER`` does not name it."""
    allowed: set[str] = set()
    for row in ORDER:
        allowed |= row
        if top in row:
            return allowed - NEVER.get(top, set())
    return None


def top_level_imports(file: SourceFile) -> dict[str, int]:
    """Return the imported top-level modules, each with the line of its first import."""
    found: dict[str, int] = {}
    for name, line in file.imports.items():
        if name.startswith("interlingua.") and name != "interlingua.__version__":
            top = name.split(".")[1]
            found[top] = min(found.get(top, line), line)
    return found


def check_contributing(file: SourceFile) -> Iterator[Finding]:
    """Check that CONTRIBUTING.md states ``ORDER``, and names only modules without training."""
    block = re.search(r"The order of imports is\n\n```\n(.*?)```", file.text, re.DOTALL)
    if block is None:
        yield Finding(file.path, 1, '"The order of imports is", with a block of code, is missing')
    else:
        written = [{top.strip() for top in row.split(",")} for row in block[1].split("<")]
        if written != ORDER:
            line = file.text.count("\n", 0, block.start(1)) + 1
            yield Finding(file.path, line, f"the order of imports differs from ORDER ({TABLES})")
    users = re.search(r"^((?:`\w+`(?:, | and ))+`\w+`) use an encoder and never", file.text, re.M)
    if users is None:
        yield Finding(file.path, 1, '"... use an encoder and never ..." is missing')
        return
    line = file.text.count("\n", 0, users.start()) + 1
    for top in re.findall(r"`(\w+)`", users[1]):
        if not NEVER.get(top, set()) >= {"methods", "training"}:
            yield Finding(file.path, line, f"NEVER ({TABLES}) allows {top} to import training")
