"""``interlingua documents [MODEL] SOURCE [TARGET] -o MEMORY.tmx``."""

from __future__ import annotations

import sys

from interlingua.cli.options import make_command
from interlingua.runtime.progress import make_progress
from interlingua.verbs.documents import DocumentsOptions, run_documents


@make_command(DocumentsOptions, quiet="Show neither the progress bar nor the summary.")
def documents(options: DocumentsOptions, quiet: bool) -> None:
    """Build a translation memory from documents in two languages."""
    with make_progress(quiet) as progress:
        found = run_documents(options, progress)
    if not quiet:
        print("\n".join(found.report.lines(options.output)), file=sys.stderr)
