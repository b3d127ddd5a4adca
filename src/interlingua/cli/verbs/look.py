"""``interlingua look FILES...``."""

from __future__ import annotations

import json

from interlingua.cli.options import make_command
from interlingua.runtime.progress import make_progress
from interlingua.verbs.look import LookOptions, run_look


@make_command(LookOptions, json="Write JSON, one line for each file.")
def look(options: LookOptions, quiet: bool, as_json: bool) -> None:
    """Report the format, languages, counts and faults of files, and the next command."""
    with make_progress(quiet) as progress:
        found = run_look(options, progress)
    if as_json:
        for record in found.records():
            print(json.dumps(record, ensure_ascii=False))
        return
    print("\n".join(found.lines))
