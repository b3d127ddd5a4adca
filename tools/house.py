"""Check the rules of CONTRIBUTING.md that ruff and mypy do not check.

    python tools/house.py                        # all rules
    python tools/house.py --rule words           # one of them, or several with more --rule
    python tools/house.py --tracked              # only files that git tracks, for a commit
    python tools/house.py --help                 # the names of all rules

Each finding is a line ``path:line: rule: text``. The exit status is 1 if there are findings. The
files are those that git tracks, and new ones that it does not ignore. Each file is read and parsed
at most once. The program needs no package but git.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for a run as a script

from tools.density import PackageDensity
from tools.rules.base import Rule, SourceFile
from tools.rules.definitions import (
    ExecutorChoice,
    FolderSize,
    FormatTags,
    FunctionLength,
    JsonReaders,
    ProgressBars,
    PublicNames,
)
from tools.rules.docstrings import Docstrings
from tools.rules.imports import ImportCircle, ImportOrder
from tools.rules.release import OldestVersions, Versions
from tools.rules.repository import FileSize, OutsidePaths
from tools.rules.testing import MatchProse, UntestedModules
from tools.words import Words

ROOT = Path(__file__).resolve().parent.parent
RULES: dict[str, type[Rule]] = {
    rule.name: rule
    for rule in (
        ImportOrder,
        ImportCircle,
        FunctionLength,
        FolderSize,
        PublicNames,
        ProgressBars,
        ExecutorChoice,
        JsonReaders,
        FormatTags,
        PackageDensity,
        Words,
        Docstrings,
        MatchProse,
        UntestedModules,
        OutsidePaths,
        FileSize,
        Versions,
        OldestVersions,
    )
}


def list_paths(root: Path) -> dict[str, bool]:
    """Return the files of a git repository by path, and whether git tracks them.

    Ignored files and deleted ones are left out.
    """
    found = {}
    for option in ("--others", "--cached"):
        command = ["git", "ls-files", "-z", "--exclude-standard", option]
        try:
            listed = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            sys.exit("the house rules need git, and a checkout of the repository")
        for path in listed.decode("utf-8", errors="surrogateescape").split("\0"):
            if path and (root / path).is_file():
                found[path] = option == "--cached"
    return dict(sorted(found.items()))


def check_files(files: Iterable[SourceFile], rules: Sequence[Rule]) -> list[str]:
    """Return the findings of rules in files, sorted, each as ``path:line: rule: text``.

    Files are checked one after the other, so that only one syntax tree is in memory. With all trees
    in memory, the garbage collector takes more time than the rules.
    """
    found: list[tuple[str, int, str, str]] = []
    for file in files:
        try:
            for rule in rules:
                found += [(path, line, rule.name, text) for path, line, text in rule.check(file)]
        except SyntaxError as error:
            found.append((file.path, error.lineno or 1, "syntax", error.msg))
        except UnicodeDecodeError as error:
            found.append((file.path, 1, "syntax", f"not UTF-8: {error.reason}"))
    for rule in rules:
        found += [(path, line, rule.name, text) for path, line, text in rule.finish()]
    return [f"{path}:{line}: {rule}: {text}" for path, line, rule, text in sorted(found)]


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the findings and a summary, and return the exit status."""
    parser = argparse.ArgumentParser(
        description="Check the rules of CONTRIBUTING.md that ruff and mypy do not check."
    )
    parser.add_argument(
        "--rule", action="append", choices=RULES, help="check this rule only; may be repeated"
    )
    parser.add_argument(
        "--tracked", action="store_true", help="skip new files that git does not track yet"
    )
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    names = options.rule or list(RULES)
    paths = list_paths(root)
    if options.tracked:
        paths = {path: tracked for path, tracked in paths.items() if tracked}
    files = (SourceFile(root, path, is_tracked=tracked) for path, tracked in paths.items())
    rules = [RULES[name]() for name in names]
    found = check_files(files, rules)
    for line in (*found, *(line for rule in rules for line in rule.summary())):
        print(line)
    seconds = time.perf_counter() - start
    print(f"{len(paths):,} files, {len(names)} rules, {len(found)} findings, {seconds:.1f} s")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
