"""``interlingua compare RESULT... -o report.html|.md|.tex|.csv``."""

from __future__ import annotations

from interlingua.cli.options import make_command
from interlingua.runtime.progress import make_progress
from interlingua.verbs.compare import CompareOptions, run_compare


@make_command(CompareOptions)
def compare(options: CompareOptions, quiet: bool) -> None:
    """Print or write tables of results, or one HTML page of everything."""
    with make_progress(quiet) as progress:
        found = run_compare(options, progress)
    if found.output is None:
        print(found.text, end="")
    else:
        print(f"written: {found.output}")
