"""How much one line of Python holds: signs of dense code, counted by package.

    python tools/density.py            # the packages of this library, next to the limits
    python tools/density.py FOLDER...  # any other code, each folder a row

``make lint`` prints the table and tests/test_house.py holds every package to the limits. They are
the medians of libraries that are read with ease; of comments fewer will do.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parent.parent / "src" / "interlingua"
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
DIRECTIVES = ("# noqa", "# type:", "# fmt:", "# pragma:")
"""Comments for tools, not for people."""
COLUMNS = ("package", "lines", "tuples", "conditional", "nested", "comments")


class Density(NamedTuple):
    """Signs of dense code.

    Attributes:
        tuples: assignments of several unlike things at once, per 1,000 lines.
        conditional: conditional expressions per 1,000 lines.
        nested: comprehensions that hold another one, per 1,000 lines.
        comments: per 100 lines, the one that should be high.
    """

    tuples: float
    conditional: float
    nested: float
    comments: float


MODELS = Density(0.15, 6.2, 0.25, 3.8)
"""Medians of httpx 0.28, ir_measures 0.4, lightly 1.6, litgpt 0.5, model2vec 0.10, open_clip_torch
3.3, opusfilter 3.3, ranx 0.3, sentence_transformers 6.2, sqlite_utils 4.2 and torchtitan 0.3,
without their tests, by this script."""
LIMIT = MODELS._replace(comments=2.4)
"""Of every package. Docstrings say much of what comments say elsewhere."""


class Counts(NamedTuple):
    """The same in numbers, with the lines they are in."""

    lines: int = 0
    tuples: int = 0
    conditional: int = 0
    nested: int = 0
    comments: int = 0

    @property
    def density(self) -> Density:
        """Per 1,000 lines, comments per 100."""
        lines = max(self.lines, 1)
        return Density(
            tuples=1000 * self.tuples / lines,
            conditional=1000 * self.conditional / lines,
            nested=1000 * self.nested / lines,
            comments=100 * self.comments / lines,
        )


def measure(text: str) -> Counts:
    """The counts of a module's text."""
    nodes = list(ast.walk(ast.parse(text)))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counts(
        lines=len(text.splitlines()),
        tuples=sum(map(assigns_unlike_things, nodes)),
        conditional=sum(isinstance(node, ast.IfExp) for node in nodes),
        nested=sum(map(holds_a_comprehension, nodes)),
        comments=sum(
            token.type == tokenize.COMMENT and not token.string.startswith(DIRECTIVES)
            for token in tokens
        ),
    )


def assigns_unlike_things(node: ast.AST) -> bool:
    """Whether it is ``a, b = f(x), y``; ``a, b = f(x), f(y)`` assigns things of one shape."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    if not isinstance(node.targets[0], ast.Tuple):
        return False
    return len({shape_of(value) for value in node.value.elts}) > 1


def holds_a_comprehension(node: ast.AST) -> bool:
    """Whether it is a comprehension with another one in it."""
    inner = (part for part in ast.walk(node) if part is not node)
    return isinstance(node, COMPREHENSIONS) and any(
        isinstance(part, COMPREHENSIONS) for part in inner
    )


def shape_of(node: ast.AST) -> str:
    """An expression without its names and values."""
    parts = ",".join(map(shape_of, ast.iter_child_nodes(node)))
    return f"{type(node).__name__}({parts})"


def measured(files: Iterable[Path]) -> Counts:
    """The counts of several files together."""
    total = Counts()
    for file in files:
        found = measure(file.read_text(encoding="utf-8"))
        total = Counts(*map(sum, zip(total, found, strict=True)))
    return total


def packages() -> dict[str, Counts]:
    """The packages of this library, and its modules that are in none."""
    found = {"modules": measured(sorted(SOURCE.glob("*.py")))}
    for folder in sorted(SOURCE.iterdir()):
        if files := sorted(folder.rglob("*.py")):
            found[folder.name] = measured(files)
    return found


def excesses(name: str, density: Density) -> list[str]:
    """What is denser in a package than its limits allow, in words."""
    found = []
    for sign, value, most in zip(Density._fields, density, LIMIT, strict=True):
        if value < most if sign == "comments" else value > most:
            bound = "at least" if sign == "comments" else "at most"
            found.append(f"{name}: {sign} {value:.2f}, {bound} {most:g}")
    return found


def rows(found: dict[str, Counts]) -> list[str]:
    """Lines of a table."""
    lines = ["".join(f"{title:>13}" for title in COLUMNS)]
    for name, counts in found.items():
        cells = [name, f"{counts.lines:,}", *(f"{value:.1f}" for value in counts.density)]
        lines.append("".join(f"{cell:>13}" for cell in cells))
    for name, density in (("limits", LIMIT), ("medians", MODELS)):
        cells = [name, "", *(f"{value:.1f}" for value in density)]
        lines.append("".join(f"{cell:>13}" for cell in cells))
    return lines


def main() -> None:
    """Prints the table."""
    folders = list(map(Path, sys.argv[1:]))
    if folders:
        found = {folder.name: measured(sorted(folder.rglob("*.py"))) for folder in folders}
        print("\n".join(rows(found)))
        return
    found = packages()
    print("\n".join(rows(found)))
    wrong = [line for name, counts in found.items() for line in excesses(name, counts.density)]
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
