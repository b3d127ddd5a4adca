"""Words for which there are plainer ones, and British spellings, line by line.

    python tools/words.py

``make lint`` runs it, and it ends with 1 where it finds one; tests/test_house.py looks at the same
files. Of tests only docstrings and comments are read, as their texts are data.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS = (
    "told|foretold|nobody|likewise|spoilt|said|asked|whose|beside|alike|mend(?:s|ed|ing)?|see there"
)
"""Plainer: reported, estimated, none, (repeat it), excluded, given, requested, of which, next to,
equal, correct, see ``name``. Also within names."""
BRITISH = (
    "(?:colour|behaviour|neighbour|favour)[a-z]*|centre[sd]?|learnt|(?:mis)?spelt|artefacts?"
    "|judgements?|(?:label|model)l(?:ed|ing)"
)
ENDINGS = "al|el|il|an|en|gn|on|rn|ar|er|or|im|it|et|as|nt|rd|dom|tom|log|ym"
"""Before -ise: of normalise, tokenise, summarise; not of raise, precise, promise or otherwise."""
VERBS = rf"[a-z]{{2,}}(?:{ENDINGS})is(?:e[drs]?|ing|ations?)"
OLD_WORDS = re.compile(rf"(?<![a-z])(?:{WORDS}|{BRITISH}|{VERBS})(?![a-z])", re.IGNORECASE)
FOLDERS = {
    "src/interlingua": {".py", ".c", ".h", ".js", ".html", ".css"},
    "src/interlingua/quickstart": {".toml"},
    "docs": {".md"},
    "experiments": {".py", ".toml"},
    "benchmarks": {".py", ".md"},
    "examples": {".py", ".ipynb"},
    "tools": {".py"},
    "models": {".py", ".md", ".toml"},
}
"""Of which files with these endings are read as a whole, next to those of the root."""


def documents() -> list[Path]:
    """The files that are read: all of the project but data, results and this list itself."""
    found = [*ROOT.glob("*.md"), *(ROOT / "tests").rglob("*.py"), ROOT / "Makefile"]
    for folder, endings in FOLDERS.items():
        found += [path for path in (ROOT / folder).rglob("*") if path.suffix in endings]
    return sorted(set(found) - {Path(__file__).resolve()})


def old_words(path: Path) -> list[str]:
    """The lines of a file that have such a word, each with its number in front."""
    text = path.read_text(encoding="utf-8")
    lines = dict(enumerate(text.splitlines(), 1))
    if path.is_relative_to(ROOT / "tests"):
        lines = prose(text)
    return [f"{number}: {line.strip()}" for number, line in lines.items() if OLD_WORDS.search(line)]


def prose(source: str) -> dict[int, str]:
    """The comments and the lines of docstrings of a Python file, by number."""
    found = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            found[token.start[0]] = token.string
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        # a string that is a statement by itself
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    found[number] = lines[number - 1]
    return dict(sorted(found.items()))


def main(paths: Iterable[Path]) -> int:
    """Prints what is found; 1 if there is anything."""
    found = [f"{path.relative_to(ROOT)}:{line}" for path in paths for line in old_words(path)]
    for line in found:
        print(line)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(documents()))
