from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.evaluation import store as stores
from interlingua.evaluation.key_index import KEY_BYTES
from interlingua.evaluation.store import VectorStore


def keys(*numbers):
    return [bytes([number] * KEY_BYTES) for number in numbers]


def vectors(*numbers, dim=3):
    return np.array([[number + place / 8 for place in range(dim)] for number in numbers], dtype=np.float32)


def present(store, *numbers):
    """Those of the keys that a store has, in the order of their rows."""
    rows = store.find(keys(*numbers)).tolist()
    return [number for row, number in sorted(zip(rows, numbers, strict=True)) if row >= 0]


def kept(path):
    """The numbers of the keys in a file."""
    store = VectorStore(path)
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
    made = VectorStore(path if request.param == "named" else None)
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
    first = VectorStore(path)
    first.append(keys(1, 2), vectors(1, 2), np.array([False, True]))
    first.close(keep=True)
    second = VectorStore(path)
    assert (second.dim, present(second, 1, 2, 3)) == (3, [1, 2])
    second.append(keys(3), vectors(3), np.array([False]))
    assert np.array_equal(look_up(second, 0, 1, 2), vectors(1, 2, 3))
    assert second.marked(np.arange(3)).tolist() == [False, True, False]
    second.close()
    assert not path.exists()


@pytest.mark.parametrize("lost", [1, 19, 20, 31, 33, 47, 48])
def test_a_record_that_was_not_written_to_its_end_is_none(path, lost):
    first = VectorStore(path)
    first.append(keys(1, 2), vectors(1, 2), np.array([False, False]))
    first.close(keep=True)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - lost)  # a record has 32 bytes
    second = VectorStore(path)
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
    store = VectorStore(path)
    store.append(keys(1), vectors(1), np.array([False]))
    store.close(keep=True)
    assert kept(path) == [1]


def test_two_processes_never_write_to_one_file(path):
    first, second = VectorStore(path), VectorStore(path)
    for number, store in enumerate((first, second)):
        store.append(keys(number), vectors(number), np.array([False]))
    second.close(keep=True)
    first.close(keep=True)
    assert kept(path) == [0]


def test_a_file_without_vectors_is_not_kept(path):
    VectorStore(path).close(keep=True)
    assert not path.exists()


def test_what_the_disk_spoilt_is_noticed(path):
    store = VectorStore(path)
    store.append(keys(1, 2), vectors(1, 2), np.array([True, False]))
    store.close(keep=True)
    with path.open("r+b") as file:
        file.seek(-4, 2)  # in the second vector
        file.write(b"\0\0\0\0")
    store = VectorStore(path)
    assert np.array_equal(look_up(store, 0), vectors(1))
    assert store.marked(np.arange(2)).tolist() == [True, False]
    with pytest.raises(DataError, match=r"kept.vectors: vectors kept here are damaged; remove the file"):
        look_up(store, 0, 1)
    store.close()


def test_a_reader_sees_what_is_whole_and_leaves_the_file(path):
    writer = VectorStore(path)
    writer.append(keys(1), vectors(1), np.array([True]))
    reader = VectorStore(path, alone=False)
    writer.append(keys(2), vectors(2), np.array([False]))
    assert (present(reader, 1, 2), reader.dim, reader.is_alone, writer.is_alone) == ([1], 3, False, True)
    assert np.array_equal(look_up(reader, 0), vectors(1))
    reader.close()
    assert path.exists()
    writer.close()


def test_an_existing_file_is_read_in_parts(path, monkeypatch):
    monkeypatch.setattr(stores, "_READ_AT_ONCE", 2)
    first = VectorStore(path)
    first.append(keys(1, 2, 3, 4, 5), vectors(1, 2, 3, 4, 5), np.array([True, False, False, True, True]))
    first.close(keep=True)
    second = VectorStore(path)
    assert second.find(keys(5, 4, 3, 2, 1, 0)).tolist() == [4, 3, 2, 1, 0, -1]
    assert second.marked(np.arange(5)).tolist() == [True, False, False, True, True]
    assert np.array_equal(look_up(second, 1, 2, 3), vectors(2, 3, 4))
    second.close()
