"""Many results next to each other: means over seeds, tests against a baseline, training costs.

A row is a group of languages, a language pair or a task. Each cell is the mean over the seeds of
its column. If a baseline is named and items were kept, each difference from it is tested by
paired bootstrap. Columns that can't be compared with the first one are marked or refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from interlingua.config.registry import check_choice
from interlingua.errors import ConfigError
from interlingua.evaluation.report.grouping import (
    ChosenResults,
    Column,
    Section,
    brief,
    column_differences,
    column_indices,
    digests_of,
    group_columns,
    pattern,
    sections,
    tasks_of,
)
from interlingua.evaluation.scores import SubsetScores, TaskResult, mean_scores
from interlingua.evaluation.significance import RESAMPLES, Difference, paired_bootstrap
from interlingua.runtime.progress import SILENT, Progress

CORNERS = {"groups": "group", "languages": "language pair", "tasks": "task"}
"""The kind of rows -> the name of a row."""
_ROWS = tuple(CORNERS)
LEVEL = 0.05
"""Level of significance."""
SIGNIFICANT = "†"
UNLIKE = "‡"


class Cost(NamedTuple):
    """The display settings of a training cost."""

    name: str
    scale: float = 1
    """Factor of the measured value."""
    digits: int = 0
    """Decimals."""


COSTS = {
    "pairs": Cost("training pairs"),
    "tokens": Cost("training tokens"),
    "cpu_seconds": Cost("training CPU seconds"),
    "seconds": Cost("training wall seconds"),
    "peak_rss_bytes": Cost("training peak memory, GiB", 2**-30, 2),
}


class ComparisonCell(NamedTuple):
    """A score as a fraction, or a cost.

    Attributes:
        value: the mean over seeds, if there are several.
        spread: their standard deviation.
        difference: from the baseline's score, by paired bootstrap; None without items.
    """

    value: float
    spread: float | None = None
    difference: Difference | None = None

    @property
    def differs(self) -> bool:
        """Return whether the score differs significantly from the baseline's."""
        return self.difference is not None and self.difference.p_value < LEVEL


class Row(NamedTuple):
    """A group, language pair, task or cost.

    Attributes:
        name: the row's label.
        cells: one per column.
        digits: decimals to show.
        higher_is_better: None for a cost, which is neither.
        task: the task that the row belongs to.
        metric: name of the metric in the cells, or of the cost.
        of: the group or language pair without other parts of the label; empty for the mean of a
            task.
        scale: factor by which the cells are multiplied for display.
    """

    name: str
    cells: list[ComparisonCell | None]
    digits: int = 1
    higher_is_better: bool | None = True
    task: str = ""
    metric: str = ""
    of: str = ""
    scale: float = 100


class ComparisonTable(NamedTuple):
    """A table with a column per model or group of seeds.

    Columns that are not ``comparable`` with the first are marked.
    """

    title: str
    corner: str
    columns: list[str]
    comparable: list[bool]
    rows: list[Row]
    notes: list[str]
    baseline: str | None = None


