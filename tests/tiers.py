"""Markers by folder, and the tier that answers in minutes.

Every test has exactly one of ``MARKERS``, which its place decides:

- a test in a folder of one of the names in ``FOLDERS``, at any depth, has that name;
- any other test is ``core``: all cases of a test with one parameter, otherwise a few cases. The
  seed is the first one, the variant of the kernels is this processor's, and each value of each
  parameter occurs in at least one case;
- the remaining cases of these tests are ``kernels`` (other variants) or ``products`` (other seeds,
  and other combinations of values).

``make test`` runs ``-m core``; ``make test-all`` runs the rest as well. A folder that a mark
expression excludes is not imported.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from pathlib import Path

from tests.covers import cover

TESTS = Path(__file__).resolve().parent
FOLDERS = {
    "kernels": "compiled kernels in all variants, by emulation if this processor lacks one",
    "experiments": "TOML files, scripts and claims of experiments/, and the shipped models",
    "hostile": "damaged and malicious input, fuzzing included",
    "distributed": "several processes that train, encode or mine together",
    "accelerator": "code for GPUs, on a simulated device",
    "docs": "pages, links and examples of the documentation",
    "kill": "processes that are killed or interrupted, and resume",
    "peers": "comparisons with other packages and their file formats",
}
MARKERS = {
    "core": "behavior of the library, which `make test` runs: few cases of several parameters",
    "products": "the other combinations of the parameters of core tests",
    **FOLDERS,
}


def folder_marker(path: Path) -> str:
    """Return the marker of the folder of a test file."""
    parts = path.relative_to(TESTS).parts if path.is_relative_to(TESTS) else ()
    return next((part for part in parts if part in FOLDERS), "core")


def is_excluded(expression: str, path: Path) -> bool:
    """Return whether no test at this path can fit a mark expression such as ``not core``.

    An expression with other names than ``MARKERS`` excludes nothing here; pytest deselects tests
    one by one.
    """
    if path == TESTS or not path.is_relative_to(TESTS):
        return False
    if not re.fullmatch(r"[\w\s()]+", expression):
        return False
    marker = folder_marker(path)
    # Cases of a core test may be of three markers.
    possible = {marker} if marker != "core" else {"core", "products", "kernels"}
    try:
        return not any(
            eval(expression, {"__builtins__": {}}, {name: name == one for name in MARKERS})
            for one in possible
        )
    except (NameError, SyntaxError, TypeError):
        return False


def case_markers(cases: Sequence[Mapping[str, Hashable]], *, other_variants: Set[str]) -> list[str]:
    """Return ``core``, ``kernels`` or ``products`` for each case of one test.

    Args:
        cases: the values of the parameters, by name. A parameter ``seed`` is that of random draws.
        other_variants: the kernels' variants that this processor does not use by default.
    """
    markers = ["products"] * len(cases)
    candidates = []
    first_seed = next((case["seed"] for case in cases if "seed" in case), None)
    for i, case in enumerate(cases):
        if other_variants & set(case.values()):
            markers[i] = "kernels"
        elif case.get("seed", first_seed) == first_seed:
            candidates.append(i)
    for i in cover([cases[i] for i in candidates], strength=1):
        markers[candidates[i]] = "core"
    return markers


def grouped(names: Iterable[str]) -> list[list[int]]:
    """Return the indices of equal names, group by group in order of the first."""
    groups: dict[str, list[int]] = defaultdict(list)
    for i, name in enumerate(names):
        groups[name].append(i)
    return list(groups.values())
