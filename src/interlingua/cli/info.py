"""``interlingua info [MODEL]``."""

from __future__ import annotations

from interlingua.cli.options import command
from interlingua.verbs.info import InfoOptions, run_info


@command(InfoOptions)
def info(options: InfoOptions, quiet: bool) -> None:
    """Says what this machine has, and with a model which executor and dtype encode, why, and every
    measured rate.
    """
    for line in run_info(options).lines:
        print(line)
