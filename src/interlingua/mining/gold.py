"""Pairs that are known to be right: read, found among the texts, and compared with mined pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from interlingua.errors import DataError
from interlingua.files import open_text
from interlingua.mining.pipeline import Mined
from interlingua.mining.texts import Side
from interlingua.mining.threshold import at_threshold, best_threshold


def read_gold(path: Path) -> list[tuple[str, str]]:
    """Pairs of names or of texts, TAB between them.

    Raises:
        DataError: a line has another number of columns, or there is none.
    """
    pairs = []
    with open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            cells = line.rstrip("\r\n").split("\t")
            if len(cells) != 2:
                raise DataError(
                    f"expected id TAB id or text TAB text, got {len(cells)} columns", path=path, line=number
                )
            pairs.append((cells[0].strip(), cells[1].strip()))
    if not pairs:
        raise DataError("the file is empty; expected id TAB id or text TAB text", path=path)
    return pairs


def gold_pairs(pairs: Iterable[tuple[str, str]], x: Side, y: Side) -> tuple[set[tuple[int, int]], int]:
    """Gold pairs by the numbers of their texts.

    Args:
        pairs: names of lines, or the texts themselves.
        x: the texts of the source.
        y: those of the target.

    Returns:
        The pairs, and how many were left out because a side of theirs is not there.
    """
    wanted = list(pairs)
    numbers: list[Mapping[str, int]] = []
    for place, side in enumerate((x, y)):
        names = {pair[place] for pair in wanted}
        found = {name: int(text) for name, text in zip(side.names, side.text_of_line, strict=True) if name in names}
        found |= {text: number for number, text in enumerate(side.texts) if text in names and text not in found}
        numbers.append(found)
    known = {(numbers[0][a], numbers[1][b]) for a, b in wanted if a in numbers[0] and b in numbers[1]}
    lost = sum(a not in numbers[0] or b not in numbers[1] for a, b in wanted)
    return {pair for pair in known if min(pair) >= 0}, lost


def judged(mined: Mined, gold: Sequence[tuple[str, str]], threshold: float | None) -> list[str]:
    """How good the pairs are where those that are right are known."""
    known, lost = gold_pairs(gold, mined.x, mined.y)
    if not known:
        raise DataError("no gold pair is in the texts; expected the ids of their lines, or the texts themselves")
    right = is_gold(mined, known)
    scores = mined.pairs["score"]
    best = best_threshold(scores, right, gold=len(known))
    lines = [
        f"gold: {len(known):,} pairs of texts" + (f"; {lost:,} left out, of texts that are not there" if lost else ""),
        f"best F1 {100 * best.f1:.2f} (precision {100 * best.precision:.2f}, recall {100 * best.recall:.2f})"
        f" at threshold {best.threshold:.4f}, before any check",
    ]
    if threshold is not None and np.isfinite(threshold):
        at = at_threshold(scores, right, gold=len(known), threshold=threshold)
        lines.append(
            f"F1 {100 * at.f1:.2f} (precision {100 * at.precision:.2f}, recall {100 * at.recall:.2f}) at the threshold"
            f" {threshold:.4f}, before any check"
        )
    return lines


def is_gold(mined: Mined, known: set[tuple[int, int]]) -> np.ndarray:
    """Marks the mined pairs that are right."""
    pairs = zip(mined.pairs["x"].tolist(), mined.pairs["y"].tolist(), strict=True)
    return np.fromiter((pair in known for pair in pairs), bool, len(mined.pairs))
