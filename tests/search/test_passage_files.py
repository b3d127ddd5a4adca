"""Reading passages: every format, what a record may hold, and what is refused."""

from __future__ import annotations

import datetime
import gzip
import json

import pytest

from interlingua.errors import DataError
from interlingua.search.passage_files import Passage, read_passages


def test_a_line_is_a_passage_of_the_files_language(tmp_path):
    path = tmp_path / "news.de.txt.gz"
    path.write_bytes(gzip.compress(b"Eins.\n\n  Zwei. \n"))
    assert list(read_passages(path)) == [
        Passage("news.de.txt.gz:1", "Eins.", language="deu_Latn", file="news.de.txt.gz"),
        Passage("news.de.txt.gz:3", "Zwei.", language="deu_Latn", file="news.de.txt.gz"),
    ]
    named = list(read_passages(path, name="texts/news.de.txt.gz"))
    assert [(passage.id, passage.file) for passage in named] == [
        ("texts/news.de.txt.gz:1", "texts/news.de.txt.gz"),
        ("texts/news.de.txt.gz:3", "texts/news.de.txt.gz"),
    ]
    assert [passage.language for passage in read_passages(path, language="nl")] == ["nld_Latn"] * 2


def test_a_name_without_language_leaves_it_unknown(tmp_path):
    path = tmp_path / "passages.txt"
    path.write_text("One.\n")
    assert [passage.language for passage in read_passages(path)] == [""]


def test_records_of_an_array_in_one_line_have_numbers_of_their_own(tmp_path):
    (tmp_path / "a.json").write_text('[{"text": "One."}, {"text": "Two."}]')
    found = [(passage.id, passage.text) for passage in read_passages(tmp_path / "a.json")]
    assert found == [("a.json:1", "One."), ("a.json:2", "Two.")]


def test_json_lines_with_metadata(tmp_path):
    path = tmp_path / "passages.jsonl"
    records = [
        {"id": 7, "text": "Berlin.", "title": "Cities", "language": "en"}
        | {"year": 2024, "tags": ["a"]},
        {"_id": "x", "contents": "Paris.", "lang": "fr"},
        {"sentence": "Rome.", "title": None},
    ]
    path.write_text("\n".join(map(json.dumps, records)) + "\n\n")
    first, second, third = read_passages(path, language="it")
    assert first == Passage("7", "Berlin.", "Cities", "eng_Latn", '{"tags": ["a"], "year": 2024}')
    assert second == Passage("x", "Paris.", "", "fra_Latn", "{}")
    assert third == Passage("passages.jsonl:3", "Rome.", "", "ita_Latn", "{}", "passages.jsonl")
    assert (first.embedded_text, second.embedded_text) == ("Cities Berlin.", "Paris.")


def test_parquet_is_read_with_its_types(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {
        "id": ["a", "b"],
        "text": ["Eins.", "Zwei."],
        "language": ["de", None],
        "day": [datetime.date(2024, 1, 2), None],
        "share": [0.5, float("nan")],
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "p.parquet")
    first, second = read_passages(tmp_path / "p.parquet")
    assert first == Passage("a", "Eins.", "", "deu_Latn", '{"day": "2024-01-02", "share": 0.5}')
    assert second == Passage("b", "Zwei.", "", "", '{"share": null}')


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ('{"text": "a"}\n{"id": 1}\n', "p.jsonl:2: no text"),
        ('{"text": " "}\n', "no text"),
        ('{"text": 3}\n', "no text"),
        ('{"text": "a", "id": true}\n', "id .*type bool"),
        ('{"text": "a", "title": []}\n', "title .*type list"),
        ('{"text": "a", "language": "klingonish"}\n', "klingonish"),
        ('["a"]\n', "p.jsonl:1: list, expected an object"),
        ('{"text": \n', "p.jsonl:1: not JSON"),
        ('{"text": "\\ud800"}\n', "half a character|surrogate"),
    ],
)
def test_a_record_that_is_no_passage_is_refused(tmp_path, content, match):
    (tmp_path / "p.jsonl").write_text(content)
    with pytest.raises(DataError, match=match):
        list(read_passages(tmp_path / "p.jsonl"))


@pytest.mark.parametrize("name", ["p.parquet", "p.jsonl", "p.txt"])
def test_a_missing_or_damaged_file_is_refused(tmp_path, name):
    if name == "p.parquet":
        pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match=name):
        list(read_passages(tmp_path / name))
    (tmp_path / name).write_bytes(b"\xff\xfe no such format")
    with pytest.raises(DataError, match=name):
        list(read_passages(tmp_path / name))
