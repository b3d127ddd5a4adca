from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.evaluation import vector_files
from interlingua.evaluation.key_index import KEY_BYTES
from interlingua.evaluation.vector_files import VectorFile, VectorFiles


def keys(*numbers):
    return [bytes([number] * KEY_BYTES) for number in numbers]


def vectors(*numbers, dim=3):
    return np.array(
        [[number + place / 8 for place in range(dim)] for number in numbers], dtype=np.float32
    )


def present(store, *numbers):
    """Return the keys that a store has, in the order of their rows."""
    rows = store.find(keys(*numbers)).tolist()
    return [number for row, number in sorted(zip(rows, numbers, strict=True)) if row >= 0]


def kept(path):
    """Return the numbers of the keys in a file."""
    store = VectorFiles.unfinished(path)
    store.close(keep=True)
    found = present(store, *range(10))
    assert len(found) == store.count
    return found


def look_up(store, *rows):
    return store.vectors(np.array(rows, dtype=np.int64))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "kept.vectors"


@pytest.fixture(params=["named", "temporary"])
def store(request, path):
    made = VectorFiles.unfinished(path if request.param == "named" else None)
    yield made
    made.close()


def test_rows_come_back_in_the_order_asked(store):
    store.append(keys(1, 2), vectors(1, 2), np.array([False, True]))
    store.append(keys(0), vectors(0), np.array([True]))  # a key of zero bytes is a key
    assert store.find(keys(1, 2, 0, 5)).tolist() == [0, 1, 2, -1]
    assert np.array_equal(look_up(store, 2, 0, 0, 1), vectors(0, 1, 1, 2))
    assert store.marked(np.array([2, 0, 1])).tolist() == [True, False, True]
    assert look_up(store).shape == (0, 3)


def test_an_empty_store_has_no_vectors(store):
    assert look_up(store).shape == (0, 0)
    assert store.marked(np.array([], dtype=np.int64)).tolist() == []


def test_what_was_kept_is_there_again(path):
    first = VectorFiles.unfinished(path)
    first.append(keys(1, 2), vectors(1, 2), np.array([False, True]))
    first.close(keep=True)
    second = VectorFiles.unfinished(path)
    assert (second.dim, present(second, 1, 2, 3)) == (3, [1, 2])
    second.append(keys(3), vectors(3), np.array([False]))
    assert np.array_equal(look_up(second, 0, 1, 2), vectors(1, 2, 3))
    assert second.marked(np.arange(3)).tolist() == [False, True, False]
    second.close()
    assert not path.exists()


@pytest.mark.parametrize("lost", [1, 19, 20, 31, 33, 47, 48])
def test_a_record_that_was_not_written_to_its_end_is_none(path, lost):
    first = VectorFiles.unfinished(path)
    first.append(keys(1, 2), vectors(1, 2), np.array([False, False]))
    first.close(keep=True)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - lost)  # a record has 32 bytes
    second = VectorFiles.unfinished(path)
    whole = 1 if lost <= 32 else 0
    assert second.count == whole
    second.append(keys(7), vectors(7), np.array([True]))
    assert np.array_equal(look_up(second, whole), vectors(7))
    second.close(keep=True)
    assert kept(path) == [1, 7][-1 - whole :]


