from __future__ import annotations

import pytest

from interlingua.errors import ConfigError
from interlingua.mining.pipeline import TextFile, with_lines


def test_tables_become_lines_and_text_stays(tmp_path):
    (tmp_path / "m.csv").write_text("de,en\neins,one\n,two\n")
    side = with_lines(TextFile(tmp_path / "m.csv", "deu_Latn"), tmp_path / "work")
    other = with_lines(TextFile(tmp_path / "m.csv", "deu_Latn", column="en"), tmp_path / "work")
    assert [path.read_text() for path in (*side.files, *other.files)] == ["eins\n\n", "one\ntwo\n"]
    text = TextFile(tmp_path / "m.txt", "deu_Latn")
    assert with_lines(text, tmp_path) is text


def test_columns_of_text_and_other_layouts_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="'x'"):
        with_lines(TextFile("m.txt", "deu_Latn", column="x"), tmp_path)
    with pytest.raises(ConfigError, match="--layout"):
        with_lines(TextFile("m.csv", "deu_Latn", layout="ids"), tmp_path)
