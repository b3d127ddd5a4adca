"""The texts between the stages of preparation: on disk, in shards.

A shard holds pairs of one source and one language pair. Each of its columns is a separate
file, to which rows are only appended. So a stage reads only the columns that it needs, for example
the keys (8 bytes per side) without the texts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import compress, islice
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float64, UInt8, UInt64
from numpy import ndarray

from interlingua.preparation.sources import LanguagePair

_BLOCK_ROWS = 10_000


class Fate(IntEnum):
    """The fate of a row that passed cleaning; the manifest uses the same names."""

    train = 0
    duplicate = 1
    near_duplicate = 2
    in_evaluation_set = 3
    over_weight = 4
    over_max_pairs = 5
    heldout = 6
    valid = 7
    in_heldout_or_valid = 8
    over_fill_to = 9
    in_earlier_source = 10
    over_max_tokens = 11


DROPPED_FATES = tuple(fate for fate in Fate if fate not in (Fate.train, Fate.heldout, Fate.valid))


@dataclasses.dataclass(slots=True)
class Shard:
    """Clean pairs of one source and one language pair.

    It has text lines and, per row, the keys of both sides, the number of words and the score.
    """

    folder: Path
    number: int
    source_index: int
    language_pair: LanguagePair
    rows: int = 0
    fates: UInt8[ndarray, " rows"] = dataclasses.field(
        default_factory=lambda: np.zeros(0, np.uint8)
    )
    """A ``Fate`` per row; set from the selection stage on."""

    def append(
        self,
        text: bytes,
        source_keys: UInt64[ndarray, " n"],
        target_keys: UInt64[ndarray, " n"],
        words: UInt8[ndarray, " n"],
        scores: Float64[ndarray, " n"] | None = None,
    ) -> None:
        """Add rows.

        Args:
            text: a line ``source<TAB>target`` for each row.
            source_keys: keys of the source texts.
            target_keys: keys of the target texts.
            words: see the property of that name.
            scores: NaN if a row has none; None if no row has one.
        """
        if scores is None:
            scores = np.full(len(words), np.nan)
        columns = (
            ("tsv", text),
            ("source", source_keys.data),
            ("target", target_keys.data),
            ("words", words.data),
            ("score", scores.data),
        )
        for kind, content in columns:
            with self._path(kind).open("ab") as file:
                file.write(content)
        self.rows += len(words)

    @property
    def source_keys(self) -> UInt64[ndarray, " rows"]:
        """Key of every source text."""
        return np.fromfile(self._path("source"), np.uint64)

    @property
    def target_keys(self) -> UInt64[ndarray, " rows"]:
        """Key of every target text."""
        return np.fromfile(self._path("target"), np.uint64)

    @property
    def words(self) -> UInt8[ndarray, " rows"]:
        """Words of the target if it is English, else of the longer side; at most 255."""
        return np.fromfile(self._path("words"), np.uint8)

    @property
    def scores(self) -> Float64[ndarray, " rows"]:
        """Score of every pair; NaN if the file has none."""
        return np.fromfile(self._path("score"), np.float64)

    def count(self, fate: Fate) -> int:
        """Return the number of rows with a fate."""
        return int(np.count_nonzero(self.fates == fate))

    def drop(self, rows: Bool[ndarray, " rows"], fate: Fate) -> None:
        """Set the fate of the marked rows, unless an earlier rule has set one."""
        self.fates[rows & (self.fates == Fate.train)] = fate

    def blocks(self, mask: Bool[ndarray, " rows"]) -> Iterator[tuple[list[str], list[str]]]:
        """Yield the marked rows as lists of sources and of targets."""
        for lines in self.line_blocks(mask):
            yield split_lines("".join(lines))

    def line_blocks(self, mask: Bool[ndarray, " rows"]) -> Iterator[list[str]]:
        """Yield the marked rows as lists of lines ``source<TAB>target``, with their line ends."""
        with self._path("tsv").open(encoding="utf-8", newline="\n") as file:
            for first in range(0, self.rows, _BLOCK_ROWS):
                lines = islice(file, min(_BLOCK_ROWS, self.rows - first))
                chosen = list(compress(lines, mask[first : first + _BLOCK_ROWS].tolist()))
                # If the mask is shorter than the block, unread lines would go into the next block.
                for _ in lines:
                    pass
                if chosen:
                    yield chosen

    def _path(self, kind: str) -> Path:
        return self.folder / f"{self.number:06d}.{kind}"


def split_lines(lines: str) -> tuple[list[str], list[str]]:
    """Return the sources and the targets of lines ``source<TAB>target``."""
    cells = [line.split("\t") for line in lines.split("\n")[:-1]]
    return [cell[0] for cell in cells], [cell[1] for cell in cells]


def total(shards: Iterable[Shard], fate: Fate) -> int:
    """Return the number of rows with a fate in all shards."""
    return sum(shard.count(fate) for shard in shards)
