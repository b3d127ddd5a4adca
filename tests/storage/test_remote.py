from __future__ import annotations

import gzip
import sys

import fsspec
import pytest

from interlingua.errors import ConfigError, DataError, InterlinguaError, MissingExtraError
from interlingua.storage.remote import (
    check_writable,
    destination,
    exists,
    expand_pattern,
    fetch_file,
    filesystem,
    is_remote,
    keep_inputs,
    name_of,
    state,
)


def refuses(*_, **__):
    raise RuntimeError("no\ncredentials")


@pytest.fixture
def store():
    """A store in this process's memory, empty."""
    files = fsspec.filesystem("memory")
    files.store.clear()
    yield files
    files.store.clear()


def test_names():
    assert not any(map(is_remote, ("a.txt", "/b/a.txt", "file:///b/a.txt")))
    assert is_remote("s3://b/a.txt")
    names = ("a.txt", "s3://b/c/a.txt", "s3://b/c/")
    assert list(map(name_of, names)) == ["a.txt", "a.txt", "c"]


def test_patterns_here_and_elsewhere(tmp_path, store):
    for name in ("b-2.txt", "b-1.txt", "c.txt"):
        (tmp_path / name).write_text(name)
        store.pipe(f"/x/{name}", name.encode())
    assert expand_pattern(tmp_path / "b-*.txt") == [
        str(tmp_path / "b-1.txt"),
        str(tmp_path / "b-2.txt"),
    ]
    assert expand_pattern(f"file://{tmp_path}/c.txt") == [str(tmp_path / "c.txt")]
    assert expand_pattern("memory://x/b-?.txt") == ["memory:///x/b-1.txt", "memory:///x/b-2.txt"]
    assert expand_pattern("memory://x/absent.txt") == ["memory://x/absent.txt"]
    (tmp_path / "d[1].txt").write_text("")
    assert expand_pattern(tmp_path / "d[1].txt") == [str(tmp_path / "d[1].txt")]
    for pattern in (f"{tmp_path}/z*", "memory://x/z*"):
        with pytest.raises(DataError, match="no file matches"):
            expand_pattern(pattern)


def test_what_is_here_is_not_copied(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    assert fetch_file(f"file://{tmp_path}/a.txt", tmp_path / "copies") == tmp_path / "a.txt"
    assert not (tmp_path / "copies").exists()


def test_a_file_is_fetched_once_and_again_when_it_has_changed(tmp_path, store, monkeypatch):
    store.pipe("/x/a.txt.gz", gzip.compress(b"one"))
    copy = fetch_file("memory://x/a.txt.gz", tmp_path)
    assert gzip.decompress(copy.read_bytes()) == b"one"
    assert copy.name.endswith("-a.txt.gz")
    asked, real = [], type(store)._open
    monkeypatch.setattr(
        type(store), "_open", lambda *at, **how: asked.append(1) or real(*at, **how)
    )
    assert fetch_file("memory://x/a.txt.gz", tmp_path) == copy
    assert not asked
    before = state("memory://x/a.txt.gz")
    store.pipe("/x/a.txt.gz", gzip.compress(b"two"))
    assert state("memory://x/a.txt.gz") != before
    assert gzip.decompress(fetch_file("memory://x/a.txt.gz", tmp_path).read_bytes()) == b"two"
    assert asked


def test_two_files_of_one_name_are_two_copies(tmp_path, store):
    store.pipe({"/x/a.txt": b"x", "/y/a.txt": b"y"})
    assert [fetch_file(f"memory://{side}/a.txt", tmp_path).read_text() for side in "xy"] == [
        "x",
        "y",
    ]


def test_what_is_made_is_sent_when_it_is_whole(tmp_path, store):
    with pytest.raises(KeyboardInterrupt), destination("memory://x/out.tsv", tmp_path) as path:
        path.write_text("half")
        raise KeyboardInterrupt
    assert not exists("memory://x/out.tsv")
    with destination("memory://x/out.tsv", tmp_path) as path:
        path.write_text("whole")
    assert store.cat("/x/out.tsv") == b"whole"
    assert list(tmp_path.iterdir()) == []
    with destination(tmp_path / "here.tsv", tmp_path / "none") as path:
        assert path == tmp_path / "here.tsv"


def test_what_cannot_be_had_is_one_line(tmp_path, store, monkeypatch):
    with pytest.raises(DataError, match=r"memory://x/a\.txt: file not found"):
        fetch_file("memory://x/a.txt", tmp_path)
    store.pipe("/x/a.txt", b"")
    monkeypatch.setattr(type(store), "_open", refuses)
    monkeypatch.setattr(type(store), "put_file", refuses)
    with pytest.raises(DataError, match="RuntimeError: no credentials; check"):
        fetch_file("memory://x/a.txt", tmp_path)
    (tmp_path / "b").write_text("made")
    with pytest.raises(DataError, match=f"credentials; .*kept in {tmp_path}/b"):  # noqa: SIM117
        with destination("memory://x/b", tmp_path):
            pass
    assert (tmp_path / "b").read_text() == "made"


def test_a_package_that_is_not_there_is_named(monkeypatch):
    for package in ("s3fs", "gcsfs", "adlfs"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"s3fs .* pip install .*\[s3\]'"):
        filesystem("s3://bucket/a")
    with pytest.raises(MissingExtraError, match=r"pip install .*\[gcs\]'"):
        filesystem("gs://bucket/a")
    with pytest.raises(InterlinguaError, match=r"abfs://a/b: Install adlfs"):
        filesystem("abfs://a/b")
    with pytest.raises(DataError, match=r"Protocol .*nowhere"):
        filesystem("nowhere://a")


def test_places_that_can_be_written_to_are_left_as_they_are(tmp_path, monkeypatch):
    for path in ("a.txt", "new/and/new/a.txt", "/dev/null", f"file://{tmp_path}/a.txt"):
        monkeypatch.chdir(tmp_path)
        check_writable(path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a.txt").write_text("a")
    check_writable(tmp_path / "a.txt")
    with pytest.raises(DataError, match=r"a\.txt/new/b: .*Not a directory"):
        check_writable("a.txt/new/b")
    with pytest.raises(DataError, match="is a folder"):
        check_writable(tmp_path)

    def refused(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("interlingua.storage.remote.tempfile.TemporaryFile", refused)
    with pytest.raises(DataError, match=r"^a\.txt: .*Permission denied"):
        check_writable("a.txt")


def test_places_elsewhere_are_tried_before_the_work(store, monkeypatch):
    check_writable("memory://new/and/a.txt")
    assert store.find("/new") == []
    monkeypatch.setattr(type(store), "rm_file", refuses)
    check_writable("memory://once/a.txt")  # what is written there stays
    monkeypatch.setattr(type(store), "pipe_file", refuses)
    with pytest.raises(DataError, match=r"^memory://new/a\.txt: .*; check .*credentials$"):
        check_writable("memory://new/a.txt")


def test_what_is_read_is_not_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "link").symlink_to("a.txt")
    keep_inputs(["b.txt", None, "s3://x/b"], ["a.txt", None, "s3://x/a"])
    keep_inputs(["/dev/null", "/dev/null"], ["/dev/null"])
    file = f"file://{tmp_path}/a.txt"
    for output, read in (("link", "./a.txt"), (file, "link"), ("s3://x/a", "s3://x/a")):
        with pytest.raises(ConfigError, match="be overwritten"):
            keep_inputs([output], [read])
    with pytest.raises(ConfigError, match=r"\./b\.txt .*two outputs"):
        keep_inputs(["b.txt", "./b.txt"], [])
