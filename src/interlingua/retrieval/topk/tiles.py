"""Nearest neighbors of corpora of any length, tile by tile, by one process or many.

All pairs of a block of x and a block of y are a tile. The lists of neighbors of a block are stored
in a file of their own. A tile reads the lists of its two blocks, brings them up to date with its
pairs, writes both files anew and then adds its line to a journal.

- Bounded memory: only one block of each side, with its lists, is in memory.
- A killed run resumes: a tile that is done twice changes nothing (``NeighborLists``), so the next
  run ends with the same bytes, at whatever moment the run is killed.
- Several machines: each may do tiles of the same plan in a folder of its own, and ``join_shards``
  makes one folder of these. With many workers, each task makes the lists of its own tile only, and
  this process joins them.
- Damage is noticed: a file of lists names its block and the tiles with pairs in it, and its zip
  archive has a checksum of each part. Lists that are missing, damaged, swapped, or older than the
  journal are an error; they never count as a block without neighbors. Lists newer than the journal
  are fine: their tile is done again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from interlingua.errors import ConfigError, DataError, count_of
from interlingua.retrieval.topk.bounds import Block, Frame
from interlingua.retrieval.topk.exact import (
    Neighbors,
    balanced_block_size,
    check_sides,
    make_frame,
    make_scanner,
    neighbors_of,
    read_block,
)
from interlingua.retrieval.topk.lists import NeighborLists
from interlingua.runtime.portions import ceil_div
from interlingua.runtime.progress import SILENT, Progress
from interlingua.runtime.workers import Workers
from interlingua.storage.files import PathLike, atomic_write, remove_entries
from interlingua.storage.journal import Journal
from interlingua.storage.locks import exclusive

_MOST_ROWS = 2**18
_MOST_COLUMNS = 2**16
"""Maximum vectors of a block, so that a tile takes less than a minute; blocks of y are prepared
again for each block of x."""
_LEAST = 4096
"""Vectors of a block that is not cut further."""
SAMPLED = 64
"""Number of vectors of a side in its digest."""
FEW_NEIGHBORS = 64
"""Maximum k for which the lists do not take most of the memory."""
TILES_PER_WORKER = 4
"""Tiles per worker, so that no worker waits long for the one that finishes last."""
JOURNAL = "journal.txt"
LISTS = r"[xy]-\d+\.npz"
"""Names of the files of lists."""
_REMEDY = "use another folder, or delete it"
Side = Literal["x", "y"]
Tile = tuple[int, int]
"""The first row and the first column of a tile."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TilePlan:
    """The division of the pairs into tiles.

    Attributes:
        rows: vectors of x in a block.
        columns: vectors of y in a block.
        n: vectors of x.
        m: vectors of y.
        width: of a vector.
        k: neighbors of each.
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
        cls,
        x: NDArray[np.floating],
        y: NDArray[np.floating],
        *,
        k: int,
        memory: int,
        least_tiles: int = 1,
    ) -> TilePlan:
        """Plan large blocks that fit into ``memory`` bytes together with their working memory.

        Args:
            x: (n, d).
            y: (m, d).
            k: neighbors of each.
            memory: bytes.
            least_tiles: minimum number of tiles; there are fewer if their blocks would become
                smaller than ``_LEAST``.

        Raises:
            ConfigError: not even small blocks fit.
        """
        check_sides(x, y, k)
        n = len(x)
        m = len(y)
        width = x.shape[1]
        rows, columns = block_sizes(n, m, width, k, memory, least_tiles)
        return cls(
            rows=rows, columns=columns, n=n, m=m, width=width, k=k, digest=sides_digest(x, y)
        )

    def begun(self, folders: Iterable[Path], memory: int) -> TilePlan:
        """Return the plan of the same search if one of the folders holds it, otherwise this one.

        A plan with blocks that do not fit into the memory is skipped.
        """
        for folder in folders:
            # No plan, or an unreadable one: a run that starts in that folder reports it.
            try:
                found = TilePlan(**Journal(folder / JOURNAL).head())
                fits = (found.rows + found.columns) * bytes_of_a_vector(
                    self.width, self.k
                ) <= memory
            except TypeError:
                continue
            # The same plan except for the sizes of its blocks, which depend on that run's memory.
            if fits and dataclasses.replace(self, rows=found.rows, columns=found.columns) == found:
                return found
        return self

    def tiles(self, shard: tuple[int, int] = (1, 1)) -> Iterator[tuple[int, int]]:
        """Yield the first row and column of every tile of a shard.

        ``(2, 8)`` is the second of eight shards. The columns alternate in direction: the last block
        of y of one row of tiles is the first of the next, and need not be prepared again.
        """
        number, shards = shard
        # A shard has every n-th block of x, and all of y.
        for turn, i in enumerate(range((number - 1) * self.rows, self.n, shards * self.rows)):
            columns = list(range(0, self.m, self.columns))
            if turn % 2 == 1:
                columns.reverse()
            for j in columns:
                yield i, j

    def starts(self, side: Side) -> range:
        """Return the first vectors of the blocks of a side."""
        if side == "x":
            return range(0, self.n, self.rows)
        return range(0, self.m, self.columns)

    def shape(self, side: Side, start: int) -> tuple[int, int]:
        """Return the number of vectors in the block at ``start``, and of neighbors of each one."""
        if side == "x":
            return min(self.rows, self.n - start), min(self.k, self.m)
        return min(self.columns, self.m - start), min(self.k, self.n)

    def pairs(self, i: int, j: int) -> int:
        """Return the number of pairs of the tile that starts at row ``i`` and column ``j``."""
        return min(self.rows, self.n - i) * min(self.columns, self.m - j)


def block_sizes(
    n: int, m: int, width: int, k: int, memory: int, least_tiles: int = 1
) -> tuple[int, int]:
    """Return the number of vectors of x and of y in a block; see ``TilePlan.of``.

    Raises:
        ConfigError: not even small blocks fit into the memory.
    """
    # A text has no more neighbors than there are texts.
    each = bytes_of_a_vector(width, min(k, max(n, m)))
    # One third of the memory is for a block of y, two thirds are for a block of x. Each block of x
    # meets all of y, so y is prepared fewer times if the blocks of x are larger.
    block = memory // (3 * each)
    if block < 1024:
        least = ceil_div(3 * each * 1024, 2**20)
        lower = ""
        if k > FEW_NEIGHBORS:
            lower = f", or a lower --k than {k:,}"
        raise ConfigError(
            f"{memory:,} bytes of memory are not sufficient; pass at least --memory"
            f" {least}MiB{lower}"
        )
    rows = balanced_block_size(n, min(2 * block, _MOST_ROWS))
    columns = balanced_block_size(m, min(block, _MOST_COLUMNS))
    # Too few tiles for many workers: the longer side of a tile is cut in two, again and again.
    while ceil_div(n, rows) * ceil_div(m, columns) < least_tiles:
        if max(rows, columns) < 2 * _LEAST:
            break
        if rows > columns:
            rows = balanced_block_size(n, ceil_div(rows, 2))
        else:
            columns = balanced_block_size(m, ceil_div(columns, 2))
    return rows, columns


def bytes_of_a_vector(width: int, k: int) -> int:
    """Return the bytes of a vector of a block: float32, its temporary rounded copies, its lists."""
    # A list has a float32 and an int64 per neighbor, and takes three times as much while pairs are
    # sorted in.
    return 4 * width * 4 + 2 * width + 3 * k * 12


def sides_digest(x: NDArray[np.floating], y: NDArray[np.floating]) -> str:
    """Compute a digest of the shapes and of vectors that are spread over both sides."""
    sha = hashlib.sha256()
    for side in (x, y):
        at = np.unique(np.linspace(0, len(side) - 1, SAMPLED).astype(np.int64))
        sha.update(repr((side.shape, str(side.dtype))).encode())
        for row in at.tolist():
            sha.update(np.ascontiguousarray(side[row]).tobytes())
    return sha.hexdigest()


def search_tiles(
    x: NDArray[np.floating],
    y: NDArray[np.floating],
    plan: TilePlan,
    folder: PathLike | None,
    *,
    shard: tuple[int, int] = (1, 1),
    workers: Workers | None = None,
    device: str = "cpu",
    progress: Progress = SILENT,
) -> TileLists:
    """Process the tiles that are not done yet; the lists are in the folder, or in memory.

    Workers can resume a search that this process started, and this process can resume a search that
    workers started. The resulting bytes are the same.

    Args:
        x: (n, d), in memory or mapped.
        y: (m, d), vectors of the target.
        plan: how the sides are cut.
        folder: of lists and journal, created; None = all lists stay in memory.
        shard: the tiles to process; ``(2, 8)`` means the second of eight parts.
        workers: processes that search one tile per task; None = this process searches all.
        device: where the products are computed.
        progress: shows how far the work is.

    Raises:
        ConfigError: the folder holds another plan, or another process is using it.
        DataError: a vector is not finite.
    """
    with contextlib.ExitStack() as stack:
        if folder is not None:
            remedy = "use another --work folder"
            stack.enter_context(exclusive(Path(folder), remedy=remedy, private=True))
        lists = tile_lists_in(folder, plan, shard, progress)
        frame = make_frame(x, y)
        if workers is None:
            _search_here(x, y, frame, lists, device)
        else:
            _search_on(workers, x, y, frame, lists, device)
    return lists


def _search_here(
    x: NDArray[np.floating],
    y: NDArray[np.floating],
    frame: Frame,
    lists: TileLists,
    device: str,
) -> None:
    """Process the remaining tiles in this process.

    Pairs that are worse than those known from earlier tiles are skipped.
    """
    plan = lists.plan
    scanner = make_scanner(frame, device=device, pairs=plan.n * plan.m)
    # The latest block of either side, made ready.
    blocks: dict[str, tuple[int, Any]] = {}

    def block(name: str, side: NDArray[np.floating], start: int, size: int) -> Any:
        if name not in blocks or blocks[name][0] != start:
            # Its memory is freed before the next one is made.
            blocks.pop(name, None)
            blocks[name] = start, scanner.prepare(read_block(side, start, size), of_x=name == "x")
        return blocks[name][1]

    for i, j in lists.left:
        of_x, of_y = lists.read((i, j))
        scanner.scan(block("x", x, i, plan.rows), block("y", y, j, plan.columns), of_x, of_y)
        lists.write((i, j), of_x, of_y)


def _search_on(
    workers: Workers,
    x: NDArray[np.floating],
    y: NDArray[np.floating],
    frame: Frame,
    lists: TileLists,
    device: str,
) -> None:
    """Process the remaining tiles on the workers, one tile per task.

    The lists that they return are joined with those of earlier tiles.
    """
    plan = lists.plan
    sides = {"x": (x, plan.rows), "y": (y, plan.columns)}

    # A block is sent only once for all tasks that are running or will run soon.
    @functools.lru_cache(maxsize=2 * workers.slots + 2)
    def block(side: str, start: int) -> Any:
        vectors, size = sides[side]
        return workers.share(read_block(vectors, start, size))

    tasks = ((block("x", i), block("y", j), frame, plan, device) for i, j in lists.left)
    for tile, (of_x, of_y) in zip(lists.left, workers.run(tile_lists, tasks), strict=True):
        known_x, known_y = lists.read(tile)
        known_x.join(of_x)
        known_y.join(of_y)
        lists.write(tile, known_x, known_y)


class TileLists:
    """The lists of all blocks of a plan, in memory.

    Args:
        plan: how the pairs are cut.
        shard: which tiles.
        progress: shows how far the work is.
        done: tiles that are done already.

    Attributes:
        left: tiles to be done.
    """

    def __init__(
        self,
        plan: TilePlan,
        shard: tuple[int, int] = (1, 1),
        progress: Progress = SILENT,
        *,
        done: Collection[Tile] = (),
    ) -> None:
        self.plan = plan
        self.progress = progress
        self._blocks: dict[tuple[Side, int], NeighborLists] = {}
        tiles = list(plan.tiles(shard))
        self.left = [tile for tile in tiles if tile not in done]
        total = sum(plan.pairs(*tile) for tile in tiles)
        finished = total - sum(plan.pairs(*tile) for tile in self.left)
        progress.start(total, "products", "nearest neighbors", done=finished)

    def read(self, tile: Tile) -> tuple[NeighborLists, NeighborLists]:
        """Return the lists of both blocks so far."""
        for side, start in _blocks(tile):
            if (side, start) not in self._blocks:
                self._blocks[side, start] = NeighborLists.empty(*self.plan.shape(side, start))
        return self._blocks["x", tile[0]], self._blocks["y", tile[1]]

    def write(self, tile: Tile, of_x: NeighborLists, of_y: NeighborLists) -> None:
        """Store the lists of both blocks of the tile that was read last.

        Args:
            tile: which one.
            of_x: lists of its block of x, with the tile's pairs among them.
            of_y: lists of its block of y.
        """
        self._blocks["x", tile[0]] = of_x
        self._blocks["y", tile[1]] = of_y
        self.progress.advance(self.plan.pairs(*tile))

    def blocks(self, side: Side) -> Iterator[tuple[int, Neighbors]]:
        """Yield the neighbors of one side, a block at a time; see ``neighbor_blocks``."""
        for start in self.plan.starts(side):
            yield start, neighbors_of(self._blocks[side, start])


def tile_lists_in(
    folder: PathLike | None,
    plan: TilePlan,
    shard: tuple[int, int] = (1, 1),
    progress: Progress = SILENT,
) -> TileLists:
    """Return the lists of a plan in a folder, or in memory if there is none."""
    if folder is None:
        return TileLists(plan, shard, progress)
    return TileJournal(folder, plan, shard, progress)


class TileJournal(TileLists):
    """The lists of a plan in the files of a folder, and which of its tiles are done.

    Args:
        folder: of lists and journal; created.
        plan: how the pairs are cut.
        shard: which tiles.
        progress: shows how far the work is.

    Raises:
        ConfigError: the folder holds another plan.
    """

    def __init__(
        self,
        folder: PathLike,
        plan: TilePlan,
        shard: tuple[int, int] = (1, 1),
        progress: Progress = SILENT,
    ) -> None:
        self.folder = Path(folder)
        self._done = _begin(self.folder, plan, shard)
        self._read: dict[Side, BlockLists] = {}
        super().__init__(plan, shard, progress, done=self._done.tiles)

    def read(self, tile: Tile) -> tuple[NeighborLists, NeighborLists]:
        """Read the lists of both blocks so far.

        Raises:
            DataError: lists that the journal records as done are missing or damaged.
        """
        for side, start in _blocks(tile):
            shape = self.plan.shape(side, start)
            self._read[side] = read_lists(self.folder, side, start, shape, self._done)
        return self._read["x"].lists, self._read["y"].lists

    def write(self, tile: Tile, of_x: NeighborLists, of_y: NeighborLists) -> None:
        """Store the lists of both blocks of the tile that was read last.

        Args:
            tile: which one.
            of_x: lists of its block of x, with the tile's pairs among them.
            of_y: lists of its block of y.
        """
        i, j = tile
        block_x = BlockLists(of_x, self._read["x"].partners | {j})
        block_y = BlockLists(of_y, self._read["y"].partners | {i})
        write_lists(self.folder, "x", i, block_x)
        write_lists(self.folder, "y", j, block_y)
        # The journal last: its line promises that both files have the tile's pairs.
        Journal(self.folder / JOURNAL).add(tile)
        self._done.add(tile)
        self.progress.advance(self.plan.pairs(*tile))

    def blocks(self, side: Side) -> Iterator[tuple[int, Neighbors]]:
        """Yield the neighbors of one side from its files; see ``neighbor_blocks``."""
        return neighbor_blocks(self.plan, self.folder, side)


def neighbor_blocks(
    plan: TilePlan, folder: PathLike, side: Side
) -> Iterator[tuple[int, Neighbors]]:
    """Yield, for each block of a side, the number of its first vector and its neighbors.

    Args:
        plan: with all tiles done.
        folder: of lists and journal.
        side: ``x`` or ``y``.

    Raises:
        DataError: some tiles are not done, or lists are missing or damaged.
    """
    folder = Path(folder)
    done = read_done(folder, plan)
    missing = set(plan.tiles()) - done.tiles
    if missing:
        raise DataError(
            f"{count_of(len(missing), 'tiles')} of {len(list(plan.tiles()))} are not finished; run"
            " the search again",
            path=folder,
        )
    for start in plan.starts(side):
        block = read_lists(folder, side, start, plan.shape(side, start), done)
        yield start, neighbors_of(block.lists)


def join_shards(plan: TilePlan, shards: list[Path], folder: PathLike) -> None:
    """Join the folders of several machines into one folder.

    Raises:
        ConfigError: one of the folders holds another plan.
        DataError: lists in a folder are missing or damaged.
    """
    folder = Path(folder)
    done = _begin(folder, plan, (1, 1))
    # All plans are looked at before any list is joined.
    journals = {shard: read_done(shard, plan) for shard in shards}
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
    # The journal is written only now: if this run is killed before, the next one joins the shards
    # again.
    for journal in journals.values():
        for tile in journal.tiles:
            done.add(tile)
    Journal(folder / JOURNAL).write([dataclasses.asdict(plan), *sorted(done.tiles)])


def _blocks(tile: Tile) -> tuple[tuple[Side, int], tuple[Side, int]]:
    """Return the side and the first vector of both blocks of a tile."""
    return ("x", tile[0]), ("y", tile[1])


def _begin(folder: Path, plan: TilePlan, shard: tuple[int, int]) -> DoneTiles:
    """Create the folder of a search, or resume it; return the tiles that are done there.

    Raises:
        ConfigError: the folder holds another plan, or there is no such shard.
    """
    number, shards = shard
    if not 1 <= number <= shards:
        raise ConfigError(
            f"invalid shard {number}/{shards}: expected a first number from 1 to the second number"
        )
    folder.mkdir(parents=True, exist_ok=True)
    done = read_done(folder, plan)
    # If no tile is done, lists in the folder may be of another plan: its run was killed after it
    # wrote the lists of a tile and before it wrote the tile's line.
    if not done.tiles:
        remove_entries(folder, LISTS)
    # Write the journal again, so that the next line is not added to a truncated one.
    Journal(folder / JOURNAL).write([dataclasses.asdict(plan), *sorted(done.tiles)])
    return done


class DoneTiles:
    """Tiles that are done, in total and by block.

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
        """Add one tile."""
        self.tiles.add(tile)
        self._partners["x", tile[0]].add(tile[1])
        self._partners["y", tile[1]].add(tile[0])

    def partners(self, side: Side, start: int) -> set[int]:
        """Return the starts of the other side's blocks that a block was compared with."""
        return self._partners[side, start]


