"""Analyses of several models as tables: a row for each measure, a column for each model."""

from __future__ import annotations

from collections.abc import Sequence

from interlingua.analysis.record import Analysis, Measure
from interlingua.evaluation.comparison import Cell, Comparison, Row

DIRECTIONS = {"higher": True, "lower": False, None: None}


def side_by_side(analyses: Sequence[Analysis]) -> list[Comparison]:
    """A table for each analysis; of models that share a name, each is called by its revision as well.

    Args:
        analyses: of any kinds and models.
    """
    kinds = dict.fromkeys(one.task for one in analyses)
    return [_table([one for one in analyses if one.task == kind]) for kind in kinds]


def _table(found: Sequence[Analysis]) -> Comparison:
    first = found[0]
    names = [one.model for one in found]
    columns = [
        name if names.count(name) == 1 else f"{name} {one.provenance['model']['revision']}"
        for name, one in zip(names, found, strict=True)
    ]
    measures = [{measure.name: measure for measure in one.measures} for one in found]
    shown = dict.fromkeys(name for of_model in measures for name in of_model)
    return Comparison(
        title=_title(first),
        corner="measure",
        columns=columns,
        comparable=[_facts(one) == _facts(first) for one in found],
        rows=[_row(first.task, name, [of_model.get(name) for of_model in measures]) for name in shown],
        notes=_notes(columns, found),
    )


def _title(one: Analysis) -> str:
    name = one.task.replace("_", " ")
    return (
        f"{name}: {len(one.languages)} languages, {one.sentences:,} lines each of {one.dataset}"
        if one.dataset
        else name
    )


def _notes(columns: Sequence[str], found: Sequence[Analysis]) -> list[str]:
    """What the analyses say of themselves; what all say, once."""
    by_note: dict[str, list[str]] = {}
    for name, one in zip(columns, found, strict=True):
        for note in one.notes:
            by_note.setdefault(note, []).append(name)
    return [note if len(by) == len(columns) else f"{', '.join(by)}: {note}" for note, by in by_note.items()]


def _facts(one: Analysis) -> tuple[object, ...]:
    """What must be the same for numbers to be compared."""
    return one.version, one.data_sha256, one.languages, dict(one.settings)


def _row(task: str, name: str, found: Sequence[Measure | None]) -> Row:
    shown = next(measure for measure in found if measure is not None)
    share = shown.unit == "share"
    unit = {"share": ", %", "percent": ", %", "nats": ", nats"}.get(shown.unit, "")
    return Row(
        name=f"{shown.title}{unit}",
        cells=[None if measure is None else Cell(measure.value) for measure in found],
        digits=1 if share or shown.unit == "percent" else 3,
        higher_is_better=DIRECTIONS[shown.better],
        task=task,
        metric=name,
        of=name,
        scale=100 if share else 1,
    )
