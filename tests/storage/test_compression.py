from __future__ import annotations

import sys

import pytest

from interlingua.errors import MissingExtraError
from interlingua.storage.compression import ZstandardReader, zstandard_library


def test_frames_are_read_and_a_cut_one_is_noticed(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.ZstdCompressor().compress(b"one\n" * 5000)
    (tmp_path / "a.zst").write_bytes(packed + packed)
    with ZstandardReader(tmp_path / "a.zst") as file:
        assert file.read() == b"one\n" * 10_000
    for broken in (packed[:-3], packed + packed[:-5], b"no frame", packed + b"no frame"):
        (tmp_path / "a.zst").write_bytes(broken)
        with ZstandardReader(tmp_path / "a.zst") as file, pytest.raises(EOFError):
            file.read()


def test_the_package_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match="zst"):
        zstandard_library()