class BlockLists(NamedTuple):
    """The neighbors of a block.

    Attributes:
        lists: of its vectors.
        partners: first rows of the blocks of the other side that were compared with this one.
    """

    lists: NeighborLists
    partners: set[int]


def read_lists(
    folder: Path, side: Side, start: int, shape: tuple[int, int], done: DoneTiles
) -> BlockLists:
    """Read the lists of a block; they are empty if none of its tiles is done.

    Args:
        folder: of the search.
        side: of the block.
        start: its first vector.
        shape: vectors of the block, and neighbors of each.
        done: the tiles that the journal records.

    Raises:
        DataError: the journal records tiles as done, but their pairs are missing.
    """
    path = folder / f"{side}-{start}.npz"
    expected = done.partners(side, start)
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            lists = NeighborLists(file["values"], file["indices"])
            partners = set(file["partners"].tolist())
            block = str(file["block"])
    except FileNotFoundError:
        if expected:
            raise _lost(path, "is missing") from None
        return BlockLists(NeighborLists.empty(*shape), set())
    except Exception as error:
        # For a damaged archive, zipfile and numpy raise errors of a dozen kinds.
        raise _lost(path, "is damaged") from error
    if block != _block_name(side, start):
        raise _lost(path, "contains the lists of another block")
    # The lists may have more partners than the journal records: then the run was killed before it
    # wrote the lines of their tiles.
    if lists.values.shape != shape or lists.indices.shape != shape or not expected <= partners:
        raise _lost(path, "is outdated or of another run")
    return BlockLists(lists, partners)


