from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.retrieval.topk.bounds import Block, Frame
from interlingua.retrieval.topk.exact import mutual_topk
from interlingua.retrieval.topk.tiles import search_tiles, tile_lists
from interlingua.runtime.workers import Workers
from interlingua.storage.journal import Journal
from tests.progress_records import Recorded
from tests.retrieval.topk.scanners import assert_equal, crowded, read_neighbors, small_plan


class Dying(Workers):
    """Workers that run some tasks and are then stopped.

    Its input can't be written to, as it is from a remote process.
    """

    def __init__(self, tasks):
        self.tasks = tasks

    def run(self, function, tasks, *, encodes=False):
        for number, task in enumerate(tasks):
            if number == self.tasks:
                raise KeyboardInterrupt
            yield function(*task)

    def share(self, value):
        value.vectors.flags.writeable = False
        return value


def test_tasks_of_tiles_find_what_one_pass_finds(tmp_path):
    x, y = crowded(0, 120, 130, 16)
    plan, told = small_plan(x, y), Recorded()
    search_tiles(x, y, plan, tmp_path / "a", workers=Workers(), progress=told)
    assert_equal(read_neighbors(plan, tmp_path / "a"), mutual_topk(x, y, k=4))
    assert (told.counts[0], told.counts[-1], len(told.counts)) == (
        (0, 120 * 130),
        (120 * 130, 120 * 130),
        13,
    )


@pytest.mark.parametrize("tasks", [1, 5, 11])
def test_one_process_and_many_go_on_where_the_other_stopped(tmp_path, tasks):
    x, y = crowded(1, 120, 130, 16)
    plan = small_plan(x, y)
    search_tiles(x, y, plan, tmp_path / "straight")
    with pytest.raises(KeyboardInterrupt):
        search_tiles(x, y, plan, tmp_path / "a", workers=Dying(tasks))
    _, *tiles = Journal(tmp_path / "a" / "journal.txt").read()
    assert len(tiles) == tasks
    search_tiles(x, y, plan, tmp_path / "a")
    with pytest.raises(KeyboardInterrupt):
        search_tiles(x, y, plan, tmp_path / "b", workers=Dying(tasks))
    search_tiles(x, y, plan, tmp_path / "b", workers=Dying(99))
    for path in (tmp_path / "straight").glob("*.npz"):
        assert path.read_bytes() == (tmp_path / "a" / path.name).read_bytes()
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_a_tile_by_itself():
    x, y = crowded(2, 30, 3, 16)
    plan = small_plan(x, y)
    of_x, of_y = tile_lists(Block(x[10:], 10), Block(y, 0), Frame(x[0], y[0]), plan, "cpu")
    expected = mutual_topk(x[10:], y, k=4)
    assert of_x.indices.tolist() == expected[0].indices.tolist()
    assert of_y.indices.tolist() == (expected[1].indices + 10).tolist()


def test_a_broken_vector_is_told_by_its_place(tmp_path):
    x, y = crowded(3, 120, 130, 16)
    y[77, 3] = np.nan
    with pytest.raises(DataError, match="vector 77 "):
        search_tiles(x, y, small_plan(x, y), tmp_path / "a", workers=Workers())
