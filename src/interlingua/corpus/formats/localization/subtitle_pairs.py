"""Pairs of two subtitle files of one film, by the times of their cues.

Cues are linked if they share at least half of the time of the shorter one. Linked cues form a
group, and a group is a pair, such as one long cue with two short ones. If both sides of a
group have the same number of speakers' lines (``- How are you?``), each line is a pair.

Files with other cuts or frame rates have no common times: ``align`` links their cues by meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import PairOfTable, TextPair
from interlingua.corpus.formats.localization.subtitles import Cue, read_cues
from interlingua.corpus.formats.localization.two_files import find_two_files
from interlingua.errors import ConfigError

_SHARED = 0.5
"""Minimum part of the shorter cue's time that linked cues share."""
_LARGEST = 8
"""Maximum number of cues on one side of a group."""
_ALONE = "cues without a cue at the same time"
_TOO_LARGE = "cues of groups that are too large"


class Subtitles:
    """``film.de.srt`` and ``film.en.srt``, named by ``film``, by one of them, or by both."""

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Read both files, and yield the pairs in the order of time."""
        files = find_two_files(path, source_language, target_language)
        sides = [read_cues(file, bad=bad) for file in files.paths]
        for own, other in grouped_cues(sides[0], sides[1]):
            # Sounds and songs are often described on one side only.
            if not own or not other:
                skipped[_ALONE] += len(own) + len(other)
                continue
            if max(len(own), len(other)) > _LARGEST:
                skipped[_TOO_LARGE] += len(own) + len(other)
                continue
            start = min(cue.start for cue in (*own, *other))
            end = max(cue.end for cue in (*own, *other))
            # The times of the group: from its first cue to its last.
            times = {"start": cue_time(start), "end": cue_time(end)}
            for texts in _texts(own, other):
                yield PairOfTable.of(TextPair(*texts, *files.languages), times)

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Refuse to write, because pairs have no times."""
        raise ConfigError(f"{path}: subtitles cannot be written; use .tsv, .xlsx or .tmx")


def grouped_cues(
    source: Sequence[Cue], target: Sequence[Cue]
) -> Iterator[tuple[list[Cue], list[Cue]]]:
    """Yield the groups of linked cues in the order of time. A cue without a link is a group."""
    # A cue is (side, number); union-find joins linked cues, whatever the length of their chain.
    sides = (source, target)
    parents = {
        (side, number): (side, number) for side in (0, 1) for number in range(len(sides[side]))
    }

    def root(node: tuple[int, int]) -> tuple[int, int]:
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    for one, other in _links(source, target):
        parents[root((1, other))] = root((0, one))
    groups: dict[tuple[int, int], tuple[list[Cue], list[Cue]]] = {}
    for node in parents:
        side, number = node
        groups.setdefault(root(node), ([], []))[side].append(sides[side][number])
    yield from sorted(groups.values(), key=_start_of)


def _start_of(group: tuple[list[Cue], list[Cue]]) -> int:
    return min(cue.start for side in group for cue in side)


def _links(source: Sequence[Cue], target: Sequence[Cue]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of cues that share enough time; both lists are sorted by their starts."""
    first = 0
    for number, cue in enumerate(source):
        # Cues that ended before this one started are not looked at again.
        while first < len(target) and target[first].end <= cue.start:
            first += 1
        for other in range(first, len(target)):
            if target[other].start >= cue.end:
                break
            shared = min(cue.end, target[other].end) - max(cue.start, target[other].start)
            shorter = min(cue.end - cue.start, target[other].end - target[other].start)
            if shared > 0 and shared >= _SHARED * shorter:
                yield number, other


def _texts(own: list[Cue], other: list[Cue]) -> list[tuple[str, str]]:
    """Return the texts of a group: a pair per speech if both sides have equally many, else one."""
    source = [text for cue in own for text in cue.speeches]
    target = [text for cue in other for text in cue.speeches]
    if len(source) == len(target):
        return list(zip(source, target, strict=True))
    # One side has more lines: a speech was split, and the place is unknown.
    return [(" ".join(source), " ".join(target))]


def cue_time(milliseconds: int) -> str:
    """Return a time as SubRip writes it: ``01:02:03,456``."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02},{rest:03}"
