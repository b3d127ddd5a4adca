"""``interlingua compare RESULT... -o report.html|.md|.tex|.csv``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from interlingua.cli.common import bar

Text = str | None


def compare(
    result: Annotated[list[Path], typer.Argument(help="Result files, or folders of them.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write here: .html for a page of everything, .md, .tex, .csv."),
    ] = None,
    format: Annotated[Text, typer.Option(help="markdown, latex, csv or html; by --output's suffix.")] = None,
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
        Text,
        typer.Option(
            help="Mark what differs significantly from this column, by paired bootstrap; on a page the first."
        ),
    ] = None,
    costs: Annotated[bool, typer.Option("--costs", help="Add pairs, tokens, seconds and memory of training.")] = False,
    rows: Annotated[
        str, typer.Option(help="scores, or arms for a row per model and its scores in columns.")
    ] = "scores",
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse results of unequal data, versions or settings; else marked.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Prints or writes a table of all tasks and one per task, a column per result, or one HTML page of everything."""
    from interlingua.analysis.side_by_side import side_by_side
    from interlingua.evaluation import comparison, report, results
    from interlingua.files import atomic_write

    wanted = report.format_of(format, output)
    of_tables: Any = {"by": by, "metric": metric, "only": only, "join": join, "costs": costs}
    of_both: Any = {"group": group, "baseline": baseline, "strict": strict}
    if wanted == "html":
        text = _page(result, {**of_tables, "rows": rows}, of_both, quiet)
    else:
        of_results, analyses = _told_apart(result)
        plain = not any(value not in (None, False, "groups") for value in of_tables.values())
        found = results.read_results(of_results, needed=not (plain and analyses))
        with bar(quiet) as progress:
            tables = comparison.compare(found, **of_tables, **of_both, progress=progress) if found else []
            if plain and wanted != "csv" and len(tables) > 1:  # all tasks in one table first, then each with its groups
                tables = [*comparison.compare(found, by="tasks", **of_both, progress=progress), *tables]
        text = report.render([*tables, *(side_by_side(analyses) if plain else [])], wanted, rows=rows)
    if output is None:
        print(text, end="")
        return
    with atomic_write(output) as file:
        file.write(text)
    print(f"written: {output}")


def _page(paths: list[Path], of_tables: dict[str, Any], options: dict[str, Any], quiet: bool) -> str:
    from interlingua.analysis.record import to_json
    from interlingua.errors import ConfigError
    from interlingua.evaluation.page.data import page_data
    from interlingua.evaluation.page.write import render_page
    from interlingua.evaluation.results import read_results

    given = [name for name, value in of_tables.items() if value not in (None, False, "groups", "scores")]
    if given:
        raise ConfigError(f"--{given[0]} shapes a table; the page shows all rows and metrics, so leave it out")
    of_results, analyses = _told_apart(paths)
    plain = [{**to_json(one), "items": {measure.name: measure.items for measure in one.measures}} for one in analyses]
    results = read_results(of_results, examples=True)
    with bar(quiet) as progress:
        return render_page(page_data(results, analyses=plain, **options, progress=progress))


def _told_apart(paths: list[Path]) -> tuple[list[Path], list[Any]]:
    """The files and folders that may hold results, and the analyses."""
    from interlingua.analysis.record import read_analyses
    from interlingua.evaluation.results import ANALYSIS_SUFFIX

    of_results = [path for path in paths if not path.name.endswith(ANALYSIS_SUFFIX)]
    return of_results, read_analyses(path for path in paths if path.is_dir() or path not in of_results)
