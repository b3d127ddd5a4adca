"""``interlingua compare RESULT... --format markdown|csv|latex``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def compare(
    result: Annotated[list[Path], typer.Argument(help="Result files, or folders of them.")],
    format: Annotated[str, typer.Option(help="markdown, csv or latex.")] = "markdown",
    by: Annotated[str, typer.Option(help="Rows: groups or languages.")] = "groups",
    metric: Annotated[str | None, typer.Option(help="Instead of each task's main metric.")] = None,
) -> None:
    """Prints one table per task, a column per result."""
    from interlingua.evaluation import report, results

    tables = report.compare(results.read_results(result), by=by, metric=metric)
    print("\n".join(report.render(table, format) for table in tables), end="")
