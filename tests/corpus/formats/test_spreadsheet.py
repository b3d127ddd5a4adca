from __future__ import annotations

import csv
from collections import Counter

import pytest

from interlingua.corpus.formats.bitext import TextPair, read_pairs, write_pairs
from interlingua.corpus.formats.table_columns import TableColumns, find_columns
from interlingua.errors import DataError
from tests.corpus.conftest import texts, write

openpyxl = pytest.importorskip("openpyxl")
CODES = ("deu_Latn", "eng_Latn")
HARD = [
    TextPair('Er sagte: "Ja, gern"; dann ging er.', "He said: 'Yes'\tand left", *CODES),
    TextPair("=SUM(A1:A2)", "-1+2", *CODES),
    TextPair("zwei\nZeilen", "two\nlines", *CODES),
    TextPair("007", "1e5", *CODES),
    TextPair("Ελληνικά 中文", "naïve “quotes”", *CODES),
]


def sheet(path, *cells):
    workbook = openpyxl.Workbook()
    for row in cells:
        workbook.active.append(row)
    workbook.save(path)
    return path


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.xlsx"])
def test_hard_texts_and_several_languages_come_back(tmp_path, name):
    pairs = [*HARD, TextPair("un", "one", "fra_Latn", "eng_Latn")]
    assert write_pairs(pairs, tmp_path / name) == 6
    assert list(read_pairs(tmp_path / name)) == pairs
    scored = [pair._replace(score=0.25 + number) for number, pair in enumerate(pairs)]
    write_pairs(scored, tmp_path / name)
    assert list(read_pairs(tmp_path / name)) == scored


def test_csv_is_what_excel_and_python_read(tmp_path):
    write_pairs(HARD[:1], tmp_path / "x.csv")
    content = (tmp_path / "x.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbfsource,target,source_language,target_language\n")
    with open(tmp_path / "x.csv", encoding="utf-8-sig", newline="") as file:
        assert next(csv.DictReader(file))["source"] == HARD[0].source


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("\ufeffde,en\nJa,Yes\n", [("Ja", "Yes")]),
        ("id;English;German\n1;Yes, yes;Ja\n", [("Yes, yes", "Ja")]),
        ("Source\tTarget\r\nJa\tYes\r\n", [("Ja", "Yes")]),
        ("sep=;\nsrc;tgt\nJa;Yes\n", [("Ja", "Yes")]),
        ("1.25,Ja,Yes\n0.5,Nein,No\n", [("Ja", "Yes"), ("Nein", "No")]),
        ('"Ja, gern","Yes, please"\n\nNein,No\n', [("Ja, gern", "Yes, please"), ("Nein", "No")]),
        ("Wort;word\nHa, Welt;Hi, world\n", [("Wort", "word"), ("Ha, Welt", "Hi, world")]),
        ("", []),
    ],
)
def test_delimiters_headers_and_quotes(tmp_path, content, found):
    path = write(tmp_path / "x.csv", content)
    named = {"source_language": "de", "target_language": "en"}
    if "de,en" in content or "English" in content:
        named = {}
    skipped = Counter()
    assert texts(path, skipped=skipped, **named) == found
    assert skipped["empty line"] == content.count("\n\n")


def test_columns_called_by_languages_name_them_and_may_be_chosen(tmp_path):
    path = write(tmp_path / "x.csv", "key,en-US,fr-FR,de\nk,one,un,eins\n")
    (pair,) = read_pairs(path, source_language="fr", target_language="en")
    assert pair == TextPair("un", "one", "fra_Latn", "eng_Latn")
    with pytest.raises(DataError, match=r"x\.csv:1: .* 4 cells .*columns"):
        texts(path)


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("a b", TableColumns(0, 1)),
        ("Score TARGET source_language Source", TableColumns(3, 1, 0, 2, header=True)),
        ("no never", TableColumns(0, 1)),  # only "no" is a word, and no header
        ("en_text th_text", TableColumns(0, 1, header=True, languages=("eng_Latn", "tha_Thai"))),
        ("text no_text", TableColumns(0, 1)),
        ("0.5 a b", TableColumns(1, 2, 0)),
        ("probability source target", TableColumns(1, 2, 0, header=True)),
        ("probability score source target", TableColumns(2, 3, 1, header=True)),
    ],
)
def test_the_first_row_tells_the_columns(row, found):
    assert find_columns(row.split(), "x") == found


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("source,target\na,b\nc\n", 3, "expected 2 columns, found 1"),
        ("source,target\na,b,c\n", 2, "expected 2 columns, found 3"),
        ('source,target\na,b\n"c,d\ne,f\n', 3, "end of data"),
        ("score,source,target\nx,a,b\n", 2, "score 'x'"),
        ("source,target,source_language\na,b,qqq\n", 2, "unknown language 'qqq'"),
    ],
)
def test_a_bad_row_is_named_by_its_line(tmp_path, content, line, message):
    path = write(tmp_path / "x.de-en.csv", content)
    with pytest.raises(DataError, match=message) as caught:
        texts(path)
    assert caught.value.line == line


def test_unknown_languages_are_one_line(tmp_path):
    (tmp_path / "x.csv").write_text("source,target\na,b\n")
    with pytest.raises(DataError, match="languages are unknown"):
        texts(tmp_path / "x.csv")


def test_a_workbook_as_people_make_it(tmp_path):
    path = sheet(
        tmp_path / "x.xlsx",
        ["Nr", "German", "English", None],
        [1, "Ja", "Yes", None],
        [],
        [2, 7, 2.5, None],
        [3, None, "lost", "note"],
    )
    skipped = Counter()
    with pytest.raises(DataError, match=r"x\.xlsx:5: expected 3 columns, found 4"):
        texts(path, skipped=skipped)
    path = sheet(path, ["German", "English"], ["Ja", "Yes"], [], [7, 2.5], [None, "lost"])
    assert texts(path, skipped=skipped) == [("Ja", "Yes"), ("7", "2.5"), ("", "lost")]
    assert skipped["empty line"] == 2


def test_columns_of_regions_are_requested_by_them(tmp_path):
    path = write(tmp_path / "x.csv", "en-US,en-GB,de-DE,de-CH\ncolor,colour,Straße,Strasse\n")
    (pair,) = read_pairs(path, source_language="en-US", target_language="en-GB")
    assert pair[:2] == ("color", "colour")
    assert texts(path, source_language="en", target_language="de-CH") == [("color", "Strasse")]
    with pytest.raises(DataError, match="--source-column"):
        texts(path)


def test_rows_of_other_languages_than_requested_are_counted(tmp_path):
    rows = ["de,en,a,b", "en,de-CH,c,d", "en,de-DE,e,f", "fr,en,g,h"]
    path = write(
        tmp_path / "x.csv", "source_language,target_language,source,target\n" + "\n".join(rows)
    )
    skipped = Counter()
    found = texts(path, skipped=skipped, source_language="de-CH", target_language="en")
    assert found == [("a", "b"), ("d", "c")]
    assert skipped == {"other languages": 2}
