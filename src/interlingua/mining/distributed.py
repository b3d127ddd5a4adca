"""Nearest neighbours by many workers, a tile a task."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interlingua.files import PathLike
from interlingua.locks import exclusive
from interlingua.mining.knn import make_frame, make_scanner, read_block
from interlingua.mining.lists import Lists
from interlingua.mining.scan import Block, Frame
from interlingua.mining.tiles import Progress, TileJournal, TilePlan
from interlingua.mining.workers import Workers

TILES_PER_WORKER = 4
"""So that none waits long for the last one."""


def tiles_for(workers: Workers | None) -> int:
    """Tiles that keep them busy; for this process alone any number will do."""
    return 1 if workers is None else workers.slots * TILES_PER_WORKER


def find_neighbours_on(
    workers: Workers,
    x: NDArray[np.floating],
    y: NDArray[np.floating],
    plan: TilePlan,
    folder: PathLike,
    *,
    device: str = "cpu",
    progress: Progress = lambda done, total: None,
) -> None:
    """As ``find_neighbours``, a tile a task; either goes on where the other stopped, and both end with the same bytes.

    Args:
        workers: who does them.
        x: (n, d), in memory or mapped.
        y: (m, d), vectors of the target.
        plan: how they are cut.
        folder: of lists and journal; created.
        device: where the products are made, on the workers.
        progress: called after each tile.

    Raises:
        ConfigError: the folder holds another plan.
        DataError: a vector is not finite.
    """
    frame = make_frame(x, y)
    sides = {"x": (x, plan.rows), "y": (y, plan.columns)}

    @functools.lru_cache(maxsize=2 * workers.slots + 2)
    def block(side: str, start: int) -> Any:
        vectors, size = sides[side]
        return workers.share(read_block(vectors, start, size))

    with exclusive(Path(folder), remedy="choose another --work folder"):
        journal = TileJournal(folder, plan, progress=progress)
        tasks = ((block("x", i), block("y", j), frame, plan, device) for i, j in journal.left)
        for tile, (of_x, of_y) in zip(journal.left, workers.run(tile_lists, tasks), strict=True):
            lists = journal.read(tile)
            for known, new in zip(lists, (of_x, of_y), strict=True):
                known.join(new)
            journal.write(tile, *lists)


def tile_lists(x: Block, y: Block, frame: Frame, plan: TilePlan, device: str) -> tuple[Lists, Lists]:
    """The neighbours within a tile."""
    scanner = make_scanner(frame, device=device)
    found = Lists.empty(len(x.vectors), min(plan.k, plan.m)), Lists.empty(len(y.vectors), min(plan.k, plan.n))
    ready = [
        scanner.prepare(Block(np.array(block.vectors), block.start), of_x=of_x)  # what comes from afar is read-only
        for block, of_x in ((x, True), (y, False))
    ]
    scanner.scan(ready[0], ready[1], *found)
    return found
