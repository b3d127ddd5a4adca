"""``interlingua evaluate MODEL --suite tatoeba,xsim --data DIR``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from interlingua.cli.common import resumable
from interlingua.cli.options import make_command
from interlingua.runtime.progress import make_progress
from interlingua.verbs.evaluate import Evaluated, EvaluateOptions, Evaluation


@make_command(EvaluateOptions, quiet="Print only the tables.")
def evaluate(options: EvaluateOptions, quiet: bool) -> None:
    """Run the tasks, print their tables and write their result files."""
    output = Path(options.output or ".")
    # Load the model before the progress bar starts, so that an error is shown without the bar.
    evaluation = Evaluation.of(options)
    with (
        make_progress(quiet) as progress,
        resumable(evaluation.keeps_vectors, output, options.cache),
    ):
        found = evaluation.run(progress)
    if options.shard is not None:
        print(
            f"shard {options.shard} is complete; after all shards are complete, run the command"
            " without --shard to compute the scores"
        )
    _show(found, output)


def _show(found: Evaluated, output: Path) -> None:
    from rich.console import Console

    from interlingua.evaluation import results
    from interlingua.evaluation.report import rendering

    # If the output is not a terminal, for example a file, use a fixed width.
    width = None if os.isatty(1) else 160
    for result in found:
        for table in rendering.result_terminal_tables(result):
            Console(width=width).print(table)
        for note in result.notes:
            print(f"note: {note}")
        print(f"written: {results.result_path(result, output)}")
    for line in (rendering.cut_texts(found), found.left_out):
        if line:
            print(line, file=sys.stderr)
