from __future__ import annotations

import tracemalloc

import pytest

from interlingua.errors import DataError
from interlingua.evaluation.tasks.retrieval.passage_ids import PassageIds


def table(*portions):
    ids = PassageIds("swh_Latn")
    for portion in portions:
        ids.extend(portion)
    return ids


def test_ids_are_those_of_a_list():
    names = ["12#0", "", "kifungu", "пассаж", "\ud800", "12#1"]
    ids = table(names[:2], [], names[2:])
    assert list(ids) == names
    assert (len(ids), ids[-1], ids[1:4]) == (6, "12#1", names[1:4])
    assert "kifungu" in ids
    with pytest.raises(IndexError):
        ids[6]


@pytest.mark.parametrize("portions", [[["a", "b", "a"]], [["a"], ["b", "a"]]])
def test_an_id_that_stands_twice_is_refused(portions):
    with pytest.raises(DataError, match=r"'a'.*twice.*swh_Latn"):
        table(*portions)


def test_a_closed_table_takes_no_more():
    ids = table(["a"])
    ids.close()
    with pytest.raises(ValueError, match="closed"):
        ids.extend(["b"])
    assert list(ids) == ["a"]


def test_memory_is_the_bytes_of_an_id_and_8_more():
    count = 30_000
    tracemalloc.start()
    ids = PassageIds("swh_Latn")
    for first in range(0, count, 1000):
        ids.extend([f"{row:08}" for row in range(first, first + 1000)])
    ids.close()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert (8 + 8) * count <= held < 1.3 * (8 + 8) * count  # both grow by an eighth ahead
