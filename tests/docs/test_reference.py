"""docs/reference/cli.md is what ``--help`` prints; `UPDATE_DOCS=1 make test` writes it anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from interlingua.cli.main import VERBS, overview
from tests.docs.reference import check_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"


def help_of(verb: str) -> str:
    environment = {**os.environ, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
    result = subprocess.run(
        [sys.executable, "-m", "interlingua.cli.main", verb, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return "\n".join(line.rstrip() for line in result.stdout.strip().splitlines())


def test_reference_is_what_the_commands_say():
    parts = ["# The command line", "", "```text", overview(), "```"]
    for verb in VERBS:
        parts += ["", f"## interlingua {verb}", "", "```text", help_of(verb), "```"]
    check_page(PAGE, "\n".join(parts) + "\n")


def test_readme_mentions_every_command():
    readme = (PAGE.parents[2] / "README.md").read_text(encoding="utf-8")
    assert [verb for verb in VERBS if f"interlingua {verb}" not in readme] == []
