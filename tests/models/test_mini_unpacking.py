"""models/mini: weights in four and eight bits, and the folder that they are unpacked to."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

SOURCES = Path(__file__).resolve().parents[2] / "models" / "mini" / "src"
TABLE, MATRIX, BIAS = "embeddings.word_embeddings.weight", "layer.weight", "layer.bias"


@pytest.fixture
def packing(monkeypatch):
    """The package's modules, of this checkout."""
    monkeypatch.syspath_prepend(SOURCES)
    for name in [name for name in sys.modules if name.startswith("interlingua_mini")]:
        monkeypatch.delitem(sys.modules, name)
    import interlingua_mini.packing

    return interlingua_mini.packing


@pytest.fixture
def weights():
    rng = np.random.default_rng(1)
    scales = rng.uniform(0.001, 0.1, (6, 2)).astype(np.float16).astype(np.float32)
    codes = rng.integers(-8, 8, (6, 2, 32)).astype(np.float32)
    codes[..., 0] = -8  # the largest value of a block decides the scale
    return {
        TABLE: (codes * scales[..., None]).reshape(6, 64),
        MATRIX: rng.normal(size=(5, 7)).astype(np.float32),
        BIAS: rng.normal(size=5).astype(np.float32),
    }


@pytest.fixture
def unpacking(packing, weights, tmp_path, monkeypatch):
    """The module, with a package of three tensors and a cache folder of its own."""
    import interlingua_mini.unpacking as module

    packed = tmp_path / "package"
    (packed / "1_Pooling").mkdir(parents=True)
    (packed / "1_Pooling" / "config.json").write_text("{}")
    (packed / "config.json").write_text("{}")
    (packed / module.DIGEST).write_text("0123456789abcdef0123")
    save_file(packing.pack(weights, four_bits=TABLE), packed / module.PACKED_WEIGHTS)
    monkeypatch.setattr(module, "PACKED", packed)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    return module


def test_four_bits_hold_what_came_from_four_bits(packing, weights):
    packed = packing.pack(weights, four_bits=TABLE)
    assert packed[TABLE + packing.FOUR].nbytes == weights[TABLE].size // 2
    assert np.array_equal(packing.unpack(packed)[TABLE], weights[TABLE])


def test_other_values_are_a_fraction_of_a_step_away(packing):
    values = np.random.default_rng(2).normal(size=(10, 64)).astype(np.float32)
    steps = np.abs(values.reshape(10, 2, 32)).max(axis=2) / 8
    error = np.abs(
        packing.unpack(packing.pack({TABLE: values}, four_bits=TABLE))[TABLE] - values
    ).reshape(10, 2, 32)
    assert (error <= 1.001 * steps[..., None]).all()
    assert (error <= 0.501 * steps[..., None]).mean() > 0.95


def test_eight_bits_are_half_a_step_away_and_vectors_stay_exact(packing, weights):
    packed = packing.pack(weights, four_bits=TABLE)
    assert packed[MATRIX + packing.EIGHT].dtype == np.int8
    restored = packing.unpack(packed)
    steps = np.abs(weights[MATRIX]).max(axis=1, keepdims=True) / 127
    assert (np.abs(restored[MATRIX] - weights[MATRIX]) <= 0.501 * steps).all()
    assert np.array_equal(restored[BIAS], weights[BIAS])
    assert list(restored) == list(weights)


def test_rows_of_zeros_stay_zeros(packing):
    zeros = {TABLE: np.zeros((3, 32), np.float32), MATRIX: np.zeros((3, 4), np.float32)}
    restored = packing.unpack(packing.pack(zeros, four_bits=TABLE))
    assert all(not values.any() for values in restored.values())


def test_the_folder_is_written_once(unpacking, weights, tmp_path):
    folder = unpacking.folder()
    assert folder == tmp_path / "cache" / "interlingua" / "mini-0123456789abcdef"
    assert {
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    } == {
        "config.json",
        "1_Pooling/config.json",
        "model.safetensors",
    }
    assert np.array_equal(load_file(folder / "model.safetensors")[TABLE], weights[TABLE])
    before = (folder / "model.safetensors").stat().st_mtime_ns
    assert unpacking.folder() == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_where_the_cache_can_t_be_written_the_temporary_folder_takes_it(unpacking, tmp_path):
    (tmp_path / "cache").write_text("a file, no folder")
    assert unpacking.folder().parent.parent == tmp_path / "temporary"


def test_the_folder_of_another_user_is_not_read(unpacking, tmp_path, monkeypatch):
    unpacking.folder()
    owner = os.getuid()
    monkeypatch.setattr(unpacking.os, "getuid", lambda: owner + 1)
    with pytest.raises(OSError, match=r"belongs to another user.*XDG_CACHE_HOME"):
        unpacking.folder()


def test_what_a_killed_process_left_is_removed_after_an_hour(unpacking, tmp_path):
    cache = tmp_path / "cache" / "interlingua"
    old, new = cache / ".mini-0123456789abcdef.old", cache / ".mini-0123456789abcdef.new"
    for left in (old, new):
        left.mkdir(parents=True)
    os.utime(old, (time.time() - 2 * unpacking.AN_HOUR,) * 2)
    unpacking.folder()
    assert not old.exists()
    assert new.exists()


def test_of_two_processes_the_first_one_s_folder_stays(unpacking, monkeypatch):
    write = unpacking.write_stock

    def meanwhile(target, packed):
        monkeypatch.setattr(unpacking, "write_stock", write)
        (unpacking.folder() / "first").touch()
        write(target, packed)

    monkeypatch.setattr(unpacking, "write_stock", meanwhile)
    folder = unpacking.folder()
    assert (folder / "first").exists()
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_full_disk_is_one_error_and_leaves_nothing(unpacking, tmp_path, monkeypatch):
    def full(target, packed):
        (target / "part").write_text("")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(unpacking, "write_stock", full)
    with pytest.raises(OSError, match="No space left"):
        unpacking.folder()
    assert not list((tmp_path / "cache" / "interlingua").iterdir())
