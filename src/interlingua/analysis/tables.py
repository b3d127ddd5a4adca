"""Analyses as tables for a terminal: one model's measures, or two models' next to each other."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from interlingua.analysis.differences import Change, changes, paired
from interlingua.analysis.record import Analysis, Measure, Unit
from interlingua.languages import resolve


def terminal_tables(found: Sequence[Sequence[Analysis]]) -> list[Table]:
    """A table per analysis, for rich to print; of two models what both have is compared.

    Args:
        found: of one model, or of two.
    """
    if len(found) == 1:
        return [_one(analysis) for analysis in found[0]]
    both = paired(found)
    alone = [one for side in found for one in side if one.task not in {first.task for first, _ in both}]
    return [_two(before, after) for before, after in both] + [_one(analysis) for analysis in alone]


def shown(value: float, unit: Unit, *, sign: bool = False) -> str:
    """A number with its unit: shares in percent, entropies in nats."""
    plus = "+" if sign else ""
    if unit == "share":
        return f"{100 * value:{plus}.1f}{'' if sign else ' %'}"
    if unit == "percent":
        return f"{value:{plus}.2f} %"
    number = f"{value:{plus}.3f}" if abs(value) < 10 else f"{value:{plus}.1f}"
    return f"{number} nats" if unit == "nats" and not sign else number


def interval_of(measure: Measure) -> str:
    """``91.2 to 92.8``, or nothing."""
    if measure.low is None or measure.high is None:
        return ""
    scale, digits = (100, 1) if measure.unit == "share" else (1, 3)
    return f"{scale * measure.low:.{digits}f} to {scale * measure.high:.{digits}f}"


def difference_interval(change: Change) -> str:
    """The difference's interval in the units of ``shown``, or nothing."""
    if change.tested is None:
        return ""
    unit = change.before.unit
    return f"{shown(change.tested.low, unit, sign=True)} to {shown(change.tested.high, unit, sign=True)}"


def extremes(measure: Measure) -> str:
    """The languages with the lowest and the highest value."""
    if len(measure.by_language) < 2:
        return ""
    ordered = sorted(measure.by_language.items(), key=lambda item: item[1])
    (low, least), (high, most) = ordered[0], ordered[-1]
    return f"{_name(low)} {shown(least, measure.unit)}, {_name(high)} {shown(most, measure.unit)}"


def heading(analysis: Analysis) -> str:
    """What was measured on what."""
    many = len(analysis.languages)
    on = f": {many} languages, {analysis.sentences:,} lines each of {analysis.dataset}" if analysis.dataset else ""
    return f"{analysis.task} (version {analysis.version}){on}"


def _one(analysis: Analysis) -> Table:
    table = Table(title=f"{analysis.model}: {heading(analysis)}")
    columns = ("measure", "value", "95 %", "better", "without language", "lowest and highest language")
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place in (1, 2, 4) else "left")
    for measure in analysis.measures:
        ideal = "" if measure.ideal is None else shown(measure.ideal, measure.unit)
        cells = [interval_of(measure), measure.better or "", ideal, extremes(measure)]
        table.add_row(measure.title, shown(measure.value, measure.unit), *cells)
    return table


def _two(before: Analysis, after: Analysis) -> Table:
    table = Table(title=heading(before))
    for place, column in enumerate(("measure", before.model, after.model, "difference", "95 %", "", "better")):
        table.add_column(column, justify="right" if 0 < place < 5 else "left")
    for change in changes(before, after):
        first = change.before
        second = change.after
        values = (shown(first.value, first.unit), shown(second.value, second.unit))
        difference = shown(change.difference, first.unit, sign=True)
        table.add_row(first.title, *values, difference, difference_interval(change), change.verdict, first.better or "")
    return table


def _name(code: str) -> str:
    """German for ``deu_Latn``; a pair of languages as it is."""
    return code if "-" in code else resolve(code).name
