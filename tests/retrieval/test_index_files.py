"""Names of an index's files, and errors that are found in them before embedding."""

from __future__ import annotations

import os
import re

import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.retrieval.index_files import (
    IndexFile,
    check_index_files,
    file_name,
    list_index_files,
    read_files,
)


@pytest.fixture
def project(tmp_path):
    """A folder with two files of one name, a link to a folder and one to a file, and a place for an
    index."""
    for folder, line in (("a", "Eins."), ("b", "Zwei.")):
        (tmp_path / "project" / folder).mkdir(parents=True)
        (tmp_path / "project" / folder / "de.txt").write_text(f"{line}\n")
    (tmp_path / "link").symlink_to(tmp_path / "project")
    (tmp_path / "project" / "a" / "fr.txt").symlink_to("de.txt")
    return tmp_path / "project"


@pytest.mark.parametrize("start", [".", "a", "/", "../link/b"])
def test_a_file_has_one_name_from_any_folder(project, monkeypatch, start):
    index = project / "index"
    expected = {
        project / "a" / "de.txt": "a/de.txt",
        project / "a" / "fr.txt": "a/fr.txt",
        project.parent / "link" / "b" / "de.txt": "b/de.txt",
        project.parent / "elsewhere.txt": os.path.realpath(project.parent / "elsewhere.txt"),
    }
    monkeypatch.chdir(project / start)
    for place in (index, project.parent / "link" / "index"):
        for path, name in expected.items():
            assert file_name(path, place) == name
            assert file_name(os.path.relpath(path), os.path.relpath(place)) == name


def test_files_of_equal_names_share_no_id(project, monkeypatch):
    monkeypatch.chdir(project)
    files = list_index_files(["a/de.txt", "b/de.txt"], "index")
    assert files == [IndexFile("a/de.txt", "a/de.txt"), IndexFile("b/de.txt", "b/de.txt")]
    passages = list(read_files(files))
    assert [(passage.id, passage.file) for passage in passages] == [
        ("a/de.txt:1", "a/de.txt"),
        ("b/de.txt:1", "b/de.txt"),
    ]


def test_files_that_can_not_be_indexed_are_refused(project):
    path = project / "a" / "de.txt"
    os.mkfifo(project / "pipe.txt")
    for given, match in (
        ([path, project / "nothing.txt"], "nothing.txt: file not found"),
        ([project], "is a folder"),
        ([project / "pipe.txt"], "pipe.txt: not a regular file"),
        ([path, project / "a" / ".." / "a" / "de.txt"], "listed twice"),
    ):
        with pytest.raises(DataError, match=match):
            list_index_files(given, project / "index")
    with pytest.raises(ConfigError, match="no input files"):
        list_index_files([], project / "index")


@pytest.mark.skipif(os.name != "posix", reason="names that are not UTF-8")
def test_a_name_that_is_not_utf_8_is_refused(project):
    path = os.fsdecode(os.fsencode(project) + b"/\xff.txt")
    with open(path, "w") as file:
        file.write("Eins.\n")
    with pytest.raises(DataError, match="incomplete character"):
        list_index_files([path], project / "index")


@pytest.mark.parametrize(
    ("first", "second", "match"),
    [
        (
            '{"id": 1, "text": "a"}\n',
            '{"id": "1", "text": "b"}\n',
            "'1' occurs twice, in {one} and in {two};",
        ),
        (
            '{"text": "a"}\n',
            '{"id": "one.jsonl:1", "text": "b"}\n',
            "'one.jsonl:1' occurs twice, in {one} and in {two};",
        ),
        (
            '{"text": "a"}\n',
            '{"id": 1, "text": "b"}\n{"id": 1, "text": "c"}\n',
            "'1' occurs twice, in {two};",
        ),
        ('{"text": "a"}\n', "\n\n", "{two}: the file contains no passage"),
        ('{"text": "a"}\n', '{"text": "b"}\n{"id": 2}\n', "{two}:2: the text is missing"),
    ],
)
def test_a_fault_in_any_file_is_found_at_once(tmp_path, first, second, match):
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    one.write_text(first)
    two.write_text(second)
    files = list_index_files([one, two], tmp_path / "index")
    check_index_files(files[:1])
    with pytest.raises(DataError, match=re.escape(match.format(one=one, two=two))):
        check_index_files(files)
