"""Reads the runnable parts of a how-to: files to write and commands to run, in the order of the page.

A fenced ``toml`` block whose first line is ``# name.toml`` is a file; a fenced ``console`` block holds commands
behind ``$ ``; what stands below a command is for the reader.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)


class Step(NamedTuple):
    """One thing to do: write ``text`` to ``file``, or run ``command``."""

    file: str | None
    text: str
    command: str | None


def steps(page: Path) -> list[Step]:
    found = []
    for language, body in FENCE.findall(page.read_text(encoding="utf-8")):
        first = body.split("\n", 1)[0]
        if language == "toml" and first.startswith("# ") and first.endswith(".toml"):
            found.append(Step(first[2:].strip(), body, None))
        elif language == "console":
            joined = re.sub(r"\\\n\s*", "", body)
            found += [Step(None, "", line[2:]) for line in joined.splitlines() if line.startswith("$ ")]
    return found
