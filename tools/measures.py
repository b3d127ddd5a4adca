"""Print measures of the library's simplicity, which the house rules keep at these values.

    python tools/measures.py             # of this checkout
    python tools/measures.py ../older    # of another one

Lines of code are those with a token that is no comment and no docstring.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FORMAT_TAG = re.compile(r"interlingua-[a-z-]+-\d+")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def main() -> None:
    """Print a table of two columns."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    package = root / "src" / "interlingua"
    trees = {
        path.relative_to(package).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    }
    outside = {path: tree for path, tree in trees.items() if not path.startswith("storage/")}
    folders = Counter(path.rpartition("/")[0] for path in trees if not path.endswith("__init__.py"))
    classes = [node for tree in trees.values() for node in classes_of(tree)]
    rows = {
        "names of formats outside of storage/": sum(map(count_format_tags, outside.values())),
        "json.load(s) outside of storage/": sum(map(count_json_readers, outside.values())),
        "*Job classes": sum(node.name.endswith("Job") for node in classes),
        "classes that declare the option retrieval of mine": sum(
            declares(node, "retrieval")
            for path, tree in trees.items()
            if path.startswith(("mining/", "verbs/"))
            for node in classes_of(tree)
        ),
        "modules in the largest folder": max(folders.values()),
        "public functions and classes defined twice": count_repeated(trees),
        "lines of code": sum(map(count_lines, trees.values())),
    }
    for name, value in rows.items():
        print(f"{name:55} {value:8,}")


def classes_of(tree: ast.Module) -> Iterator[ast.ClassDef]:
    """Yield the classes of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node


def declares(node: ast.ClassDef, field: str) -> bool:
    """Return whether a class has a field of its own by that name."""
    return any(
        isinstance(part, ast.AnnAssign)
        and isinstance(part.target, ast.Name)
        and part.target.id == field
        for part in node.body
    )


def count_format_tags(tree: ast.Module) -> int:
    """Count the strings that are a format's name with its version."""
    return sum(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and FORMAT_TAG.fullmatch(node.value) is not None
        for node in ast.walk(tree)
    )


def count_json_readers(tree: ast.Module) -> int:
    """Count the uses of ``json.load`` and ``json.loads``."""
    return sum(
        isinstance(node, ast.Attribute)
        and node.attr in ("load", "loads")
        and isinstance(node.value, ast.Name)
        and node.value.id == "json"
        for node in ast.walk(tree)
    )


def count_repeated(trees: dict[str, ast.Module]) -> int:
    """Count the names of public functions and classes that several modules define.

    A verb is a function of its options' module and of its module of the command line.
    """
    names = Counter(
        node.name
        for path, tree in trees.items()
        if not path.startswith("cli/")
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    )
    return sum(count > 1 for count in names.values())


def count_lines(tree: ast.Module) -> int:
    """Count the lines of code of a module."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr | ast.arg | ast.keyword | ast.alias):
            lines.add(node.lineno)
            lines.add(node.end_lineno or node.lineno)
    return len(lines)


if __name__ == "__main__":
    main()
