"""Many results side by side: one table per task or one of all; what can't be compared is marked or refused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from interlingua.errors import ConfigError
from interlingua.evaluation.arms import Arm, arms, model_of, names, pattern, settings_of
from interlingua.evaluation.rows import LEVEL, Chosen, Row, averaged, costs_of, rows_of
from interlingua.evaluation.scores import TaskResult
from interlingua.evaluation.significance import RESAMPLES
from interlingua.evaluation.task import Progress, silent
from interlingua.registry import TASKS, check_choice, did_you_mean

ROWS = ("groups", "languages", "tasks")
SIGNIFICANT = "†"
UNLIKE = "‡"


class Comparison(NamedTuple):
    """A table with a column per result or arm; those not ``comparable`` with the first carry a mark."""

    title: str
    corner: str
    columns: list[str]
    comparable: list[bool]
    rows: list[Row]
    notes: list[str]
    baseline: str | None = None


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
    progress: Progress = silent,
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
        progress: called with each task, and the tasks done and in all, before differences from the baseline are tested.

    Raises:
        ConfigError: no result has that metric, there are no such rows or columns, a pattern is no regular expression,
            the seeds of an arm differ in data or settings, or, with ``strict``, any two columns do.
    """
    check_choice("by", by, ROWS)
    if metric is not None:
        known = dict.fromkeys(name for result in results for scores in result.groups.values() for name in scores)
        check_choice("metric", metric, known)
        results = [result for result in results if _has_metric(result, metric)]
    by_task = _by_task(results)
    report = silent if baseline is None else progress
    if join or by == "tasks":
        columns = [arms(results, group, by_settings=False)]
        tables = [_table_of_tasks(results, columns[0], by, metric, baseline, report)]
    else:
        columns = [arms(found, group) for found in by_task.values()]
        tables = list(_tables(columns, by, metric, baseline, report))
    report("all tasks", 1, 1)
    if strict and (different := [table for table in tables if not all(table.comparable)]):
        raise ConfigError(
            f"{different[0].title.partition(':')[0]}: {different[0].notes[0]}; drop --strict to mark them"
        )
    wanted = pattern(only)
    shown = []
    for table, found in zip(tables, columns, strict=True):
        rows = [row for row in table.rows if wanted.search(row.name)]
        if rows:
            shown.append(table._replace(rows=rows + (costs_of(found) if costs else [])))
    if not shown:
        raise ConfigError(f"no row contains {only!r}")
    return shown


def _tables(
    columns: list[list[Arm]], by: str, metric: str | None, baseline: str | None, progress: Progress
) -> Iterator[Comparison]:
    """A table for each task."""
    for of_task in columns:
        place_of(of_task, baseline)  # refuses a wrong baseline before any work
    for done, of_task in enumerate(columns):
        progress(of_task[0].results[0].task, done, len(columns))
        yield _table(of_task, by, metric, baseline)


def _table(columns: list[Arm], by: str, metric: str | None, baseline: str | None) -> Comparison:
    """One task."""
    chosen = [arm.results for arm in columns]
    first = chosen[0][0]
    shown = metric or first.main_metric
    comparable, notes = differences(chosen)
    reference = place_of(columns, baseline)
    rows = rows_of(chosen, by, shown, reference)
    overrides = {name: ", ".join(arm.overrides) for arm, name in zip(columns, names(columns), strict=True)}
    if len(overrides) > 1 and len(set(overrides.values())) == 1:
        overrides = {"all columns": next(iter(overrides.values()))}
    notes += [f"{name}: {words}" for name, words in overrides.items() if words and words not in name]
    notes += _notes_of(chosen, names(columns))
    return Comparison(
        title=f"{first.task}: {label(shown)}, %, {direction(first, shown)}",
        corner="language pair" if by == "languages" else "group",
        columns=names(columns),
        comparable=comparable,
        rows=rows,
        notes=notes + _note_on_significance(rows, columns, reference),
        baseline=None if reference is None else names(columns)[reference],
    )


def tasks_of(results: Sequence[TaskResult]) -> list[str]:
    """The tasks of some results in the registry's order, which has tasks of one kind next to each other.

    Tasks that are not in the registry (mteb's own files) come last, in the order of their results.
    """
    known = list(TASKS)
    tasks = dict.fromkeys(result.task for result in results)
    return sorted(tasks, key=lambda task: known.index(name) if (name := protocol_of(task)) else len(known))


def protocol_of(task: str) -> str | None:
    """The registry's name of a task that is named after its data too: ``tatoeba_heldout`` -> ``tatoeba``."""
    names = [name for name in TASKS if task == name or task.startswith(f"{name}_")]
    return max(names, key=len, default=None)


def sections(results: Sequence[TaskResult], columns: Sequence[Arm]) -> Iterator[Section]:
    """All tasks; each choice of a task's settings is a section of its own, and so is each of two sets of one name.

    Args:
        results: of any tasks.
        columns: their arms, without regard to settings.
    """
    for task in tasks_of(results):
        for settings in dict.fromkeys(settings_of(result) for result in results if result.task == task):
            same_settings = [_with_settings(arm, task, settings) for arm in columns]
            for data, name in _sets_of_one_name(same_settings).items():
                label = ", ".join(filter(None, (settings, name)))
                yield Section(task, label, [_on_data(own, data) for own in same_settings])


