r"""How strong the tests are: small changes of the code, each of which some test should notice.

    python tools/mutants.py src/interlingua/functional --number 30 --journal functional.jsonl \
        --tests 'tests/functional/test_{name}*.py' --wider tests/functional tests/conformance

A mutant is one change: a comparison turned, plus for minus, a condition negated, a call left out.
It is made in a copy of the tree, never in the checkout. It is killed if a test fails or takes too
long. One that survives is either a line of which no test sees what it does, or a change that makes
no difference; a person has to decide which.

The seed draws the same mutants of the same code again. An interrupted run resumes where its
journal ends, if it is called as before. Not for Windows, which cannot fork.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import importlib
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
COUNTERPARTS: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.In, ast.NotIn),
    (ast.Is, ast.IsNot),
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Div),
    (ast.And, ast.Or),
)
OPERATORS: dict[type[ast.AST], type[Any]] = {
    ast.FloorDiv: ast.Mult,
    **dict(COUNTERPARTS),
    **{second: first for first, second in COUNTERPARTS},
}
FUNCTIONS = {"min": "max", "any": "all", "minimum": "maximum", "argmin": "argmax", "amin": "amax"}
FUNCTIONS |= {second: first for first, second in FUNCTIONS.items()}
TEXTS = (ast.JoinedStr, ast.Raise)
"""Written for people. Python 3.11 does not know where in its file a node of an f-string is, too."""
MESSAGES = ("print", "warn", "warning", "info", "debug", "echo", "log")
"""Functions that only inform when they are called as a statement."""
UNTESTED = ("__repr__", "__str__")
PRELOADED: tuple[str, ...] = (
    "hypothesis",
    "schemathesis.pytest.plugin",
    "anyio.pytest_plugin",
    "scipy.stats",
)
PRELOADED += ("torch._dynamo", "transformers", "jaxtyping")
"""Imported once and not by each run of the tests, most of which are shorter than these imports."""
PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")


class Mutant(NamedTuple):
    """A change of one place of a file, of which ``start`` and ``end`` count bytes."""

    file: str
    line: int
    column: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        before, after = (" ".join(text.split())[:60] for text in (self.before, self.after))
        return f"{self.file}:{self.line}:{self.column}: {before}  ->  {after}"

    def apply(self, text: bytes) -> bytes:
        """Return the file's text with the change."""
        return text[: self.start] + self.after.encode() + text[self.end :]


def mutants(text: bytes, file: str) -> list[Mutant]:
    """Return every possible change of a file."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node in code(ast.parse(text)):
        for place, after in changes(node):
            start = starts[place.lineno - 1] + place.col_offset
            end = starts[place.end_lineno - 1] + place.end_col_offset
            where = (file, place.lineno, place.col_offset + 1, start, end)
            found.append(Mutant(*where, text[start:end].decode(), after))
    return found


def code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the executed nodes: no annotations, messages or texts."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, TEXTS) or is_message(child):
                continue
            if getattr(child, "name", None) in UNTESTED:
                continue
            if hasattr(child, "lineno"):
                yield child
            # the number of a dimension is changed to another that there is
            if not is_dimension(child):
                yield from code(child)


def is_message(node: ast.AST) -> bool:
    """Return whether it is a statement that calls a function which only informs."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name in MESSAGES
    return False


def is_dimension(node: ast.AST) -> bool:
    """Return whether it is an argument that names a dimension."""
    return isinstance(node, ast.keyword) and node.arg in ("dim", "axis")


def changes(node: Any) -> Iterator[tuple[Any, str]]:
    """Yield a node to replace and its new text, if this node has any."""
    changed = copy.deepcopy(node)
    match changed:
        case ast.keyword(arg="dim" | "axis", value=value):
            yield node.value, "1" if ast.unparse(value) == "0" else "0"
            return
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield node.test, f"(not ({ast.unparse(test)}))"
            return
        case ast.AugAssign() | ast.Expr(value=ast.Call()):
            yield node, "pass"
            return
        case ast.BinOp(left=ast.Constant(value=str())) | ast.BinOp(right=ast.Constant(value=str())):
            return  # texts and paths, which have one operator only
        case ast.UnaryOp(op=ast.Not()):
            changed = changed.operand
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            changed.value = value + 1
        case _ if not swap(changed):
            return
    yield node, f"({ast.unparse(changed)})"


