"""Sheets by name, and rows with the names of the columns, in every format that has them."""

from __future__ import annotations

import pytest

from interlingua.corpus.formats.bitext import read_pairs
from interlingua.errors import ConfigError, DataError

TITLES = [["Glossary of 2024"], [], ["Note:", "made by hand"]]
TABLE = [["No.", "German", "English", "Remark"], ["1", "eins", "one"], ["2", "zwei", "two", "x"]]
PAIRS = [("eins", "one"), ("zwei", "two")]


def texts(path, **options):
    return [tuple(pair[:2]) for pair in read_pairs(path, **options)]


def workbook(path, **sheets):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def csv(path, rows):
    delimiter = "\t" if path.suffix == ".tsv" else ","
    path.write_text("".join(delimiter.join(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("given", [{}, {"header_row": 4}])
def test_titles_before_the_names_of_columns(tmp_path, given):
    rows = [*TITLES, *TABLE]
    assert texts(workbook(tmp_path / "a.xlsx", one=rows), **given) == PAIRS
    if not given:
        assert texts(csv(tmp_path / "a.csv", [["Glossary"], *TABLE])) == PAIRS


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.xlsx"])
def test_a_given_row_of_any_names_with_columns_by_name_or_number(tmp_path, name):
    rows = [["x", "y", "z"], ["id", "Quelle", "Ziel"], ["1", "eins", "one"], ["2", "zwei", "two"]]
    path = tmp_path / name
    path = workbook(path, one=rows) if name.endswith("xlsx") else csv(path, rows)
    codes = {"source_language": "de", "target_language": "en"}
    for columns in (("Quelle", "Ziel"), ("2", "3")):
        assert texts(path, columns=columns, header_row=2, **codes) == PAIRS
    with pytest.raises(DataError, match="row 9"):
        texts(path, columns=("2", "3"), header_row=9, **codes)


def test_names_of_columns_find_their_row(tmp_path):
    rows = [["Title"], ["id", "Quelle", "Ziel"], ["1", "eins", "one"]]
    path = workbook(tmp_path / "a.xlsx", one=rows)
    codes = {"source_language": "de", "target_language": "en"}
    assert texts(path, columns=("Quelle", "ziel"), **codes) == PAIRS[:1]


def test_a_sheet_by_name_or_number(tmp_path):
    path = workbook(tmp_path / "a.xlsx", first=[["nothing"]], Pairs=TABLE)
    assert texts(path, sheet="pairs") == texts(path, sheet="2") == PAIRS
    for name in ("third", "3", "0"):
        with pytest.raises(DataError, match="first, Pairs"):
            texts(path, sheet=name)


def test_a_first_row_of_texts_is_no_title(tmp_path):
    path = csv(tmp_path / "a.de-en.csv", [["eins", "one"], ["German", "English"]])
    assert texts(path) == [("eins", "one"), ("German", "English")]


@pytest.mark.parametrize(
    ("name", "option"),
    [("a.csv", {"sheet": "x"}), ("a.tmx", {"header_row": 2}), ("a.po", {"columns": ("1", "2")})],
)
def test_formats_without_them_refuse_them(tmp_path, name, option):
    with pytest.raises(ConfigError, match=next(iter(option)).partition("_")[0]):
        texts(tmp_path / name, **option)


def test_columns_of_parquet(tmp_path):
    pytest.importorskip("datasets")
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"id": [1, 2], "quelle": ["eins", "zwei"], "ziel": ["one", "two"]})
    parquet.write_table(table, tmp_path / "a.parquet")
    codes = {"source_language": "de", "target_language": "en"}
    for columns in (("quelle", "ziel"), ("2", "3")):
        assert texts(tmp_path / "a.parquet", columns=columns, **codes) == PAIRS
