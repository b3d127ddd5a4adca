"""Many results as one HTML page.

It shows models, languages, tasks, the language-agnosticism panel and wrong neighbors. This module
gathers the numbers; the template and its script decide how they look.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from interlingua import __version__
from interlingua.errors import ConfigError
from interlingua.evaluation.report.comparison import (
    COSTS,
    LEVEL,
    Row,
    averaged,
    label,
    marked,
    row_of,
    rows_of,
)
from interlingua.evaluation.report.grouping import (
    ChosenResults,
    Column,
    Section,
    brief,
    column_differences,
    column_index,
    group_columns,
    protocol_of,
    sections,
    stated_model,
)
from interlingua.evaluation.report.panel import panel_tasks, place_analyses
from interlingua.evaluation.report.rendering import best_cells, language_names, look_up
from interlingua.evaluation.report.wrong_neighbors import wrong_items
from interlingua.evaluation.scores import SubsetScores, TaskResult
from interlingua.evaluation.significance import RESAMPLES
from interlingua.report.pages import render_page as render
from interlingua.runtime.progress import SILENT, Progress

FIND_ONE = ("tatoeba", "xsim", "ntrex_xsim", "flores_p_at_1")
"""Tasks in which each sentence of a set has to find its translation among n candidates, so that
guessing is right once in n."""
BOUNDS = ("_low", "_high")
"""Suffixes of metrics that are bounds of intervals and not scores."""


def page_data(
    results: Sequence[TaskResult],
    *,
    analyses: Sequence[Mapping[str, Any]] = (),
    group: str | None = None,
    baseline: str | None = None,
    strict: bool = False,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Return the page's content, ready for JSON; scores are fractions and rounded when displayed.

    Args:
        results: of any tasks and models, with their examples.
        analyses: contents of the files of ``interlingua analyse``; those of the
            language-agnosticism panel are shown.
        group: see ``comparison.compare_results``.
        baseline: the column that others are tested against; the first by default.
        strict: see ``comparison.compare_results``.
        progress: counts the tasks while their differences are tested.

    Raises:
        ConfigError: see ``comparison.compare_results``.
    """
    columns = group_columns(results, group, by_settings=False)
    reference = column_index(columns, baseline) or 0
    found = list(sections(results, columns))
    placed, further = place_analyses(analyses, columns)
    tasks = []
    progress.start(len(found), "tasks", "testing differences")
    for section, short in zip(found, _briefs(found), strict=True):
        progress.note(section.task)
        tasks.append({**_task(section, reference, strict), "brief": short})
        progress.advance()
    tasks += panel_tasks(placed, len(columns) + len(further), reference)
    wrong = wrong_items(found)
    # the names of all languages that some part of the page shows by code
    codes = _languages_of(tasks)
    for item in wrong:
        codes.add(item["language"])
        codes.update(one["language"] for one in item["found"])
    models = [_model(column) for column in columns]
    # models with an analysis and no results, in the order of their columns
    for model in further:
        models.append({"name": model["name"], "seeds": 1, "facts": _facts(model), "training": {}})
    return {
        "version": __version__,
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "level": LEVEL,
        "resamples": RESAMPLES,
        "baseline": reference,
        "models": models,
        "languages": {code: _language(code) for code in sorted(codes)},
        "tasks": tasks,
        "wrong": wrong,
    }


def render_comparison(data: Mapping[str, Any]) -> str:
    """Render the whole page as HTML.

    Args:
        data: from ``page_data``.
    """
    tasks = [task for task in data["tasks"] if not task.get("panel")]
    return render(
        "compare.html",
        data=data,
        names=_listed([model["name"] for model in data["models"]]),
        date=data["date"].replace("T", " ").replace("+00:00", " UTC"),
        headline=comparison_headline(data),
        summary=comparison_summary(data),
        nav=_nav(data),
        has_tests=any("tests" in task["mean"] for task in data["tasks"]),
        has_error_rates=any(task["higher"] is False for task in tasks),
        has_unlike=not all(all(task["comparable"]) for task in data["tasks"]),
        facts=dict.fromkeys(fact for model in data["models"] for fact in model["facts"]),
        costs=dict.fromkeys(cost for model in data["models"] for cost in model["training"]),
    )


def comparison_headline(data: Mapping[str, Any]) -> str:
    """Return the headline with the names or the number of models."""
    names = [model["name"] for model in data["models"]]
    if len(names) == 1:
        return f"{names[0]}, measured"
    # more names than three are too long for a headline
    if len(names) > 3:
        return f"{len(names)} models, side by side"
    return f"{_listed(names)}, side by side"


def comparison_summary(data: Mapping[str, Any]) -> str:
    """Return two sentences: the numbers of tasks and languages, and of best scores per model."""
    tasks = [task for task in data["tasks"] if not task.get("panel")]
    languages = _languages_of(tasks)
    found = f"{_count(len(tasks), 'task')}, {_count(len(languages), 'language')}."
    # if several columns share the best score of a task, the task counts for each of them
    wins = [0] * len(data["models"])
    for task in tasks:
        for column in task["mean"].get("best", ()):
            wins[column] += 1
    winners = [column for column, count in enumerate(wins) if count]
    winners.sort(key=lambda column: -wins[column])
    if winners:
        named = [f"{data['models'][column]['name']} in {wins[column]}" for column in winners]
        found += f" Best scores: {_listed(named)}."
    return found


