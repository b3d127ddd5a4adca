"""What a run sees of each language pair, as a table of a few lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from interlingua.corpus.sampling import exposure_table

MOST_ROWS = 12
"""Lines; where there are more language pairs, the middle ones are summed up in one."""


def exposure_lines(
    seen: Mapping[str, float], available: Mapping[str, int], *, heading: str = "seen"
) -> Iterator[str]:
    """A line for each language pair or other feed, largest first.

    Args:
        seen: rows seen of each.
        available: rows that there are.
        heading: of the column of rows seen.
    """
    total = sum(seen.values())
    if not total:
        return
    shares = {name: count / total for name, count in seen.items()}
    rows = exposure_table({name: available.get(name, 0) for name in seen}, shares, total)
    width = max(map(len, seen))
    yield f"{'language pair':<{width}}  {'pairs':>13}  {heading:>13}  {'share':>6}  {'passes':>7}"
    lines = [_line(row.name, row.available, row.draws, total, width) for row in rows]
    if len(rows) <= MOST_ROWS:
        yield from lines
        return
    # The largest, the two smallest, and one line on all between them.
    first = MOST_ROWS - 3
    middle = rows[first:-2]
    available_rows = sum(row.available for row in middle)
    draws = sum(row.draws for row in middle)
    yield from lines[:first]
    yield _line(f"{len(middle)} others", available_rows, draws, total, width)
    yield from lines[-2:]


def _line(name: str, available: int, seen: float, total: float, width: int) -> str:
    passes = f"{seen / available:.2f}" if available else ""
    share = seen / total
    row = f"{name:<{width}}  {available:>13,}  {seen:>13,.0f}  {share:>6.1%}  {passes:>7}"
    return row.rstrip()
