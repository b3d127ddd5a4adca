"""Many results side by side: one table per task or one of all; what can't be compared is marked or refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from interlingua.errors import ConfigError
from interlingua.evaluation.arms import Arm, arms, model_of, names, pattern, settings_of
from interlingua.evaluation.significance import RESAMPLES, Difference, paired_bootstrap
from interlingua.evaluation.task import TaskResult, check_choice, mean_scores
from interlingua.registry import did_you_mean

ROWS = ("groups", "languages", "tasks")
SIGNIFICANT = "†"
UNLIKE = "‡"
LEVEL = 0.05


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
        difference: from the baseline's score, by paired bootstrap; None where there are no items to tell.
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
    """A table with a column per result or arm; those not ``comparable`` with the first carry a mark."""

    title: str
    corner: str
    columns: list[str]
    comparable: list[bool]
    rows: list[Row]
    notes: list[str]
    baseline: str | None = None


Chosen = list[list[TaskResult]]
"""For each column the results, one per seed, that a row is made from."""


class Section(NamedTuple):
    """A task with one choice of its settings; ``chosen`` is empty for columns that were not measured so."""

    task: str
    settings: str
    chosen: Chosen


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
        tables = [_table_of_tasks(results, columns[0], by, metric, baseline)]
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
    comparable, notes = differences(chosen)
    reference = place_of(columns, baseline)
    rows = rows_of(chosen, by, shown, reference)
    asked = {name: ", ".join(arm.asked) for arm, name in zip(columns, names(columns), strict=True)}
    if len(asked) > 1 and len(set(asked.values())) == 1:
        asked = {"all columns": next(iter(asked.values()))}
    notes += [f"{name}: {words}" for name, words in asked.items() if words and words not in name]
    notes += _notes_of(chosen, names(columns))
    return Comparison(
        title=f"{first.task}: {label(shown)}, %, {direction(first)}",
        corner="language pair" if by == "languages" else "group",
        columns=names(columns),
        comparable=comparable,
        rows=rows,
        notes=notes + _note_on_significance(rows, columns, reference),
        baseline=None if reference is None else names(columns)[reference],
    )


def sections(results: Sequence[TaskResult], columns: Sequence[Arm]) -> Iterator[Section]:
    """All tasks; each choice of a task's settings is a section of its own.

    Args:
        results: of any tasks.
        columns: their arms, settings not told apart.
    """
    for task in dict.fromkeys(result.task for result in results):
        for settings in dict.fromkeys(settings_of(result) for result in results if result.task == task):
            chosen = [[r for r in arm.results if r.task == task and settings_of(r) == settings] for arm in columns]
            yield Section(task, settings, chosen)


def _table_of_tasks(
    results: Sequence[TaskResult], columns: list[Arm], by: str, metric: str | None, baseline: str | None
) -> Comparison:
    """All tasks; each choice of a task's settings has rows of its own."""
    reference = place_of(columns, baseline)
    comparable = [True] * len(columns)
    rows: list[Row] = []
    notes: list[str] = []
    found = [*sections(results, columns)]
    short = {(section.task, _brief(section.settings)) for section in found}
    for task, settings, chosen in found:
        shown = metric or next(results[0] for results in chosen if results).main_metric
        tail = f" ({settings})" if settings else ""
        for row in rows_of(chosen, by, shown, reference):
            asked = f" ({_brief(settings) if len(short) == len(found) else settings})" if settings else ""
            name = f"{task}: {_mean(shown, chosen) if by == 'tasks' else row.name}{asked}"
            rows.append(row._replace(name=name, task=f"{task}{tail}"))
        alike, said = differences(chosen)
        comparable = [before and now for before, now in zip(comparable, alike, strict=True)]
        notes += [f"{task}: {note}" for note in [*said, *_notes_of(chosen, names(columns))]]
    return Comparison(
        title="all tasks: " + ("means over language pairs, %" if by == "tasks" else "main scores, %"),
        corner="task" if by == "tasks" else f"task: {'language pair' if by == 'languages' else 'group'}",
        columns=names(columns),
        comparable=comparable,
        rows=rows,
        notes=notes + _note_on_significance(rows, columns, reference),
        baseline=None if reference is None else names(columns)[reference],
    )


def _mean(metric: str, chosen: Chosen) -> str:
    """A metric, and of how many sets or language pairs the mean is: it may be of fewer than a paper's."""
    counts = sorted({len(result.subsets) for one in chosen for result in one})
    return label(metric) if counts == [1] else f"{label(metric)}, mean of {'/'.join(map(str, counts))}"


