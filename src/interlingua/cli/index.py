"""``interlingua index build [MODEL] FILES -o DIR``, and ``add`` and ``delete`` for changes."""

from __future__ import annotations

import sys

from interlingua.cli.common import rate_bar
from interlingua.cli.options import command
from interlingua.verbs.index import IndexOptions, run_index

EPILOG = (
    "build MODEL FILES -o DIR makes an index, or goes on with one; left out before a file, MODEL"
    " is mini; add DIR FILES adds passages, and replaces those of the same file or id; delete DIR"
    " IDS removes some. FILES: .jsonl or .parquet (text, id, title, language; all else is"
    " metadata), or text with a passage a line and its language in the file's name."
)


@command(IndexOptions, quiet="No progress bar and no closing line.")
def index(options: IndexOptions, quiet: bool) -> None:
    """Passages with their vectors on disk, to be searched by interlingua search."""
    with rate_bar(quiet or options.action == "delete", "passages") as progress:
        found = run_index(options, progress)
    if quiet:
        return
    if options.action == "delete":
        line = f"{found.deleted:,} passages deleted"
    else:
        line = (
            f"{found.added:,} passages added, {found.replaced:,} replaced, {found.deleted:,}"
            f" deleted, {found.unchanged:,} as they were"
        )
    print(f"{found.folder}: {line}", file=sys.stderr)
