from __future__ import annotations

import shutil
from dataclasses import asdict, replace

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.retrieval.topk.lists import NeighborLists
from interlingua.retrieval.topk.tiles import (
    JOURNAL,
    BlockLists,
    DoneTiles,
    TilePlan,
    neighbor_blocks,
    read_done,
    read_lists,
    search_tiles,
    write_lists,
)
from interlingua.storage.journal import Journal
from tests.retrieval.topk.scanners import crowded, small_plan

SHAPE = (5, 3)
PLAN = TilePlan(rows=50, columns=40, n=100, m=90, width=8, k=3, digest="d")
DONE = DoneTiles([(0, 0), (0, 40), (50, 0)])


@pytest.fixture
def lists():
    draw = np.random.default_rng(0)
    return NeighborLists(
        draw.standard_normal(SHAPE).astype(np.float32), draw.integers(0, 90, SHAPE)
    )


def test_a_block_knows_its_partners():
    assert DONE.partners("x", 0) == {0, 40}
    assert DONE.partners("y", 0) == {0, 50}
    assert DONE.partners("y", 7) == set()


def test_lists_come_back_as_they_were(tmp_path, lists):
    write_lists(tmp_path, "x", 0, BlockLists(lists, {0, 40, 80}))  # newer than the journal
    found = read_lists(tmp_path, "x", 0, SHAPE, DONE)
    np.testing.assert_array_equal(found.lists.values, lists.values)
    np.testing.assert_array_equal(found.lists.indices, lists.indices)
    assert found.partners == {0, 40, 80}


def test_without_a_finished_tile_lists_are_empty(tmp_path):
    found = read_lists(tmp_path, "x", 100, SHAPE, DONE)
    assert (found.lists.indices == -1).all()
    assert found.partners == set()


def test_missing_old_and_foreign_lists_are_errors(tmp_path, lists):
    with pytest.raises(DataError, match=r"x-0\.npz: is missing, .*journal\.txt"):
        read_lists(tmp_path, "x", 0, SHAPE, DONE)
    write_lists(tmp_path, "x", 0, BlockLists(lists, {0}))
    with pytest.raises(DataError, match=r"x-0\.npz: .*older"):
        read_lists(tmp_path, "x", 0, SHAPE, DONE)
    write_lists(tmp_path, "x", 0, BlockLists(lists, {0, 40}))
    with pytest.raises(DataError, match=r"x-0\.npz: .* of another run"):
        read_lists(tmp_path, "x", 0, (5, 4), DONE)


def test_no_flipped_bit_changes_a_list_unnoticed(tmp_path, lists):
    write_lists(tmp_path, "x", 0, BlockLists(lists, {0, 40}))
    path = tmp_path / "x-0.npz"
    content = path.read_bytes()
    noticed = 0
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        try:
            found = read_lists(tmp_path, "x", 0, SHAPE, DONE)
        except DataError:
            noticed += 1
            continue
        np.testing.assert_array_equal(found.lists.values, lists.values)
        np.testing.assert_array_equal(found.lists.indices, lists.indices)
        assert found.partners == {0, 40}
    assert noticed > lists.values.nbytes + lists.indices.nbytes


def test_no_cut_file_of_lists_is_taken(tmp_path, lists):
    write_lists(tmp_path, "x", 0, BlockLists(lists, {0, 40}))
    path = tmp_path / "x-0.npz"
    content = path.read_bytes()
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        with pytest.raises(DataError, match="is damaged"):
            read_lists(tmp_path, "x", 0, SHAPE, DONE)


def test_lines_of_the_journal_that_are_none_name_no_tile(tmp_path):
    journal = Journal(tmp_path / JOURNAL)
    journal.write([asdict(PLAN), *DONE.tiles, (50, 40)])
    with journal.path.open("ab") as file:
        file.write(b"1\n2 x\n\xff 3\n-1 0\n" + b"9" * 30 + b" 0\n0 4")
    assert read_done(tmp_path, PLAN).tiles == {*DONE.tiles, (50, 40)}
    assert read_done(tmp_path / "none", PLAN).tiles == set()
    with pytest.raises(ConfigError, match="another k "):
        read_done(tmp_path, replace(PLAN, k=9))


def test_lists_of_a_tile_that_was_cut_off_are_not_those_of_another_plan(tmp_path):
    """Kill in the first tile, after its lists were written and before its line."""
    x, y = crowded(4, 60, 70, 16)
    search_tiles(x, y, small_plan(x, y), tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    Journal(tmp_path / "cut" / JOURNAL).write([asdict(small_plan(x, y))])
    search_tiles(x, -y, small_plan(x, -y), tmp_path / "cut")
    search_tiles(x, -y, small_plan(x, -y), tmp_path / "new")
    for side in ("x", "y"):
        [cut], [new] = (
            [found for _, found in neighbor_blocks(small_plan(x, -y), tmp_path / name, side)][:1]
            for name in ("cut", "new")
        )
        assert (cut.indices == new.indices).all()


@pytest.mark.parametrize("other", [("y", 0), ("x", 50)])
def test_lists_under_the_name_of_another_block_are_errors(tmp_path, lists, other):
    """Swap the names of two files, of blocks of one size."""
    write_lists(tmp_path, *other, BlockLists(lists, {0, 40, 50}))
    (tmp_path / f"{other[0]}-{other[1]}.npz").rename(tmp_path / "x-0.npz")
    with pytest.raises(DataError, match=r"x-0\.npz: .*another block"):
        read_lists(tmp_path, "x", 0, SHAPE, DONE)
