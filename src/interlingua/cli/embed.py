"""``interlingua embed [MODEL] FILE -o OUT.npy``."""

from __future__ import annotations

import sys

from interlingua.cli.common import rate_bar
from interlingua.cli.options import command
from interlingua.verbs.embed import EmbedOptions, run_embed


@command(EmbedOptions, quiet="No progress bar and no closing line.")
def embed(options: EmbedOptions, quiet: bool) -> None:
    """Writes one vector per line of FILE; memory stays bounded whatever its length."""
    with rate_bar(quiet, "lines") as progress:
        lines = run_embed(options, progress)
    if quiet:
        lines = lines[1:]  # what was cut is always printed
    for line in lines:
        print(line, file=sys.stderr)
