from __future__ import annotations

import sys
import zipfile

import pytest

from interlingua.corpus.formats.bitext import write_pairs
from interlingua.corpus.formats.workbook import _MAX_CHARACTERS, open_writer, read_rows
from interlingua.errors import DataError, MissingExtraError
from tests.corpus.conftest import texts
from tests.corpus.formats.test_spreadsheet import HARD, sheet

openpyxl = pytest.importorskip("openpyxl")


def test_rows_have_one_width_and_their_numbers(tmp_path):
    path = sheet(tmp_path / "x.xlsx", [], ["a", "b", None], [], [1.5, 2.0], ["c"])
    expected = [(2, ["a", "b"]), (3, ["", ""]), (4, ["1.5", "2"]), (5, ["c", ""])]
    assert list(read_rows(path)) == expected


def test_no_formula_is_made_of_a_text(tmp_path):
    write_pairs(HARD, tmp_path / "x.xlsx")
    with zipfile.ZipFile(tmp_path / "x.xlsx") as archive:
        assert b"<f>" not in archive.read("xl/worksheets/sheet1.xml")
    written = openpyxl.load_workbook(tmp_path / "x.xlsx").active
    assert [cell.value for cell in written["A"]] == ["source", *(pair.source for pair in HARD)]


@pytest.mark.parametrize("content", [b"source,target\n", b"PK\x03\x04 cut", b""])
def test_what_is_no_workbook_is_one_line(tmp_path, content):
    (tmp_path / "x.xlsx").write_bytes(content)
    with pytest.raises(DataError, match="an Excel workbook"):
        texts(tmp_path / "x.xlsx", source_language="de", target_language="en")


def test_a_zip_bomb_is_refused(tmp_path, monkeypatch):
    path = sheet(tmp_path / "x.xlsx", *[["Ja" * 400, "Yes"]] * 2000)
    monkeypatch.setattr("interlingua.corpus.formats.workbook.FREE_EXPANSION_BYTES", 1000)
    monkeypatch.setenv("INTERLINGUA_MAX_EXPANSION", "2")
    with pytest.raises(DataError, match="bytes expand to"):
        texts(path, source_language="de", target_language="en")


def test_a_row_far_below_the_last_is_refused(tmp_path, monkeypatch):
    """Limit the row number. The library would create all rows between."""
    path = sheet(tmp_path / "x.xlsx", ["Ja", "Yes"])
    changed = tmp_path / "y.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("sheet1.xml"):
                content = content.replace(
                    b"</sheetData>", b'<row r="99999999999"><c r="A9"/></row></sheetData>'
                )
            new.writestr(name, content)
    monkeypatch.setattr("interlingua.corpus.formats.workbook.MAX_ROWS", 1000)
    with pytest.raises(DataError, match="1,000 rows"):
        texts(changed, source_language="de", target_language="en")


def test_what_excel_can_not_hold_is_refused(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"Excel cell .* 32,767"):
        write_pairs([HARD[0]._replace(source="x" * (_MAX_CHARACTERS + 1))], tmp_path / "x.xlsx")
    monkeypatch.setattr("interlingua.corpus.formats.workbook.MAX_ROWS", 3)
    with (
        pytest.raises(DataError, match="at most 3 rows"),
        open_writer(tmp_path / "x.xlsx") as write,
    ):
        for _ in range(4):
            write(["a", "b\x01"])
    assert list(tmp_path.iterdir()) == []


def test_without_openpyxl_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[xlsx\]'"):
        write_pairs(HARD, tmp_path / "x.xlsx")
    (tmp_path / "y.xlsx").write_bytes(b"")
    with pytest.raises(MissingExtraError):
        texts(tmp_path / "y.xlsx")
