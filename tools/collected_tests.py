"""Compare the collected tests with a frozen list, so that no test disappears unnoticed.

    python -m pytest --collect-only -q --collected=ids.txt
    python tools/collected_tests.py ids.txt             # exits with 1 if tests are missing
    python tools/collected_tests.py ids.txt --freeze    # makes these ids the frozen list

A test is its function's name with its parameters. Its file does not matter, because moving tests
is no loss: if two files have a test of one name, the list holds it twice. A missing test needs an
entry ``[[removed]]`` in ``removed.toml`` with the reason. Freezing adds new tests to the list,
takes removed ones out, and turns these entries into ``[[past]]``, a record that gives no reason.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "collected"
FROZEN = FOLDER / "frozen.json"
REMOVED = FOLDER / "removed.toml"
SHOWN = 20
"""Missing tests that are printed for each function."""


class Removal(NamedTuple):
    """A reviewed removal: an entry of ``removed.toml``.

    Attributes:
        test: a regular expression for the whole name of a test function.
        cases: a regular expression for its whole parameters, by default any.
        reason: why nothing is checked less, or why it need not be checked.
    """

    test: str
    reason: str
    cases: str = ".*"

    def includes(self, test: str) -> bool:
        """Return whether this entry gives the reason for a missing test."""
        name, _, case = test.partition("[")
        is_name = re.fullmatch(self.test, name) is not None
        return is_name and re.fullmatch(self.cases, case.removesuffix("]"), re.DOTALL) is not None


def count_tests(ids: Iterable[str]) -> Counter[str]:
    """Return the number of times that each test occurs, without its file and class."""
    tests: Counter[str] = Counter()
    for name in ids:
        function, bracket, case = name.partition("::")[2].partition("[")
        tests[function.rpartition("::")[2] + bracket + case] += 1
    return tests


def read_frozen(path: Path) -> Counter[str]:
    """Read a frozen list: the parameters of each case, by function."""
    tests: Counter[str] = Counter()
    for name, cases in json.loads(path.read_text(encoding="utf-8")).items():
        tests.update(name if case is None else f"{name}[{case}]" for case in cases)
    return tests


def write_frozen(tests: Counter[str], path: Path) -> None:
    """Write a frozen list with one line for each function."""
    cases = defaultdict(list)
    for test in sorted(tests.elements()):
        name, bracket, case = test.partition("[")
        cases[name].append(case.removesuffix("]") if bracket else None)
    lines = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in cases.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read_removals(path: Path) -> list[Removal]:
    """Read the reviewed removals."""
    with path.open("rb") as file:
        return [Removal(**entry) for entry in tomllib.load(file).get("removed", [])]


def missing_by_reason(
    frozen: Counter[str], collected: Counter[str], removals: list[Removal]
) -> dict[Removal | None, list[str]]:
    """Return the tests that are no longer collected, by their first fitting removal."""
    missing: dict[Removal | None, list[str]] = defaultdict(list)
    for test in sorted((frozen - collected).elements()):
        reason = next((removal for removal in removals if removal.includes(test)), None)
        missing[reason].append(test)
    return dict(missing)


def main() -> None:
    """Print what is collected less and more; exit with 1 if a removal has no reason."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("ids", type=Path, help="a file that `pytest --collected` wrote")
    parser.add_argument("--frozen", type=Path, default=FROZEN)
    parser.add_argument("--removed", type=Path, default=REMOVED)
    parser.add_argument("--freeze", action="store_true", help="write the frozen list")
    options = parser.parse_args()
    collected = count_tests(options.ids.read_text(encoding="utf-8").splitlines())
    frozen = read_frozen(options.frozen) if options.frozen.exists() else Counter()
    missing = missing_by_reason(frozen, collected, read_removals(options.removed))
    unexplained = missing.pop(None, [])
    for removal, tests in missing.items():
        if removal is not None:
            print(f"{len(tests):6,} removed: {removal.test} [{removal.cases}]: {removal.reason}")
    for name, count in Counter(test.partition("[")[0] for test in unexplained).items():
        print(f"{count:6,} missing: {name}")
        for test in [test for test in unexplained if test.partition("[")[0] == name][:SHOWN]:
            print(f"        {test}")
    removed = sum(map(len, missing.values()))
    added = (collected - frozen).total()
    print(
        f"{collected.total():,} tests collected, {frozen.total():,} frozen: {added:,} more, "
        f"{removed:,} removed with a reason, {len(unexplained):,} missing"
    )
    if unexplained:
        sys.exit(f"restore the missing tests, or give the reason in {options.removed}")
    if options.freeze:
        write_frozen(collected, options.frozen)
        # An entry that is kept as a record gives no later removal a reason.
        text = options.removed.read_text(encoding="utf-8")
        options.removed.write_text(text.replace("[[removed]]", "[[past]]"), encoding="utf-8")


if __name__ == "__main__":
    main()
