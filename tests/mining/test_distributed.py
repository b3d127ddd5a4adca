from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.mining.distributed import find_neighbours_on, tile_lists
from interlingua.mining.knn import mutual_neighbours
from interlingua.mining.scan import Block, Frame
from interlingua.mining.tiles import find_neighbours, read_neighbours
from interlingua.mining.workers import Here
from tests.mining.scanners import crowded
from tests.mining.test_tiles import assert_same, small_plan


class Dying(Here):
    """Does some tasks and is then stopped; what it was given can't be written to, as it comes from afar."""

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
    plan, told = small_plan(x, y), []
    find_neighbours_on(Here(), x, y, plan, tmp_path / "a", progress=lambda *at: told.append(at))
    assert_same(read_neighbours(plan, tmp_path / "a"), mutual_neighbours(x, y, k=4))
    assert (told[0], told[-1], len(told)) == ((0, 120 * 130), (120 * 130, 120 * 130), 13)


@pytest.mark.parametrize("tasks", [1, 5, 11])
def test_one_process_and_many_go_on_where_the_other_stopped(tmp_path, tasks):
    x, y = crowded(1, 120, 130, 16)
    plan = small_plan(x, y)
    find_neighbours(x, y, plan, tmp_path / "straight")
    with pytest.raises(KeyboardInterrupt):
        find_neighbours_on(Dying(tasks), x, y, plan, tmp_path / "a")
    assert len((tmp_path / "a" / "journal.txt").read_text().splitlines()) == tasks
    find_neighbours(x, y, plan, tmp_path / "a")
    with pytest.raises(KeyboardInterrupt):
        find_neighbours_on(Dying(tasks), x, y, plan, tmp_path / "b")
    find_neighbours_on(Dying(99), x, y, plan, tmp_path / "b")
    for path in (tmp_path / "straight").glob("*.npz"):
        assert path.read_bytes() == (tmp_path / "a" / path.name).read_bytes()
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_a_tile_by_itself():
    x, y = crowded(2, 30, 3, 16)
    plan = small_plan(x, y)
    of_x, of_y = tile_lists(Block(x[10:], 10), Block(y, 0), Frame(x[0], y[0]), plan, "cpu")
    expected = mutual_neighbours(x[10:], y, k=4)
    assert of_x.indices.tolist() == expected[0].indices.tolist()
    assert of_y.indices.tolist() == (expected[1].indices + 10).tolist()


def test_a_broken_vector_is_told_by_its_place(tmp_path):
    x, y = crowded(3, 120, 130, 16)
    y[77, 3] = np.nan
    with pytest.raises(DataError, match="vector 77 "):
        find_neighbours_on(Here(), x, y, small_plan(x, y), tmp_path / "a")
