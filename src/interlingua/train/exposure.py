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
    few = len(rows) <= MOST_ROWS
    head, middle, tail = (
        (rows, [], []) if few else (rows[: MOST_ROWS - 3], rows[MOST_ROWS - 3 : -2], rows[-2:])
    )
    for row in head:
        yield _line(row.name, row.available, row.draws, total, width)
    if middle:
        name = f"{len(middle)} others"
        yield _line(
            name,
            sum(row.available for row in middle),
            sum(row.draws for row in middle),
            total,
            width,
        )
    for row in tail:
        yield _line(row.name, row.available, row.draws, total, width)


def _line(name: str, available: int, seen: float, total: float, width: int) -> str:
    passes = f"{seen / available:.2f}" if available else ""
    share = seen / total
    row = f"{name:<{width}}  {available:>13,}  {seen:>13,.0f}  {share:>6.1%}  {passes:>7}"
    return row.rstrip()
