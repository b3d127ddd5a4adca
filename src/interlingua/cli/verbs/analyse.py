"""``interlingua analyse MODEL [MODEL2] --data DIR -o DIR``."""

from __future__ import annotations

import os
from pathlib import Path

from interlingua.cli.common import resumable
from interlingua.cli.options import make_command
from interlingua.runtime.progress import make_progress
from interlingua.verbs.analyse import AnalyseOptions, analyses_of, write_models_page


@make_command(AnalyseOptions, quiet="Print only the tables.")
def analyse(options: AnalyseOptions, quiet: bool) -> None:
    """Print the analyses of an encoder; write JSON files and one page."""
    from rich.console import Console

    from interlingua.analysis import record, tables

    output = Path(options.output or ".")
    found = []
    for one in analyses_of(options):
        with make_progress(quiet) as progress, resumable(one.keeps_vectors, output, options.cache):
            found.append(one.run(progress))
    # If the output is not a terminal, for example a file, use a fixed width.
    console = Console(width=None if os.isatty(1) else 160)
    for table in tables.analysis_terminal_tables(found):
        console.print(table)
    analyses = [analysis for of_model in found for analysis in of_model]
    # Each note is printed once, even if it applies to both models.
    notes = [f"{analysis.task}: {note}" for analysis in analyses for note in analysis.notes]
    for note in dict.fromkeys(notes):
        print(f"note: {note}")
    for analysis in analyses:
        print(f"written: {record.analysis_path(analysis, output)}")
    print(f"written: {write_models_page(options, found).page}")
