"""``interlingua score [MODEL] BITEXT``."""

from __future__ import annotations

import sys

from interlingua.cli.options import command
from interlingua.runtime.progress import shown
from interlingua.verbs.score import ScoreOptions, run_score


@command(ScoreOptions)
def score(options: ScoreOptions, quiet: bool) -> None:
    """Scores or filters a bitext of any length as it streams by, in its order."""
    with shown(quiet) as progress:
        result = run_score(options, progress, sys.stdout)
    # Standard output may hold the pairs.
    print("\n".join(result.lines), file=sys.stderr)