def compare_results(
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
    progress: Progress = SILENT,
) -> list[ComparisonTable]:
    """Build tables from any number of results.

    Args:
        results: of any tasks and models.
        by: the kind of rows: ``groups`` or ``languages``, one table per task, or ``tasks``,
            one table of all.
        metric: instead of each task's main one; tasks without it are left out.
        group: how to join the seeds of one training configuration (an arm) into mean and standard
            deviation: a pattern that is removed from the models' names, so that models with equal
            remaining names are joined, or ``config`` to join models with configs that differ only
            in the seed.
        baseline: a column; the others are marked if they differ from it significantly, by paired
            bootstrap.
        only: a pattern that rows must contain.
        join: one table of all tasks for ``groups`` and ``languages`` too.
        costs: add the costs of training, as far as the results contain them.
        strict: refuse what is otherwise marked: columns of other data, protocol versions or
            settings than the first.
        progress: reports progress.

    Raises:
        ConfigError: no result has that metric, there are no such rows or columns, a pattern is not
            a regular expression, or the seeds of an arm differ in data or settings. With
            ``strict``, also if any two columns differ in these.
    """
    check_choice("by", by, _ROWS)
    if metric is not None:
        results = _with_metric(results, metric)
    is_joint = join or by == "tasks"
    found = _grouped(results, group, is_joint)
    # refuses a wrong baseline before any work
    references = column_indices([columns for columns, _ in found], baseline)
    total = sum(len(of_table) for _, of_table in found)
    # Without a baseline no differences are tested, and the tables are there at once.
    testing = progress if baseline is not None else SILENT
    testing.start(total, "tasks", "testing differences")

    def announce(section: Section) -> None:
        testing.note(section.task)
        testing.advance()

    build = _joint_table if is_joint else _task_table
    tables = [
        build(*one, by, metric, index, announce)
        for one, index in zip(found, references, strict=True)
    ]
    if baseline is not None:
        tables = [
            _noting_absence(table, baseline, index)
            for table, index in zip(tables, references, strict=True)
        ]
    if strict:
        _refuse_unlike(tables)
    row_pattern = pattern(only)
    shown = []
    for table, (columns, _) in zip(tables, found, strict=True):
        rows = [row for row in table.rows if row_pattern.search(row.name)]
        # if no row of a table is left, the table is not shown, even if it has costs
        if rows and costs:
            rows += costs_of(columns)
        if rows:
            shown.append(table._replace(rows=rows))
    if not shown:
        raise ConfigError(f"no row contains {only!r}; check --only")
    return shown


def _noting_absence(table: ComparisonTable, baseline: str, index: int | None) -> ComparisonTable:
    """Return the table with a note if the baseline was not measured on its task."""
    if index is not None:
        return table
    note = f"the baseline {baseline} was not measured on this task, so no difference is tested"
    return table._replace(notes=[*table.notes, note])


def _with_metric(results: Sequence[TaskResult], metric: str) -> list[TaskResult]:
    known: dict[str, None] = {}
    for result in results:
        for scores in result.groups.values():
            known |= dict.fromkeys(scores)
    check_choice("metric", metric, known)

    def has_it(result: TaskResult) -> bool:
        return any(metric in scores for scores in result.groups.values())

    return [result for result in results if has_it(result)]


def _refuse_unlike(tables: Sequence[ComparisonTable]) -> None:
    for table in tables:
        if not all(table.comparable):
            raise ConfigError(
                f"{table.title.partition(':')[0]}: {table.notes[0]}; remove --strict to mark them"
                " instead"
            )


def _grouped(
    results: Sequence[TaskResult], group: str | None, is_joint: bool
) -> list[tuple[list[Column], list[Section]]]:
    """Return the columns and sections of each table: one of all tasks, or one per task."""
    # in a joint table, a column covers tasks with different settings, so each choice of settings
    # gets its own rows; in the table of one task, it gets its own column
    if is_joint:
        columns = group_columns(results, group, by_settings=False)
        return [(columns, list(sections(results, columns)))]
    tables = []
    for task in tasks_of(results):
        columns = group_columns([result for result in results if result.task == task], group)
        tables.append((columns, [Section(task, "", [column.results for column in columns])]))
    return tables


def _task_table(
    columns: list[Column],
    found: list[Section],
    by: str,
    metric: str | None,
    reference: int | None,
    announce: Callable[[Section], None],
) -> ComparisonTable:
    """Build the table of one task, with columns distinguished by its settings."""
    [section] = found
    announce(section)
    first = section.chosen[0][0]
    shown = metric or first.main_metric
    comparable, notes = column_differences(section.chosen)
    overrides = {column.name: ", ".join(column.overrides) for column in columns}
    # what all columns share is noted once
    if len(overrides) > 1 and len(set(overrides.values())) == 1:
        overrides = {"all columns": next(iter(overrides.values()))}
    # a name that is ambiguous without its overrides already states them
    notes += [
        f"{name}: {words}" for name, words in overrides.items() if words and words not in name
    ]
    notes += _notes_of(section.chosen, columns)
    rows = rows_of(section.chosen, by, shown, reference)
    title = f"{first.task}: {label(shown)}, %, {direction(first, shown)}"
    return _comparison(title, CORNERS[by], columns, comparable, rows, notes, reference)


