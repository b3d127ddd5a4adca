"""``interlingua align [MODEL] SOURCE TARGET -o LINKS``."""

from __future__ import annotations

import sys

from interlingua.cli.options import make_command
from interlingua.errors import InterlinguaError
from interlingua.runtime.progress import make_progress
from interlingua.verbs.align import AlignOptions, run_align


@make_command(AlignOptions, quiet="Show neither the progress bar nor the summary.")
def align(options: AlignOptions, quiet: bool) -> None:
    """Align the sentences of a document with those of its translation."""
    with make_progress(quiet) as progress:
        found = run_align(options, progress, sys.stdout)
    for line in found.report.lines(quiet=quiet):
        print(line, file=sys.stderr)
    if found.report.failed:
        raise InterlinguaError(
            f"{len(found.report.failed)} of {found.documents} document pairs could not be aligned"
            " (see the lines above), the others are finished; run the same command again to align"
            " the rest"
        )
