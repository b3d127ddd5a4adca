"""Reading passages: every format, what a record may hold, and what is refused."""

from __future__ import annotations

import csv
import datetime
import gzip
import json

import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.retrieval.passage_files import (
    Passage,
    PassageColumns,
    passage_of,
    read_passages,
)


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
        ('{"text": "a"}\n{"id": 1}\n', "p.jsonl:2: the text is missing"),
        ('{"text": " "}\n', "'text' is missing"),
        ('{"text": 3}\n', "the text is missing"),
        ('{"text": "a", "id": true}\n', "id: .*found bool"),
        ('{"text": "a", "title": []}\n', "title: .*found list"),
        ('{"text": "a", "language": "klingonish"}\n', "klingonish"),
        ('["a"]\n', "p.jsonl:1: .*list"),
        ('{"text": \n', "p.jsonl:1: not JSON"),
        ('{"text": "\\ud800"}\n', "incomplete character|surrogate"),
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


TABLES = ("p.csv", "p.tsv", "p.xlsx", "p.parquet", "p.json", "p.jsonl")
NAMED = PassageColumns(text="Body", title="head_line", id="key", language="tongue")


def write_records(path, records):
    """Write records in the format of the file's name; a table has the keys of the first one."""
    names = [*records[0]]
    rows = [names, *([record.get(name, "") for name in names] for record in records)]
    if path.suffix == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        columns = {name: [record.get(name) for record in records] for name in names}
        parquet.write_table(pytest.importorskip("pyarrow").table(columns), path)
    elif path.suffix == ".xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        for row in rows:
            book.active.append(row)
        book.save(path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    elif path.suffix == ".json":
        path.write_text(json.dumps(records))
    else:
        delimiter = {".csv": ",", ".tsv": "\t"}[path.suffix]
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=delimiter).writerows(rows)
    return path


@pytest.mark.parametrize("name", TABLES)
def test_named_columns_hold_the_parts_and_others_are_metadata(tmp_path, name):
    records = [
        {"key": "a", "Body": "Eins.", "Head Line": "Zahl", "tongue": "de", "text": "note"},
        {"key": "b", "Body": "Two.", "Head Line": None, "tongue": "en", "text": None},
    ]
    path = write_records(tmp_path / name, records)
    assert list(read_passages(path, columns=NAMED)) == [
        Passage("a", "Eins.", "Zahl", "deu_Latn", '{"text": "note"}'),
        Passage("b", "Two.", "", "eng_Latn", "{}"),
    ]
    # Unnamed columns have their usual names.
    records = [{"id": "a", "Body": "Eins.", "title": "Zahl", "lang": "de", "key": "x"}]
    path = write_records(tmp_path / name, records)
    found = list(read_passages(path, columns=PassageColumns(text="body")))
    assert found == [Passage("a", "Eins.", "Zahl", "deu_Latn", '{"key": "x"}')]
    both = PassageColumns(text="Body", title="key", id="key")
    found = next(read_passages(path, columns=both))
    assert (found.id, found.title) == ("x", "x")


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("part", PassageColumns._fields)
def test_a_column_that_is_not_there_is_refused_with_those_that_are(tmp_path, name, part):
    path = write_records(tmp_path / name, [{"text": "One.", "author": "X"}])
    with pytest.raises(DataError, match=rf"{name}.*'bdy'.*text, author|{name}.* bdy.*text, author"):
        list(read_passages(path, columns=PassageColumns(**{part: "bdy"})))


@pytest.mark.parametrize("name", TABLES)
def test_a_named_column_with_an_empty_cell_has_no_text(tmp_path, name):
    path = write_records(tmp_path / name, [{"n": "1", "body": "One."}, {"n": "2", "body": " "}])
    with pytest.raises(DataError, match=rf"{name}.*'body' is missing"):
        list(read_passages(path, columns=PassageColumns(text="body")))


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.xlsx"])
def test_a_number_in_a_text_cell_of_a_table_is_a_text(tmp_path, name):
    path = write_records(tmp_path / name, [{"body": "1984", "head": "7", "key": "3"}])
    columns = PassageColumns(text="body", title="head", id="key")
    assert list(read_passages(path, columns=columns)) == [Passage("3", "1984", "7", "", "{}")]


