"""Rules on functions and classes of the library, and on what only one module may do."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tools.rules.base import Finding, Rule, SourceFile

MAX_LINES = 80
MAX_MODULES = 20
LONGER = {"src/interlingua/training/loop.py": 150}
"""Files with another limit. The training loop is one function that reads from top to bottom."""
SHARED_NAMES = {"EPILOG", "P", "R", "T", "log"}
"""The end of a verb's ``--help``, type variables, and the logger of a module. A verb's name is also
that of two functions: one in ``verbs/``, and one in ``cli/verbs/`` that shows its result."""
STORAGE = "src/interlingua/storage/"
TAG = re.compile(r"interlingua-[a-z-]+-\d+")
"""Name and version of a format, see ``storage/formats.py``."""
PROGRESS_BARS = "src/interlingua/runtime/progress.py"
CHOICE = "src/interlingua/encoder/executors/choice.py"
CHOICE_STRINGS = {"INTERLINGUA_EXECUTOR", "executors.json"}
CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "time"}
"""Functions of the module ``time`` that read a clock, also with ``_ns``."""
CLOCK_READERS = {
    "analysis/run.py": "report",
    "encoder/files/embed_files.py": "report",
    "encoder/backends/openai.py": "pauses between requests",
    "evaluation/speed_gain.py": "report",
    "evaluation/time_limit.py": "budget",
    "evaluation/cache.py": "report",
    "evaluation/sanity.py": "report",
    "evaluation/task.py": "report",
    "evaluation/tasks/mteb.py": "report",
    "mining/plan.py": "estimate",
    "mining/score.py": "report",
    "preparation/progress.py": "report",
    "getting_started/run.py": "budget",
    "runtime/progress.py": "progress",
    "retrieval/searcher.py": "interval of looks at the index",
    "retrieval/topk/speed.py": "estimate",
    "serving/batching.py": "estimate of the time until an answer",
    "serving/guards.py": "report",
    "serving/routes/ollama_routes.py": "report",
    "serving/routes/text_routes.py": "deadline of a request",
    "storage/temporary.py": "age of files",
    "training/banks.py": "report",
    "training/budget.py": "estimate",
    "training/loop.py": "budget",
    "training/result.py": "report",
    "training/validation.py": "budget",
}
"""Modules that read a clock, by path in the package, and what for. None compares executors."""


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


_VERB_FOLDERS = ("src/interlingua/verbs", "src/interlingua/cli/verbs")


class FolderSize(Rule):
    """A folder of the library has few modules, so that a reader can know all of them.

    The folders of verbs have one module for each verb.
    """

    name = "folder-size"

    def __init__(self) -> None:
        self.modules: Counter[str] = Counter()

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Count the module."""
        folder, _, name = file.path.rpartition("/")
        if file.is_source and name != "__init__.py":
            self.modules[folder] += 1
        yield from ()

    def finish(self) -> Iterator[Finding]:
        """Report folders with too many modules."""
        for folder, count in sorted(self.modules.items()):
            if count > MAX_MODULES and folder not in _VERB_FOLDERS:
                text = f"{count} modules, at most {MAX_MODULES} are allowed"
                yield Finding(folder, 1, text)


class PublicNames(Rule):
    """No two public functions, classes, constants or type aliases have the same name."""

    name = "public-names"

    def __init__(self) -> None:
        self.places: dict[str, str] = {}

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Report a name of a module, or a class anywhere, if it is already used."""
        if not file.is_source:
            return
        for name, node in public_names(file):
            if is_shared_name(file, name):
                continue
            if name in self.places:
                text = f"{name} is also in {self.places[name]}"
                yield Finding(file.path, node.lineno, text)
            self.places.setdefault(name, f"{file.path}:{node.lineno}")


def public_names(file: SourceFile) -> Iterator[tuple[str, ast.stmt]]:
    """Yield names that a module defines, and those of classes in functions and classes."""
    statements: dict[ast.stmt, None] = {}
    for node in file.nodes:
        if isinstance(node, ast.Module):
            statements |= dict.fromkeys(node.body)
        elif isinstance(node, ast.ClassDef):
            statements[node] = None
    seen: set[str] = set()
    for statement in sorted(statements, key=lambda statement: statement.lineno):
        for name in defined_names(statement):
            # A module may define a name twice: overloads, and one way per platform.
            if not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, statement


def defined_names(node: ast.stmt) -> list[str]:
    """Return the names that a definition or an assignment gives; an import gives none."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def is_shared_name(file: SourceFile, name: str) -> bool:
    """Return whether several modules may define a name, see ``SHARED_NAMES``."""
    if name in SHARED_NAMES:
        return True
    return file.path_in_package in (f"verbs/{name}.py", f"cli/verbs/{name}.py")


class ProgressBars(Rule):
    """Only ``runtime/progress.py`` uses rich's progress bars."""

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
            yield Finding(file.path, line, "rich.progress is for runtime/progress.py alone")


class ExecutorChoice(Rule):
    """Only ``encoder/executors/choice.py`` times computations to choose one."""

    name = "executor-choice"

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Report other modules that read a clock, the variable or the stored rates."""
        if not file.is_source or file.path == CHOICE:
            return
        has_clock = file.path_in_package in CLOCK_READERS
        for node in file.nodes:
            if isinstance(node, ast.Constant) and node.value in CHOICE_STRINGS:
                text = f"{node.value} is for {CHOICE} alone"
                yield Finding(file.path, node.lineno, text)
            elif reads_clock(node) and not has_clock:
                text = (
                    "a clock: choose executors in encoder/executors/choice.py; for other purposes "
                    "name this module in CLOCK_READERS (tools/rules/definitions.py)"
                )
                yield Finding(file.path, getattr(node, "lineno", 1), text)


def reads_clock(node: ast.AST) -> bool:
    """Return whether a node names a clock of the module ``time``, or imports one or ``timeit``."""
    if isinstance(node, ast.ImportFrom):
        names = {alias.name.removesuffix("_ns") for alias in node.names}
        return node.module == "timeit" or (node.module == "time" and bool(names & CLOCKS))
    if isinstance(node, ast.Import):
        return any(alias.name == "timeit" for alias in node.names)
    return (
        isinstance(node, ast.Attribute)
        and node.attr.removesuffix("_ns") in CLOCKS
        and isinstance(node.value, ast.Name)
        and node.value.id == "time"
    )


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
