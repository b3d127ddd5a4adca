"""Which files of a folder are documents, and why others are left out."""

from __future__ import annotations

import os

import pytest

from interlingua.corpus.documents import DOCUMENT_SUFFIXES, find_documents, read_document
from interlingua.errors import DataError


@pytest.fixture
def folder(tmp_path):
    names = [
        "b.txt", "a.md", "in/c.HTML", "in/deep/d.txt.gz", "copy.txt", "old.doc", "x.rtf", "y.xyz",
        "none", ".hidden.txt", ".git/e.txt", "~$a.docx", "f.txt~", "empty.txt", "g.tmp",
    ]  # fmt: skip
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "copy.txt").write_text("b.txt")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "same.txt").symlink_to(tmp_path / "b.txt")
    (tmp_path / "nowhere.txt").symlink_to(tmp_path / "not here")
    return tmp_path


def test_folders_are_searched_and_all_else_is_named(folder):
    found, left_out = find_documents(folder)
    assert [path.relative_to(folder).as_posix() for path in found] == [
        "a.md", "b.txt", "in/c.HTML", "in/deep/d.txt.gz",
    ]  # fmt: skip
    reasons = {os.path.relpath(one.path, folder): one.reason for one in left_out}
    assert reasons.keys() == {
        ".git", ".hidden.txt", "copy.txt", "empty.txt", "f.txt~", "g.tmp", "link", "none",
        "nowhere.txt", "old.doc", "same.txt", "x.rtf", "y.xyz", "~$a.docx",
    }  # fmt: skip
    assert "b.txt" in reasons["copy.txt"]
    assert ".docx" in reasons["old.doc"]
    assert ".docx" in reasons["x.rtf"]
    assert ".xyz" in reasons["y.xyz"]


def test_files_and_patterns(folder):
    found, left_out = find_documents(
        [folder / "b.txt", str(folder / "**/*.HTML"), folder / "b.txt"]
    )
    assert [path.name for path in found] == ["b.txt", "c.HTML"]
    assert left_out == []
    for missing in (folder / "no", str(folder / "*.pdf")):
        with pytest.raises(DataError, match="check the path"):
            find_documents(missing)


@pytest.mark.parametrize("name", ["a.doc", "a.rtf", "a.xyz", "a"])
def test_other_kinds_are_refused(tmp_path, name):
    (tmp_path / name).write_text("x")
    with pytest.raises(DataError, match="docx"):
        read_document(tmp_path / name)


@pytest.mark.parametrize("suffix", DOCUMENT_SUFFIXES)
def test_missing_files_are_one_line(tmp_path, suffix):
    with pytest.raises(DataError, match=f"a{suffix}") as error:
        read_document(tmp_path / f"a{suffix}")
    assert "\n" not in str(error.value)
