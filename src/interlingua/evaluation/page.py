"""Many results as one HTML page: models, languages, tasks, the language-agnosticism panel, wrong
neighbors.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from interlingua import __version__
from interlingua.errors import ConfigError
from interlingua.evaluation.comparison import (
    COSTS,
    LEVEL,
    Row,
    averaged,
    label,
    marked,
    row_of,
    rows_of,
)
from interlingua.evaluation.grouping import (
    Chosen,
    Column,
    Section,
    brief,
    column_index,
    columns_of,
    differences,
    model_of,
    protocol_of,
    sections,
)
from interlingua.evaluation.panel import panel_tasks, place_analyses
from interlingua.evaluation.rendering import best_cells, language_names, look_up
from interlingua.evaluation.scores import SubsetScores, TaskResult
from interlingua.evaluation.significance import RESAMPLES
from interlingua.evaluation.task import Progress, silent
from interlingua.evaluation.wrong import wrong_items
from interlingua.report.pages import render_page as render

FIND_ONE = ("tatoeba", "xsim", "ntrex_xsim", "flores_p_at_1")
"""Tasks in which each of a pair's sentences has to find one among as many others, by which guessing
is right 1 in n."""
BOUNDS = ("_low", "_high")
"""Metrics that end so are ends of intervals, not scores."""
ENGLISH = "eng_Latn"


def page_data(
    results: Sequence[TaskResult],
    *,
    analyses: Sequence[Mapping[str, Any]] = (),
    group: str | None = None,
    baseline: str | None = None,
    strict: bool = False,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Everything on the page, ready for JSON. Scores are fractions, rounded where they are shown.

    Args:
        results: of any tasks and models, with their examples.
        analyses: contents of the files of ``interlingua analyse``; those of the
            language-agnosticism panel are shown.
        group: see ``comparison.compare``.
        baseline: the column that others are tested against; the first by default.
        strict: see ``comparison.compare``.
        progress: called with each task before its differences are tested, with the tasks done and
            in all.

    Raises:
        ConfigError: see ``comparison.compare``.
    """
    columns = columns_of(results, group, by_settings=False)
    reference = column_index(columns, baseline) or 0
    found = list(sections(results, columns))
    placed, further = place_analyses(analyses, columns)
    tasks = []
    for done, (section, short) in enumerate(zip(found, _briefs(found), strict=True)):
        progress(section.task, done, len(found))
        tasks.append({**_task(section, reference, strict), "brief": short})
    progress("all tasks", len(found), len(found))
    tasks += panel_tasks(placed, len(columns) + len(further), reference)
    codes = {
        code
        for task in tasks
        for row in (*task["rows"], *task["pairs"])
        for code in row["languages"]
    }
    wrong = wrong_items(found)
    for item in wrong:
        codes.add(item["language"])
        codes.update(one["language"] for one in item["found"])
    return {
        "version": __version__,
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "level": LEVEL,
        "resamples": RESAMPLES,
        "baseline": reference,
        "models": [_model(column) for column in columns]
        + [
            {"name": model["name"], "seeds": 1, "facts": _facts(model), "training": {}}
            for model in further
        ],
        "languages": {code: _language(code) for code in sorted(codes)},
        "tasks": tasks,
        "wrong": wrong,
    }


def render_page(data: Mapping[str, Any]) -> str:
    """The whole page as HTML.

    Args:
        data: from ``page_data``.
    """
    tasks = [task for task in data["tasks"] if not task.get("panel")]
    return render(
        "compare.html",
        data=data,
        names=_listed([model["name"] for model in data["models"]]),
        date=data["date"].replace("T", " ").replace("+00:00", " UTC"),
        headline=headline(data),
        summary=summary(data),
        nav=_nav(data),
        has_tests=any("tests" in task["mean"] for task in data["tasks"]),
        has_error_rates=any(task["higher"] is False for task in tasks),
        has_unlike=not all(all(task["comparable"]) for task in data["tasks"]),
        facts=dict.fromkeys(fact for model in data["models"] for fact in model["facts"]),
        costs=dict.fromkeys(cost for model in data["models"] for cost in model["training"]),
    )


