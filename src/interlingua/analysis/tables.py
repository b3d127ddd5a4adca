"""Analyses as tables for a terminal: one model's measures, or two models' next to each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from interlingua.analysis.differences import Change, changes, paired
from interlingua.analysis.record import Analysis, Measure, ValueUnit
from interlingua.config.languages import resolve_language
from interlingua.report.tables import Table

if TYPE_CHECKING:
    import rich.table


def analysis_terminal_tables(found: Sequence[Sequence[Analysis]]) -> list[rich.table.Table]:
    """Return a table per analysis, for rich to print.

    Analyses that two models both have are compared.

    Args:
        found: the analyses of one model, or of two.
    """
    both = []
    if len(found) == 2:
        both = paired(found)
    compared = {first.task for first, _ in both}
    tables = [_two(before, after) for before, after in both]
    tables += [_one(one) for side in found for one in side if one.task not in compared]
    return [table.terminal() for table in tables]


def format_value(value: float, unit: ValueUnit, *, sign: bool = False) -> str:
    """Format a number with its unit: shares in percent, entropies in nats."""
    # A difference has a sign and no unit, because the values of both models show the unit. A
    # difference in percent keeps its unit, because it is a share of a value.
    plus = "+" if sign else ""
    if unit == "share":
        return f"{100 * value:{plus}.1f}{'' if sign else ' %'}"
    if unit == "percent":
        return f"{value:{plus}.2f} %"
    digits = 3 if abs(value) < 10 else 1
    number = f"{value:{plus}.{digits}f}"
    if unit == "nats" and not sign:
        return f"{number} nats"
    return number


def interval_of(measure: Measure) -> str:
    """Return the interval as ``91.2 to 92.8``, or an empty text."""
    if measure.low is None or measure.high is None:
        return ""
    if measure.unit == "share":
        return f"{100 * measure.low:.1f} to {100 * measure.high:.1f}"
    return f"{measure.low:.3f} to {measure.high:.3f}"


def difference_interval(change: Change) -> str:
    """Return the difference's interval in the units of ``format_value``, or an empty text."""
    if change.tested is None:
        return ""
    unit = change.before.unit
    low = format_value(change.tested.low, unit, sign=True)
    high = format_value(change.tested.high, unit, sign=True)
    return f"{low} to {high}"


def extremes(measure: Measure) -> str:
    """Return the languages with the lowest and the highest value."""
    if len(measure.by_language) < 2:
        return ""
    ordered = sorted(measure.by_language.items(), key=lambda item: item[1])
    low, least = ordered[0]
    high, most = ordered[-1]
    return (
        f"{_name(low)} {format_value(least, measure.unit)}, {_name(high)} "
        f"{format_value(most, measure.unit)}"
    )


def analysis_heading(analysis: Analysis) -> str:
    """Return a heading with the analysis and its data."""
    return f"{analysis.task} (version {analysis.version}){analysis.texts}"


def _one(analysis: Analysis) -> Table:
    """Return a table of the measures of one model."""
    rows = []
    for measure in analysis.measures:
        ideal = "" if measure.ideal is None else format_value(measure.ideal, measure.unit)
        cells = [interval_of(measure), measure.better or "", ideal, extremes(measure)]
        rows.append([measure.title, format_value(measure.value, measure.unit), *cells])
    head = ["measure", "value", "95 %", "better", "without language", "lowest and highest language"]
    return Table(f"{analysis.model}: {analysis_heading(analysis)}", head, rows, words=(0, 3, 5))


def _two(before: Analysis, after: Analysis) -> Table:
    """Return a table of the measures of two models, with their differences."""
    rows = []
    for change in changes(before, after):
        first = change.before
        values = [
            format_value(first.value, first.unit),
            format_value(change.after.value, change.after.unit),
        ]
        difference = format_value(change.difference, first.unit, sign=True)
        verdict = [difference_interval(change), change.verdict, first.better or ""]
        rows.append([first.title, *values, difference, *verdict])
    head = ["measure", before.model, after.model, "difference", "95 %", "", "better"]
    return Table(analysis_heading(before), head, rows, words=(0, 5, 6))


def _name(code: str) -> str:
    """Return a language's name, German for ``deu_Latn``; a pair of languages stays as it is."""
    if "-" in code:
        return code
    return resolve_language(code).name
