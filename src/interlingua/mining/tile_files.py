"""What a tiled search keeps on disk: the lists of each block in a file of its own, and the journal of finished tiles.

A file of lists names its block and the tiles with pairs in it, and its zip archive has a checksum of each part. So
lists that are gone, damaged, swapped, or older than the journal are noticed where they are read: an error, and never a
block without neighbors. Lists newer than the journal are fine: their tile is done again, which changes nothing.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from interlingua.errors import DataError
from interlingua.files import atomic_write
from interlingua.mining.lists import Lists

JOURNAL = "journal.txt"
Side = Literal["x", "y"]
Tile = tuple[int, int]
"""Its first row and its first column."""
_LINE = re.compile(r"(\d{1,18}) (\d{1,18})")


class DoneTiles:
    """Tiles that are done, and by block.

    Args:
        tiles: in any order.

    Attributes:
        tiles: all of them.
    """

    def __init__(self, tiles: Iterable[Tile] = ()) -> None:
        self.tiles: set[Tile] = set()
        self._partners: defaultdict[tuple[Side, int], set[int]] = defaultdict(set)
        for tile in tiles:
            self.add(tile)

    def add(self, tile: Tile) -> None:
        """Takes one more."""
        self.tiles.add(tile)
        self._partners["x", tile[0]].add(tile[1])
        self._partners["y", tile[1]].add(tile[0])

    def partners(self, side: Side, start: int) -> set[int]:
        """Where the blocks of the other side begin that a block was compared with."""
        return self._partners[side, start]


class BlockLists(NamedTuple):
    """The neighbors of a block.

    Attributes:
        lists: of its vectors.
        partners: where the blocks of the other side begin that were compared with this one.
    """

    lists: Lists
    partners: set[int]


def read_lists(folder: Path, side: Side, start: int, shape: tuple[int, int], done: DoneTiles) -> BlockLists:
    """The lists of a block; empty ones where none of its tiles is done.

    Args:
        folder: of the search.
        side: of the block.
        start: its first vector.
        shape: vectors of the block, and neighbors of each.
        done: what the journal says.

    Raises:
        DataError: the journal says that tiles are done, and their pairs are not there.
    """
    path = folder / f"{side}-{start}.npz"
    expected = done.partners(side, start)
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            lists = Lists(file["values"], file["indices"])
            partners = set(file["partners"].tolist())
            block = str(file["block"])
    except FileNotFoundError:
        if expected:
            raise _lost(path, "is missing") from None
        return BlockLists(Lists.empty(*shape), set())
    except Exception as error:  # of a damaged archive zipfile and numpy raise errors of a dozen kinds
        raise _lost(path, "is damaged") from error
    if block != _block_name(side, start):
        raise _lost(path, "has the lists of another block")
    if lists.values.shape != shape or lists.indices.shape != shape or not expected <= partners:
        raise _lost(path, "is older than that or of another run")
    return BlockLists(lists, partners)


def write_lists(folder: Path, side: Side, start: int, block: BlockLists) -> None:
    """Puts the lists of a block in the place of its earlier ones; they are on the disk when this returns."""
    partners = np.array(sorted(block.partners), np.int64)
    with atomic_write(folder / f"{side}-{start}.npz", "wb") as file:
        np.savez(
            file,
            values=block.lists.values,
            indices=block.lists.indices,
            partners=partners,
            block=_block_name(side, start),
        )


def read_journal(folder: Path) -> DoneTiles:
    """The finished tiles; a line that was cut or changed names none, so its tile is done again."""
    try:
        lines = (folder / JOURNAL).read_text(encoding="ascii", errors="replace").split("\n")[:-1]
    except FileNotFoundError:
        return DoneTiles()
    found = (_LINE.fullmatch(line) for line in lines)
    return DoneTiles((int(match[1]), int(match[2])) for match in found if match)


def write_journal(folder: Path, done: DoneTiles) -> None:
    """Writes it anew."""
    with atomic_write(folder / JOURNAL, encoding="ascii") as journal:
        journal.writelines(f"{i} {j}\n" for i, j in sorted(done.tiles))


def add_to_journal(folder: Path, tile: Tile) -> None:
    """Records a tile as done; its lists must be on the disk."""
    with open(folder / JOURNAL, "a", encoding="ascii") as journal:
        journal.write(f"{tile[0]} {tile[1]}\n")
        journal.flush()
        os.fsync(journal.fileno())


def _block_name(side: Side, start: int) -> str:
    return f"{side} {start}"


def _lost(path: Path, what: str) -> DataError:
    return DataError(
        f"{what}, though {JOURNAL} says that its tiles are done; remove the folder {path.parent} and run the same"
        " command again, which searches again",
        path=path,
    )