def _joint_table(
    columns: list[Column],
    found: list[Section],
    by: str,
    metric: str | None,
    reference: int | None,
    announce: Callable[[Section], None],
) -> ComparisonTable:
    """Build one table of all tasks, with separate rows for each choice of a task's settings."""
    comparable = [True] * len(columns)
    rows: list[Row] = []
    notes: list[str] = []
    # settings are shortened in all rows or in none: two sections must not get the same words
    short = {(section.task, brief(section.settings)) for section in found}
    is_brief = len(short) == len(found)
    for section in found:
        announce(section)
        task, settings, chosen = section
        full_name = f"{task}{_in_brackets(settings)}"
        shown_settings = _in_brackets(brief(settings)) if is_brief else _in_brackets(settings)
        for shown in _metrics_shown(chosen, by, metric):
            for row in rows_of(chosen, by, shown, reference):
                label = _mean_label(shown, chosen) if by == "tasks" else row.name
                rows.append(row._replace(name=f"{task}: {label}{shown_settings}", task=full_name))
        # a column is comparable if it is so on every task
        has_same_data, found_notes = column_differences(chosen)
        comparable = [before and now for before, now in zip(comparable, has_same_data, strict=True)]
        notes += [f"{task}: {note}" for note in [*found_notes, *_notes_of(chosen, columns)]]
    title = "all tasks: main scores, %"
    corner = f"task: {CORNERS[by]}"
    if by == "tasks":
        title = "all tasks: means over language pairs, %"
        corner = CORNERS[by]
    return _comparison(title, corner, columns, comparable, rows, notes, reference)


def _in_brackets(words: str) -> str:
    """Return the text in brackets after a space, to end a name; empty for an empty text."""
    return f" ({words})" if words else ""


def _comparison(
    title: str,
    corner: str,
    columns: list[Column],
    comparable: list[bool],
    rows: list[Row],
    notes: list[str],
    reference: int | None,
) -> ComparisonTable:
    """Build the table, with a note that explains its marks."""
    names = [column.name for column in columns]
    baseline: str | None = None
    if reference is not None:
        baseline = names[reference]
    if any(cell is not None and cell.differs for row in rows for cell in row.cells):
        # "each row tested separately": the p-values are not corrected for the number of rows
        test = (
            f"p < {LEVEL}, paired bootstrap of the items, {RESAMPLES:,} resamples, each"
            " row tested separately"
        )
        notes = [*notes, f"{SIGNIFICANT} differs from {baseline}: {test}"]
    return ComparisonTable(title, corner, names, comparable, rows, notes, baseline)


def _metrics_shown(chosen: ChosenResults, by: str, metric: str | None) -> list[str]:
    """Return the metrics of a task to show: ``metric`` if it is set, otherwise the main one.

    If the rows are tasks, the main one is followed by the metrics in the result's ``shown``.
    """
    first = next(results[0] for results in chosen if results)
    if metric is not None:
        return [metric]
    if by != "tasks":
        return [first.main_metric]
    return [first.main_metric, *(name for name in first.shown if name in first.subsets[0].scores)]


def _mean_label(metric: str, chosen: ChosenResults) -> str:
    """Return a metric's label with the number of sets or language pairs averaged.

    The number shows a reader whether the mean covers fewer of them than a paper's mean.
    """
    counts = sorted({len(averaged(result)) for one in chosen for result in one})
    if counts == [1]:
        return label(metric)
    return f"{label(metric)}, mean of {'/'.join(map(str, counts))}"


def _notes_of(chosen: ChosenResults, columns: Sequence[Column]) -> list[str]:
    """Return the notes of the results themselves: cut texts, absent queries, parts left out."""
    notes = []
    for column, results in zip(columns, chosen, strict=True):
        for result in results:
            notes += [f"{column.name}: {note}" for note in result.notes]
    # seeds repeat each other's notes
    return list(dict.fromkeys(notes))


def rows_of(chosen: ChosenResults, by: str, metric: str, reference: int | None) -> list[Row]:
    """Build the rows of one task with one choice of settings.

    Args:
        chosen: see ``Section``.
        by: see ``compare_results``.
        metric: in the cells.
        reference: the column that others are tested against, if the metric is the main one.
    """
    results = [result for one in chosen for result in one]
    first = results[0]
    # once per result and not per row; by id, as results hold dictionaries and have no hash
    values = {id(result): _values(result, by, metric) for result in results}
    rows = []
    for name in dict.fromkeys(name for of_result in values.values() for name in of_result):
        row = row_of(name, chosen, lambda result, name=name: values[id(result)].get(name))  # type: ignore[misc]
        row = row._replace(
            task=first.task,
            metric=metric,
            higher_is_better=first.is_better_high(metric),
            of="" if by == "tasks" else name,
        )
        # items are kept only for the main metric
        if reference is not None and metric == first.main_metric:
            row = marked(row, chosen, reference, _subsets_of(first, by, name))
        rows.append(row)
    return rows