def swap(node: ast.AST) -> bool:
    """Put the counterpart in place of an operator or a function; whether it has one."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in OPERATORS:
            node.ops = [OPERATORS[type(operator)]()]
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) if type(operator) in OPERATORS:
            node.op = OPERATORS[type(operator)]()
        case ast.Call(func=ast.Name(id=name) as function) if name in FUNCTIONS:
            function.id = FUNCTIONS[name]
        case ast.Call(func=ast.Attribute(attr=name) as function) if name in FUNCTIONS:
            function.attr = FUNCTIONS[name]
        case _:
            return False
    return True


class Trial:
    """A copy of the tree in which the tests run.

    Attributes:
        limit: seconds of processor time for one run of the tests; ten times as many may pass.
    """

    def __init__(self, tree: Path, copied: Path, *, limit: int, options: list[str]) -> None:
        self.tree = copied
        self.limit = limit
        self.options = options
        self.sound: set[tuple[str, ...]] = set()
        self.second = 0
        ignored = shutil.ignore_patterns(".git", ".*_cache", "__pycache__")
        shutil.copytree(tree, copied, ignore=ignored, symlinks=True)

    def kills(self, mutant: Mutant, tests: tuple[str, ...]) -> bool:
        """Return whether these tests fail with the mutant; without it they have to pass."""
        path = self.tree / mutant.file
        text = path.read_bytes()
        path.write_bytes(mutant.apply(text))
        # bytecode is taken for that of a file with this size and second: each has its own
        self.second += 1
        os.utime(path, (self.second, self.second))
        passed = self.passes(tests)
        path.write_bytes(text)
        if not passed and tests not in self.sound and not self.passes(tests):
            sys.exit(f"without a mutant these tests fail: {' '.join(tests)}")
        self.sound.add(tests)
        return not passed

    def passes(self, tests: tuple[str, ...]) -> bool:
        """Return whether the tests end in time and well."""
        process = multiprocessing.get_context("fork").Process(target=self.run, args=[tests])
        process.start()
        process.join(timeout=10 * self.limit)
        if process.is_alive() and process.pid:
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
        return process.exitcode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)

    def run(self, tests: tuple[str, ...]) -> None:
        """Run the tests in a separate process."""
        os.setsid()
        # the parent's objects stay: pytest collects several times, which takes seconds with many
        gc.freeze()
        resource.setrlimit(resource.RLIMIT_CPU, (self.limit, self.limit + 5))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os.chdir(self.tree)
        sys.path[:0] = [str(self.tree / "src"), str(self.tree)]
        os.environ["PYTHONPATH"] = str(self.tree / "src")
        # what does not change is compiled once
        sys.dont_write_bytecode = False
        os._exit(pytest.main([*PYTEST, *self.options, *tests]))


def tests_of(mutant: Mutant, patterns: list[str], tree: Path) -> tuple[str, ...]:
    """Return the paths that patterns name for the module of a mutant."""
    named = [pattern.format(name=Path(mutant.file).stem) for pattern in patterns]
    paths = [path for pattern in named for path in sorted(tree.glob(pattern))]
    return tuple(str(path.relative_to(tree)) for path in paths)


def files(tree: Path, paths: list[str]) -> list[str]:
    """Return the Python files of paths, sorted, from the root of the tree."""
    found: set[Path] = set()
    for path in paths:
        inside = tree / path
        found |= set(inside.rglob("*.py")) if inside.is_dir() else {inside}
    return sorted(str(path.relative_to(tree)) for path in found)


def outcomes(journal: Path) -> dict[str, bool]:
    """Return whether each mutant of an earlier run was killed."""
    if not journal.exists():
        return {}
    return dict(map(json.loads, journal.read_text(encoding="utf-8").splitlines()))


def main() -> None:
    """Draw mutants, print the result of each, and last the share that was killed."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("paths", nargs="+", help="files and folders, from the root of the tree")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the root of the code")
    parser.add_argument("--number", type=int, default=30, help="how many mutants to draw")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="+", required=True, help="{name}: the changed module")
    parser.add_argument("--wider", nargs="+", default=[], help="tests of what survives those")
    parser.add_argument("--limit", type=int, default=60, help="processor seconds of a run")
    parser.add_argument("--journal", type=Path, default=Path("mutants.jsonl"))
    parser.add_argument("--pytest", nargs="+", default=[], help="its options, as --pytest=-kfast")
    options = parser.parse_args()
    tree = options.tree.resolve()
    every: list[Mutant] = []
    for file in files(tree, options.paths):
        every += mutants((tree / file).read_bytes(), file)
    drawn = random.Random(options.seed).sample(every, min(options.number, len(every)))
    known = outcomes(options.journal)
    for module in PRELOADED:
        importlib.import_module(module)
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(tree, Path(folder) / "tree", limit=options.limit, options=options.pytest)
        for mutant in drawn:
            if str(mutant) not in known:
                sets = [tests_of(mutant, paths, tree) for paths in (options.tests, options.wider)]
                known[str(mutant)] = any(trial.kills(mutant, tests) for tests in sets if tests)
                with options.journal.open("a", encoding="utf-8") as journal:
                    journal.write(json.dumps([str(mutant), known[str(mutant)]]) + "\n")
            print("killed  " if known[str(mutant)] else "SURVIVED", mutant, flush=True)
    killed = sum(known[str(mutant)] for mutant in drawn)
    print(f"{killed} of {len(drawn)} killed, {killed / max(len(drawn), 1):.0%}")


if __name__ == "__main__":
    main()
