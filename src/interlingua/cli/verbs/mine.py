"""``interlingua mine [MODEL] SOURCE TARGET -o PAIRS.tsv``."""

from __future__ import annotations

from interlingua.cli.options import command
from interlingua.runtime.progress import shown
from interlingua.verbs.mine import MineOptions, run_mine


@command(MineOptions)
def mine(options: MineOptions, quiet: bool) -> None:
    """Find translations in two texts; a run that was stopped goes on where it was."""
    with shown(quiet or options.plan) as progress:
        result = run_mine(options, progress)
    print("\n".join(result.lines))
