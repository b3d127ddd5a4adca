"""``interlingua embed [MODEL] FILE -o OUT.npy``."""

from __future__ import annotations

import sys

from interlingua.cli.options import make_command
from interlingua.runtime.progress import make_progress
from interlingua.verbs.embed import EmbedOptions, run_embed


@make_command(EmbedOptions, quiet="Show neither the progress bar nor the summary.")
def embed(options: EmbedOptions, quiet: bool) -> None:
    """Encode the lines of files as vectors, in bounded memory."""
    with make_progress(quiet) as progress:
        lines = run_embed(options, progress)
    if quiet:
        lines = lines[1:]  # truncation is always reported
    for line in lines:
        print(line, file=sys.stderr)
