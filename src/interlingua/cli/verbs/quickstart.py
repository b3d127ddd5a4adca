"""``interlingua quickstart``."""

from __future__ import annotations

from interlingua.cli.options import make_command
from interlingua.verbs.quickstart import QuickstartOptions, run_quickstart


@make_command(QuickstartOptions, quiet=None)
def quickstart(options: QuickstartOptions, quiet: bool) -> None:
    """Collect public translations, train an encoder on them and evaluate it."""
    run_quickstart(options)
