from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.storage import limits
from interlingua.storage.arrays import arrays_of, map_array, normalize_rows, row_cosines, unit_rows


def test_arrays_are_read_back(tmp_path):
    values = np.arange(6.0).reshape(2, 3)
    np.save(tmp_path / "a.npy", values)
    np.savez_compressed(tmp_path / "b.npz", one=values, two=values[0])
    np.testing.assert_array_equal(map_array(tmp_path / "a.npy"), values)
    found = dict(arrays_of(tmp_path / "b.npz"))
    np.testing.assert_array_equal(found["one"], values)
    np.testing.assert_array_equal(found["two"], values[0])


def test_what_is_no_array_or_not_there_is_an_error(tmp_path):
    np.savez(tmp_path / "b.npz", one=np.zeros(3))
    files = {"a.npy": b"\x93NUMPY\1\0\4\0(((\n", "c.npy": b"", "d.npy": b"cpickle"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    for name in ("a.npy", "b.npz", "c.npy", "d.npy", "absent.npy"):
        with pytest.raises(DataError, match=name):
            map_array(tmp_path / name)
    for name in ("a.npy", "absent.npz"):
        with pytest.raises(DataError, match=name):
            dict(arrays_of(tmp_path / name))


def test_an_archive_may_grow_so_often_and_has_so_many_members(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "b.npz", one=np.zeros(100_000), two=np.zeros(3))
    monkeypatch.setattr(limits, "FREE_EXPANSION_BYTES", 1000)
    monkeypatch.setenv(limits.EXPANSION_VARIABLE, "50")
    with pytest.raises(DataError, match="would expand"):
        dict(arrays_of(tmp_path / "b.npz"))
    monkeypatch.setattr(limits, "MAX_MEMBERS", 1)
    with pytest.raises(DataError, match="2 arrays, more than 1"):
        dict(arrays_of(tmp_path / "b.npz"))


def test_rows_of_length_1_by_a_plain_loop():
    vectors = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    expected = [
        [element / sum(e * e for e in row) ** 0.5 for element in row] for row in vectors.tolist()
    ]
    for scaled in (normalize_rows(vectors), unit_rows(vectors)):
        assert scaled.dtype == np.float32
        np.testing.assert_allclose(scaled, expected, rtol=1e-6)


@pytest.mark.parametrize("scale", [normalize_rows, unit_rows])
def test_a_row_of_zeros_stays(scale):
    assert scale(np.zeros((1, 3), dtype=np.float32)).tolist() == [[0.0, 0.0, 0.0]]


def test_cosines_of_rows_by_a_plain_loop():
    x, y = np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32)
    x[4] = 0
    expected = [
        sum(a * b for a, b in zip(u, v, strict=True))
        / max(sum(a * a for a in u) ** 0.5 * sum(b * b for b in v) ** 0.5, 1e-24)
        for u, v in zip(x.tolist(), y.tolist(), strict=True)
    ]
    found = row_cosines(x, y)
    assert found.dtype == np.float64
    assert found[4] == 0
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_cosines_do_not_depend_on_the_length_of_short_rows():
    x = np.array([[3e-8, 4e-8]])
    assert row_cosines(x, np.array([[3e-8, 4e-8]])) == pytest.approx(1)


def test_rows_too_long_or_not_finite_become_nan():
    # The squares of the last are beyond float32.
    rows = np.array([[1e200, 1.0], [np.inf, 1.0], [3e19, 4e19]])
    scaled = unit_rows(rows)
    assert np.isnan(scaled[:2]).any(axis=1).all()
    np.testing.assert_allclose(scaled[2], [0.6, 0.8], rtol=1e-6)