@pytest.mark.parametrize("content", [b"", b"short", b"something else altogether, of any length"])
def test_another_file_is_written_anew(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    store = VectorFiles.unfinished(path)
    store.append(keys(1), vectors(1), np.array([False]))
    store.close(keep=True)
    assert kept(path) == [1]


def test_two_processes_never_write_to_one_file(path):
    first, second = VectorFiles.unfinished(path), VectorFiles.unfinished(path)
    for number, store in enumerate((first, second)):
        store.append(keys(number), vectors(number), np.array([False]))
    second.close(keep=True)
    first.close(keep=True)
    assert kept(path) == [0]


def test_a_file_without_vectors_is_not_kept(path):
    VectorFiles.unfinished(path).close(keep=True)
    assert not path.exists()


def test_what_the_disk_spoilt_is_noticed(path):
    store = VectorFiles.unfinished(path)
    store.append(keys(1, 2), vectors(1, 2), np.array([True, False]))
    store.close(keep=True)
    with path.open("r+b") as file:
        file.seek(-4, 2)  # in the second vector
        file.write(b"\0\0\0\0")
    store = VectorFiles.unfinished(path)
    assert np.array_equal(look_up(store, 0), vectors(1))
    assert store.marked(np.arange(2)).tolist() == [True, False]
    with pytest.raises(DataError, match=r"kept.vectors: .*damaged"):
        look_up(store, 0, 1)
    store.close()


def test_a_reader_sees_what_is_whole_and_leaves_the_file(path):
    writer = VectorFiles.unfinished(path)
    writer.append(keys(1), vectors(1), np.array([True]))
    reader = VectorFiles(VectorFile(path.open("rb"), path), stays=True)
    writer.append(keys(2), vectors(2), np.array([False]))
    assert (present(reader, 1, 2), reader.dim) == ([1], 3)
    assert np.array_equal(look_up(reader, 0), vectors(1))
    reader.close()
    assert path.exists()
    writer.close()


def test_an_existing_file_is_read_in_parts(path, monkeypatch):
    monkeypatch.setattr(vector_files, "_READ_AT_ONCE", 2)
    first = VectorFiles.unfinished(path)
    first.append(
        keys(1, 2, 3, 4, 5), vectors(1, 2, 3, 4, 5), np.array([True, False, False, True, True])
    )
    first.close(keep=True)
    second = VectorFiles.unfinished(path)
    assert second.find(keys(5, 4, 3, 2, 1, 0)).tolist() == [4, 3, 2, 1, 0, -1]
    assert second.marked(np.arange(5)).tolist() == [True, False, False, True, True]
    assert np.array_equal(look_up(second, 1, 2, 3), vectors(2, 3, 4))
    second.close()


def add(store, *numbers):
    store.append(
        keys(*numbers), vectors(*numbers), np.array([number % 2 == 1 for number in numbers])
    )


def by_key(store, *numbers):
    return store.vectors(store.find(keys(*numbers)))


def all_present(store):
    found = set(present(store, *range(10)))
    assert len(found) == store.count
    return found


def test_vectors_are_there_for_the_next_run(tmp_path):
    first = VectorFiles.shared(tmp_path / "deep" / "kept")
    assert (first.dim, all_present(first)) == (0, set())
    add(first, 1, 2)
    first.close(keep=False)  # whatever a run's end was
    second = VectorFiles.shared(tmp_path / "deep" / "kept")
    assert (second.dim, all_present(second)) == (3, {1, 2})
    add(second, 3)
    assert np.array_equal(by_key(second, 3, 1, 2, 3), vectors(3, 1, 2, 3))
    second.close()
    assert [path.name for path in (tmp_path / "deep" / "kept").iterdir()] == ["0.vectors"]


def test_processes_at_a_time_write_to_files_of_their_own(tmp_path):
    first = VectorFiles.shared(tmp_path)
    add(first, 1, 2)
    second, third = VectorFiles.shared(tmp_path), VectorFiles.shared(tmp_path)
    assert all_present(second) == all_present(third) == {1, 2}
    add(second, 5)
    add(third, 6, 7)
    add(first, 3, 4)
    assert np.array_equal(by_key(second, 5, 2, 1), vectors(5, 2, 1))
    assert second.marked(second.find(keys(2, 5, 1))).tolist() == [False, True, True]
    for store in (second, first, third):
        store.close()
    last = VectorFiles.shared(tmp_path)
    assert np.array_equal(by_key(last, 7, 1, 5, 4, 6), vectors(7, 1, 5, 4, 6))
    assert last.marked(last.find(keys(6, 7, 1, 4))).tolist() == [False, True, True, False]
    last.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "0.vectors",
        "1.vectors",
        "2.vectors",
    ]


def test_a_process_that_is_killed_spoils_nothing(tmp_path):
    code = (
        "import os, sys, numpy as np\n"
        "from pathlib import Path\n"
        "from interlingua.evaluation.vector_files import VectorFiles\n"
        "store = VectorFiles.shared(Path(sys.argv[1]))\n"
        "store.append([bytes([9] * 16)], np.full((1, 3), 9, np.float32), np.array([False]))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    with (tmp_path / "0.vectors").open("ab") as file:
        file.write(b"half a record")
    store = VectorFiles.shared(tmp_path)
    add(store, 4)
    store.close()
    again = VectorFiles.shared(tmp_path)
    assert np.array_equal(by_key(again, 9, 4), np.concatenate([np.full((1, 3), 9), vectors(4)]))
    again.close()


def test_a_folder_without_vectors_has_no_files(tmp_path):
    VectorFiles.shared(tmp_path).close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("removed", ["0.vectors", "1.vectors"])
def test_files_may_be_removed(tmp_path, removed):
    first = VectorFiles.shared(tmp_path)
    add(first, 1)
    second = VectorFiles.shared(tmp_path)
    add(second, 2)
    first.close()
    second.close()
    (tmp_path / removed).unlink()
    store = VectorFiles.shared(tmp_path)
    left = 2 if removed[0] == "0" else 1
    assert all_present(store) == {left}
    add(store, 3)
    store.close()
    again = VectorFiles.shared(tmp_path)
    assert all_present(again) == all_present(store) == {left, 3}
    again.close()
