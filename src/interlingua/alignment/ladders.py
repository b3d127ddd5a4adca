"""Right links as hunalign writes them: a ladder of rungs.

A rung is a line with two sentence numbers, counted from 0, and optionally a score: ``12 TAB 13 TAB
0.5``. Two rungs in a row, (i, j) and (i', j'), link the source sentences i to i' - 1 with the
target sentences j to j' - 1. If one side has no sentence, each sentence of the other side is
unaligned. The first rung is 0 0, and the last one has the lengths of both documents in sentences.
"""

from __future__ import annotations

import re
from itertools import pairwise

from interlingua.alignment.sentence_alignment import Link
from interlingua.errors import DataError
from interlingua.storage.files import PathLike, open_text

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)"
_RUNG = re.compile(rf"\s*(\d{{1,9}})\s+(\d{{1,9}})(?:\s+(?:{_NUMBER}))?\s*")
_TEXT_RUNG = re.compile(rf"[^\t]*\t[^\t]*\t\s*(?:{_NUMBER})\s*")


def is_rung(line: str) -> bool:
    """Return whether a line is a rung of a ladder."""
    return _RUNG.fullmatch(line) is not None


def is_text_rung(line: str) -> bool:
    """Return whether a line is of hunalign's text form: sentences, TAB, sentences, TAB, a score."""
    return not is_rung(line) and _TEXT_RUNG.fullmatch(line) is not None


def read_ladder(path: PathLike, lengths: tuple[int, int] | None = None) -> list[Link]:
    """Read the links of a ladder; their costs are 0, because a rung's score is no cost.

    Args:
        path: of the file.
        lengths: number of sentences of both documents.

    Raises:
        DataError: a line is not a rung, does not follow from the one before, or names a sentence
            that does not exist.
    """
    rungs: list[tuple[int, int]] = []
    with open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            rung = _parsed(line, path, number)
            _check_rung(rung, rungs, lengths, path, number)
            rungs.append(rung)
    if len(rungs) < 2:
        raise DataError(
            "a ladder has at least two rungs, found 1; check that the file is complete", path=path
        )
    links: list[Link] = []
    for (source, target), (next_source, next_target) in pairwise(rungs):
        sources = range(source, next_source)
        targets = range(target, next_target)
        if sources and targets:
            links.append(Link(tuple(sources), tuple(targets), 0.0))
        else:
            links += [Link((one,), (), 0.0) for one in sources]
            links += [Link((), (one,), 0.0) for one in targets]
    return links


def _parsed(line: str, path: PathLike, number: int) -> tuple[int, int]:
    """Return the numbers of a rung."""
    match = _RUNG.fullmatch(line.rstrip("\r\n"))
    if match is None:
        raise DataError(
            "expected a rung of a ladder, such as 12 TAB 13 TAB 0.5, found"
            f" {line.strip()[:60]!r}; correct the line",
            path=path,
            line=number,
        )
    return int(match[1]), int(match[2])


def _check_rung(
    rung: tuple[int, int],
    earlier: list[tuple[int, int]],
    lengths: tuple[int, int] | None,
    path: PathLike,
    number: int,
) -> None:
    """Refuse a rung that does not go up from the one before, or that is beyond the documents."""
    source, target = rung
    if not earlier:
        if rung != (0, 0):
            raise DataError(
                f"the first rung of a ladder must be 0 0, found {source} {target}; count"
                " sentences from 0",
                path=path,
                line=number,
            )
        return
    # A rung may repeat one of the two numbers: sentences of the other side are then unaligned.
    before = earlier[-1]
    if source < before[0] or target < before[1] or rung == before:
        raise DataError(
            f"the rung {source} {target} does not follow {before[0]} {before[1]} in ascending"
            " order; sort the rungs and remove repeated ones",
            path=path,
            line=number,
        )
    # Without the documents, their lengths are unknown, and the rung is not compared with them.
    for place, length in zip(rung, lengths or (), strict=False):
        if place > length:
            raise DataError(
                f"the rung {source} {target} is beyond the end of a document of length {length};"
                " check that the ladder belongs to these files",
                path=path,
                line=number,
            )
