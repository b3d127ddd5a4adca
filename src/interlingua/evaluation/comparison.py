"""Many results next to each other: scores as means over seeds, tested against a baseline, and what
training cost.

A row is a group of languages, a language pair or a task. Its cells are the means over the seeds of
each column, and where a baseline is named and items were kept, each difference from it is tested by
paired bootstrap. Columns that can't be compared with the first one are marked or refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from interlingua.errors import ConfigError
from interlingua.evaluation.grouping import (
    Chosen,
    Column,
    Section,
    brief,
    column_index,
    columns_of,
    differences,
    digests_of,
    pattern,
    sections,
    tasks_of,
)
from interlingua.evaluation.scores import SubsetScores, TaskResult, mean_scores
from interlingua.evaluation.significance import RESAMPLES, Difference, paired_bootstrap
from interlingua.evaluation.task import Progress, silent
from interlingua.registry import check_choice

ROWS = ("groups", "languages", "tasks")
LEVEL = 0.05
"""Of significance."""
SIGNIFICANT = "†"
UNLIKE = "‡"


class Cost(NamedTuple):
    """How a cost of training is shown."""

    name: str
    scale: float = 1
    """What the value as measured is multiplied with."""
    digits: int = 0
    """Decimals."""


COSTS = {
    "pairs": Cost("training pairs"),
    "tokens": Cost("training tokens"),
    "cpu_seconds": Cost("training CPU seconds"),
    "seconds": Cost("training wall seconds"),
    "peak_rss_bytes": Cost("training peak memory, GiB", 2**-30, 2),
}


class Cell(NamedTuple):
    """A score as a fraction, or a cost.

    Attributes:
        value: the mean over seeds, if there are several.
        spread: their standard deviation.
        difference: from the baseline's score, by paired bootstrap; None where there are no items to
            tell.
    """

    value: float
    spread: float | None = None
    difference: Difference | None = None

    @property
    def differs(self) -> bool:
        """Whether the score differs significantly from the baseline's."""
        return self.difference is not None and self.difference.p_value < LEVEL


class Row(NamedTuple):
    """A group, language pair, task or cost.

    Attributes:
        name: what stands before the cells.
        cells: one per column.
        digits: decimals to show.
        higher_is_better: None for a cost, which is neither.
        task: that it is of.
        metric: in the cells, or the cost.
        of: the group or language pair alone; empty for the mean of a task.
        scale: what the cells are multiplied with to be shown.
    """

    name: str
    cells: list[Cell | None]
    digits: int = 1
    higher_is_better: bool | None = True
    task: str = ""
    metric: str = ""
    of: str = ""
    scale: float = 100


class Comparison(NamedTuple):
    """A table with a column per model or group of seeds.

    Those not ``comparable`` with the first carry a mark.
    """

    title: str
    corner: str
    columns: list[str]
    comparable: list[bool]
    rows: list[Row]
    notes: list[str]
    baseline: str | None = None


def compare(
    results: Sequence[TaskResult],
    *,
    by: str = "groups",
    metric: str | None = None,
    group: str | None = None,
    baseline: str | None = None,
    only: str | None = None,
    join: bool = False,
    costs: bool = False,
    strict: bool = False,
    progress: Progress = silent,
) -> list[Comparison]:
    """Tables from any number of results.

    Args:
        results: of any tasks and models.
        by: what stands in the rows: ``groups`` or ``languages``, one table per task, or ``tasks``,
            one table of all.
        metric: instead of each task's main one; tasks without it are left out.
        group: joins seeds of one arm into mean and standard deviation: a pattern to cut out of the
            models' names, those left with one name belonging together, or ``config`` for models
            trained by one config but for the seed.
        baseline: a column; the others are marked where they differ from it significantly, by paired
            bootstrap.
        only: a pattern that rows must contain.
        join: one table of all tasks for ``groups`` and ``languages`` too.
        costs: add what training cost, as far as the results know.
        strict: refuse what is otherwise marked: columns of other data, protocol versions or
            settings than the first.
        progress: called with each task, and the tasks done and in all, before differences from the
            baseline are tested.

    Raises:
        ConfigError: no result has that metric, there are no such rows or columns, a pattern is no
            regular expression, the seeds of an arm differ in data or settings, or, with ``strict``,
            any two columns do.
    """
    check_choice("by", by, ROWS)
    if metric is not None:
        results = _with_metric(results, metric)
    is_joint = join or by == "tasks"
    found = _grouped(results, group, is_joint)
    references = [
        column_index(columns, baseline) for columns, _ in found
    ]  # refuses a wrong one before any work
    total = sum(len(of_table) for _, of_table in found)
    counter = itertools.count()

    def announce(section: Section) -> None:
        if baseline is not None:
            progress(section.task, next(counter), total)

    build = _joint_table if is_joint else _task_table
    tables = [
        build(*one, by, metric, index, announce)
        for one, index in zip(found, references, strict=True)
    ]
    if baseline is not None:
        progress("all tasks", 1, 1)
    if strict:
        _refuse_unlike(tables)
    wanted = pattern(only)
    shown = []
    for table, (columns, _) in zip(tables, found, strict=True):
        rows = [row for row in table.rows if wanted.search(row.name)]
        if rows:
            shown.append(table._replace(rows=rows + (costs_of(columns) if costs else [])))
    if not shown:
        raise ConfigError(f"no row contains {only!r}")
    return shown


