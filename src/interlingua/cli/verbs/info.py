"""``interlingua info [MODEL]``."""

from __future__ import annotations

from interlingua.cli.options import make_command
from interlingua.verbs.info import InfoOptions, run_info


@make_command(InfoOptions, quiet=None)
def info(options: InfoOptions, _: bool) -> None:
    """Print information about this machine, and how fast it encodes with a model."""
    for line in run_info(options).lines:
        print(line)
