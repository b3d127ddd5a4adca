"""Nearest neighbours of corpora of any length: in tiles, in bounded memory, on from where a killed run stopped.

A tile is all pairs of a block of x and a block of y. The lists of every block lie in a file of their own, written anew
after each tile that brought them up to date; a journal names the tiles that are done, see ``tile_files``. A tile done
twice changes nothing (``Lists``), so whatever moment a run is killed at, the next one ends with the same bytes. Tiles
of the same plan may be done on several machines, each in a folder of its own: ``join_shards`` makes one of them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from interlingua.errors import ConfigError, DataError
from interlingua.files import PathLike, atomic_write
from interlingua.json_text import parse_json
from interlingua.locks import exclusive
from interlingua.mining.knn import Neighbours, check_sides, even, make_frame, make_scanner, neighbours_of, read_block
from interlingua.mining.lists import Lists
from interlingua.mining.tile_files import (
    BlockLists,
    DoneTiles,
    Side,
    Tile,
    add_to_journal,
    read_journal,
    read_lists,
    write_journal,
    write_lists,
)

PLAN = "plan.json"
MOST_ROWS = 2**18
MOST_COLUMNS = 2**16
"""Vectors of a block at most, so that a tile is done within a minute; blocks of y are made ready anew for each of x."""
LEAST = 4096
"""Vectors of a block that is not cut further."""
SAMPLED = 64
"""Vectors of a side that its digest is taken of."""
Progress = Callable[[int, int], None]
"""Is given the pairs that are done, and all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TilePlan:
    """How the pairs are cut.

    Attributes:
        rows: vectors of x in a block.
        columns: vectors of y in a block.
        n: vectors of x.
        m: vectors of y.
        width: of a vector.
        k: neighbours of each.
        digest: of the shapes and of some vectors of both sides.
    """

    rows: int
    columns: int
    n: int
    m: int
    width: int
    k: int
    digest: str

    @classmethod
    def of(
        cls, x: NDArray[np.floating], y: NDArray[np.floating], *, k: int, memory: int, least_tiles: int = 1
    ) -> TilePlan:
        """Large blocks that fit into ``memory`` bytes together with what they are worked on with.

        Args:
            x: (n, d).
            y: (m, d).
            k: neighbours of each.
            memory: bytes.
            least_tiles: make as many, if blocks of ``LEAST`` vectors or more do.

        Raises:
            ConfigError: not even small blocks fit.
        """
        check_sides(x, y, k)
        n = len(x)
        m = len(y)
        width = x.shape[1]
        rows, columns = block_sizes(n, m, width, k, memory, least_tiles)
        return cls(rows=rows, columns=columns, n=n, m=m, width=width, k=k, digest=digest(x, y))

    def begun(self, folders: Iterable[Path], memory: int) -> TilePlan:
        """The plan by which the same search was begun in one of some folders, if its blocks fit; else this one."""
        for folder in folders:
            try:
                there = TilePlan(**parse_json((folder / PLAN).read_text(encoding="utf-8")))
            except (OSError, ValueError, TypeError):
                continue
            fits = (there.rows + there.columns) * bytes_of_a_vector(self.width, self.k) <= memory
            if fits and dataclasses.replace(self, rows=there.rows, columns=there.columns) == there:
                return there
        return self

    def tiles(self, shard: tuple[int, int] = (1, 1)) -> Iterator[tuple[int, int]]:
        """First row and column of every tile of a shard, ``(2, 8)`` the second of eight; to and fro."""
        number, shards = shard
        for turn, i in enumerate(range((number - 1) * self.rows, self.n, shards * self.rows)):
            columns = list(range(0, self.m, self.columns))
            yield from ((i, j) for j in (columns if turn % 2 == 0 else columns[::-1]))

    def starts(self, side: Side) -> range:
        """First vectors of the blocks of a side."""
        return range(0, self.n, self.rows) if side == "x" else range(0, self.m, self.columns)

    def shape(self, side: Side, start: int) -> tuple[int, int]:
        """Vectors of the block that begins there, and neighbors of each."""
        if side == "x":
            return min(self.rows, self.n - start), min(self.k, self.m)
        return min(self.columns, self.m - start), min(self.k, self.n)

    def pairs(self, i: int, j: int) -> int:
        """Of the tile that begins there."""
        return min(self.rows, self.n - i) * min(self.columns, self.m - j)


FEW_NEIGHBORS = 64
"""Up to which k is not what takes the memory."""


