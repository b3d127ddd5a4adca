from __future__ import annotations

import errno
import gzip
import os

import pytest

from interlingua import files
from interlingua.errors import DataError


def test_stem_and_suffix_look_through_compression():
    assert files.stem_and_suffix("x/news.tsv.gz") == ("news", ".tsv")
    assert files.stem_and_suffix("news.TSV") == ("news", ".tsv")
    assert files.stem_and_suffix("de-en.xz") == ("de-en", "")


def test_atomic_write_leaves_the_old_file_when_the_block_fails(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), files.atomic_write(path) as file:
        file.write("new")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with files.atomic_write(path) as file:
        file.write("new")
    assert path.read_text() == "new"


def test_full_disk_is_one_clear_line_and_the_old_file_stays(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(DataError, match=r"a\.txt: can't write: No space left on device"),
        files.atomic_write(path) as file,
    ):
        file.write("new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_atomic_directory_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "out"
    with pytest.raises(RuntimeError), files.atomic_directory(target) as folder:
        (folder / "half").write_text("x")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with files.atomic_directory(target) as folder:
        (folder / "a").write_text("1")
    with pytest.raises(DataError, match="already there"), files.atomic_directory(target):
        pass
    with files.atomic_directory(target, overwrite=True) as folder:
        (folder / "b").write_text("2")
    assert [path.name for path in target.iterdir()] == ["b"]
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_text_round_trip_through_every_compression(tmp_path, suffix):
    path = tmp_path / f"a.txt{suffix}"
    with files.open_text_writer(path) as out:
        out.write("eins\nzwei ü\u2028drei\n")
    with files.open_text(path) as lines:
        assert list(lines) == ["eins\n", "zwei ü\u2028drei\n"]
    assert list(tmp_path.iterdir()) == [path]


def test_open_text_skips_the_byte_order_mark(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfhello\n")
    with files.open_text(path) as lines:
        assert list(lines) == ["hello\n"]


def test_bad_bytes_name_the_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\n" * 5000 + b"caf\xe9\n")
    with pytest.raises(DataError, match=r"a\.txt:5001: not UTF-8 \(byte 0xe9\)"), files.open_text(path) as lines:
        list(lines)


def test_missing_and_truncated_files_are_one_clear_line(tmp_path):
    with pytest.raises(DataError, match="no such file"), files.open_text(tmp_path / "absent.txt"):
        pass
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"line\n" * 10000)[:-20])
    with pytest.raises(DataError, match="damaged or cut short"), files.open_text(path) as lines:
        list(lines)


def test_digests_know_names_and_bytes(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_text("1")
    before = files.sha256_tree(tmp_path)
    assert files.sha256_file(tmp_path / "a" / "x") == "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
    (tmp_path / "a" / "x").rename(tmp_path / "a" / "y")
    assert files.sha256_tree(tmp_path) != before


def test_zstandard_frames_are_read_one_after_the_other_and_a_cut_one_is_noticed(tmp_path):
    import zstandard

    frames = [zstandard.ZstdCompressor().compress(text * 50_000) for text in (b"eins\n", b"zwei\n")]
    path = tmp_path / "x.txt.zst"
    path.write_bytes(b"".join(frames))
    with files.open_text(path) as lines:
        assert sum(line == "zwei\n" for line in lines) == 50_000
    for broken in (b"".join(frames)[:-5], frames[0] + b"no frame"):
        path.write_bytes(broken)
        with pytest.raises(DataError, match="damaged or cut short"), files.open_text(path) as lines:
            lines.read()
