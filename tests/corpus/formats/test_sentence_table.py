from __future__ import annotations

import gzip

import pytest

from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.sentence_table import (
    SentenceColumn,
    find_column,
    is_table,
    read_column,
    refuse_column,
)
from interlingua.corpus.formats.spreadsheet import open_sheet
from interlingua.errors import ConfigError, DataError

TABLE = 'id,de,English,Note text\n1,"Ein, zwei",One two,x\n\n2,"Zwei\nZeilen",,y\n3,,,\n'


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("\ufeff" + TABLE, encoding="utf-8")
    return path


def test_sentence_i_is_row_i_of_the_column(table):
    assert list(read_column(table, column="de")) == ["Ein, zwei", "Zwei Zeilen", ""]
    assert list(read_column(table, language="German")) == ["Ein, zwei", "Zwei Zeilen", ""]
    assert list(read_column(table, language="en")) == ["One two", "", ""]
    assert list(read_column(table, column="note_TEXT")) == ["x", "y", ""]


def test_rows_are_those_that_pandas_counts(table):
    pandas = pytest.importorskip("pandas")
    assert len(pandas.read_csv(table)) == len(list(read_column(table, column="de")))


def test_semicolons_and_compression(tmp_path):
    path = tmp_path / "m.csv.gz"
    path.write_bytes(gzip.compress(b"nr;text\n1;a, b\n2;c\n"))
    assert is_table(path)
    assert list(read_column(path)) == ["a, b", "c"]


def test_empty_rows_at_the_end_of_a_sheet_are_none(tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "m.xlsx"
    with open_sheet(path, "xlsx") as write:
        for row in (["id", "text"], [1, "one"], ["", ""], [2, "two"], [3, ""], ["", ""]):
            write(row)
    assert list(read_column(path)) == ["one", "", "two", ""]


@pytest.mark.parametrize(
    ("header", "column", "language", "found"),
    [
        (["a", "text"], None, None, 1),
        (["a", "Sentence"], None, "de", 1),
        (["text", "de"], None, "de", 1),
        (["text", "de"], "text", "de", 0),
        (["text"], None, None, 0),
    ],
)
def test_column_by_name_then_language_then_text(header, column, language, found):
    assert find_column(header, "x.csv", column=column, language=language) == found


@pytest.mark.parametrize(
    ("header", "column", "part"),
    [
        (["a", "b"], None, "--column"),
        (["Der erste Satz."], None, "--column"),
        (["a", "b"], "c", "no column"),
        (["A", "A"], "a", "2 columns"),
    ],
)
def test_an_unknown_column_is_one_line(header, column, part):
    with pytest.raises(DataError, match=part) as caught:
        find_column(header, "x.csv", column=column, language=None)
    assert "\n" not in str(caught.value)
    assert caught.value.line == 1


def test_a_row_of_another_width_stops_or_is_blank(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("id,text\n1,a\n2,b,c\n3,d\n")
    with pytest.raises(DataError, match=r"m\.csv:3: "):
        list(read_column(path))
    bad = BadLines("skip")
    assert list(read_column(path, bad=bad)) == ["a", "", "d"]
    assert bad.count == 1


def test_a_single_column_has_a_known_name(tmp_path):
    (tmp_path / "a.csv").write_text("note\nHallo\n")
    with pytest.raises(DataError, match="--column"):
        list(read_column(tmp_path / "a.csv"))


def test_rows_that_are_not_utf_8_have_no_sentence(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"text\neins\nf\xe4hrt\n\nzwei\n")
    bad = BadLines("skip")
    assert list(read_column(tmp_path / "a.csv", bad=bad)) == ["eins", "zwei"]
    assert bad.count == 1


def test_an_empty_table_and_a_column_of_text_are_refused(tmp_path):
    (tmp_path / "m.csv").write_text("")
    with pytest.raises(DataError, match="table is empty"):
        list(read_column(tmp_path / "m.csv"))
    with pytest.raises(ConfigError, match="'text'"):
        refuse_column("text", "m.txt")


def test_a_column_is_on_the_named_sheet_below_the_named_row(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["notes"])
    sheet = book.create_sheet("Texte")
    for row in (["Ein Buch"], [], ["Nr", "Deutsch", "2"], [1, "Haus", "a"], [2, "Hund", "b"]):
        sheet.append(row)
    path = tmp_path / "book.xlsx"
    book.save(path)
    for name in ("Deutsch", "deutsch"):
        place = SentenceColumn(name, "Texte", 3)
        assert list(read_column(path, column=place)) == ["Haus", "Hund"]
    # A column that is called 2 goes before column number 2.
    assert list(read_column(path, column=SentenceColumn("2", "2", 3))) == ["a", "b"]
    assert list(read_column(path, column=SentenceColumn("1", "texte", 3))) == ["1", "2"]
    for place, part in (
        (SentenceColumn("Deutsch", "Text"), "Info|Sheet, Texte"),
        (SentenceColumn("Deutsch", "Texte", 9), "row 9"),
    ):
        with pytest.raises(DataError, match=part):
            list(read_column(path, column=place))


@pytest.mark.parametrize(
    ("place", "part"),
    [
        (SentenceColumn(None, "Texte"), "sheet 'Texte'"),
        (SentenceColumn(None, None, 2), "header row 2"),
    ],
)
def test_a_sheet_or_a_header_row_of_plain_text_is_refused(place, part, tmp_path):
    with pytest.raises(ConfigError, match=part):
        refuse_column(place, tmp_path / "a.txt")


def test_the_header_row_of_a_csv_file_is_given(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("title,\nx,text\n1,Haus\n", encoding="utf-8")
    assert list(read_column(path, column=SentenceColumn(None, None, 2))) == ["Haus"]