def block_sizes(n: int, m: int, width: int, k: int, memory: int, least_tiles: int = 1) -> tuple[int, int]:
    """Vectors of x and of y in a block; see ``TilePlan.of``.

    Raises:
        ConfigError: not even small blocks go into the memory.
    """
    each = bytes_of_a_vector(width, min(k, max(n, m)))  # a text has no more neighbors than there are texts
    block = memory // (3 * each)
    if block < 1024:
        least = -(-3 * each * 1024 // 2**20)
        lower = f", or a lower --k than {k:,}" if k > FEW_NEIGHBORS else ""
        raise ConfigError(f"{memory:,} bytes of memory are too little; expected at least --memory {least}MiB{lower}")
    rows = even(n, min(2 * block, MOST_ROWS))
    columns = even(m, min(block, MOST_COLUMNS))
    while -(-n // rows) * -(-m // columns) < least_tiles and max(rows, columns) >= 2 * LEAST:
        rows, columns = (even(n, -(-rows // 2)), columns) if rows > columns else (rows, even(m, -(-columns // 2)))
    return rows, columns


def bytes_of_a_vector(width: int, k: int) -> int:
    """Memory that a vector of a block takes: float32, its rounded copies while they are made, and its lists."""
    return 4 * width * 4 + 2 * width + 3 * k * 12


def digest(x: NDArray[np.floating], y: NDArray[np.floating]) -> str:
    """Of the shapes and of vectors all over both sides."""
    sha = hashlib.sha256()
    for side in (x, y):
        at = np.unique(np.linspace(0, len(side) - 1, SAMPLED).astype(np.int64))
        sha.update(repr((side.shape, str(side.dtype))).encode())
        for row in at.tolist():
            sha.update(np.ascontiguousarray(side[row]).tobytes())
    return sha.hexdigest()


def find_neighbours(
    x: NDArray[np.floating],
    y: NDArray[np.floating],
    plan: TilePlan,
    folder: PathLike,
    *,
    shard: tuple[int, int] = (1, 1),
    device: str = "cpu",
    progress: Progress = lambda done, total: None,
) -> None:
    """Does the tiles that are not done yet; what is found lies in the folder.

    Args:
        x: (n, d), in memory or mapped.
        y: (m, d), vectors of the target.
        plan: how they are cut.
        folder: of lists and journal; created.
        shard: which tiles, ``(2, 8)`` the second of eight parts.
        device: where the products are made.
        progress: called after each tile.

    Raises:
        ConfigError: the folder holds another plan, or another process is at work there.
        DataError: a vector is not finite.
    """
    scanner = make_scanner(make_frame(x, y), device=device)
    blocks: dict[str, tuple[int, Any]] = {}

    def block(name: str, side: NDArray[np.floating], start: int, size: int) -> Any:
        if name not in blocks or blocks[name][0] != start:
            blocks.pop(name, None)  # before the next one is made
            blocks[name] = start, scanner.prepare(read_block(side, start, size), of_x=name == "x")
        return blocks[name][1]

    with exclusive(Path(folder), remedy="choose another --work folder"):
        journal = TileJournal(folder, plan, shard, progress)
        for i, j in journal.left:
            of_x, of_y = journal.read((i, j))
            scanner.scan(block("x", x, i, plan.rows), block("y", y, j, plan.columns), of_x, of_y)
            journal.write((i, j), of_x, of_y)


class TileJournal:
    """What is done of a plan, and the lists that came of it.

    Args:
        folder: of lists and journal; created.
        plan: how the pairs are cut.
        shard: which tiles.
        progress: called after each tile.

    Attributes:
        left: tiles to be done.

    Raises:
        ConfigError: the folder holds another plan.
    """

    def __init__(
        self,
        folder: PathLike,
        plan: TilePlan,
        shard: tuple[int, int] = (1, 1),
        progress: Progress = lambda done, total: None,
    ) -> None:
        self.folder = Path(folder)
        self.plan = plan
        self.progress = progress
        tiles = list(plan.tiles(shard))
        self._done = _begin(self.folder, plan, shard)
        self._read: dict[Side, BlockLists] = {}
        self.left = [tile for tile in tiles if tile not in self._done.tiles]
        self.total = sum(plan.pairs(*tile) for tile in tiles)
        self.finished = self.total - sum(plan.pairs(*tile) for tile in self.left)
        progress(self.finished, self.total)

    def read(self, tile: Tile) -> tuple[Lists, Lists]:
        """The lists of both blocks so far.

        Raises:
            DataError: lists are gone or damaged that the journal says are done.
        """
        for side, start in _blocks(tile):
            self._read[side] = read_lists(self.folder, side, start, self.plan.shape(side, start), self._done)
        return self._read["x"].lists, self._read["y"].lists

    def write(self, tile: Tile, of_x: Lists, of_y: Lists) -> None:
        """Keeps the lists of both blocks of the tile that was read last, with the tile's pairs among them."""
        write_lists(self.folder, "x", tile[0], BlockLists(of_x, self._read["x"].partners | {tile[1]}))
        write_lists(self.folder, "y", tile[1], BlockLists(of_y, self._read["y"].partners | {tile[0]}))
        add_to_journal(self.folder, tile)
        self._done.add(tile)
        self.finished += self.plan.pairs(*tile)
        self.progress(self.finished, self.total)


def read_neighbours(plan: TilePlan, folder: PathLike) -> tuple[Neighbours, Neighbours]:
    """Neighbours of x in y and of y in x, when all tiles are done.

    Raises:
        DataError: some are not.
    """
    found = []
    sides: tuple[Side, Side] = ("x", "y")
    for side in sides:
        parts = [neighbours for _, neighbours in neighbour_blocks(plan, folder, side)]
        found.append(Neighbours(*(torch.cat(values) for values in zip(*parts, strict=True))))
    return found[0], found[1]


def neighbour_blocks(plan: TilePlan, folder: PathLike, side: Side) -> Iterator[tuple[int, Neighbours]]:
    """The neighbours of one side, a block at a time: the number of its first vector, and theirs.

    Args:
        plan: with all tiles done.
        folder: of lists and journal.
        side: ``x`` or ``y``.

    Raises:
        DataError: some tiles are not done, or lists are gone or damaged.
    """
    folder = Path(folder)
    done = read_journal(folder)
    missing = set(plan.tiles()) - done.tiles
    if missing:
        raise DataError(
            f"{len(missing)} tiles of {len(list(plan.tiles()))} are not done yet; run it again", path=folder
        )
    for start in plan.starts(side):
        yield start, neighbours_of(read_lists(folder, side, start, plan.shape(side, start), done).lists)


def join_shards(plan: TilePlan, shards: list[Path], folder: PathLike) -> None:
    """Makes one folder of the folders of several machines.

    Raises:
        ConfigError: one holds another plan.
        DataError: lists of one are gone or damaged.
    """
    folder = Path(folder)
    done = _begin(folder, plan, (1, 1))
    for shard in shards:
        _check_plan(shard, plan)
    journals = {shard: read_journal(shard) for shard in shards}
    sides: tuple[Side, Side] = ("x", "y")
    for side in sides:
        for start in plan.starts(side):
            shape = plan.shape(side, start)
            whole = read_lists(folder, side, start, shape, done)
            for shard, journal in journals.items():
                part = read_lists(shard, side, start, shape, journal)
                whole.lists.join(part.lists)
                whole.partners.update(part.partners)
            write_lists(folder, side, start, whole)
    for journal in journals.values():
        for tile in journal.tiles:
            done.add(tile)
    write_journal(folder, done)


def _blocks(tile: Tile) -> tuple[tuple[Side, int], tuple[Side, int]]:
    """Side and first vector of both blocks of a tile."""
    return ("x", tile[0]), ("y", tile[1])


def _begin(folder: Path, plan: TilePlan, shard: tuple[int, int]) -> DoneTiles:
    number, shards = shard
    if not 1 <= number <= shards:
        raise ConfigError(f"shard {number}/{shards}: the first number goes from 1 to the second")
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / PLAN).exists():
        _check_plan(folder, plan)
        done = read_journal(folder)
        write_journal(folder, done)  # without a line that was cut
        return done
    with atomic_write(folder / PLAN) as file:
        json.dump(dataclasses.asdict(plan), file)
    return DoneTiles()


def _check_plan(folder: Path, plan: TilePlan) -> None:
    try:
        there = parse_json((folder / PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder} holds no plan that can be read; choose another folder or remove it") from error
    known = there if isinstance(there, dict) else {}
    changed = [key for key, value in dataclasses.asdict(plan).items() if known.get(key) != value]
    if changed:
        what = "other vectors" if changed == ["digest"] else f"another {', '.join(changed)}"
        raise ConfigError(f"{folder} holds the neighbours of a run with {what}; choose another folder or remove it")