def write_lists(folder: Path, side: Side, start: int, block: BlockLists) -> None:
    """Replace the earlier lists of a block.

    The new lists are on the disk when this function returns.
    """
    partners = np.array(sorted(block.partners), np.int64)
    with atomic_write(folder / f"{side}-{start}.npz", "wb") as file:
        np.savez(
            file,
            values=block.lists.values,
            indices=block.lists.indices,
            partners=partners,
            block=_block_name(side, start),
        )


def read_done(folder: Path, plan: TilePlan) -> DoneTiles:
    """Read the finished tiles of a folder.

    A truncated or altered line names no tile, so its tile is processed again.

    Raises:
        ConfigError: the tiles are of another plan.
    """
    parts = Journal(folder / JOURNAL).parts(dataclasses.asdict(plan), remedy=_REMEDY)
    return DoneTiles((part[0], part[1]) for part in parts if _is_tile(part))


def _is_tile(part: Any) -> bool:
    """Return whether a part of a journal has the types of a tile."""
    return isinstance(part, list) and list(map(type, part)) == [int, int]


def _block_name(side: Side, start: int) -> str:
    """Return the name that a file records for its lists, so that a swapped file is detected."""
    return f"{side} {start}"


def _lost(path: Path, what: str) -> DataError:
    """Return the error for lists that the journal records and that are missing."""
    return DataError(
        f"{what}, but its tiles are recorded as finished in {JOURNAL}; delete the folder"
        f" {path.parent} and run the same command again",
        path=path,
    )


def tiles_for(workers: Workers | None) -> int:
    """Return a number of tiles that keeps the workers busy; any number if there are no workers."""
    if workers is None:
        return 1
    return workers.slots * TILES_PER_WORKER


def tile_lists(
    x: Block, y: Block, frame: Frame, plan: TilePlan, device: str
) -> tuple[NeighborLists, NeighborLists]:
    """Find the neighbors within a tile."""
    scanner = make_scanner(frame, device=device, pairs=plan.n * plan.m)
    found = (
        NeighborLists.empty(len(x.vectors), min(plan.k, plan.m)),
        NeighborLists.empty(len(y.vectors), min(plan.k, plan.n)),
    )
    # Arrays that come from another process are read-only, so the vectors are copied.
    left = scanner.prepare(Block(np.array(x.vectors), x.start), of_x=True)
    right = scanner.prepare(Block(np.array(y.vectors), y.start), of_x=False)
    scanner.scan(left, right, *found)
    return found
