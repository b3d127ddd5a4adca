"""``interlingua mine [MODEL] SOURCE TARGET -o PAIRS.tsv``."""

from __future__ import annotations

from interlingua.cli.options import make_command
from interlingua.errors import InterlinguaError, count_of
from interlingua.runtime.progress import make_progress
from interlingua.verbs.mine import MineOptions, run_mine


@make_command(MineOptions)
def mine(options: MineOptions, quiet: bool) -> None:
    """Find translation pairs in two texts; an interrupted run resumes where it stopped."""
    with make_progress(quiet or options.plan) as progress:
        result = run_mine(options, progress)
    print("\n".join(result.lines))
    if result.failures:
        raise InterlinguaError(
            f"{count_of(len(result.failures), 'files')} could not be mined; the first:"
            f" {result.failures[0]}"
        )
