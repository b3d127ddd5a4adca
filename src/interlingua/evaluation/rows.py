"""Rows of a table: scores of groups, language pairs and tasks as means over seeds, tested against a baseline; costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from interlingua.evaluation.arms import Arm, model_of
from interlingua.evaluation.scores import SubsetScores, TaskResult, mean_scores
from interlingua.evaluation.significance import Difference, paired_bootstrap

LEVEL = 0.05
"""Of significance."""


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


Chosen = list[list[TaskResult]]
"""For each column the results, one per seed, that a row is made from."""


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
    rows = []
    values = {id(result): _values(result, by, metric) for result in results}
    is_better_high = first.is_better_high(metric)
    for name in dict.fromkeys(name for of_result in values.values() for name in of_result):
        row = row_of(name, chosen, lambda result, name=name: values[id(result)].get(name))  # type: ignore[misc]
        row = row._replace(task=first.task, metric=metric, of="" if by == "tasks" else name)
        row = row._replace(higher_is_better=is_better_high)
        if reference is not None and metric == first.main_metric:
            pairs = [subset.name for subset in averaged(first)] if by == "tasks" else [name]
            row = marked(row, chosen, reference, first.members.get(name, ()) if by == "groups" else pairs)
        rows.append(row)
    return rows


def averaged(result: TaskResult) -> tuple[SubsetScores, ...]:
    """The language pairs that the mean of a task is over: all; of zero-shot transfer those of two languages alone."""
    if not result.task.startswith("zero_shot"):
        return result.subsets
    between = tuple(subset for subset in result.subsets if subset.languages[0] != subset.languages[1])
    return between or result.subsets


def _values(result: TaskResult, by: str, metric: str) -> dict[str, float]:
    if by == "tasks":
        means = mean_scores(averaged(result))
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


def marked(row: Row, chosen: Chosen, reference: int, subsets: Sequence[str]) -> Row:
    """The row with each score's difference from the reference's, where items tell; none between unlike data.

    Args:
        row: a row of means over ``subsets``.
        chosen: see ``Section``.
        reference: the column to compare with.
        subsets: by name.
    """
    base = row.cells[reference]
    of_base = [result.items for result in chosen[reference]]
    cells = list(row.cells)
    data = [{result.data_sha256 for result in results} for results in chosen]
    for place, cell in enumerate(row.cells):
        if cell is None or base is None or place == reference or data[place] != data[reference]:
            continue
        found = paired_bootstrap(of_base, [result.items for result in chosen[place]], subsets)
        # a score that is no mean over its subsets (pooled years, say) is not what was resampled
        if found is not None and np.isclose(found.mean, cell.value - base.value, atol=1e-6):
            cells[place] = cell._replace(difference=found)
    return row._replace(cells=cells)


def costs_of(columns: list[Arm]) -> list[Row]:
    """A row for each kind of cost that some column's models know of; a mean over seeds."""
    rows = []
    for key, cost in COSTS.items():
        cells = []
        for arm in columns:
            models = {model_of(result)["revision"]: model_of(result).get("training") or {} for result in arm.results}
            cells.append(_cell([float(training[key]) for training in models.values() if training.get(key)]))
        rows.append(Row(cost.name, cells, cost.digits, None, metric=key, scale=cost.scale))
    return [row for row in rows if any(row.cells)]
