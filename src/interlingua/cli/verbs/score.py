"""``interlingua score [MODEL] BITEXT``."""

from __future__ import annotations

import sys

from interlingua.cli.options import make_command
from interlingua.errors import InterlinguaError, count_of
from interlingua.runtime.progress import make_progress
from interlingua.verbs.score import ScoreOptions, run_score


@make_command(ScoreOptions)
def score(options: ScoreOptions, quiet: bool) -> None:
    """Score the pairs of a bitext of any length, and filter them."""
    with make_progress(quiet) as progress:
        result = run_score(options, progress, sys.stdout)
    # Standard output may hold the pairs.
    print("\n".join(result.lines), file=sys.stderr)
    if result.failures:
        raise InterlinguaError(
            f"{count_of(len(result.failures), 'files')} could not be scored; first error:"
            f" {result.failures[0]}"
        )
