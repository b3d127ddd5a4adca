"""``interlingua prepare CONFIG``."""

from __future__ import annotations

from interlingua.cli.options import make_command
from interlingua.verbs.prepare import PrepareOptions, run_prepare


@make_command(PrepareOptions, quiet="Show neither progress bars nor the table.")
def prepare(options: PrepareOptions, quiet: bool) -> None:
    """Clean, deduplicate, split and tokenize parallel text into a training corpus."""
    from interlingua.preparation.report import corpus_summary

    made = run_prepare(options, progress=not quiet)
    if not quiet:
        from rich.console import Console

        console = Console()
        for table in corpus_summary(made.manifest):
            console.print(table)
        console.print(f"written: {made.output}")
