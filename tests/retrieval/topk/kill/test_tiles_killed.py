"""Exact search that is killed and resumed."""

from __future__ import annotations

import signal
import sys

import pytest

from interlingua.retrieval.topk.exact import mutual_topk
from interlingua.retrieval.topk.tiles import search_tiles
from tests.mining.killed import run_script
from tests.retrieval.topk.scanners import assert_equal, crowded, read_neighbors, small_plan

KILLED = """
import os, signal, sys
from interlingua.retrieval.topk import tiles
from tests.retrieval.topk.scanners import crowded, small_plan

folder, moment = sys.argv[1], int(sys.argv[2])
x, y = crowded(2, 120, 130, 16)
write, written = tiles.write_lists, []

def write_and_maybe_die(*arguments):
    write(*arguments)
    written.append(arguments)
    if len(written) == moment:
        os.kill(os.getpid(), signal.SIGKILL)

tiles.write_lists = write_and_maybe_die
tiles.search_tiles(x, y, small_plan(x, y), folder)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_run_that_was_killed_three_times_ends_with_the_same_bytes(tmp_path):
    x, y = crowded(2, 120, 130, 16)
    for moment in (1, 4, 9):  # between the two files of a tile, and before the journal has it
        assert run_script(KILLED, tmp_path / "knn", moment) == -signal.SIGKILL
    with open(tmp_path / "knn" / "journal.txt", "a") as journal:
        journal.write("50 8")  # a line that was cut
    plan = small_plan(x, y)
    search_tiles(x, y, plan, tmp_path / "knn")
    search_tiles(x, y, plan, tmp_path / "straight")
    assert_equal(read_neighbors(plan, tmp_path / "knn"), mutual_topk(x, y, k=4))
    names = sorted(path.name for path in (tmp_path / "straight").glob("*.npz"))
    assert len(names) == 3 + 4
    for name in names:
        assert (tmp_path / "knn" / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()
