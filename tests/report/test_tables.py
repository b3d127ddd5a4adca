from __future__ import annotations

import io

import pytest
from rich.console import Console

from interlingua.report.tables import Table, escape_latex, escape_markdown

TABLE = Table("scores", ["model", "P@1"], [["a|b", "**90.0**"], ["c", "80.0"]], notes=["a note"])


def test_markdown():
    assert TABLE.markdown() == (
        "### scores\n\n| model | P@1 |\n|---|---:|\n| a|b | **90.0** |\n| c | 80.0 |\n\n- a note\n"
    )
    assert Table("t", ["a"], []).markdown() == "### t\n\n| a |\n|---|\n"


def test_latex():
    assert TABLE.latex().splitlines() == [
        r"% scores; \usepackage{booktabs}",
        "% a note",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"model & P@1 \\",
        r"\midrule",
        r"a|b & **90.0** \\",
        r"c & 80.0 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_text():
    table = Table("scores", ["model", "P@1", "is"], [["a", "90.0", "x"], ["bcd", "8.0", ""]], ["n"])
    assert table.text() == ["scores", "model   P@1  is", "a      90.0   x", "bcd     8.0", "n"]
    words = Table("", ["a", "b"], [["1", "2"]], words=())
    assert words.text() == ["a  b", "1  2"]


def test_csv():
    assert Table("t", ["a,b", "c"], [['"x"', "1"]], ["n"]).csv() == '"a,b",c\n"""x""",1\n'


def test_html():
    html = Table("<t>", ["a", "b"], [["<x>", "1"]], ["n & m"]).html()
    assert '<td class="words">&lt;x&gt;</td><td>1</td>' in html
    assert '<th class="words">a</th><th>b</th>' in html
    assert "&lt;t&gt;" in html
    assert "n &amp; m" in html
    assert "<p" not in Table("", ["a"], []).html()


def test_columns_of_words_stand_left():
    table = Table("", ["a", "b"], [], words=(0, 1))
    assert table.markdown() == "| a | b |\n|---|---|\n"
    assert r"\begin{tabular}{ll}" in table.latex()


def test_terminal():
    console = Console(record=True, width=60, file=io.StringIO())
    console.print(
        Table("scores", ["model", "P@1"], [["a", "90"], [], ["b", "8"]], ["a note"]).terminal()
    )
    lines = [line.strip() for line in console.export_text().splitlines()]
    assert [line for line in lines if line.startswith("│")] == [
        "│ a     │  90 │",
        "│ b     │   8 │",
    ]
    assert lines[0] == "scores"
    assert lines[-1] == "a note"
    assert sum(line.startswith("├") for line in lines) == 1


@pytest.mark.parametrize("text", ["50 % & more", "a_b^c~{d}", "<\\>", "5 † ‡"])
def test_escaped_texts_have_no_commands(text):
    escaped = escape_latex(text)
    assert all(f"\\{character}" in escaped for character in "%&_{}" if character in text)
    assert not set("~^<>†‡") & set(escaped.replace(r"\^{}", "").replace(r"^{\d", ""))
    assert escape_markdown("a|b") == "a\\|b"
