from __future__ import annotations

import json

import pytest

from interlingua.errors import DataError
from interlingua.mining import texts as side_files
from interlingua.mining.texts import FILES, RECORD, SideRecord, describe, has_vectors, remove_files
from interlingua.storage.journal import Journal


@pytest.fixture
def side(tmp_path):
    for name in FILES:
        (tmp_path / name).write_text(name)
    SideRecord(what="this", lines=2, texts=1, files=describe(tmp_path)).write(tmp_path)
    return tmp_path


def add_vectors(folder):
    Journal(folder / "vectors-1of1.journal").add((0, 4, 0))


def test_what_was_written_is_whole(side):
    record = SideRecord.read(side)
    assert (record.what, record.lines, record.texts) == ("this", 2, 1)
    assert record.damage(side) == ""


@pytest.mark.parametrize("name", FILES)
def test_each_file_is_compared(side, name):
    record = SideRecord.read(side)
    (side / name).write_text(name.upper())  # of the same length
    assert record.damage(side) == f"{name} was cut or changed since it was written"
    (side / name).unlink()
    assert record.damage(side) == f"{name} is missing"


@pytest.mark.parametrize(
    "content", [None, "", "{", "[]", "{}", '{"format": "interlingua-side-1"}', "\xff"]
)
def test_a_damaged_record_is_an_error_only_where_vectors_depend_on_it(side, content):
    if content is None:
        (side / RECORD).unlink()
    else:
        (side / RECORD).write_text(content, encoding="latin-1")
    assert SideRecord.read(side) is None
    add_vectors(side)
    with pytest.raises(DataError, match=r"side\.json: .*, so .*--work"):
        SideRecord.read(side)


def test_a_record_of_another_version_is_named(side):
    found = json.loads((side / RECORD).read_text())
    (side / RECORD).write_text(json.dumps(found | {"format": "interlingua-side-9"}))
    add_vectors(side)
    with pytest.raises(DataError, match="another version"):
        SideRecord.read(side)


def test_only_files_of_a_side_are_removed(side):
    (side / "notes.txt").write_text("precious")
    (side / "vectors.npy").write_text("begun")
    (side / "vectors-1of1.journal").write_text("")
    assert not has_vectors(side)
    remove_files(side)
    assert [path.name for path in side.iterdir()] == ["notes.txt"]


def test_finished_vectors_and_their_record_stay(side):
    add_vectors(side)
    (side / "vectors.npy").write_text("finished")
    remove_files(side)
    assert {path.name for path in side.iterdir()} == {RECORD, "vectors.npy", "vectors-1of1.journal"}


def test_all_is_on_the_disk_before_the_record(tmp_path, monkeypatch):
    order = []
    monkeypatch.setattr(side_files, "sync_file", lambda path: order.append(path.name))
    monkeypatch.setattr(side_files, "sync_folder", lambda path: order.append("folder"))
    for name in FILES:
        (tmp_path / name).touch()
    describe(tmp_path)
    assert order == [*FILES, "folder"]
