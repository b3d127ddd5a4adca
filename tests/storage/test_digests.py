from __future__ import annotations

import os

import pytest

from interlingua.storage.digests import are_digests, file_digests, find_damage


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.bin").write_bytes(b"abc")
    (tmp_path / "inner" / "b.bin").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "a.bin")
    return tmp_path


def test_files_are_as_they_were_written(folder):
    found = file_digests(folder)
    assert list(found) == ["a.bin", "inner/b.bin"]
    assert found["a.bin"][0] == 3
    assert are_digests(found)
    assert find_damage(folder, found) == ""


@pytest.mark.parametrize("content", [b"ab", b"abd", b"abcd"])
def test_a_cut_or_changed_file_is_named(folder, content):
    found = file_digests(folder)
    (folder / "a.bin").write_bytes(content)
    assert find_damage(folder, found).startswith("a.bin was truncated or changed")
    os.unlink(folder / "a.bin")
    assert find_damage(folder, found) == "a.bin not found"


@pytest.mark.parametrize("found", [None, [], {"a": 1}, {"a": [1]}, {"a": ["1", "x"]}])
def test_other_values_are_no_digests(found):
    assert not are_digests(found)
