"""The language-agnosticism panel: what ``interlingua analyse`` measured, in the shape of the page's
tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.evaluation.grouping import Column, model_of
from interlingua.evaluation.scores import Items
from interlingua.evaluation.significance import paired_bootstrap
from interlingua.languages import resolve

ANALYSIS = "agnosticism"
Analysis = Mapping[str, Any]
"""The content of a file of ``interlingua analyse``; ``items``: measure -> one value per sentence,
where kept."""


def place_analyses(
    analyses: Sequence[Analysis], columns: Sequence[Column]
) -> tuple[dict[int, Analysis], list[dict[str, Any]]]:
    """Which column each panel belongs to.

    Args:
        analyses: contents of the files of ``interlingua analyse``.
        columns: of the results.

    Returns:
        Column -> its panel, the last one where there are several; and the models that have a panel
        and no results, which get columns of their own behind the others.
    """
    models = []
    for column in columns:
        models.append({_key(model_of(result)) for result in column.results})
    further: list[dict[str, Any]] = []
    placed: dict[int, Analysis] = {}
    for one in analyses:
        if not one["analysis"].startswith(ANALYSIS):  # a data set's name may follow
            continue
        model = one["provenance"]["model"]
        place = next((place for place, known in enumerate(models) if _key(model) in known), None)
        if place is None:
            place = len(models)
            models.append({_key(model)})
            further.append(dict(model))
        placed[place] = one
    return placed, further


def _key(model: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    return model["name"], model["revision"], tuple(model["overrides"])


def panel_tasks(placed: Mapping[int, Analysis], width: int, reference: int) -> list[dict[str, Any]]:
    """One entry per measure, with the keys of a task as far as they make sense and ``definition``
    and ``ideal``.

    Args:
        placed: column -> panel.
        width: number of columns.
        reference: the column that others are tested against.
    """
    if not placed:
        return []
    first = next(iter(placed.values()))
    by_column = {}
    for place, one in placed.items():
        by_column[place] = {measure["name"]: measure for measure in one["measures"]}
    comparable = [
        place not in placed or _data(placed[place]) == _data(first) for place in range(width)
    ]
    names = dict.fromkeys(name for measures in by_column.values() for name in measures)
    tasks = [_measure(name, by_column, placed, first, comparable) for name in names]
    for task, name in zip(tasks, names, strict=True):
        task["mean"] |= _tests(name, placed, reference, comparable)
    return tasks


def _tests(
    name: str, placed: Mapping[int, Analysis], reference: int, comparable: Sequence[bool]
) -> dict[str, Any]:
    """The differences from the reference, by paired bootstrap over the sentences, where these were
    kept.
    """
    values = {place: one.get("items", {}).get(name) for place, one in placed.items()}
    kept = {
        place: [{name: Items(of_place)}]
        for place, of_place in values.items()
        if of_place is not None
    }
    tests = [
        paired_bootstrap(kept[reference], kept[place], [name])
        if reference in kept
        and place in kept
        and place != reference
        and comparable[place] == comparable[reference]
        else None
        for place in range(len(comparable))
    ]
    return {"tests": [test and list(test) for test in tests]} if any(tests) else {}


def _measure(
    name: str,
    by_column: Mapping[int, Mapping[str, Any]],
    placed: Mapping[int, Analysis],
    first: Analysis,
    comparable: Sequence[bool],
) -> dict[str, Any]:
    found = {place: measures[name] for place, measures in by_column.items() if name in measures}
    shown = next(iter(found.values()))
    share = shown["unit"] == "share"
    pairs = {place: one["tables"].get(name, {}) for place, one in placed.items()}
    columns = range(len(comparable))
    values = [found[place]["value"] if place in found else None for place in columns]
    return {
        "name": shown["title"],
        "panel": True,
        "settings": "",
        "brief": "",
        "metrics": [{"name": name, "label": shown["title"]}],
        "higher": {"higher": True, "lower": False}.get(shown["better"]),
        "scale": 100 if share else 1,
        "digits": 1 if share else 3,
        "unit": "%" if share else shown["unit"],
        "definition": shown["definition"],
        "ideal": shown["ideal"],
        "version": first["version"],
        "dataset": first["dataset"],
        "data": first["dataset_revision"] or first["data_sha256"][:12],
        "comparable": list(comparable),
        "notes": []
        if all(comparable)
        else ["the columns differ in data or settings and can't be compared as they are"],
        "matrix": any(pairs.values()),
        "mean": {"values": values, "intervals": [_interval(found.get(place)) for place in columns]},
        "groups": [],
        "rows": _entries(
            {place: measure["by_language"] for place, measure in found.items()}, columns
        ),
        "pairs": _entries(pairs, columns),
    }


def _interval(measure: Mapping[str, Any] | None) -> list[float] | None:
    return None if measure is None or measure["low"] is None else [measure["low"], measure["high"]]


def _entries(found: Mapping[int, Mapping[str, float]], columns: range) -> list[dict[str, Any]]:
    """Rows of languages, ``deu_Latn``, or of ordered pairs, ``deu_Latn-eng_Latn``."""
    entries = []
    for name in dict.fromkeys(name for of_column in found.values() for name in of_column):
        languages = name.split("-")
        title = " → ".join(resolve(code).name for code in languages)
        values = [found[place].get(name) if place in found else None for place in columns]
        entries.append(
            {"name": name, "title": title, "languages": languages, "values": values, "other": {}}
        )
    return entries


def _data(analysis: Analysis) -> tuple[Any, ...]:
    return analysis["version"], analysis["data_sha256"], repr(analysis["settings"])
