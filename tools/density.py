"""Rule on the density of code: signs of dense lines, counted by package.

    python tools/density.py            # the packages of this library, next to the limits
    python tools/density.py FOLDER...  # any other code, each folder a row

The program prints the table. ``tools/house.py`` checks that every package is within the limits,
which are the medians of libraries that are easy to read. Fewer comments are enough.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for a run as a script

from tools.rules.base import Finding, Rule, SourceFile

SOURCE = Path(__file__).resolve().parent.parent / "src" / "interlingua"
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
DIRECTIVES = ("# noqa", "# type:", "# fmt:", "# pragma:")
"""Comments for tools, not for people."""
COLUMNS = ("package", "lines", "tuples", "conditional", "nested", "comments")
MODULES = "modules"
"""The row of the modules that are in no package."""


class Density(NamedTuple):
    """Signs of dense code.

    Attributes:
        tuples: assignments of several unlike things at once, per 1,000 lines.
        conditional: conditional expressions per 1,000 lines.
        nested: comprehensions that contain another one, per 1,000 lines.
        comments: per 100 lines, the one that should be high.
    """

    tuples: float
    conditional: float
    nested: float
    comments: float


MEDIANS = Density(0.15, 6.2, 0.25, 3.8)
"""Medians of httpx 0.28, ir_measures 0.4, lightly 1.6, litgpt 0.5, model2vec 0.10, open_clip_torch
3.3, opusfilter 3.3, ranx 0.3, sentence_transformers 6.2, sqlite_utils 4.2 and torchtitan 0.3,
without their tests, by this script."""
LIMIT = MEDIANS._replace(comments=2.4)
"""The limits of every package. Docstrings contain much of what comments contain elsewhere."""


class Counts(NamedTuple):
    """The number of lines and of each sign in them."""

    lines: int = 0
    tuples: int = 0
    conditional: int = 0
    nested: int = 0
    comments: int = 0

    def __add__(self, other: object) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        return Counts(*map(sum, zip(self, other, strict=True)))

    @property
    def density(self) -> Density:
        """The signs per 1,000 lines, comments per 100."""
        lines = max(self.lines, 1)
        return Density(
            tuples=1000 * self.tuples / lines,
            conditional=1000 * self.conditional / lines,
            nested=1000 * self.nested / lines,
            comments=100 * self.comments / lines,
        )


class PackageDensity(Rule):
    """No package is denser than the limits."""

    name = "density"

    def __init__(self) -> None:
        self.packages: defaultdict[str, Counts] = defaultdict(Counts)

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Add the counts of a module to those of its package."""
        if file.is_source:
            folder, separator, _ = file.path_in_package.partition("/")
            self.packages[folder if separator else MODULES] += measure(file)
        yield from ()

    def finish(self) -> Iterator[Finding]:
        """Report each limit that a package exceeds."""
        for name, counts in self.packages.items():
            path = "src/interlingua" if name == MODULES else f"src/interlingua/{name}"
            for text in excesses(counts.density):
                yield Finding(path, 1, text)


def measure(file: SourceFile) -> Counts:
    """Count the signs in a Python file."""
    return Counts(
        lines=len(file.lines),
        tuples=sum(map(assigns_unlike_things, file.nodes)),
        conditional=sum(isinstance(node, ast.IfExp) for node in file.nodes),
        nested=sum(map(contains_comprehension, file.nodes)),
        comments=sum(not comment.startswith(DIRECTIVES) for comment in file.comments.values()),
    )


def assigns_unlike_things(node: ast.AST) -> bool:
    """Return whether a node is like ``a, b = f(x), y``, but not like ``a, b = f(x), f(y)``."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    if not isinstance(node.targets[0], ast.Tuple):
        return False
    return len({shape_of(value) for value in node.value.elts}) > 1


def contains_comprehension(node: ast.AST) -> bool:
    """Return whether a node is a comprehension that contains another one."""
    inner = (part for part in ast.walk(node) if part is not node)
    return isinstance(node, COMPREHENSIONS) and any(
        isinstance(part, COMPREHENSIONS) for part in inner
    )


def shape_of(node: ast.AST) -> str:
    """Return an expression without its names and values."""
    parts = ",".join(map(shape_of, ast.iter_child_nodes(node)))
    return f"{type(node).__name__}({parts})"


def measure_files(files: Iterable[Path]) -> Counts:
    """Count the signs in several files together."""
    return sum((measure(SourceFile(file.parent, file.name)) for file in files), Counts())


def measure_packages() -> dict[str, Counts]:
    """Count the signs in each package of this library, and in its modules that are in none."""
    found = {MODULES: measure_files(sorted(SOURCE.glob("*.py")))}
    for folder in sorted(SOURCE.iterdir()):
        if files := sorted(folder.rglob("*.py")):
            found[folder.name] = measure_files(files)
    return found


def excesses(density: Density) -> list[str]:
    """Return a text for each limit that a package exceeds."""
    found = []
    for sign, value, limit in zip(Density._fields, density, LIMIT, strict=True):
        is_comments = sign == "comments"
        if value < limit if is_comments else value > limit:
            bound = "at least" if is_comments else "at most"
            lines = "100" if is_comments else "1,000"
            found.append(f"{sign} {value:.2f} per {lines} lines, {bound} {limit:g} are allowed")
    return found


def rows(found: dict[str, Counts]) -> list[str]:
    """Return the lines of a table, with the limits and the medians at the end."""
    lines = ["".join(f"{title:>13}" for title in COLUMNS)]
    for name, counts in found.items():
        cells = [name, f"{counts.lines:,}", *(f"{value:.1f}" for value in counts.density)]
        lines.append("".join(f"{cell:>13}" for cell in cells))
    for name, density in (("limits", LIMIT), ("medians", MEDIANS)):
        cells = [name, "", *(f"{value:.1f}" for value in density)]
        lines.append("".join(f"{cell:>13}" for cell in cells))
    return lines


def main() -> None:
    """Print the table."""
    folders = list(map(Path, sys.argv[1:]))
    found = {folder.name: measure_files(sorted(folder.rglob("*.py"))) for folder in folders}
    print("\n".join(rows(found or measure_packages())))


if __name__ == "__main__":
    main()
