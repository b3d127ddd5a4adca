"""Analyses of several models as tables: a row for each measure, a column for each model."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from interlingua.analysis.record import Analysis, Measure
from interlingua.evaluation.report.comparison import ComparisonCell, ComparisonTable, Row

DIRECTIONS = {"higher": True, "lower": False, None: None}


def side_by_side(analyses: Sequence[Analysis]) -> list[ComparisonTable]:
    """Return a table for each analysis.

    Models that share a name are also named by their revision.

    Args:
        analyses: of any kinds and models.
    """
    by_kind: dict[str, list[Analysis]] = {}
    for one in analyses:
        by_kind.setdefault(one.task, []).append(one)
    return [_table(found) for found in by_kind.values()]


def _table(found: Sequence[Analysis]) -> ComparisonTable:
    """Return the table of one analysis of all models; rows in the order of first occurrence."""
    first = found[0]
    columns = _columns(found)
    measures = [one.by_name for one in found]
    rows = []
    for name in dict.fromkeys(itertools.chain.from_iterable(measures)):
        rows.append(_row(first.task, name, [of_model.get(name) for of_model in measures]))
    return ComparisonTable(
        title=f"{first.task.replace('_', ' ')}{first.texts}",
        corner="measure",
        columns=columns,
        comparable=[_facts(one) == _facts(first) for one in found],
        rows=rows,
        notes=_notes(columns, found),
    )


def _columns(found: Sequence[Analysis]) -> list[str]:
    """Return the models' names, with the revision if two have the same name."""
    names = [one.model for one in found]
    columns = []
    for name, one in zip(names, found, strict=True):
        if names.count(name) > 1:
            name = f"{name} {one.provenance['model']['revision']}"
        columns.append(name)
    return columns


def _notes(columns: Sequence[str], found: Sequence[Analysis]) -> list[str]:
    """Return the notes of the analyses; a note that all have is listed once."""
    by_note: dict[str, list[str]] = {}
    for name, one in zip(columns, found, strict=True):
        for note in one.notes:
            by_note.setdefault(note, []).append(name)
    notes = []
    for note, models in by_note.items():
        if len(models) < len(columns):
            note = f"{', '.join(models)}: {note}"
        notes.append(note)
    return notes


def _facts(one: Analysis) -> tuple[object, ...]:
    """Return the facts that must be equal for numbers to be compared."""
    return one.version, one.data_sha256, one.languages, dict(one.settings)


def _row(task: str, name: str, found: Sequence[Measure | None]) -> Row:
    # All models' measures of this name have the same title and unit.
    shown = next(measure for measure in found if measure is not None)
    share = shown.unit == "share"
    unit = {"share": ", %", "percent": ", %", "nats": ", nats"}.get(shown.unit, "")
    cells = [None if measure is None else ComparisonCell(measure.value) for measure in found]
    return Row(
        name=f"{shown.title}{unit}",
        cells=cells,
        digits=1 if share or shown.unit == "percent" else 3,
        higher_is_better=DIRECTIONS[shown.better],
        task=task,
        metric=name,
        of=name,
        scale=100 if share else 1,
    )
