from __future__ import annotations

import io
import json

import pytest

from interlingua.corpus.formats.bitext import PairWithFields, TextPair, read_pairs
from interlingua.errors import ConfigError, DataError
from interlingua.mining.checks import CheckPlan
from interlingua.mining.filter import write_filtered
from interlingua.mining.writer import (
    PairRow,
    check_columns,
    format_row,
    format_with_columns,
    open_rows,
    write_rows,
)

PAIR = TextPair("a\tb\nc", "d", "deu_Latn", "eng_Latn", 0.123456789)


def row(**columns):
    known = {"score": PAIR.score, "source": PAIR.source, "target": PAIR.target}
    return PairRow(PAIR, known | columns, [])


def test_a_column_that_is_not_there():
    plan = CheckPlan.parse("length", "")
    check_columns(["score", "length", "source_language"], ["score"], plan)
    with pytest.raises(ConfigError, match=r"column 'numbers'; .*--check"):
        check_columns(["numbers"], ["score"], plan)
    with pytest.raises(ConfigError, match=r"column 'scor'; .*'score'"):
        check_columns(["scor"], ["score"], plan)
    with pytest.raises(ConfigError, match="no column is named"):
        check_columns([], ["score"], plan)


def test_a_line_of_each_format():
    found = row(reasons=["x y", "z"], origins=["s0", "s5"], hub=30)
    columns = ["score", "source", "reasons", "origins", "hub", "probability", "source_language"]
    assert format_row(found, "tsv", columns) == "0.123457\ta b c\tx y, z\ts0 s5\t30\t\tdeu_Latn\n"
    assert format_row(found, "tsv", ["score"], repr) == "0.123456789\n"
    back = json.loads(format_row(found, "jsonl", []))
    assert (back["source"], back["target_language"], back["hub"]) == ("a\tb\nc", "eng_Latn", 30)


def test_files_appear_when_they_are_whole(tmp_path):
    with (
        pytest.raises(KeyError),
        open_rows(tmp_path / "x.tsv", format="tsv", columns=["source"]) as write,
    ):
        write(row())
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    write_rows([row()], tmp_path / "x.tsv", format="tsv", columns=["source", "target"])
    assert (tmp_path / "x.tsv").read_text() == "a b c\td\n"


def test_a_format_without_columns_is_refused():
    assert format_with_columns("x.jsonl.gz", "rejected pairs") == "jsonl"
    with pytest.raises(ConfigError, match=r"x\.tmx: rejected pairs .*csv"):
        format_with_columns("x.tmx", "rejected pairs")


@pytest.mark.parametrize("name", ["x.csv", "x.xlsx"])
def test_a_spreadsheet_names_columns_and_keeps_languages(tmp_path, name):
    rows = [row(hub=30, reasons=["x y", "z"])]
    write_rows(rows, tmp_path / name, format=name[2:])
    (back,) = read_pairs(tmp_path / name)
    assert back == PAIR._replace(score=pytest.approx(PAIR.score, abs=1e-6))
    write_rows(rows, tmp_path / name, format=name[2:], columns=["hub", "reasons"])
    with pytest.raises(DataError):
        next(read_pairs(tmp_path / name))
    if name == "x.csv":
        assert (tmp_path / name).read_text(encoding="utf-8-sig") == 'hub,reasons\n30,"x y, z"\n'


def test_csv_goes_to_standard_output_without_a_mark():
    out = io.StringIO()
    write_rows([row()], None, format="csv", columns=["score", "source"], stdout=out)
    assert out.getvalue() == 'score,source\n0.123457,"a\tb\nc"\n'


def with_fields(number, fields):
    pair = PairWithFields.of(TextPair(f"s{number}", "t", "deu_Latn", "eng_Latn", 1.0), fields)
    known = {"score": 1.0, "source": pair.source, "target": pair.target}
    return PairRow(pair, known | fields, [], extra=tuple(fields))


ROWS = [{"id": 7, "url": "u", "tags": ["a", 1]}, {"id": 8}]
EXTRA = {
    "tsv": 'score\tsource\ttarget\tid\turl\ttags\n1\ts0\tt\t7\tu\t["a", 1]\n1\ts1\tt\t8\t\t\n',
    "csv": "score,source,target,source_language,target_language,id,url,tags\n"
    '1,s0,t,deu_Latn,eng_Latn,7,u,"[""a"", 1]"\n1,s1,t,deu_Latn,eng_Latn,8,,\n',
}


@pytest.mark.parametrize("format", list(EXTRA))
def test_other_columns_of_the_input_go_out(tmp_path, format):
    rows = [with_fields(number, fields) for number, fields in enumerate(ROWS)]
    path = tmp_path / f"x.{format}"
    write_rows(rows, path, format=format)
    assert path.read_text(encoding="utf-8-sig") == EXTRA[format]
    write_rows(rows, path, format=format, columns=["source"])
    assert "url" not in path.read_text(encoding="utf-8-sig")


def test_a_column_that_the_first_row_lacks_is_told(tmp_path, caplog):
    """Write a file, which has the column, and standard output, which starts before later rows."""
    rows = [with_fields(number, fields) for number, fields in enumerate(reversed(ROWS))]
    out = io.StringIO()
    write_rows(rows, None, format="tsv", stdout=out)
    assert "tags, url" in caplog.text
    caplog.clear()
    write_rows(rows, tmp_path / "x.tsv", format="tsv")
    write_rows(rows, tmp_path / "x.jsonl", format="jsonl")
    assert "url" not in caplog.text
    assert (tmp_path / "x.tsv").read_text().splitlines() == [
        "score\tsource\ttarget\tid\turl\ttags",
        "1\ts0\tt\t8\t\t",
        '1\ts1\tt\t7\tu\t["a", 1]',
    ]
    assert '"tags": ["a", 1]' in (tmp_path / "x.jsonl").read_text()


def test_rejected_rows_keep_the_columns_of_the_input(tmp_path):
    rejected = with_fields(0, ROWS[0])._replace(reasons=["below"])
    files = tmp_path / "kept.csv", tmp_path / "rejected.csv"
    write_filtered(
        [rejected, with_fields(1, ROWS[1])], files[0], format="csv", stdout=None, rejected=files[1]
    )
    assert '"[""a"", 1]"' in files[1].read_text(encoding="utf-8-sig")
    write_filtered(
        [rejected], files[0], format="csv", columns=["source"], stdout=None, rejected=files[1]
    )
    assert files[1].read_text(encoding="utf-8-sig").splitlines()[0] == "reasons,source"


def test_a_plain_table_of_a_catalogue_tells_what_it_has_no_column_for(tmp_path, caplog):
    text = 'msgctxt "menu"\nmsgid "Open"\nmsgstr "Öffnen"\n'
    (tmp_path / "de.po").write_text(text, encoding="utf-8")
    (pair,) = read_pairs(tmp_path / "de.po")
    pair = pair._replace(score=1.0)
    row = PairRow(pair, {"score": 1.0, "source": "Open", "target": "Öffnen", "context": "menu"}, [])
    row = row._replace(extra=("context",))
    write_rows([row], tmp_path / "x.tsv", format="tsv")
    assert "context" in caplog.text
    assert (tmp_path / "x.tsv").read_text(encoding="utf-8") == "1\tOpen\tÖffnen\n"
    write_rows([row], tmp_path / "x.csv", format="csv")
    header = (tmp_path / "x.csv").read_text(encoding="utf-8-sig").splitlines()[0]
    assert header.endswith("context,plural,form,flags,comment,extracted,reference,previous")