def _with_metric(results: Sequence[TaskResult], metric: str) -> list[TaskResult]:
    known = dict.fromkeys(
        name for result in results for scores in result.groups.values() for name in scores
    )
    check_choice("metric", metric, known)

    def has_it(result: TaskResult) -> bool:
        return any(metric in scores for scores in result.groups.values())

    return [result for result in results if has_it(result)]


def _refuse_unlike(tables: Sequence[Comparison]) -> None:
    for table in tables:
        if not all(table.comparable):
            raise ConfigError(
                f"{table.title.partition(':')[0]}: {table.notes[0]}; drop --strict to mark them"
            )


def _grouped(
    results: Sequence[TaskResult], group: str | None, is_joint: bool
) -> list[tuple[list[Column], list[Section]]]:
    """The columns and sections of each table: one of all tasks, or one per task."""
    if is_joint:
        columns = columns_of(results, group, by_settings=False)
        return [(columns, list(sections(results, columns)))]
    tables = []
    for task in tasks_of(results):
        columns = columns_of([result for result in results if result.task == task], group)
        tables.append((columns, [Section(task, "", [column.results for column in columns])]))
    return tables


def _task_table(
    columns: list[Column],
    found: list[Section],
    by: str,
    metric: str | None,
    reference: int | None,
    announce: Callable[[Section], None],
) -> Comparison:
    """One task; its settings tell columns apart."""
    [section] = found
    announce(section)
    first = section.chosen[0][0]
    shown = metric or first.main_metric
    comparable, notes = differences(section.chosen)
    overrides = {column.name: ", ".join(column.overrides) for column in columns}
    if len(overrides) > 1 and len(set(overrides.values())) == 1:
        overrides = {"all columns": next(iter(overrides.values()))}
    notes += [
        f"{name}: {words}" for name, words in overrides.items() if words and words not in name
    ]
    notes += _notes_of(section.chosen, columns)
    rows = rows_of(section.chosen, by, shown, reference)
    title = f"{first.task}: {label(shown)}, %, {direction(first, shown)}"
    corner = "language pair" if by == "languages" else "group"
    return _comparison(title, corner, columns, comparable, rows, notes, reference)


def _joint_table(
    columns: list[Column],
    found: list[Section],
    by: str,
    metric: str | None,
    reference: int | None,
    announce: Callable[[Section], None],
) -> Comparison:
    """All tasks; each choice of a task's settings has rows of its own."""
    comparable = [True] * len(columns)
    rows: list[Row] = []
    notes: list[str] = []
    short = {(section.task, brief(section.settings)) for section in found}
    for section in found:
        announce(section)
        task, settings, chosen = section
        tail = f" ({settings})" if settings else ""
        shown_tail = f" ({brief(settings)})" if settings and len(short) == len(found) else tail
        for shown in _metrics_shown(chosen, by, metric):
            for row in rows_of(chosen, by, shown, reference):
                label = _mean_label(shown, chosen) if by == "tasks" else row.name
                name = f"{task}: {label}{shown_tail}"
                rows.append(row._replace(name=name, task=f"{task}{tail}"))
        has_same_data, found_notes = differences(chosen)
        comparable = [before and now for before, now in zip(comparable, has_same_data, strict=True)]
        notes += [f"{task}: {note}" for note in [*found_notes, *_notes_of(chosen, columns)]]
    title = "all tasks: " + ("means over language pairs, %" if by == "tasks" else "main scores, %")
    corner = (
        "task" if by == "tasks" else f"task: {'language pair' if by == 'languages' else 'group'}"
    )
    return _comparison(title, corner, columns, comparable, rows, notes, reference)


def _comparison(
    title: str,
    corner: str,
    columns: list[Column],
    comparable: list[bool],
    rows: list[Row],
    notes: list[str],
    reference: int | None,
) -> Comparison:
    """The table with a note on its marks."""
    baseline = None if reference is None else columns[reference].name
    if any(cell is not None and cell.differs for row in rows for cell in row.cells):
        test = (
            f"p < {LEVEL}, paired bootstrap of the items, {RESAMPLES:,} resamples, each row alone"
        )
        notes = [*notes, f"{SIGNIFICANT} differs from {baseline}: {test}"]
    return Comparison(
        title, corner, [column.name for column in columns], comparable, rows, notes, baseline
    )


def _metrics_shown(chosen: Chosen, by: str, metric: str | None) -> list[str]:
    """The metrics that a table of all tasks shows of one: ``metric``, or the main one and those
    next to it.
    """
    first = next(results[0] for results in chosen if results)
    if metric is not None:
        return [metric]
    if by != "tasks":
        return [first.main_metric]
    return [first.main_metric, *(name for name in first.shown if name in first.subsets[0].scores)]


