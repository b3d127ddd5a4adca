from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.evaluation.store import KEY_BYTES, VectorStore


def keys(*numbers):
    return [bytes([number] * KEY_BYTES) for number in numbers]


def vectors(*numbers, dim=3):
    return np.array([[number + place / 8 for place in range(dim)] for number in numbers], dtype=np.float32)


def kept(path):
    """The keys in a file."""
    store = VectorStore(path)
    store.close(keep=True)
    return list(store.rows)


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
    assert store.rows == dict(zip(keys(1, 2, 0), range(3), strict=True))
    assert np.array_equal(store.vectors([2, 0, 0, 1]), vectors(0, 1, 1, 2))
    assert store.marked(np.array([2, 0, 1])).tolist() == [True, False, True]
    assert store.vectors([]).shape == (0, 3)


def test_an_empty_store_has_no_vectors(store):
    assert store.vectors([]).shape == (0, 0)
    assert store.marked(np.array([], dtype=np.int64)).tolist() == []


def test_what_was_kept_is_there_again(path):
    first = VectorStore(path)
    first.append(keys(1, 2), vectors(1, 2), np.array([False, True]))
    first.close(keep=True)
    second = VectorStore(path)
    assert (second.dim, list(second.rows)) == (3, keys(1, 2))
    second.append(keys(3), vectors(3), np.array([False]))
    assert np.array_equal(second.vectors([0, 1, 2]), vectors(1, 2, 3))
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
    assert len(second.rows) == whole
    second.append(keys(7), vectors(7), np.array([True]))
    assert np.array_equal(second.vectors([whole]), vectors(7))
    second.close(keep=True)
    assert kept(path) == keys(1, 7)[-1 - whole :]


@pytest.mark.parametrize("content", [b"", b"short", b"something else altogether, of any length"])
def test_another_file_is_written_anew(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    store = VectorStore(path)
    store.append(keys(1), vectors(1), np.array([False]))
    store.close(keep=True)
    assert kept(path) == keys(1)


def test_two_processes_never_write_to_one_file(path):
    first, second = VectorStore(path), VectorStore(path)
    for number, store in enumerate((first, second)):
        store.append(keys(number), vectors(number), np.array([False]))
    second.close(keep=True)
    first.close(keep=True)
    assert kept(path) == keys(0)


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
    assert np.array_equal(store.vectors([0]), vectors(1))
    assert store.marked(np.arange(2)).tolist() == [True, False]
    with pytest.raises(DataError, match=r"kept.vectors: vectors kept here are damaged; remove the file"):
        store.vectors([0, 1])
    store.close()


def test_a_reader_sees_what_is_whole_and_leaves_the_file(path):
    writer = VectorStore(path)
    writer.append(keys(1), vectors(1), np.array([True]))
    reader = VectorStore(path, alone=False)
    writer.append(keys(2), vectors(2), np.array([False]))
    assert (list(reader.rows), reader.dim, reader.is_alone, writer.is_alone) == (keys(1), 3, False, True)
    assert np.array_equal(reader.vectors([0]), vectors(1))
    reader.close()
    assert path.exists()
    writer.close()
