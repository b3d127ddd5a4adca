"""Rule on words for which there are plainer ones, and on British spellings.

    python tools/house.py --rule words

In tests the rule reads docstrings and comments only, because other strings are data.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath

from tools.rules.base import Finding, Rule, SourceFile

WORDS = "told|foretold|nobody|likewise|spoilt|said|asked|beside|alike|mend(?:s|ed|ing)?|see there"
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
CONSTRUCTIONS = re.compile(
    r"\b(?:stands?|tells?|go(?:es)? on|so many|lies? in|becomes? of|begins)\b"
    r"|\b(?:is|are|was|were|if|unless) given\b|(?<![.`])\balone\b(?![`\"])"
    r"|(?:\"\"\"|# )(?:What|Whether|Those (?:that|which)|See ``[\w.]+``\.\"\"\")"
)
"""Plainer: is, represents, specifies, reports, resumes, number of, is stored in, handling of,
starts, is passed, only. A docstring or comment starts with a noun phrase or a verb, and says more
than "See X.". All Python files are free of these."""
FOLDERS = {
    "src/interlingua": {".py", ".c", ".h", ".js", ".html", ".css"},
    "src/interlingua/getting_started": {".toml"},
    "docs": {".md"},
    "experiments": {".py", ".toml"},
    "benchmarks": {".py", ".md"},
    "examples": {".py", ".ipynb"},
    "tests": {".py"},
    "tools": {".py"},
    "models": {".py", ".md", ".toml"},
}
"""The endings of the files that are read in each folder."""


class Words(Rule):
    """Text and code use plain words and American spelling."""

    name = "words"

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Report each line with such a word or construction."""
        if file.is_python:
            for number, line in prose(file).items():
                if found := CONSTRUCTIONS.search(line):
                    yield Finding(file.path, number, f'"{found[0]}" in: {line.strip()}')
        if not is_read(file.path) or not has_old_words(file.text):
            return
        lines = prose(file) if file.is_test else dict(enumerate(file.lines, 1))
        for number, line in lines.items():
            if word := OLD_WORDS.search(line):
                yield Finding(file.path, number, f'"{word[0]}" in: {line.strip()}')


def is_read(path: str) -> bool:
    """Return whether the rule reads a file. It skips data, results and this list itself."""
    if path == "tools/words.py":
        return False
    parts = PurePosixPath(path)
    if len(parts.parts) == 1:
        return parts.suffix == ".md" or path == "Makefile"
    return any(
        path.startswith(f"{folder}/") and parts.suffix in endings
        for folder, endings in FOLDERS.items()
    )


def has_old_words(text: str) -> bool:
    """Return whether a text contains such a word anywhere.

    Each different word is looked up once in the whole run. Searching every text with the pattern
    takes five times as long.
    """
    lowered = text.lower()
    return "see there" in lowered or any(map(is_old_word, set(re.findall("[a-z]+", lowered))))


@cache
def is_old_word(word: str) -> bool:
    """Return whether a single word is in the list."""
    return OLD_WORDS.fullmatch(word) is not None


def prose(file: SourceFile) -> dict[int, str]:
    """Return the comments and the lines of docstrings of a Python file, by number."""
    found = dict(file.comments)
    for node in file.nodes:
        # A docstring is a string that is a statement by itself.
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    found[number] = file.lines[number - 1]
    return dict(sorted(found.items()))
