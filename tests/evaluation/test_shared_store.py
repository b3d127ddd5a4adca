from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from interlingua.evaluation.key_index import KEY_BYTES
from interlingua.evaluation.shared_store import SharedStore


def keys(*numbers):
    return [bytes([number] * KEY_BYTES) for number in numbers]


def vectors(*numbers, dim=3):
    return np.array([[number + place / 8 for place in range(dim)] for number in numbers], dtype=np.float32)


def add(store, *numbers):
    store.append(keys(*numbers), vectors(*numbers), np.array([number % 2 == 1 for number in numbers]))


def look_up(store, *numbers):
    return store.vectors(store.find(keys(*numbers)))


def present(store):
    """The numbers of the keys that a store has."""
    found = set(np.flatnonzero(store.find(keys(*range(10))) >= 0).tolist())
    assert len(found) == store.count
    return found


def test_vectors_are_there_for_the_next_run(tmp_path):
    first = SharedStore(tmp_path / "deep" / "kept")
    assert (first.dim, present(first)) == (0, set())
    add(first, 1, 2)
    first.close(keep=False)  # whatever a run's end was
    second = SharedStore(tmp_path / "deep" / "kept")
    assert (second.dim, present(second)) == (3, {1, 2})
    add(second, 3)
    assert np.array_equal(look_up(second, 3, 1, 2, 3), vectors(3, 1, 2, 3))
    second.close()
    assert [path.name for path in (tmp_path / "deep" / "kept").iterdir()] == ["0.vectors"]


def test_processes_at_a_time_write_to_files_of_their_own(tmp_path):
    first = SharedStore(tmp_path)
    add(first, 1, 2)
    second, third = SharedStore(tmp_path), SharedStore(tmp_path)
    assert present(second) == present(third) == {1, 2}
    add(second, 5)
    add(third, 6, 7)
    add(first, 3, 4)
    assert np.array_equal(look_up(second, 5, 2, 1), vectors(5, 2, 1))
    assert second.marked(second.find(keys(2, 5, 1))).tolist() == [False, True, True]
    for store in (second, first, third):
        store.close()
    last = SharedStore(tmp_path)
    assert np.array_equal(look_up(last, 7, 1, 5, 4, 6), vectors(7, 1, 5, 4, 6))
    assert last.marked(last.find(keys(6, 7, 1, 4))).tolist() == [False, True, True, False]
    last.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.vectors", "1.vectors", "2.vectors"]


def test_a_process_that_is_killed_spoils_nothing(tmp_path):
    code = (
        "import os, sys, numpy as np\n"
        "from pathlib import Path\n"
        "from interlingua.evaluation.shared_store import SharedStore\n"
        "store = SharedStore(Path(sys.argv[1]))\n"
        "store.append([bytes([9] * 16)], np.full((1, 3), 9, np.float32), np.array([False]))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    with (tmp_path / "0.vectors").open("ab") as file:
        file.write(b"half a record")
    store = SharedStore(tmp_path)
    add(store, 4)
    store.close()
    again = SharedStore(tmp_path)
    assert np.array_equal(look_up(again, 9, 4), np.concatenate([np.full((1, 3), 9), vectors(4)]))
    again.close()


def test_a_folder_without_vectors_has_no_files(tmp_path):
    SharedStore(tmp_path).close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("removed", ["0.vectors", "1.vectors"])
def test_files_may_be_removed(tmp_path, removed):
    first = SharedStore(tmp_path)
    add(first, 1)
    second = SharedStore(tmp_path)
    add(second, 2)
    first.close()
    second.close()
    (tmp_path / removed).unlink()
    store = SharedStore(tmp_path)
    left = 2 if removed[0] == "0" else 1
    assert present(store) == {left}
    add(store, 3)
    store.close()
    again = SharedStore(tmp_path)
    assert present(again) == present(store) == {left, 3}
    again.close()
