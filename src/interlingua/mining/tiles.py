"""Nearest neighbours of corpora of any length: in tiles, in bounded memory, on from where a killed run stopped.

A tile is all pairs of a block of x and a block of y. The lists of every block lie in a file of their own, written anew
after each tile that brought them up to date; a journal names the tiles that are done. A tile done twice changes nothing
(``Lists``), so whatever moment a run is killed at, the next one ends with the same bytes. Tiles of the same plan may be
done on several machines, each in a folder of its own: ``join_shards`` makes one of them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from interlingua.errors import ConfigError, DataError
from interlingua.files import PathLike, atomic_write
from interlingua.mining.knn import Neighbours, centre, check_sides, make_scanner, neighbours_of, read_block
from interlingua.mining.lists import Lists
from interlingua.mining.scan import Centres

PLAN, JOURNAL = "plan.json", "journal.txt"
SAMPLED = 64
"""Vectors of a side that its digest is taken of."""
Told = Callable[[int, int], None]
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
    def of(cls, x: NDArray[np.floating], y: NDArray[np.floating], *, k: int, memory: int) -> TilePlan:
        """The largest blocks that go into ``memory`` bytes beside what they are worked on with.

        Raises:
            ConfigError: not even small blocks do.
        """
        check_sides(x, y, k)
        width = x.shape[1]
        each = bytes_of_a_vector(width, k)
        block = min(memory // (3 * each), 2**20)
        if block < 1024:
            raise ConfigError(
                f"{memory / 2**20:.0f} MiB are too little; give at least {3 * each * 1024 / 2**20:.0f} MiB"
            )
        return cls(
            rows=min(len(x), 2 * block), columns=min(len(y), block), n=len(x), m=len(y), width=width, k=k,
            digest=digest(x, y),
        )  # fmt: skip

    def tiles(self, shard: tuple[int, int] = (1, 1)) -> Iterator[tuple[int, int]]:
        """First row and column of every tile of a shard, ``(2, 8)`` the second of eight; to and fro."""
        number, shards = shard
        for turn, i in enumerate(range((number - 1) * self.rows, self.n, shards * self.rows)):
            columns = list(range(0, self.m, self.columns))
            yield from ((i, j) for j in (columns if turn % 2 == 0 else columns[::-1]))

    def pairs(self, i: int, j: int) -> int:
        """Of the tile that begins there."""
        return min(self.rows, self.n - i) * min(self.columns, self.m - j)


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
    progress: Told = lambda done, total: None,
) -> None:
    """Does the tiles that are not done yet; what is found lies in the folder.

    Args:
        x: (n, d), in memory or mapped.
        y: (m, d), likewise.
        plan: how they are cut.
        folder: of lists and journal; created.
        shard: which tiles, ``(2, 8)`` the second of eight parts.
        device: where the products are made.
        progress: told after each tile.

    Raises:
        ConfigError: the folder holds another plan.
        DataError: a vector is not finite.
    """
    folder = Path(folder)
    done = _begin(folder, plan, shard)
    tiles = list(plan.tiles(shard))
    total, finished = sum(plan.pairs(*tile) for tile in tiles), sum(plan.pairs(*tile) for tile in tiles if tile in done)
    progress(finished, total)
    scanner = make_scanner(Centres(centre(x), centre(y)), device=device)
    blocks: dict[str, tuple[int, Any]] = {}

    def block(name: str, side: NDArray[np.floating], start: int, size: int) -> Any:
        if name not in blocks or blocks[name][0] != start:
            blocks.pop(name, None)  # before the next one is made
            blocks[name] = start, scanner.prepare(read_block(side, start, size), of_x=name == "x")
        return blocks[name][1]

    for i, j in tiles:
        if (i, j) in done:
            continue
        of_x = _read(folder, "x", i, min(plan.rows, plan.n - i), min(plan.k, plan.m))
        of_y = _read(folder, "y", j, min(plan.columns, plan.m - j), min(plan.k, plan.n))
        scanner.scan(block("x", x, i, plan.rows), block("y", y, j, plan.columns), of_x, of_y)
        _write(folder, "x", i, of_x)
        _write(folder, "y", j, of_y)
        with open(folder / JOURNAL, "a", encoding="ascii") as journal:
            journal.write(f"{i} {j}\n")
            journal.flush()
            os.fsync(journal.fileno())
        finished += plan.pairs(i, j)
        progress(finished, total)


def read_neighbours(plan: TilePlan, folder: PathLike) -> tuple[Neighbours, Neighbours]:
    """Neighbours of x in y and of y in x, when all tiles are done.

    Raises:
        DataError: some are not.
    """
    found = []
    for side in ("x", "y"):
        parts = [neighbours for _, neighbours in neighbour_blocks(plan, folder, side)]
        found.append(Neighbours(*(torch.cat(values) for values in zip(*parts, strict=True))))
    return found[0], found[1]


def neighbour_blocks(plan: TilePlan, folder: PathLike, side: str) -> Iterator[tuple[int, Neighbours]]:
    """The neighbours of one side, a block at a time: the number of its first vector, and theirs.

    Args:
        plan: all of whose tiles are done.
        folder: of lists and journal.
        side: ``x`` or ``y``.

    Raises:
        DataError: some tiles are not done.
    """
    folder = Path(folder)
    missing = set(plan.tiles()) - _done(folder)
    if missing:
        raise DataError(
            f"{len(missing)} tiles of {len(list(plan.tiles()))} are not done yet; run it again", path=folder
        )
    size, step, others = (plan.n, plan.rows, plan.m) if side == "x" else (plan.m, plan.columns, plan.n)
    for at in range(0, size, step):
        yield at, neighbours_of(_read(folder, side, at, min(step, size - at), min(plan.k, others)))


def join_shards(plan: TilePlan, shards: list[Path], folder: PathLike) -> None:
    """Makes one folder of the folders of several machines.

    Raises:
        ConfigError: one holds another plan.
    """
    folder = Path(folder)
    done = _begin(folder, plan, (1, 1))
    for name, size, step, others in (("x", plan.n, plan.rows, plan.m), ("y", plan.m, plan.columns, plan.n)):
        for at in range(0, size, step):
            lists = _read(folder, name, at, min(step, size - at), min(plan.k, others))
            for shard in shards:
                _check_plan(shard, plan)
                lists.join(_read(shard, name, at, *lists.values.shape))
            _write(folder, name, at, lists)
    _write_journal(folder, done.union(*map(_done, shards)))


def _begin(folder: Path, plan: TilePlan, shard: tuple[int, int]) -> set[tuple[int, int]]:
    number, shards = shard
    if not 1 <= number <= shards:
        raise ConfigError(f"shard {number}/{shards}: the first number goes from 1 to the second")
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / PLAN).exists():
        _check_plan(folder, plan)
        done = _done(folder)
        _write_journal(folder, done)  # without a line that was cut
        return done
    with atomic_write(folder / PLAN) as file:
        json.dump(dataclasses.asdict(plan), file)
    return set()


def _check_plan(folder: Path, plan: TilePlan) -> None:
    try:
        there = json.loads((folder / PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder} holds no plan that can be read; choose another folder or remove it") from error
    changed = [key for key, value in dataclasses.asdict(plan).items() if there.get(key) != value]
    if changed:
        what = "other vectors" if changed == ["digest"] else f"another {', '.join(changed)}"
        raise ConfigError(f"{folder} holds the neighbours of a run with {what}; choose another folder or remove it")


def _done(folder: Path) -> set[tuple[int, int]]:
    try:
        lines = (folder / JOURNAL).read_text(encoding="ascii").split("\n")[:-1]  # a line that was cut is not done
    except FileNotFoundError:
        return set()
    return {(int(i), int(j)) for i, j in map(str.split, lines)}


def _write_journal(folder: Path, done: set[tuple[int, int]]) -> None:
    with atomic_write(folder / JOURNAL, encoding="ascii") as journal:
        journal.writelines(f"{i} {j}\n" for i, j in sorted(done))


def _read(folder: Path, side: str, start: int, n: int, k: int) -> Lists:
    try:
        with np.load(folder / f"{side}-{start}.npz") as file:
            return Lists(file["values"], file["indices"])
    except FileNotFoundError:
        return Lists.empty(n, k)


def _write(folder: Path, side: str, start: int, lists: Lists) -> None:
    with atomic_write(folder / f"{side}-{start}.npz", "wb") as file:
        np.savez(file, values=lists.values, indices=lists.indices)