@pytest.mark.parametrize("name", ["p.parquet", "p.json", "p.jsonl"])
def test_a_number_in_place_of_a_text_is_refused(tmp_path, name):
    path = write_records(tmp_path / name, [{"body": 1984, "head": "a"}])
    with pytest.raises(DataError, match=rf"{name}:1.* int.* body"):
        list(read_passages(path, columns=PassageColumns(text="body")))
    with pytest.raises(DataError, match=rf"{name}:1.* int"):
        list(read_passages(path, columns=PassageColumns(text="head", title="body")))


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.xlsx", "p.parquet"])
def test_two_columns_of_one_name_are_refused(tmp_path, name):
    path = tmp_path / name
    if name == "p.parquet":
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        columns = [pyarrow.array(["One."]), pyarrow.array(["a"]), pyarrow.array(["b"])]
        parquet.write_table(pyarrow.table(columns, names=["text", "x", "x"]), path)
    else:
        write_records(path, [{"text": "One.", "x": "a", " x": "b"}])
    with pytest.raises(DataError, match=rf"{name}.* 2 .*'x'"):
        list(read_passages(path))


@pytest.mark.parametrize("name", TABLES)
def test_of_two_names_in_other_letters_the_one_as_written_is_taken(tmp_path, name):
    path = write_records(tmp_path / name, [{"Body": "One.", "body": "Two."}])
    for called, text in (("Body", "One."), ("body", "Two.")):
        found = list(read_passages(path, columns=PassageColumns(text=called)))
        assert [passage.text for passage in found] == [text]
    with pytest.raises(DataError, match=rf"{name}.* 2 .*'BODY'"):
        list(read_passages(path, columns=PassageColumns(text="BODY")))


def test_a_key_may_be_missing_in_some_objects(tmp_path):
    records = [{"body": "One."}, {"body": "Two.", "key": "b"}]
    path = write_records(tmp_path / "p.jsonl", records)
    found = read_passages(path, columns=PassageColumns(text="body", id="key"))
    assert [passage.id for passage in found] == ["p.jsonl:1", "b"]


@pytest.mark.parametrize("name", ["p.txt", "p.md"])
def test_a_column_of_a_file_without_any_is_refused(tmp_path, name):
    (tmp_path / name).write_text("One.\n")
    with pytest.raises(ConfigError, match=rf"{name}.*'body'"):
        list(read_passages(tmp_path / name, columns=PassageColumns(text="body")))


def test_a_line_with_more_tabs_than_columns_is_refused(tmp_path):
    (tmp_path / "p.tsv").write_text("id\ttext\na\tOne.\tTwo.\n")
    with pytest.raises(DataError, match=r"p\.tsv:2"):
        list(read_passages(tmp_path / "p.tsv"))


def test_cells_of_columns_without_a_name_are_kept_by_their_numbers(tmp_path):
    (tmp_path / "p.csv").write_text("text,,\nOne.,a,b\n")
    (found,) = read_passages(tmp_path / "p.csv")
    assert json.loads(found.metadata) == {"column 2": "a", "column 3": "b"}


@pytest.mark.parametrize("name", ["Text", "TEXT", "Contents"])
def test_usual_names_in_capitals_are_found_behind_those_in_small_letters(tmp_path, name):
    (tmp_path / "p.csv").write_text(f"{name},ID,Title,Lang\na b,x,T,de\n", encoding="utf-8")
    (passage,) = read_passages(tmp_path / "p.csv")
    assert passage[:5] == ("x", "a b", "T", "deu_Latn", "{}")
    (tmp_path / "p.tsv").write_text(f"{name}\tID\na b\tx\n", encoding="utf-8")
    assert [one.id for one in read_passages(tmp_path / "p.tsv")] == ["x"]
    passage = passage_of({name: "other", "text": "a b"}, "", 0, "")
    assert (passage.text, passage.metadata) == ("a b", json.dumps({name: "other"}))


def test_a_missing_text_and_a_blank_one_are_told_from_a_missing_column():
    for record, columns, place in (
        ({"text": None}, {}, "'text' is missing"),
        ({"Body": None}, {"text": "body"}, "'Body' is missing"),
        ({"text": " "}, {}, "'text' is missing"),
        ({"body": "a"}, {}, "text_column"),
    ):
        with pytest.raises(DataError, match=place):
            passage_of(record, "", 0, "", PassageColumns(**columns))