def _mean_label(metric: str, chosen: Chosen) -> str:
    """A metric, and of how many sets or language pairs the mean is: it may be of fewer than a
    paper's.
    """
    counts = sorted({len(averaged(result)) for one in chosen for result in one})
    return (
        label(metric) if counts == [1] else f"{label(metric)}, mean of {'/'.join(map(str, counts))}"
    )


def _notes_of(chosen: Chosen, columns: Sequence[Column]) -> list[str]:
    """What the results themselves state: texts that were cut, queries that are missing, parts that
    were left out.
    """
    notes = [
        f"{column.name}: {note}"
        for column, results in zip(columns, chosen, strict=True)
        for result in results
        for note in result.notes
    ]
    return list(dict.fromkeys(notes))


def rows_of(chosen: Chosen, by: str, metric: str, reference: int | None) -> list[Row]:
    """The rows of one task with one choice of settings.

    Args:
        chosen: see ``Section``.
        by: see ``compare``.
        metric: in the cells.
        reference: the column that others are tested against, where the metric is the main one.
    """
    results = [result for one in chosen for result in one]
    first = results[0]
    values = {id(result): _values(result, by, metric) for result in results}
    rows = []
    for name in dict.fromkeys(name for of_result in values.values() for name in of_result):
        row = row_of(name, chosen, lambda result, name=name: values[id(result)].get(name))  # type: ignore[misc]
        row = row._replace(task=first.task, metric=metric, of="" if by == "tasks" else name)
        row = row._replace(higher_is_better=first.is_better_high(metric))
        if reference is not None and metric == first.main_metric:
            pairs = [subset.name for subset in averaged(first)] if by == "tasks" else [name]
            row = marked(
                row, chosen, reference, first.members.get(name, ()) if by == "groups" else pairs
            )
        rows.append(row)
    return rows


def averaged(result: TaskResult) -> tuple[SubsetScores, ...]:
    """The language pairs that the mean of a task is over: all.

    Of zero-shot transfer those of two languages alone.
    """
    if not result.task.startswith("zero_shot"):
        return result.subsets
    between = tuple(
        subset for subset in result.subsets if subset.languages[0] != subset.languages[1]
    )
    return between or result.subsets


def _values(result: TaskResult, by: str, metric: str) -> dict[str, float]:
    if by == "tasks":
        means = mean_scores(averaged(result))
        return {result.task: means[metric]} if metric in means else {}
    if by == "languages":
        return {
            subset.name: subset.scores[metric]
            for subset in result.subsets
            if metric in subset.scores
        }
    return {name: scores[metric] for name, scores in result.groups.items() if metric in scores}


def row_of(name: str, chosen: Chosen, value_of: Callable[[TaskResult], float | None]) -> Row:
    """A row from what each result has for it.

    The mean over a column's seeds, if all of them have it.
    """
    cells = []
    for results in chosen:
        values = [value for result in results if (value := value_of(result)) is not None]
        cells.append(
            _cell(values) if len(values) == len(results) else None
        )  # some seeds are no column's score
    first = next(results[0] for results in chosen if results)
    return Row(name, cells, 1 if first.higher_is_better else 2, first.higher_is_better)


def _cell(values: Sequence[float]) -> Cell | None:
    if not values:
        return None
    return Cell(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None)


def marked(row: Row, chosen: Chosen, reference: int, subsets: Sequence[str]) -> Row:
    """The row with each score's difference from the reference's, where items tell.

    None between unlike data.

    Args:
        row: a row of means over ``subsets``.
        chosen: see ``Section``.
        reference: the column to compare with.
        subsets: by name.
    """
    base = row.cells[reference]
    of_base = [result.items for result in chosen[reference]]
    cells = list(row.cells)
    data = list(map(digests_of, chosen))
    for place, cell in enumerate(row.cells):
        if cell is None or base is None or place == reference or data[place] != data[reference]:
            continue
        found = paired_bootstrap(of_base, [result.items for result in chosen[place]], subsets)
        # a score that is no mean over its subsets (pooled years, say) is not what was resampled
        if found is not None and np.isclose(found.mean, cell.value - base.value, atol=1e-6):
            cells[place] = cell._replace(difference=found)
    return row._replace(cells=cells)


def costs_of(columns: Sequence[Column]) -> list[Row]:
    """A row for each kind of cost that some column's models know of; a mean over seeds."""
    rows = []
    for key, cost in COSTS.items():
        cells = []
        for column in columns:
            cells.append(_cell([float(one[key]) for one in column.trainings if one.get(key)]))
        rows.append(Row(cost.name, cells, cost.digits, None, metric=key, scale=cost.scale))
    return [row for row in rows if any(row.cells)]


def label(metric: str) -> str:
    """A metric's name in words."""
    return metric.replace("_", " ")


def direction(result: TaskResult, metric: str) -> str:
    """Which end of a metric's scale is the good one."""
    return "higher is better" if result.is_better_high(metric) else "lower is better"
