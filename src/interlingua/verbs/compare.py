"""``interlingua.compare`` and ``interlingua compare``: one table of many results, or one page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from interlingua.config.options import FILTERING, OUTPUT, Options, argument, function_of, option
from interlingua.errors import ConfigError
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike
from interlingua.verbs.parts.shared_options import as_path, output_option


class Comparison(NamedTuple):
    """A comparison: its text, and the file to which it was written, or None."""

    text: str
    output: Path | None


@dataclass(frozen=True)
class CompareOptions(Options):
    """Options of ``compare``."""

    result: PathLike | Sequence[PathLike] = argument(
        "Result files, folders of result files, or tables of results (.jsonl).", kind=list[Path]
    )
    output: PathLike | None = output_option(
        "Output file: .html for a page of everything; .md, .tex or .csv for tables; .jsonl for a"
        " table of results that interlingua compare can read again."
    )
    format: str | None = option(
        None,
        "Format of the output: markdown, latex, csv, html or jsonl; by default the name of"
        " --output sets the format.",
        group=OUTPUT,
    )
    # Contents of a table; a page always shows everything.
    by: str = option(
        "groups",
        "Rows of a table: groups, languages, or tasks (one table for all tasks).",
        group=OUTPUT,
    )
    metric: str | None = option(
        None, "Metric to show; by default the main metric of each task.", group=FILTERING
    )
    only: str | None = option(
        None, "Show only rows that match this regular expression: 'muse|sts17_'.", group=FILTERING
    )
    join: bool = option(False, "Join the tables of all tasks into one.", group=OUTPUT)
    # How results are compared.
    group: str | None = option(
        None,
        "Join runs with different seeds into mean ± standard deviation. Pass a regular expression"
        " for the part of the models' names to remove, such as '-s[0-9]+'; or pass config to join"
        " runs whose configs differ only in the seed.",
    )
    baseline: str | None = option(
        None,
        "Column to compare with; significant differences by paired bootstrap are marked. By"
        " default the first one on an HTML page, none elsewhere.",
    )
    costs: bool = option(False, "Add pairs, tokens, seconds and memory of training.", group=OUTPUT)
    rows: str = option(
        "scores",
        "Layout of the rows: scores, or arms (one row per model, with its scores in columns).",
        group=OUTPUT,
    )
    strict: bool = option(
        False, "Refuse results of different data, versions or settings; by default they are marked."
    )

    @property
    def of_tables(self) -> dict[str, Any]:
        """Options that shape a table."""
        return {name: getattr(self, name) for name in ("by", "metric", "only", "join", "costs")}

    @property
    def of_both(self) -> dict[str, Any]:
        """Options that shape tables and pages."""
        return {name: getattr(self, name) for name in ("group", "baseline", "strict")}


def run_compare(options: CompareOptions, progress: Progress = SILENT) -> Comparison:
    """Compare results in tables, on one HTML page, or in one file of results.

    There is a table of all tasks and one per task, each with a column per result.

    Args:
        options: of the verb.
        progress: receives the progress of the work.

    Returns:
        The text, which is also in the output if there is one.

    Raises:
        ConfigError: an option is wrong, or the results do not go together.
        DataError: a result can't be read.
    """
    from interlingua.evaluation.report import rendering
    from interlingua.storage.files import atomic_write

    if isinstance(options.result, str | os.PathLike):
        paths = [Path(options.result)]
    else:
        paths = list(map(Path, options.result))
    output = as_path(options.output)
    format = rendering.format_of(options.format, output)
    if format == "html":
        text = _page(paths, options, progress)
    elif format == "jsonl":
        text = _table_of_results(paths, options)
    else:
        text = _tables(paths, options, format, progress)
    if output is not None:
        with atomic_write(output) as file:
            file.write(text)
    return Comparison(text, output)


def _tables(paths: list[Path], options: CompareOptions, format: Any, progress: Any) -> str:
    from interlingua.analysis.side_by_side import side_by_side
    from interlingua.evaluation import results
    from interlingua.evaluation.report import comparison, rendering

    of_results, analyses = _results_and_analyses(paths)
    # Analyses have no rows or metrics to select, so they are shown only if no selection is made.
    is_default = all(value in (None, False, "groups") for value in options.of_tables.values())
    found = results.read_results(of_results, needed=not (is_default and analyses))
    tables: list[Any] = []
    if found:
        tables = comparison.compare_results(
            found, **options.of_tables, **options.of_both, progress=progress
        )
    if is_default and format != "csv" and len(tables) > 1:
        # The first table has all tasks; then each task has a table of its groups.
        overview = comparison.compare_results(
            found, by="tasks", **options.of_both, progress=progress
        )
        tables = [*overview, *tables]
    if is_default:
        tables = [*tables, *side_by_side(analyses)]
    return rendering.render_tables(tables, format, rows=options.rows)


def _table_of_results(paths: list[Path], options: CompareOptions) -> str:
    """Return all results and analyses, as they are."""
    from interlingua.analysis import record
    from interlingua.evaluation.results import read_results, result_table_text

    shaping = options.of_tables | options.of_both | {"rows": options.rows}
    _refuse_shaping(shaping, "a table of results contains all results unchanged")
    of_results, analyses = _results_and_analyses(paths)
    results = read_results(of_results, needed=not analyses)
    return result_table_text(results) + record.analysis_table_text(analyses)


def _refuse_shaping(values: dict[str, Any], reason: str) -> None:
    """Refuse options that only other formats use."""
    for name, value in values.items():
        if value not in (None, False, "groups", "scores"):
            raise ConfigError(f"--{name} has no effect, because {reason}; remove it")


def _page(paths: list[Path], options: CompareOptions, progress: Any) -> str:
    from interlingua.analysis.record import analysis_to_json
    from interlingua.evaluation.report.page import page_data, render_comparison
    from interlingua.evaluation.results import read_results

    shaping = options.of_tables | {"rows": options.rows}
    _refuse_shaping(shaping, "the page shows all rows and metrics")
    of_results, analyses = _results_and_analyses(paths)
    records = []
    for one in analyses:
        # The page also shows the items of a measure, which the JSON of an analysis leaves out.
        items = {measure.name: measure.items for measure in one.measures}
        records.append(analysis_to_json(one) | {"items": items})
    results = read_results(of_results, examples=True)
    data = page_data(results, analyses=records, **options.of_both, progress=progress)
    return render_comparison(data)


def _results_and_analyses(paths: list[Path]) -> tuple[list[Path], list[Any]]:
    """Return the files and folders that may hold results, and the analyses."""
    from interlingua.analysis.record import read_analyses
    from interlingua.evaluation.results import ANALYSIS_SUFFIX, TABLE_SUFFIX

    of_results = [path for path in paths if not path.name.endswith(ANALYSIS_SUFFIX)]
    # A folder or a table may hold both kinds.
    of_analyses = [
        path
        for path in paths
        if path.is_dir() or path.suffix == TABLE_SUFFIX or path not in of_results
    ]
    return of_results, read_analyses(of_analyses)


compare = function_of(CompareOptions, run_compare, "compare")