def headline(data: Mapping[str, Any]) -> str:
    """What is compared."""
    names = [model["name"] for model in data["models"]]
    if len(names) == 1:
        return f"{names[0]}, measured"
    return (
        f"{_listed(names)}, side by side"
        if len(names) < 4
        else f"{len(names)} models, side by side"
    )


def summary(data: Mapping[str, Any]) -> str:
    """The result in two sentences: how much was measured, and who is best at how many tasks."""
    tasks = [task for task in data["tasks"] if not task.get("panel")]
    languages = {
        code
        for task in tasks
        for row in (*task["rows"], *task["pairs"])
        for code in row["languages"]
    }
    found = f"{_count(len(tasks), 'task')}, {_count(len(languages), 'language')}."
    wins = [0] * len(data["models"])
    for task in tasks:
        for place in task["mean"].get("best", ()):
            wins[place] += 1
    order = sorted((place for place, won in enumerate(wins) if won), key=lambda place: -wins[place])
    if order:
        named = [f"{data['models'][place]['name']} in {wins[place]}" for place in order]
        found += f" Best scores: {_listed(named)}."
    return found


def _nav(data: Mapping[str, Any]) -> dict[str, str]:
    """The page's sections and what links to them."""
    shown = {"overview": "Tasks", "languages": "Languages", "map": "Heat map"}
    if any(task.get("panel") for task in data["tasks"]):
        shown["panel"] = "Agnosticism"
    if data["wrong"]:
        shown["errors"] = "Errors"
    return {**shown, "about": "Data"}


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _language(code: str) -> dict[str, str]:
    found = look_up(code)
    return {"name": found.name, "script": found.script, "family": found.family}


def _model(column: Column) -> dict[str, Any]:
    """What the results say of a column's model; of several seeds the first, costs as a mean."""
    first = column.results[0]
    model = model_of(first)
    training = {}
    for key, cost in COSTS.items():
        known = [float(one[key]) for one in column.trainings if one.get(key)]
        if len(known) == len(column.trainings):
            training[cost.name] = cost.scale * sum(known) / len(known)
    facts = _facts(model)
    facts |= {"prompt": first.provenance["prompt"]} if first.provenance.get("prompt") else {}
    facts |= {"overrides": ", ".join(column.overrides)} if column.overrides else {}
    return {"name": column.name, "seeds": column.seeds, "facts": facts, "training": training}


def _facts(model: Mapping[str, Any]) -> dict[str, Any]:
    shown = ("revision", "library", "dim", "pooling", "dtype", "max_tokens", "device")
    return {key: model[key] for key in shown if model.get(key) is not None}


def _briefs(found: Sequence[Section]) -> list[str]:
    """The settings with long lists as their length, as far as that tells the sections of a task
    apart.
    """
    short = [(section.task, brief(section.settings)) for section in found]
    counts = Counter(short)
    return [
        section.settings if counts[one] > 1 else one[1]
        for section, one in zip(found, short, strict=True)
    ]


def _task(section: Section, reference: int, strict: bool) -> dict[str, Any]:
    first = next(found[0] for found in section.chosen if found)
    comparable, notes = differences(section.chosen)
    if strict and not all(comparable):
        raise ConfigError(f"{section.task}: {notes[0]}; drop --strict to mark them")
    subsets = _subsets(section)
    matrix = is_matrix(subsets)
    metrics = [name for name in first.subsets[0].scores if not name.endswith(BOUNDS)]
    metrics.sort(key=lambda name: name != first.main_metric)
    main = first.main_metric
    by_pair = {
        metric: rows_of(section.chosen, "languages", metric, reference) for metric in metrics
    }
    by_language = by_pair
    if matrix:
        by_language = {
            metric: _of_languages(section, subsets, metric, reference) for metric in metrics
        }
    (mean,) = rows_of(section.chosen, "tasks", main, reference)
    found_notes = [note for found in section.chosen for result in found for note in result.notes]
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
        "averaged": max(len(averaged(result)) for found in section.chosen for result in found),
        "groups": [
            {"name": name, **_numbers(row, comparable)}
            for name, row in _lines_below(section.chosen, first, reference)
        ],
        "rows": _with_chance(first, _rows(by_language, subsets, matrix, comparable)),
        "pairs": _rows(by_pair, subsets, False, comparable) if matrix else [],
    }


