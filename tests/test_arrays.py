from __future__ import annotations

import numpy as np
import pytest

from interlingua import limits
from interlingua.arrays import arrays_of, map_array
from interlingua.errors import DataError


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
    for name, content in (("a.npy", b"\x93NUMPY\1\0\4\0(((\n"), ("c.npy", b""), ("d.npy", b"cpickle")):
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
    with pytest.raises(DataError, match="would grow"):
        dict(arrays_of(tmp_path / "b.npz"))
    monkeypatch.setattr(limits, "MAX_MEMBERS", 1)
    with pytest.raises(DataError, match="2 arrays, more than 1"):
        dict(arrays_of(tmp_path / "b.npz"))