def _by_task(results: Sequence[TaskResult]) -> dict[str, list[TaskResult]]:
    found: dict[str, list[TaskResult]] = {task: [] for task in tasks_of(results)}
    for result in results:
        found[result.task].append(result)
    return found


def _has_metric(result: TaskResult, metric: str) -> bool:
    return any(metric in scores for scores in result.groups.values())


def _with_settings(arm: Arm, task: str, settings: str) -> list[TaskResult]:
    return [result for result in arm.results if result.task == task and settings_of(result) == settings]


def _on_data(results: Sequence[TaskResult], data: str) -> list[TaskResult]:
    """The results on the set with that digest; all of them without a digest."""
    return [result for result in results if data in ("", result.data_sha256)]


def _sets_of_one_name(chosen: Chosen) -> dict[str, str]:
    """Where one model was measured on several sets of a task's name: their digests, and the folders that tell them."""
    digests = [{result.data_sha256 for result in own} for own in chosen]
    if all(len(own) < 2 for own in digests):
        return {"": ""}
    folders = {result.data_sha256: result.dataset for own in chosen for result in own}
    counts = Counter(folders.values())
    return {data: name if counts[name] == 1 else f"{name} {data[:8]}" for data, name in folders.items()}


def _table_of_tasks(
    results: Sequence[TaskResult],
    columns: list[Arm],
    by: str,
    metric: str | None,
    baseline: str | None,
    progress: Progress,
) -> Comparison:
    """All tasks; each choice of a task's settings has rows of its own."""
    reference = place_of(columns, baseline)
    comparable = [True] * len(columns)
    rows: list[Row] = []
    notes: list[str] = []
    found = [*sections(results, columns)]
    short = {(section.task, brief(section.settings)) for section in found}
    for done, (task, settings, chosen) in enumerate(found):
        progress(task, done, len(found))
        tail = f" ({settings})" if settings else ""
        shown_settings = f" ({brief(settings) if len(short) == len(found) else settings})" if settings else ""
        for shown in _metrics_shown(chosen, by, metric):
            for row in rows_of(chosen, by, shown, reference):
                name = f"{task}: {_mean(shown, chosen) if by == 'tasks' else row.name}{shown_settings}"
                rows.append(row._replace(name=name, task=f"{task}{tail}"))
        has_same_data, found_notes = differences(chosen)
        comparable = [before and now for before, now in zip(comparable, has_same_data, strict=True)]
        notes += [f"{task}: {note}" for note in [*found_notes, *_notes_of(chosen, names(columns))]]
    return Comparison(
        title="all tasks: " + ("means over language pairs, %" if by == "tasks" else "main scores, %"),
        corner="task" if by == "tasks" else f"task: {'language pair' if by == 'languages' else 'group'}",
        columns=names(columns),
        comparable=comparable,
        rows=rows,
        notes=notes + _note_on_significance(rows, columns, reference),
        baseline=None if reference is None else names(columns)[reference],
    )


def _metrics_shown(chosen: Chosen, by: str, metric: str | None) -> list[str]:
    """The metrics that a table of all tasks shows of one: ``metric``, or the main one and those next to it."""
    first = next(results[0] for results in chosen if results)
    if metric is not None:
        return [metric]
    if by != "tasks":
        return [first.main_metric]
    return [first.main_metric, *(name for name in first.shown if name in first.subsets[0].scores)]


def _mean(metric: str, chosen: Chosen) -> str:
    """A metric, and of how many sets or language pairs the mean is: it may be of fewer than a paper's."""
    counts = sorted({len(averaged(result)) for one in chosen for result in one})
    return label(metric) if counts == [1] else f"{label(metric)}, mean of {'/'.join(map(str, counts))}"


def brief(settings: str) -> str:
    """Long lists as their length: ``languages=deu+fra+ita+spa`` is 4 languages."""
    return re.sub(r"(\w+)=([^,+]+(?:\+[^,+]+){3,})", lambda listed: f"{listed[2].count('+') + 1} {listed[1]}", settings)


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
    comparable = [True] * len(chosen)
    notes = []
    for what, of in parts.items():
        for results in filled:
            if len({of(result) for result in results}) > 1:
                seeds = ", ".join(f"{model_of(result)['name']}: {of(result)}" for result in results)
                raise ConfigError(
                    f"{results[0].task}: the seeds of one arm differ in {what} ({seeds}); use the same {what}"
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


def _note_on_significance(rows: Sequence[Row], columns: list[Arm], reference: int | None) -> list[str]:
    if reference is None or not any(cell is not None and cell.differs for row in rows for cell in row.cells):
        return []
    name = names(columns)[reference]
    return [
        f"{SIGNIFICANT} differs from {name}: p < {LEVEL}, paired bootstrap of the items, "
        f"{RESAMPLES:,} resamples, each row alone"
    ]


def label(metric: str) -> str:
    """A metric's name in words."""
    return metric.replace("_", " ")


def direction(result: TaskResult, metric: str) -> str:
    """Which end of a metric's scale is the good one."""
    return "higher is better" if result.is_better_high(metric) else "lower is better"
