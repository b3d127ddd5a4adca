"""Write constraints-oldest.txt: the oldest versions of dependencies that pyproject.toml allows.

    python tools/oldest_versions.py

The file has the lower bound of each dependency and of each extra for users. It leaves out the
extras for developers, the models, which are distributions of this repository, and ``langid``.
`make lint` compares the file with pyproject.toml.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = "constraints-oldest.txt"
LEFT_OUT = {"all", "dev", "docs", "langid", "mini", "nano"}
"""Extras that are left out. py3langid needs NumPy 2, the library does not."""
HEADER = "# The oldest version of each dependency that pyproject.toml allows. "
HEADER += "Written by: python tools/oldest_versions.py\n"
REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(?:\[[^\]]*\])?>=(?P<version>[\d.]+)(?:,[^;]*)?(?P<marker>;.*)?"
)
"""A name, perhaps extras, a lower bound, perhaps an upper bound, and perhaps a marker."""


def render_oldest(pyproject: str) -> str:
    """Return the content of constraints-oldest.txt for the text of a pyproject.toml.

    Raises:
        ValueError: a requirement has no lower bound, or two requirements of one package differ.
    """
    project = tomllib.loads(pyproject)["project"]
    requirements = list(project["dependencies"])
    for extra, entries in project.get("optional-dependencies", {}).items():
        if extra not in LEFT_OUT:
            requirements += entries
    found: dict[str, str] = {}
    for requirement in requirements:
        match = REQUIREMENT.fullmatch(requirement)
        if match is None:
            raise ValueError(f"{requirement!r} has no lower bound of the form name>=1.2")
        line = f"{match['name']}=={match['version']}{match['marker'] or ''}"
        if found.setdefault(match["name"].lower(), line) != line:
            raise ValueError(f"{match['name']} has two lower bounds; use the same in all extras")
    return HEADER + "".join(f"{line}\n" for _, line in sorted(found.items()))


def main(root: Path = ROOT) -> int:
    """Write the file, and return the exit status."""
    text = render_oldest((root / "pyproject.toml").read_text(encoding="utf-8"))
    (root / TARGET).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
