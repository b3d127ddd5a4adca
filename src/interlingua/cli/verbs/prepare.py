"""``interlingua prepare CONFIG``."""

from __future__ import annotations

from interlingua.cli.options import command
from interlingua.verbs.prepare import PrepareOptions, run_prepare


@command(PrepareOptions, quiet="No progress bars, no table.")
def prepare(options: PrepareOptions, quiet: bool) -> None:
    """Clean, deduplicate, split and tokenize parallel text into a folder to train on."""
    from interlingua.preparation.report import summary

    made = run_prepare(options, progress=not quiet)
    if not quiet:
        from rich.console import Console

        console = Console()
        for table in summary(made.manifest):
            console.print(table)
        console.print(f"written: {made.output}")
