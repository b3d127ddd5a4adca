"""Many results side by side: one table per task or one of all; what can't be compared is marked or refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from interlingua.errors import ConfigError
from interlingua.evaluation.arms import Arm, arms, model_of, names, pattern, settings_of
from interlingua.evaluation.significance import RESAMPLES, paired_bootstrap
from interlingua.evaluation.task import TaskResult, check_choice, mean_scores
from interlingua.registry import did_you_mean

ROWS = ("groups", "languages", "tasks")
MARK = "†"
LEVEL = 0.05
COSTS = {
    "pairs": "training pairs",
    "tokens": "training tokens",
    "cpu_seconds": "training CPU seconds",
    "seconds": "training wall seconds",
    "peak_rss_bytes": "training peak memory, bytes",
}


class Cell(NamedTuple):
    """A score as a fraction, or a cost.

    Attributes:
        value: the mean over seeds, if there are several.
        spread: their standard deviation.
        differs: whether the score differs significantly from the baseline's.
    """

    value: float
    spread: float | None = None
    differs: bool = False


class Row(NamedTuple):
    """A group, language pair, task or cost; ``higher_is_better`` is None for a cost, which is neither."""

    name: str
    cells: list[Cell | None]
    digits: int = 1
    higher_is_better: bool | None = True


class Comparison(NamedTuple):
    """A table with a column per result or arm; those not ``comparable`` with the first carry a mark."""

    title: str
    corner: str
    columns: list[str]
    comparable: list[bool]
    rows: list[Row]
    notes: list[str]


Chosen = list[list[TaskResult]]
"""For each column the results, one per seed, that a row is made from."""


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
) -> list[Comparison]:
    """Tables from any number of results.

    Args:
        results: of any tasks and models.
        by: what stands in the rows: ``groups`` or ``languages``, one table per task, or ``tasks``, one table of all.
        metric: instead of each task's main one; tasks without it are left out.
        group: joins seeds of one arm into mean and standard deviation: a pattern to cut out of the models' names, those
            left with one name belonging together, or ``config`` for models trained by one config but for the seed.
        baseline: a column; the others are marked where they differ from it significantly, by paired bootstrap.
        only: a pattern that rows must contain.
        join: one table of all tasks for ``groups`` and ``languages`` too.
        costs: add what training cost, as far as the results know.
        strict: refuse what is otherwise marked: columns of other data, protocol versions or settings than the first.

    Raises:
        ConfigError: no result has that metric, there are no such rows or columns, a pattern is no regular expression,
            the seeds of an arm were not measured alike, or, being strict, any two columns were not.
    """
    check_choice("by", by, ROWS)
    if metric is not None:
        known = dict.fromkeys(name for result in results for scores in result.groups.values() for name in scores)
        check_choice("metric", metric, known)
        results = [result for result in results if any(metric in scores for scores in result.groups.values())]
    by_task = {task: [one for one in results if one.task == task] for task in dict.fromkeys(r.task for r in results)}
    if join or by == "tasks":
        columns = [arms(results, group, by_settings=False)]
        tables = [_table_of_tasks(by_task, columns[0], by, metric, baseline)]
    else:
        columns = [arms(found, group) for found in by_task.values()]
        tables = [_table(found, by, metric, baseline) for found in columns]
    if strict and (different := [table for table in tables if not all(table.comparable)]):
        raise ConfigError(
            f"{different[0].title.partition(':')[0]}: {different[0].notes[0]}; drop --strict to mark them"
        )
    wanted = pattern(only)
    shown = []
    for table, found in zip(tables, columns, strict=True):
        rows = [row for row in table.rows if wanted.search(row.name)]
        if rows:
            shown.append(table._replace(rows=rows + (_costs(found) if costs else [])))
    if not shown:
        raise ConfigError(f"no row contains {only!r}")
    return shown


def _table(columns: list[Arm], by: str, metric: str | None, baseline: str | None) -> Comparison:
    """One task."""
    chosen = [arm.results for arm in columns]
    first = chosen[0][0]
    shown = metric or first.main_metric
    comparable, notes = _differences(chosen)
    reference = _reference(columns, baseline)
    rows = _rows(chosen, by, shown, reference)
    notes += [
        f"{name}: {', '.join(arm.asked)}"
        for arm, name in zip(columns, names(columns), strict=True)
        if arm.asked and ", ".join(arm.asked) not in name
    ]
    return Comparison(
        title=f"{first.task}: {label(shown)}, %, {direction(first)}",
        corner="language pair" if by == "languages" else "group",
        columns=names(columns),
        comparable=comparable,
        rows=rows,
        notes=notes + _note_on_significance(rows, columns, reference),
    )


def _table_of_tasks(
    by_task: dict[str, list[TaskResult]], columns: list[Arm], by: str, metric: str | None, baseline: str | None
) -> Comparison:
    """All tasks; each choice of a task's settings has rows of its own."""
    reference = _reference(columns, baseline)
    comparable = [True] * len(columns)
    rows: list[Row] = []
    notes: list[str] = []
    for task, results in by_task.items():
        for settings in dict.fromkeys(map(settings_of, results)):
            chosen = [[r for r in arm.results if r.task == task and settings_of(r) == settings] for arm in columns]
            shown = metric or results[0].main_metric
            tail = f" ({settings})" if settings else ""
            for row in _rows(chosen, by, shown, reference):
                name = f"{task}: {label(shown)}{tail}" if by == "tasks" else f"{task}: {row.name}{tail}"
                rows.append(row._replace(name=name))
            alike, said = _differences(chosen)
            comparable = [before and now for before, now in zip(comparable, alike, strict=True)]
            notes += [f"{task}: {note}" for note in said]
    return Comparison(
        title="all tasks: " + ("means over language pairs, %" if by == "tasks" else "main scores, %"),
        corner="task" if by == "tasks" else f"task: {'language pair' if by == 'languages' else 'group'}",
        columns=names(columns),
        comparable=comparable,
        rows=rows,
        notes=notes + _note_on_significance(rows, columns, reference),
    )


