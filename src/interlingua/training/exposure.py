"""Exposure of a run to each language pair, as a table of a few lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from interlingua.corpus.samples.sampling import exposure_table
from interlingua.report.tables import Table

_MOST_ROWS = 12
"""Maximum number of lines; if there are more language pairs, the middle ones are summed up in
one."""


def exposure_lines(
    seen: Mapping[str, float], available: Mapping[str, int], *, heading: str = "seen"
) -> Iterator[str]:
    """Yield a line for each language pair or other feed, largest first.

    Args:
        seen: rows seen of each.
        available: available rows of each.
        heading: of the column of rows seen.
    """
    total = sum(seen.values())
    if not total:
        return
    shares = {name: count / total for name, count in seen.items()}
    rows = exposure_table({name: available.get(name, 0) for name in seen}, shares, total)
    lines = [_cells(row.name, row.available, row.draws, total) for row in rows]
    if len(rows) > _MOST_ROWS:
        # The largest, the two smallest, and one line on all between them.
        first = _MOST_ROWS - 3
        middle = rows[first:-2]
        available_rows = sum(row.available for row in middle)
        draws = sum(row.draws for row in middle)
        others = _cells(f"{len(middle)} others", available_rows, draws, total)
        lines = [*lines[:first], others, *lines[-2:]]
    yield from Table("", ["language pair", "pairs", heading, "share", "passes"], lines).text()


def _cells(name: str, available: int, seen: float, total: float) -> list[str]:
    passes = f"{seen / available:.2f}" if available else ""
    return [name, f"{available:,}", f"{seen:,.0f}", f"{seen / total:.1%}", passes]
