"""Print MEXMA's tables of mteb with results of ours next to the printed ones, as Markdown.

    interlingua evaluate MODEL --suite mexma_table27 --languages en -o reports
    python experiments/mexma/printed_tables.py reports/results

A table is shown from its first result on. Means are over the rows that all columns have; a row of
which mteb's main metric is another one today stays empty in ours.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from interlingua.config import from_mapping, load_toml
from interlingua.errors import DataError
from interlingua.evaluation.results import read_results
from interlingua.evaluation.scores import TaskResult

TABLES = Path(__file__).with_suffix(".toml")
PREFIX = "mteb_"

Scores = Mapping[tuple[str, str, str], float]
"""(task, subset, metric) -> percent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A task, with a value for each model of the paper."""

    task: str
    subset: str
    """mteb's name of the language or pair."""
    values: tuple[float, ...]
    """Percent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """[[table]]: of one kind of task in one language."""

    number: int
    about: str
    language: str
    """For ``--languages``."""
    metric: str
    average: tuple[float, ...]
    """Percent, for each model; the mean of the rows, as printed."""
    rows: tuple[Row, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tables:
    """The whole file."""

    models: tuple[str, ...]
    table: tuple[Table, ...]


def read_tables() -> Tables:
    """Read the file next to this script."""
    return from_mapping(Tables, load_toml(TABLES), where=str(TABLES))


def scores_by_model(results: Sequence[TaskResult]) -> dict[str, dict[tuple[str, str, str], float]]:
    """Return the scores of each model on the tasks of mteb."""
    found: dict[str, dict[tuple[str, str, str], float]] = {}
    for result in results:
        model = result.provenance["model"]
        assert isinstance(model, Mapping)
        scores = found.setdefault(model["name"], {})
        for subset in result.subsets:
            for metric, value in subset.scores.items():
                scores[result.task.removeprefix(PREFIX), subset.name, metric] = 100 * value
    return found


def markdown(tables: Tables, ours: Mapping[str, Scores]) -> Iterator[str]:
    """Yield the lines of all tables with a row of some model."""
    for table in tables.table:
        keys = [(row.task, row.subset, table.metric) for row in table.rows]
        columns = {
            name: scores for name, scores in ours.items() if any(key in scores for key in keys)
        }
        if columns:
            yield f"### Table {table.number}: {table.about}, {table.metric}, %"
            yield ""
            yield from _lines(
                [*tables.models, *columns], _rows(table, keys, list(columns.values()))
            )
            yield ""


def _rows(
    table: Table, keys: Sequence[tuple[str, str, str]], ours: Sequence[Scores]
) -> list[tuple[str, list[float | None]]]:
    rows: list[tuple[str, list[float | None]]] = []
    for row, key in zip(table.rows, keys, strict=True):
        name = row.task if row.subset == "default" else f"{row.task} ({row.subset})"
        rows.append((name, [*row.values, *(scores.get(key) for scores in ours)]))
    whole = [values for _, values in rows if None not in values]
    means: list[float | None] = [_mean(column) for column in zip(*whole, strict=True)]
    return [*rows, (f"mean of {len(whole)}", means)] if whole else rows


def _mean(values: Sequence[float | None]) -> float:
    present = [value for value in values if value is not None]
    return sum(present) / len(present)


def _lines(columns: Sequence[str], rows: Sequence[tuple[str, list[float | None]]]) -> Iterator[str]:
    yield f"| task | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * len(columns)}"
    for name, values in rows:
        cells = ["" if value is None else f"{value:.2f}" for value in values]
        yield f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("results", nargs="+", type=Path, help="result files, or folders of them")
    options = parser.parse_args()
    try:
        results = read_results(options.results)
    except DataError as error:
        parser.error(str(error))
    lines = list(markdown(read_tables(), scores_by_model(results)))
    if not lines:
        parser.error(
            "no result of these tables; run interlingua evaluate MODEL --suite mexma_table27"
            " --languages en"
        )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
