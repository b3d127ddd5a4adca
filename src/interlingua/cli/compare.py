"""``interlingua compare RESULT... --format markdown|csv|latex``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Text = str | None


def compare(
    result: Annotated[list[Path], typer.Argument(help="Result files, or folders of them.")],
    format: Annotated[str, typer.Option(help="markdown, csv or latex.")] = "markdown",
    by: Annotated[str, typer.Option(help="Rows: groups or languages, or tasks for one table of all.")] = "groups",
    metric: Annotated[Text, typer.Option(help="Instead of each task's main metric.")] = None,
    only: Annotated[Text, typer.Option(help="Only rows that contain this pattern, e.g. 'muse|sts17_'.")] = None,
    join: Annotated[bool, typer.Option("--join", help="One table of all tasks.")] = False,
    group: Annotated[
        Text,
        typer.Option(
            help="Join seeds into mean ± standard deviation: a pattern to cut out of the models' names, '-s[0-9]+', "
            "or config: trained by one config but for the seed."
        ),
    ] = None,
    baseline: Annotated[
        Text, typer.Option(help="Mark what differs significantly from this column, by paired bootstrap.")
    ] = None,
    costs: Annotated[bool, typer.Option("--costs", help="Add pairs, tokens, seconds and memory of training.")] = False,
    rows: Annotated[
        str, typer.Option(help="scores, or arms for a row per model and its scores in columns.")
    ] = "scores",
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse results of unequal data, versions or settings; else marked.")
    ] = False,
) -> None:
    """Prints one table per task, a column per result."""
    from interlingua.evaluation import comparison, report, results

    tables = comparison.compare(
        results.read_results(result),
        by=by,
        metric=metric,
        group=group,
        baseline=baseline,
        only=only,
        join=join,
        costs=costs,
        strict=strict,
    )
    print("\n".join(report.render(table, format, rows=rows) for table in tables), end="")