def _brief(settings: str) -> str:
    """Long lists as their length: ``languages=deu+fra+ita+spa`` is 4 languages."""
    return re.sub(r"(\w+)=([^,+]+(?:\+[^,+]+){3,})", lambda listed: f"{listed[2].count('+') + 1} {listed[1]}", settings)


def rows_of(chosen: Chosen, by: str, metric: str, reference: int | None) -> list[Row]:
    """The rows of one task with one choice of settings.

    Args:
        chosen: see ``Section``.
        by: see ``compare``.
        metric: in the cells.
        reference: the column that others are tested against, where the metric is the main one.
    """
    results = [result for one in chosen for result in one]
    first, rows = results[0], []
    values = {id(result): _values(result, by, metric) for result in results}
    for name in dict.fromkeys(name for of_result in values.values() for name in of_result):
        row = row_of(name, chosen, lambda result, name=name: values[id(result)].get(name))  # type: ignore[misc]
        row = row._replace(task=first.task, metric=metric, of="" if by == "tasks" else name)
        if reference is not None and metric == first.main_metric:
            pairs = [subset.name for subset in first.subsets] if by == "tasks" else [name]
            row = marked(row, chosen, reference, first.members.get(name, ()) if by == "groups" else pairs)
        rows.append(row)
    return rows


def _values(result: TaskResult, by: str, metric: str) -> dict[str, float]:
    if by == "tasks":
        means = mean_scores(result.subsets)
        return {result.task: means[metric]} if metric in means else {}
    if by == "languages":
        return {subset.name: subset.scores[metric] for subset in result.subsets if metric in subset.scores}
    return {name: scores[metric] for name, scores in result.groups.items() if metric in scores}


def row_of(name: str, chosen: Chosen, value_of: Callable[[TaskResult], float | None]) -> Row:
    """A row from what each result has for it; the mean over an arm's seeds, if all of them have it."""
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


def differences(chosen: Chosen) -> tuple[list[bool], list[str]]:
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


def _notes_of(chosen: Chosen, shown: Sequence[str]) -> list[str]:
    """What the results themselves say: of texts that were cut, queries that are missing, parts that were left out."""
    notes = [
        f"{name}: {note}"
        for name, results in zip(shown, chosen, strict=True)
        for result in results
        for note in result.notes
    ]
    return list(dict.fromkeys(notes))


def place_of(columns: list[Arm], baseline: str | None) -> int | None:
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


def marked(row: Row, chosen: Chosen, reference: int, subsets: Sequence[str]) -> Row:
    """The row with each score's difference from the reference's, where items tell; none between unlike data.

    Args:
        row: whose scores are means over ``subsets``.
        chosen: see ``Section``.
        reference: the column to compare with.
        subsets: by name.
    """
    base, of_base = row.cells[reference], [result.items for result in chosen[reference]]
    cells, data = list(row.cells), [{result.data_sha256 for result in results} for results in chosen]
    for place, cell in enumerate(row.cells):
        if cell is None or base is None or place == reference or data[place] != data[reference]:
            continue
        found = paired_bootstrap(of_base, [result.items for result in chosen[place]], subsets)
        # a score that is no mean over its subsets (pooled years, say) is not what was resampled
        if found is not None and np.isclose(found.mean, cell.value - base.value, atol=1e-6):
            cells[place] = cell._replace(difference=found)
    return row._replace(cells=cells)


def _note_on_significance(rows: Sequence[Row], columns: list[Arm], reference: int | None) -> list[str]:
    if reference is None or not any(cell is not None and cell.differs for row in rows for cell in row.cells):
        return []
    name = names(columns)[reference]
    return [
        f"{SIGNIFICANT} differs from {name}: p < {LEVEL}, paired bootstrap of the items, "
        f"{RESAMPLES:,} resamples, each row alone"
    ]


def _costs(columns: list[Arm]) -> list[Row]:
    """A row for each kind of cost that some column's models know of; a mean over seeds."""
    rows = []
    for key, cost in COSTS.items():
        cells = []
        for arm in columns:
            models = {model_of(result)["revision"]: model_of(result).get("training") or {} for result in arm.results}
            cells.append(_cell([float(training[key]) for training in models.values() if training.get(key)]))
        rows.append(Row(cost.name, cells, cost.digits, None, metric=key, scale=cost.scale))
    return [row for row in rows if any(row.cells)]


def label(metric: str) -> str:
    """A metric's name in words."""
    return metric.replace("_", " ")


def direction(result: TaskResult) -> str:
    """Which end of the scale is the good one."""
    return "higher is better" if result.higher_is_better else "lower is better"