def _languages_of(tasks: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the codes of all languages in the rows of these tasks."""
    codes: set[str] = set()
    for task in tasks:
        for row in (*task["rows"], *task["pairs"]):
            codes.update(row["languages"])
    return codes


def _nav(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the anchors of the page's sections and their link texts."""
    shown = {"overview": "Tasks", "languages": "Languages", "map": "Heat map"}
    if any(task.get("panel") for task in data["tasks"]):
        shown["panel"] = "Agnosticism"
    if data["wrong"]:
        shown["errors"] = "Errors"
    return {**shown, "about": "Data"}


def _listed(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _count(number: int, noun: str) -> str:
    plural = "" if number == 1 else "s"
    return f"{number:,} {noun}{plural}"


def _language(code: str) -> dict[str, str]:
    found = look_up(code)
    return {"name": found.name, "script": found.script, "family": found.family}


def _model(column: Column) -> dict[str, Any]:
    """Describe a column's model; several seeds get the facts of the first one and mean costs."""
    first = column.results[0]
    model = stated_model(first)
    training = {}
    for key, cost in COSTS.items():
        known = [float(one[key]) for one in column.trainings if one.get(key)]
        # a mean over some of the seeds would not be the column's
        if len(known) == len(column.trainings):
            training[cost.name] = cost.scale * sum(known) / len(known)
    facts = _facts(model)
    if first.provenance.get("prompt"):
        facts["prompt"] = first.provenance["prompt"]
    if column.overrides:
        facts["overrides"] = ", ".join(column.overrides)
    return {"name": column.name, "seeds": column.seeds, "facts": facts, "training": training}


def _facts(model: Mapping[str, Any]) -> dict[str, Any]:
    shown = ("revision", "library", "dim", "pooling", "dtype", "max_tokens", "device")
    return {key: model[key] for key in shown if model.get(key) is not None}


def _briefs(found: Sequence[Section]) -> list[str]:
    """Return the settings of each section, with long lists shortened to their length.

    They are written out if two sections of a task would have the same text.
    """
    short = [(section.task, brief(section.settings)) for section in found]
    counts = Counter(short)
    shown = []
    for section, key in zip(found, short, strict=True):
        if counts[key] > 1:
            shown.append(section.settings)
        else:
            shown.append(brief(section.settings))
    return shown


def _task(section: Section, reference: int, strict: bool) -> dict[str, Any]:
    """Build a task's entry: scores by metric for languages or pairs and groups, and their mean."""
    first = next(found[0] for found in section.chosen if found)
    comparable, notes = column_differences(section.chosen)
    if strict and not all(comparable):
        raise ConfigError(f"{section.task}: {notes[0]}; remove --strict to mark them instead")
    subsets = _subsets(section)
    matrix = is_language_matrix(subsets)
    main = first.main_metric
    # the main metric first, the others in the order of the result: False sorts before True
    metrics = [name for name in first.subsets[0].scores if not name.endswith(BOUNDS)]
    metrics.sort(key=lambda name: name != main)
    by_pair = {
        metric: rows_of(section.chosen, "languages", metric, reference) for metric in metrics
    }
    by_language = by_pair
    pairs = []
    # hundreds of ordered pairs are shown as a heat map, in addition to a row per language
    if matrix:
        by_language = {
            metric: _of_languages(section, subsets, metric, reference) for metric in metrics
        }
        pairs = _rows(by_pair, subsets, False, comparable)
    (mean,) = rows_of(section.chosen, "tasks", main, reference)
    results = list(itertools.chain.from_iterable(section.chosen))
    found_notes = itertools.chain.from_iterable(result.notes for result in results)
    return {
        "name": section.task,
        "settings": section.settings,
        "metrics": [_metric(first, metric) for metric in metrics],
        "higher": first.higher_is_better,
        "scale": 100,
        "digits": mean.digits,
        "version": first.version,
        "dataset": first.dataset,
        "data": first.data_revision or first.data_sha256[:12],
        "comparable": comparable,
        "notes": [*notes, *dict.fromkeys(found_notes)],
        "matrix": matrix,
        "mean": _numbers(mean, comparable),
        "averaged": max(len(averaged(result)) for result in results),
        "groups": [
            {"name": name, **_numbers(row, comparable)}
            for name, row in _lines_below(section.chosen, first, reference)
        ],
        "rows": _with_chance(first, _rows(by_language, subsets, matrix, comparable)),
        "pairs": pairs,
    }


def _with_chance(result: TaskResult, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows, with the score of guessing if the task is to find one of several."""
    protocol = protocol_of(result.task) or result.task
    if protocol not in FIND_ONE:
        return rows
    for row in rows:
        if row.get("pairs"):
            # of n candidates one is right: 1 in n as an accuracy, 1 - 1/n as an error rate
            row["chance"] = 1 / row["pairs"]
            if not result.higher_is_better:
                row["chance"] = 1 - row["chance"]
    return rows


def _metric(result: TaskResult, metric: str) -> dict[str, Any]:
    """Return a metric's name and label, and its direction if it differs from the task's."""
    named: dict[str, Any] = {"name": metric, "label": label(metric)}
    if result.is_better_high(metric) != result.higher_is_better:
        named["higher"] = result.is_better_high(metric)
    return named


def _lines_below(chosen: ChosenResults, first: TaskResult, reference: int) -> list[tuple[str, Row]]:
    """Return the lines below a task's mean: means of other metrics, and groups by the main one."""
    others = [metric for metric in first.shown if metric in first.subsets[0].scores]
    lines = [
        (label(metric), row)
        for metric in others
        for row in rows_of(chosen, "tasks", metric, reference)
    ]
    groups = rows_of(chosen, "groups", first.main_metric, reference)
    return lines + [(row.of, row) for row in groups]


def _subsets(section: Section) -> dict[str, SubsetScores]:
    """Return all subsets of any result by name; for equal names, the last result's."""
    subsets: dict[str, SubsetScores] = {}
    for result in itertools.chain.from_iterable(section.chosen):
        subsets |= {subset.name: subset for subset in result.subsets}
    return subsets


def is_language_matrix(subsets: Mapping[str, SubsetScores]) -> bool:
    """Return whether the subsets are ordered pairs of 3 or more languages.

    Most of the subsets must exist in both directions.
    """
    pairs = {subset.languages for subset in subsets.values() if len(set(subset.languages)) == 2}
    languages = {code for pair in pairs for code in pair}
    # the pairs that exist in both directions must be at least half of all subsets, including those
    # of a language with itself
    both = sum((second, first) in pairs for first, second in pairs)
    return len(languages) > 2 and 2 * both >= len(subsets)


def _of_languages(
    section: Section, subsets: Mapping[str, SubsetScores], metric: str, reference: int
) -> list[Row]:
    """Build a row per language: the mean over all ordered pairs with it on either side."""
    first = next(found[0] for found in section.chosen if found)
    rows = []
    for code in dict.fromkeys(code for subset in subsets.values() for code in subset.languages):
        of_code = [name for name, subset in subsets.items() if code in subset.languages]
        mean_of_code = functools.partial(_mean, of_code, metric)
        row = row_of(code, section.chosen, mean_of_code)
        # items are kept only for the main metric
        if metric == first.main_metric:
            row = marked(row, section.chosen, reference, of_code)
        rows.append(row._replace(of=code))
    return rows


def _mean(subset_names: Iterable[str], metric: str, result: TaskResult) -> float | None:
    scores = {subset.name: subset.scores.get(metric) for subset in result.subsets}
    values = [scores.get(name) for name in subset_names]
    known = [value for value in values if value is not None]
    # a result that lacks some of the pairs has no mean to compare with the others
    if not known or len(known) < len(values):
        return None
    return sum(known) / len(known)


def _rows(
    by_metric: Mapping[str, Sequence[Row]],
    subsets: Mapping[str, SubsetScores],
    of_languages: bool,
    comparable: Sequence[bool],
) -> list[dict[str, Any]]:
    """Build an entry per row: its name, its scores by metric, and the main metric's tests.

    Args:
        by_metric: the rows of each metric, the main one first.
        subsets: by name.
        of_languages: whether rows are languages, and not subsets.
        comparable: whether each column can be compared with the first.
    """
    main, *others = by_metric
    found = {}
    for metric, rows in by_metric.items():
        found[metric] = {row.of: row for row in rows}
    entries = []
    for name, row in found[main].items():
        entry = {"name": name, **_numbers(row, comparable)}
        if of_languages:
            entry |= {"title": look_up(name).name, "languages": [name]}
        else:
            subset = subsets[name]
            entry |= {
                "title": language_names(subset),
                "languages": list(subset.languages),
                "pairs": subset.pairs,
            }
        entry["other"] = {
            metric: _field(found[metric][name], "value")
            for metric in others
            if name in found[metric]
        }
        entries.append(entry)
    titles = Counter(entry["title"] for entry in entries)
    for entry in entries:
        # both es-es and en-es are "Spanish"
        if titles[entry["title"]] > 1:
            entry["title"] += f" ({entry['name']})"
    return entries


def _numbers(row: Row, comparable: Sequence[bool]) -> dict[str, Any]:
    """Return the columns' scores, with any spreads over seeds and tests against the baseline."""
    numbers: dict[str, Any] = {"values": _field(row, "value")}
    # stored only if a column has a best score, because a page of many pairs is already large
    if any(best := best_cells(row, comparable)):
        numbers["best"] = [column for column, is_best in enumerate(best) if is_best]
    spreads = _field(row, "spread")
    if any(spread is not None for spread in spreads):
        numbers["spreads"] = spreads
    tests = _field(row, "difference")
    if any(test is not None for test in tests):
        numbers["tests"] = [test and list(test) for test in tests]
    return numbers


def _field(row: Row, name: str) -> list[Any]:
    """Return a field of each cell; None if a column has no score."""
    return [getattr(cell, name, None) for cell in row.cells]
