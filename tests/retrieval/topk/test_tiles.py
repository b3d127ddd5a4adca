from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.kernels import library
from interlingua.retrieval.topk import tiles
from interlingua.retrieval.topk.exact import mutual_topk
from interlingua.retrieval.topk.tiles import (
    TilePlan,
    block_sizes,
    bytes_of_a_vector,
    join_shards,
    search_tiles,
)
from interlingua.retrieval.topk.torch_scanner import _TILE_COLUMNS, _TILE_ROWS
from interlingua.storage.locks import exclusive
from tests.progress_records import Recorded
from tests.retrieval.topk.scanners import assert_equal, crowded, read_neighbors, small_plan


@pytest.mark.parametrize(("n", "m"), [(120, 130), (1, 90), (50, 3)])
def test_tiles_find_what_one_pass_finds(tmp_path, n, m):
    x, y = crowded(0, n, m, 16)
    plan, told = small_plan(x, y), Recorded()
    search_tiles(x, y, plan, tmp_path / "knn", progress=told)
    assert_equal(read_neighbors(plan, tmp_path / "knn"), mutual_topk(x, y, k=4))
    assert told.counts[0] == (0, n * m)
    assert told.counts[-1] == (n * m, n * m)
    assert len(told.counts) == 1 + len(list(plan.tiles()))


def test_shards_of_several_machines_join_to_the_same(tmp_path):
    x, y = crowded(1, 170, 130, 16)
    plan = small_plan(x, y)
    folders = [tmp_path / str(number) for number in (1, 2, 3)]
    for number, folder in enumerate(folders, start=1):
        search_tiles(x, y, plan, folder, shard=(number, 3))
    with pytest.raises(DataError, match="tiles of 16"):
        read_neighbors(plan, folders[0])
    join_shards(plan, folders, tmp_path / "all")
    assert_equal(read_neighbors(plan, tmp_path / "all"), mutual_topk(x, y, k=4))


def test_two_runs_do_not_work_in_one_folder(tmp_path):
    """Start two runs. Each would write lists without the other's later results."""
    x, y = crowded(2, 60, 50, 16)
    plan = small_plan(x, y)
    with (
        exclusive(tmp_path, remedy="x"),
        pytest.raises(ConfigError, match=f"in use by process {os.getpid()}"),
    ):
        search_tiles(x, y, plan, tmp_path)
    search_tiles(x, y, plan, tmp_path)
    assert_equal(read_neighbors(plan, tmp_path), mutual_topk(x, y, k=4))


def test_what_is_done_is_not_done_again(tmp_path, monkeypatch):
    x, y = crowded(3, 60, 70, 16)
    plan = small_plan(x, y)
    search_tiles(x, y, plan, tmp_path / "knn")
    monkeypatch.setattr(tiles, "read_block", lambda *_: pytest.fail("a vector is read"))
    search_tiles(x, y, plan, tmp_path / "knn")


def test_other_vectors_or_sizes_are_refused(tmp_path):
    x, y = crowded(4, 60, 70, 16)
    search_tiles(x, y, small_plan(x, y), tmp_path / "knn")
    with pytest.raises(ConfigError, match="another digest"):
        search_tiles(x, -y, small_plan(x, -y), tmp_path / "knn")
    with pytest.raises(ConfigError, match="another k "):
        search_tiles(x, y, small_plan(x, y, rows=20, k=3), tmp_path / "knn")
    journal = tmp_path / "knn" / "journal.txt"
    journal.write_bytes(journal.read_bytes()[5:])
    with pytest.raises(ConfigError, match="damaged"):
        search_tiles(x, y, small_plan(x, y), tmp_path / "knn")
    with pytest.raises(ConfigError, match="shard 3/2"):
        search_tiles(x, y, small_plan(x, y), tmp_path / "other", shard=(3, 2))


def test_columns_go_to_and_fro_and_shards_take_turns():
    """Check that the last block of y in a row of tiles is the first of the next row."""
    plan = TilePlan(rows=2, columns=3, n=8, m=7, width=1, k=1, digest="")
    there, back = [0, 3, 6], [6, 3, 0]
    assert list(plan.tiles()) == [
        (row, column)
        for row, ways in zip((0, 2, 4, 6), (there, back) * 2, strict=True)
        for column in ways
    ]
    assert list(plan.tiles((2, 2))) == [
        (row, column) for row, ways in ((2, there), (6, back)) for column in ways
    ]


def test_the_memory_of_a_vector_by_hand():
    """Count four copies of eight float32, one of eight float16, three lists of four neighbors."""
    assert bytes_of_a_vector(8, 4) == 4 * 32 + 16 + 3 * 4 * 12


def test_a_plan_fills_the_memory_it_is_given():
    x, y = np.zeros((3_000_000, 8), np.float16), np.zeros((500, 8), np.float16)
    plan = TilePlan.of(x, y, k=4, memory=2**26)
    assert plan.columns == 500
    each = bytes_of_a_vector(8, 4)
    assert 3 * plan.rows // 2 * each <= 2**26 < 2 * plan.rows * each
    assert sum(plan.pairs(*tile) for tile in plan.tiles()) == 3_000_000 * 500
    with pytest.raises(ConfigError, match=r"^262,144 bytes .* --memory \d+MiB$"):
        TilePlan.of(x, y, k=4, memory=2**18)


def test_blocks_are_even_and_a_tile_is_done_within_a_minute():
    x = np.zeros((1_000_000, 4), np.float16)
    plan = TilePlan.of(x, x, k=4, memory=2**33)
    assert (plan.rows, plan.columns) == (250_000, 62_500)
    assert {plan.pairs(*tile) for tile in plan.tiles()} == {250_000 * 62_500}


MEASURED = """
import sys, resource, numpy as np
from interlingua.retrieval.topk.tiles import TilePlan, search_tiles

folder, memory = sys.argv[1], 24 * 2**20
x, y = (np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in "xy")
first = TilePlan.of(x[:64], y[:64], k=4, memory=memory)
search_tiles(x[:64], y[:64], first, folder + "/first")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
plan = TilePlan.of(x, y, k=4, memory=memory)
assert len(list(plan.tiles())) > 5
search_tiles(x, y, plan, folder + "/knn")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_stays_within_the_plan(tmp_path):
    """Measure the peak above the imports, in a separate process."""
    rng = np.random.default_rng(0)
    for name in ("x", "y"):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal((40_000, 64)).astype(np.float16))
    command = [sys.executable, "-c", MEASURED, str(tmp_path)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    grown = int(subprocess.check_output(command, env=environment)) * 1024
    # their pages count as resident
    mapped = sum(path.stat().st_size for path in tmp_path.glob("*.npy"))
    # The buffers of a tile are added: small in the compiled search, the products and
    # two masks in torch.
    work = 3 * 4 * _TILE_ROWS * _TILE_COLUMNS if library("neighbors") is None else 16 * 2**20
    assert grown < 24 * 2**20 + mapped + work


def test_more_neighbors_than_texts_take_no_more_memory():
    assert block_sizes(3, 5, 384, 100_000, 2**30) == block_sizes(3, 5, 384, 5, 2**30)


def test_too_little_memory_names_what_is_enough():
    with pytest.raises(ConfigError, match=r"--memory \d+MiB, .*--k than 100,000") as caught:
        block_sizes(10**6, 10**6, 384, 100_000, 2**30)
    enough = int(re.search(r"(\d+)MiB", str(caught.value))[1]) << 20
    assert min(block_sizes(10**6, 10**6, 384, 100_000, enough)) >= 1