def _rows(chosen: Chosen, by: str, metric: str, reference: int | None) -> list[Row]:
    """The rows of one task with one choice of settings."""
    results = [result for one in chosen for result in one]
    rows = []
    for name in dict.fromkeys(name for result in results for name in _values(result, by, metric)):
        row = _row(name, chosen, lambda result, name=name: _values(result, by, metric).get(name))  # type: ignore[misc]
        first = results[0]
        if reference is not None and metric == first.main_metric:
            pairs = [subset.name for subset in first.subsets] if by == "tasks" else [name]
            row = _marked(row, chosen, reference, first.members.get(name, ()) if by == "groups" else pairs)
        rows.append(row)
    return rows


def _values(result: TaskResult, by: str, metric: str) -> dict[str, float]:
    if by == "tasks":
        means = mean_scores(result.subsets)
        return {result.task: means[metric]} if metric in means else {}
    if by == "languages":
        return {subset.name: subset.scores[metric] for subset in result.subsets if metric in subset.scores}
    return {name: scores[metric] for name, scores in result.groups.items() if metric in scores}


def _row(name: str, chosen: Chosen, value_of: Callable[[TaskResult], float | None]) -> Row:
    cells = []
    for results in chosen:
        values = [value for result in results if (value := value_of(result)) is not None]
        cells.append(_cell(values) if len(values) == len(results) else None)  # a mean of some seeds is no arm's score
    first = next(results[0] for results in chosen if results)
    return Row(name, cells, 1 if first.higher_is_better else 2, first.higher_is_better)


def _cell(values: Sequence[float]) -> Cell | None:
    if not values:
        return None
    return Cell(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None)


def _differences(chosen: Chosen) -> tuple[list[bool], list[str]]:
    """Whether each column can be compared with the first, and what tells them apart.

    Raises:
        ConfigError: the seeds of one column can't be compared with each other.
    """
    parts: dict[str, Callable[[TaskResult], str]] = {
        "protocol versions": lambda result: result.version,
        "data": lambda result: result.data_sha256[:12],
        "settings": lambda result: settings_of(result) or "the protocol's own",
    }
    filled = [results for results in chosen if results]
    comparable, notes = [True] * len(chosen), []
    for what, of in parts.items():
        for results in filled:
            if len({of(result) for result in results}) > 1:
                seeds = ", ".join(f"{model_of(result)['name']}: {of(result)}" for result in results)
                raise ConfigError(
                    f"{results[0].task}: the seeds of one arm differ in {what} ({seeds}); measure them alike"
                )
        values = [of(results[0]) for results in filled]
        if len(set(values)) > 1:
            notes.append(f"the columns differ in {what} ({', '.join(values)}) and can't be compared as they are")
        comparable = [
            before and (not results or of(results[0]) == values[0])
            for before, results in zip(comparable, chosen, strict=True)
        ]
    return comparable, notes


def _reference(columns: list[Arm], baseline: str | None) -> int | None:
    """The place of the baseline's column.

    Raises:
        ConfigError: there is no such column.
    """
    if baseline is None:
        return None
    shown = names(columns)
    for place, (name, arm) in enumerate(zip(shown, columns, strict=True)):
        if baseline in (name, arm.label):
            return place
    raise ConfigError(f"there is no column {baseline!r}{did_you_mean(baseline, shown)}")


def _marked(row: Row, chosen: Chosen, reference: int, subsets: Sequence[str]) -> Row:
    """Marks the scores that differ significantly from the reference's, where items tell."""
    base, of_base = row.cells[reference], [result.items for result in chosen[reference]]
    cells = list(row.cells)
    for place, cell in enumerate(row.cells):
        if cell is None or base is None or place == reference:
            continue
        found = paired_bootstrap(of_base, [result.items for result in chosen[place]], subsets)
        # a score that is no mean over its subsets (pooled years, say) is not what was resampled
        if found is not None and np.isclose(found.mean, cell.value - base.value, atol=1e-6):
            cells[place] = cell._replace(differs=found.p_value < LEVEL)
    return row._replace(cells=cells)


def _note_on_significance(rows: Sequence[Row], columns: list[Arm], reference: int | None) -> list[str]:
    if reference is None or not any(cell is not None and cell.differs for row in rows for cell in row.cells):
        return []
    name = names(columns)[reference]
    return [
        f"* differs from {name}: p < {LEVEL}, paired bootstrap of the items, {RESAMPLES:,} resamples, each row alone"
    ]


def _costs(columns: list[Arm]) -> list[Row]:
    """A row for each kind of cost that some column's models know of; a mean over seeds."""
    rows = []
    for key, name in COSTS.items():
        cells = []
        for arm in columns:
            models = {model_of(result)["revision"]: model_of(result).get("training") or {} for result in arm.results}
            cells.append(_cell([float(training[key]) for training in models.values() if training.get(key)]))
        rows.append(Row(name, cells, 0, None))
    return [row for row in rows if any(row.cells)]


def label(metric: str) -> str:
    """A metric's name in words."""
    return metric.replace("_", " ")


def direction(result: TaskResult) -> str:
    """Which end of the scale is the good one."""
    return "higher is better" if result.higher_is_better else "lower is better"
