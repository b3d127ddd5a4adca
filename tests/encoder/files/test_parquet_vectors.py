from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from interlingua.encoder.files.parquet_vectors import ParquetVectors, is_parquet, require_pyarrow
from interlingua.errors import DataError, MissingExtraError

parquet = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8"])
def test_rows_come_back_with_their_type(dtype, tmp_path):
    vectors = np.arange(15).reshape(5, 3).astype(dtype)
    with ParquetVectors(tmp_path / "v.parquet") as table:
        table.write(["a", "", "ß"], vectors[:3])
        table.write(["ж", "e"], vectors[3:])
    assert (table.rows, table.width, table.dtype) == (5, 3, dtype)
    found = parquet.read_table(tmp_path / "v.parquet")
    assert found.schema.field("vector").type.list_size == 3
    assert str(found.schema.field("vector").type.value_type) == {"float32": "float"}.get(
        dtype, dtype
    )
    assert found["text"].to_pylist() == ["a", "", "ß", "ж", "e"]
    assert found["vector"].to_pylist() == vectors.tolist()


def test_every_portion_is_a_row_group(tmp_path):
    with ParquetVectors(tmp_path / "v.parquet") as table:
        for rows in (4, 1, 2):
            table.write(["x"] * rows, np.zeros((rows, 2), np.float32))
    about = parquet.read_metadata(tmp_path / "v.parquet")
    assert [about.row_group(n).num_rows for n in range(about.num_row_groups)] == [4, 1, 2]


def test_portions_are_on_the_disk_before_the_end(tmp_path):
    """Check that the temporary file grows with each portion, so memory is bounded."""
    portion = np.ones((1000, 256), np.float32)
    with ParquetVectors(tmp_path / "v.parquet") as table:
        sizes = []
        for _ in range(3):
            table.write(["x"] * 1000, portion)
            (temporary,) = tmp_path.iterdir()
            sizes.append(temporary.stat().st_size)
    assert np.diff(sizes).min() >= portion.nbytes


def test_after_an_error_the_older_file_is_there(tmp_path):
    path = tmp_path / "v.parquet"
    path.write_bytes(b"older")
    with pytest.raises(KeyboardInterrupt), ParquetVectors(path) as table:
        table.write(["x"], np.zeros((1, 2), np.float32))
        raise KeyboardInterrupt
    assert [entry.name for entry in tmp_path.iterdir()] == ["v.parquet"]
    assert path.read_bytes() == b"older"


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe"):
        ParquetVectors(tmp_path / "pipe")


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[parquet\]"):
        require_pyarrow()


@pytest.mark.parametrize(
    ("name", "expected"), [("v.parquet", True), ("s3://b/V.PARQUET", True), ("v.npy", False)]
)
def test_the_name_decides(name, expected):
    assert is_parquet(name) == expected
