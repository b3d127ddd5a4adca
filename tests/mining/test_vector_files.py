from __future__ import annotations

import os
import zlib

import numpy as np
import pytest

from interlingua.mining.vectors import (
    Portion,
    header_of,
    journaled,
    portion_of,
    put,
    read_crc,
    rewrite,
)
from interlingua.storage.journal import Journal


@pytest.fixture
def table(tmp_path):
    made = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
    np.save(tmp_path / "vectors.npy", made)
    return made


def test_the_header_is_numpys(tmp_path, table):
    assert (tmp_path / "vectors.npy").read_bytes() == header_of(6, 3) + table.tobytes()


def test_the_checksum_is_of_the_rows_bytes(tmp_path, table):
    path = tmp_path / "vectors.npy"
    assert read_crc(path, 2, 3, 3) == zlib.crc32(table[2:5].tobytes())
    assert read_crc(path, 4, 3, 3) is None  # one row too many
    assert read_crc(path, 0, 0, 3) is None
    assert read_crc(tmp_path / "none.npy", 0, 1, 3) is None


def test_a_line_of_the_journal_comes_back(tmp_path, table):
    Journal(tmp_path / "vectors-1of1.journal").add(portion_of(2, table[2:5]))
    found = journaled(tmp_path)
    assert list(found.values()) == [[Portion(2, 3, zlib.crc32(table[2:5].tobytes()))]]


def test_lines_that_were_cut_or_changed_name_no_portion(tmp_path):
    journal = tmp_path / "vectors-2of3.journal"
    for values in ((0, 3, 0xABCD), 2048, (2048, 3), (2048, 3, "xyz"), (4096, 3, 0xAB)):
        Journal(journal).add(values)
    journal.write_bytes(journal.read_bytes()[:-2])
    assert journaled(tmp_path) == {journal: [Portion(0, 3, 0xABCD)]}


def test_a_wrong_header_is_put_right(tmp_path, table):
    path = tmp_path / "vectors.npy"
    path.write_bytes(path.read_bytes().replace(b"'<f4'", b"'>f4'"))
    rewrite(path, header_of(6, 3))
    np.testing.assert_array_equal(np.load(path), table)


def test_all_bytes_are_put_where_they_belong(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abcdef")
    handle = os.open(path, os.O_RDWR)
    put(handle, b"XY", 2)
    os.close(handle)
    assert path.read_bytes() == b"abXYef"