def _subsets_of(result: TaskResult, by: str, name: str) -> Sequence[str]:
    """Return the language pairs that a row's score is a mean over."""
    if by == "groups":
        return result.members.get(name, ())
    if by == "tasks":
        return [subset.name for subset in averaged(result)]
    return [name]


def averaged(result: TaskResult) -> tuple[SubsetScores, ...]:
    """Return the language pairs that a task's mean is computed from.

    These are all pairs. In zero-shot transfer, only pairs of two different languages count.
    """
    if not result.task.startswith("zero_shot"):
        return result.subsets
    # if a classifier is trained and tested in one language, nothing is transferred
    transfers = tuple(
        subset for subset in result.subsets if subset.languages[0] != subset.languages[1]
    )
    return transfers or result.subsets


def _values(result: TaskResult, by: str, metric: str) -> dict[str, float]:
    """Return the metric by the name of the row, if it was measured."""
    scores_of: dict[str, Mapping[str, float]] = dict(result.groups)
    if by == "tasks":
        scores_of = {result.task: mean_scores(averaged(result))}
    elif by == "languages":
        scores_of = {subset.name: subset.scores for subset in result.subsets}
    return {name: scores[metric] for name, scores in scores_of.items() if metric in scores}


def row_of(name: str, chosen: ChosenResults, value_of: Callable[[TaskResult], float | None]) -> Row:
    """Build a row of means over each column's seeds, if all seeds of the column have a value."""
    cells: list[ComparisonCell | None] = []
    for results in chosen:
        values = [value for result in results if (value := value_of(result)) is not None]
        # the mean of some seeds next to the means of all would not be comparable
        if len(values) < len(results):
            cells.append(None)
        else:
            cells.append(_cell(values))
    first = next(results[0] for results in chosen if results)
    # error rates (xsim) are small, so they get two decimals
    digits = 1 if first.higher_is_better else 2
    return Row(name, cells, digits, first.higher_is_better)


def _cell(values: Sequence[float]) -> ComparisonCell | None:
    if not values:
        return None
    if len(values) == 1:
        return ComparisonCell(float(np.mean(values)))
    # the unbiased estimate: seeds are a sample of all possible ones
    return ComparisonCell(float(np.mean(values)), float(np.std(values, ddof=1)))


def marked(row: Row, chosen: ChosenResults, reference: int, subsets: Sequence[str]) -> Row:
    """Return the row with each score's difference from the reference, if items were kept.

    Scores on different data have no difference.

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
    for index, cell in enumerate(row.cells):
        if cell is None or base is None or index == reference or data[index] != data[reference]:
            continue
        found = paired_bootstrap(of_base, [result.items for result in chosen[index]], subsets)
        # a score that is not a mean over its subsets (for example, pooled years) was not resampled
        if found is not None and np.isclose(found.mean, cell.value - base.value, atol=1e-6):
            cells[index] = cell._replace(difference=found)
    return row._replace(cells=cells)


def costs_of(columns: Sequence[Column]) -> list[Row]:
    """Build a row for each cost that some column's models report; costs are means over seeds."""
    rows = []
    for key, cost in COSTS.items():
        cells = []
        for column in columns:
            # a cost of 0 or None was not measured
            costs = [float(training[key]) for training in column.trainings if training.get(key)]
            cells.append(_cell(costs))
        rows.append(Row(cost.name, cells, cost.digits, None, metric=key, scale=cost.scale))
    # a Cell is a tuple of fields and so always true: only rows of None are dropped
    return [row for row in rows if any(row.cells)]


def label(metric: str) -> str:
    """Return a metric's name in words."""
    return metric.replace("_", " ")


def direction(result: TaskResult, metric: str) -> str:
    """Return which direction of a metric is better, in words."""
    return "higher is better" if result.is_better_high(metric) else "lower is better"
