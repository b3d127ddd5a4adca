"""The language-agnosticism panel of the page: measures of ``interlingua analyse``.

Each measure becomes an entry of the same form as a task of the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.config.languages import resolve_language
from interlingua.evaluation.report.grouping import Column, stated_model
from interlingua.evaluation.scores import Items
from interlingua.evaluation.significance import paired_bootstrap

_ANALYSIS = "agnosticism"
AnalysisFile = Mapping[str, Any]
"""The content of a file of ``interlingua analyse``; ``items``: measure -> one value per sentence,
if kept."""


def place_analyses(
    analyses: Sequence[AnalysisFile], columns: Sequence[Column]
) -> tuple[dict[int, AnalysisFile], list[dict[str, Any]]]:
    """Assign each panel to a column.

    Args:
        analyses: contents of the files of ``interlingua analyse``.
        columns: of the results.

    Returns:
        Column -> its panel, the last one if there are several; and the models that have a panel
        and no results, which get their own columns after the others.
    """
    models = []
    for column in columns:
        models.append({_key(stated_model(result)) for result in column.results})
    further: list[dict[str, Any]] = []
    placed: dict[int, AnalysisFile] = {}
    for analysis in analyses:
        # the name of a data set may follow this word
        if not analysis["analysis"].startswith(_ANALYSIS):
            continue
        model = analysis["provenance"]["model"]
        index = next((index for index, known in enumerate(models) if _key(model) in known), None)
        if index is None:
            index = len(models)
            models.append({_key(model)})
            further.append(dict(model))
        placed[index] = analysis
    return placed, further


def _key(model: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    """Return a key that identifies a model with its settings."""
    return model["name"], model["revision"], tuple(model["overrides"])


def panel_tasks(
    placed: Mapping[int, AnalysisFile], width: int, reference: int
) -> list[dict[str, Any]]:
    """Build one entry per measure, with the keys of a task as far as they apply.

    ``definition`` and ``ideal`` are additional keys.

    Args:
        placed: column -> panel.
        width: number of columns.
        reference: the column that others are tested against.
    """
    if not placed:
        return []
    first = next(iter(placed.values()))
    by_column = {}
    for column, analysis in placed.items():
        by_column[column] = {measure["name"]: measure for measure in analysis["measures"]}
    # a column without a panel has nothing to be compared, so it gets no mark
    comparable = [
        column not in placed or _data(placed[column]) == _data(first) for column in range(width)
    ]
    # of all panels: one of an earlier version may lack a measure
    names = dict.fromkeys(name for measures in by_column.values() for name in measures)
    tasks = [_measure(name, by_column, placed, first, comparable) for name in names]
    for task, name in zip(tasks, names, strict=True):
        task["mean"] |= _tests(name, placed, reference, comparable)
    return tasks


def _tests(
    name: str, placed: Mapping[int, AnalysisFile], reference: int, comparable: Sequence[bool]
) -> dict[str, Any]:
    """Compute the differences from the reference, by paired bootstrap over the kept sentences."""
    kept = {}
    for column, analysis in placed.items():
        values = analysis.get("items", {}).get(name)
        if values is not None:
            kept[column] = [{name: Items(values)}]
    if reference not in kept:
        return {}
    tests: list[list[float] | None] = [None] * len(comparable)
    for column, items in kept.items():
        if column == reference or comparable[column] != comparable[reference]:
            continue
        difference = paired_bootstrap(kept[reference], items, [name])
        if difference is not None:
            tests[column] = list(difference)
    if not any(tests):
        return {}
    return {"tests": tests}


def _measure(
    name: str,
    by_column: Mapping[int, Mapping[str, Any]],
    placed: Mapping[int, AnalysisFile],
    first: AnalysisFile,
    comparable: Sequence[bool],
) -> dict[str, Any]:
    """Build the entry of a measure in the form of a task; columns without it have None."""
    found = {column: measures[name] for column, measures in by_column.items() if name in measures}
    shown = next(iter(found.values()))
    # a share is shown in percent, any other number as it is
    scale = 1
    digits = 3
    unit = shown["unit"]
    if unit == "share":
        scale = 100
        digits = 1
        unit = "%"
    notes = []
    if not all(comparable):
        notes = ["the columns differ in data or settings and cannot be compared directly"]
    pairs = {column: analysis["tables"].get(name, {}) for column, analysis in placed.items()}
    by_language = {column: measure["by_language"] for column, measure in found.items()}
    columns = range(len(comparable))
    values = [found.get(column, {}).get("value") for column in columns]
    return {
        "name": shown["title"],
        "panel": True,
        "settings": "",
        "brief": "",
        "metrics": [{"name": name, "label": shown["title"]}],
        "higher": {"higher": True, "lower": False}.get(shown["better"]),
        "scale": scale,
        "digits": digits,
        "unit": unit,
        "definition": shown["definition"],
        "ideal": shown["ideal"],
        "version": first["version"],
        "dataset": first["dataset"],
        "data": first["dataset_revision"] or first["data_sha256"][:12],
        "comparable": list(comparable),
        "notes": notes,
        "matrix": any(pairs.values()),
        "mean": {
            "values": values,
            "intervals": [_interval(found.get(column)) for column in columns],
        },
        "groups": [],
        "rows": _entries(by_language, columns),
        "pairs": _entries(pairs, columns),
    }


def _interval(measure: Mapping[str, Any] | None) -> list[float] | None:
    if measure is None or measure["low"] is None:
        return None
    return [measure["low"], measure["high"]]


def _entries(found: Mapping[int, Mapping[str, float]], columns: range) -> list[dict[str, Any]]:
    """Build the rows of languages, ``deu_Latn``, or of ordered pairs, ``deu_Latn-eng_Latn``."""
    entries = []
    for name in dict.fromkeys(name for of_column in found.values() for name in of_column):
        languages = name.split("-")
        title = " → ".join(resolve_language(code).name for code in languages)
        values = [found.get(column, {}).get(name) for column in columns]
        entries.append(
            {"name": name, "title": title, "languages": languages, "values": values, "other": {}}
        )
    return entries


def _data(analysis: AnalysisFile) -> tuple[Any, ...]:
    return analysis["version"], analysis["data_sha256"], repr(analysis["settings"])