def _with_chance(result: TaskResult, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, each with the score that guessing has among its candidates, where the task is to
    find one of them.
    """
    protocol = protocol_of(result.task) or result.task
    if protocol not in FIND_ONE:
        return rows
    for row in rows:
        if row.get("pairs"):
            row["chance"] = 1 / row["pairs"] if result.higher_is_better else 1 - 1 / row["pairs"]
    return rows


def _metric(result: TaskResult, metric: str) -> dict[str, Any]:
    """A metric's name, and its direction where that is not the task's."""
    named: dict[str, Any] = {"name": metric, "label": label(metric)}
    if result.is_better_high(metric) != result.higher_is_better:
        named["higher"] = result.is_better_high(metric)
    return named


def _lines_below(chosen: Chosen, first: TaskResult, reference: int) -> list[tuple[str, Row]]:
    """What stands below a task's mean: means of other metrics that the task shows, and groups by
    the main one.
    """
    others = [metric for metric in first.shown if metric in first.subsets[0].scores]
    lines = [
        (label(metric), row)
        for metric in others
        for row in rows_of(chosen, "tasks", metric, reference)
    ]
    groups = rows_of(chosen, "groups", first.main_metric, reference)
    return lines + [(row.of, row) for row in groups]


def _subsets(section: Section) -> dict[str, SubsetScores]:
    return {
        subset.name: subset
        for found in section.chosen
        for result in found
        for subset in result.subsets
    }


def is_matrix(subsets: Mapping[str, SubsetScores]) -> bool:
    """Whether the subsets are ordered pairs of some languages: three at least, most pairs in both
    directions.
    """
    pairs = {subset.languages for subset in subsets.values() if len(set(subset.languages)) == 2}
    both = sum((second, first) in pairs for first, second in pairs)
    return len({code for pair in pairs for code in pair}) > 2 and 2 * both >= len(subsets)


def _of_languages(
    section: Section, subsets: Mapping[str, SubsetScores], metric: str, reference: int
) -> list[Row]:
    """A row per language: the mean over all ordered pairs with it on either side."""
    first = next(found[0] for found in section.chosen if found)
    rows = []
    for code in dict.fromkeys(code for subset in subsets.values() for code in subset.languages):
        of_code = [name for name, subset in subsets.items() if code in subset.languages]
        mean_of_code = functools.partial(_mean, of_code, metric)
        row = row_of(code, section.chosen, mean_of_code)
        if metric == first.main_metric:
            row = marked(row, section.chosen, reference, of_code)
        rows.append(row._replace(of=code))
    return rows


def _mean(subset_names: Iterable[str], metric: str, result: TaskResult) -> float | None:
    scores = {subset.name: subset.scores.get(metric) for subset in result.subsets}
    values = [scores.get(name) for name in subset_names]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _rows(
    by_metric: Mapping[str, Sequence[Row]],
    subsets: Mapping[str, SubsetScores],
    of_languages: bool,
    comparable: Sequence[bool],
) -> list[dict[str, Any]]:
    """One entry per row: what it is, its scores by metric, and the tests of the main metric, which
    comes first.
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
            metric: _values(found[metric][name]) for metric in others if name in found[metric]
        }
        entries.append(entry)
    titles = Counter(entry["title"] for entry in entries)
    for entry in entries:
        if titles[entry["title"]] > 1:  # es-es and en-es, say
            entry["title"] += f" ({entry['name']})"
    return entries


def _numbers(row: Row, comparable: Sequence[bool]) -> dict[str, Any]:
    """Scores of the columns; their spreads over seeds and tests against the baseline where there
    are any.
    """
    numbers: dict[str, Any] = {"values": _values(row)}
    if any(best := best_cells(row, comparable)):
        numbers["best"] = [place for place, is_best in enumerate(best) if is_best]
    if any(cell is not None and cell.spread is not None for cell in row.cells):
        numbers["spreads"] = [None if cell is None else cell.spread for cell in row.cells]
    if any(cell is not None and cell.difference is not None for cell in row.cells):
        tests = [None if cell is None else cell.difference for cell in row.cells]
        numbers["tests"] = [test and list(test) for test in tests]
    return numbers


def _values(row: Row) -> list[float | None]:
    return [None if cell is None else cell.value for cell in row.cells]
