"""``interlingua.compare`` and ``interlingua compare``: one table of many results, or one page."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from interlingua.errors import ConfigError
from interlingua.files import PathLike
from interlingua.options import FILTERING, OUTPUT, Options, argument, function_of, option
from interlingua.verbs.shared import silent


class Comparison(NamedTuple):
    """A comparison: its text, and the file that it was written to, if it was."""

    text: str
    output: Path | None


@dataclass(frozen=True)
class CompareOptions(Options):
    """Options of ``compare``."""

    result: PathLike | Sequence[PathLike] = argument(
        "Result files, or folders of them.", kind=list[Path]
    )
    output: PathLike | None = option(
        None,
        "Write here: .html for a page of everything, .md, .tex, .csv.",
        group=OUTPUT,
        kind=Path,
        short="-o",
    )
    format: str | None = option(
        None, "markdown, latex, csv or html; by --output's suffix.", group=OUTPUT
    )
    by: str = option(
        "groups", "Rows: groups or languages, or tasks for one table of all.", group=OUTPUT
    )
    metric: str | None = option(None, "Instead of each task's main metric.", group=FILTERING)
    only: str | None = option(
        None, "Only rows that contain this pattern, e.g. 'muse|sts17_'.", group=FILTERING
    )
    join: bool = option(False, "One table of all tasks.", group=OUTPUT)
    group: str | None = option(
        None,
        "Join seeds into mean ± standard deviation: a pattern to cut out of the models' names,"
        " '-s[0-9]+', or config: trained by one config but for the seed.",
    )
    baseline: str | None = option(
        None,
        "Mark what differs significantly from this column, by paired bootstrap; on a page the"
        " first.",
    )
    costs: bool = option(False, "Add pairs, tokens, seconds and memory of training.", group=OUTPUT)
    rows: str = option(
        "scores", "scores, or arms for a row per model and its scores in columns.", group=OUTPUT
    )
    strict: bool = option(
        False, "Refuse results of unequal data, versions or settings; else marked."
    )

    @property
    def of_tables(self) -> dict[str, Any]:
        """What shapes a table."""
        return {
            "by": self.by,
            "metric": self.metric,
            "only": self.only,
            "join": self.join,
            "costs": self.costs,
        }

    @property
    def of_both(self) -> dict[str, Any]:
        """What shapes tables and pages."""
        return {"group": self.group, "baseline": self.baseline, "strict": self.strict}


def run_compare(
    options: CompareOptions, progress: Callable[[str, float, float], None] = silent
) -> Comparison:
    """Makes a table of all tasks and one per task, a column per result, or one HTML page of
    everything.

    Args:
        options: what to do.
        progress: called with the state of the bootstrap.

    Returns:
        The text, which is also in the output if there is one.

    Raises:
        ConfigError: an option is wrong, or the results do not go together.
        DataError: a result can't be read.
    """
    from interlingua.evaluation import rendering
    from interlingua.files import atomic_write

    is_one = isinstance(options.result, str | os.PathLike)
    paths = [Path(options.result)] if is_one else list(map(Path, options.result))  # type: ignore[arg-type]
    output = None if options.output is None else Path(options.output)
    wanted = rendering.format_of(options.format, output)
    text = (
        _page(paths, options, progress)
        if wanted == "html"
        else _tables(paths, options, wanted, progress)
    )
    if output is not None:
        with atomic_write(output) as file:
            file.write(text)
    return Comparison(text, output)


def _tables(paths: list[Path], options: CompareOptions, wanted: Any, progress: Any) -> str:
    from interlingua.analysis.side_by_side import side_by_side
    from interlingua.evaluation import comparison, rendering, results

    of_results, analyses = _results_and_analyses(paths)
    plain = not any(value not in (None, False, "groups") for value in options.of_tables.values())
    found = results.read_results(of_results, needed=not (plain and analyses))
    tables: list[Any] = []
    if found:
        tables = comparison.compare(
            found, **options.of_tables, **options.of_both, progress=progress
        )
    if (
        plain and wanted != "csv" and len(tables) > 1
    ):  # all tasks in one table first, then each with its groups
        tables = [
            *comparison.compare(found, by="tasks", **options.of_both, progress=progress),
            *tables,
        ]
    return rendering.render(
        [*tables, *(side_by_side(analyses) if plain else [])], wanted, rows=options.rows
    )


def _page(paths: list[Path], options: CompareOptions, progress: Any) -> str:
    from interlingua.analysis.record import to_json
    from interlingua.evaluation.page import page_data, render_page
    from interlingua.evaluation.results import read_results

    of_tables = {**options.of_tables, "rows": options.rows}
    given = [
        name for name, value in of_tables.items() if value not in (None, False, "groups", "scores")
    ]
    if given:
        raise ConfigError(
            f"--{given[0]} shapes a table; the page shows all rows and metrics, so leave it out"
        )
    of_results, analyses = _results_and_analyses(paths)
    plain = []
    for one in analyses:
        items = {measure.name: measure.items for measure in one.measures}
        plain.append(to_json(one) | {"items": items})
    results = read_results(of_results, examples=True)
    return render_page(page_data(results, analyses=plain, **options.of_both, progress=progress))


def _results_and_analyses(paths: list[Path]) -> tuple[list[Path], list[Any]]:
    """The files and folders that may hold results, and the analyses."""
    from interlingua.analysis.record import read_analyses
    from interlingua.evaluation.results import ANALYSIS_SUFFIX

    of_results = [path for path in paths if not path.name.endswith(ANALYSIS_SUFFIX)]
    return of_results, read_analyses(
        path for path in paths if path.is_dir() or path not in of_results
    )


compare = function_of(CompareOptions, run_compare, "compare")
