"""Lists of any size, read item by item."""

from __future__ import annotations

import json

import pytest

from interlingua.corpus.formats import json_stream
from interlingua.corpus.formats.json_stream import json_array_items
from interlingua.errors import DataError
from tests.corpus.conftest import write

ITEMS = [
    {"a": 1, "b": ["x", {"c": "ü\n"}]},
    "text, with ] and [",
    12345,
    -1.5e3,
    None,
    [],
    {"long": "y" * 300},
]


@pytest.mark.parametrize("chunk", [1, 2, 7, 64, 1 << 20])
@pytest.mark.parametrize("indent", [None, 4])
@pytest.mark.parametrize("name", ["list.json", "list.json.gz"])
def test_items_are_those_of_the_whole_list(tmp_path, monkeypatch, name, chunk, indent):
    monkeypatch.setattr(json_stream, "CHUNK_CHARACTERS", chunk)
    path = write(tmp_path / name, json.dumps(ITEMS, indent=indent, ensure_ascii=False))
    assert [item for _, item in json_array_items(path)] == ITEMS


@pytest.mark.parametrize("chunk", [1, 1 << 20])
def test_lines_are_where_items_begin(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(json_stream, "CHUNK_CHARACTERS", chunk)
    path = write(tmp_path / "list.json", '[\n {"a":\n 1},\n\n 2, 3\n]\n')
    assert list(json_array_items(path)) == [(2, {"a": 1}), (5, 2), (5, 3)]


def test_an_empty_list_has_no_items(tmp_path):
    assert list(json_array_items(write(tmp_path / "list.json", " [ \n ] "))) == []


def test_only_a_part_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr(json_stream, "CHUNK_CHARACTERS", 1000)
    items = [{"n": n, "text": "z" * 50} for n in range(10_000)]
    path = write(tmp_path / "list.json", json.dumps(items))
    longest = 0
    read = json_stream._Window._read

    def spy(self, at_least=0):
        nonlocal longest
        more = read(self, at_least)
        longest = max(longest, len(self._text))
        return more

    monkeypatch.setattr(json_stream._Window, "_read", spy)
    assert sum(1 for _ in json_array_items(path)) == 10_000
    assert longest < 5000


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('{"a": 1}', 1, "expected a list, found '{'"),
        ("[1,\n2", 2, "ends inside the list"),
        ("[1\n2]", 2, "expected a comma"),
        ('[1,\n{"a": }]', 2, "not valid JSON"),
        ("", 1, "ends inside the list"),
    ],
)
def test_errors_name_the_line(tmp_path, text, line, message):
    path = write(tmp_path / "list.json", text)
    with pytest.raises(DataError, match=message) as caught:
        list(json_array_items(path))
    assert caught.value.line == line
