"""The report of a translation memory, on the terminal and as a page."""

from __future__ import annotations

import pytest

from interlingua.alignment.document_pairing import DocumentPairing
from interlingua.alignment.documents_page import write_documents_page
from interlingua.alignment.translation_memory import MemoryReport, PairCoverage, read_pairs_file
from interlingua.corpus.documents import LeftOut
from interlingua.errors import DataError
from tests.alignment.invented_documents import contents, side


@pytest.fixture
def report():
    pairing = DocumentPairing(0, 1, 0.25, "names")
    coverage = PairCoverage(pairing, ("<a>.md", "b.md"), (10, 6), (8, 4), 7, 0.6, [])
    return MemoryReport(
        languages=("deu_Latn", "eng_Latn"),
        documents=(3, 4),
        paired=[coverage],
        doubtful=[("<a>.md", "b.md", 0.01), ("c.md", "c.en.md", 0.02)],
        unpaired=[(f"alone{number}.md", "", 0.0) for number in range(30)],
        left_out=[LeftOut("x.doc", "save it as .docx")],
        links=7,
        written=6,
    )


def test_the_terminal_has_ten_lines_of_each_kind(report):
    lines = report.lines("m.tmx")
    assert sum(line.startswith("no partner: ") for line in lines) == 10
    assert any("20 more" in line for line in lines)
    assert "x.doc" in "\n".join(lines)
    # One of the doubtful pairs is paired nevertheless.
    assert ["--match" in line for line in lines if line.startswith("warning")] == [False, True]
    assert "75.0%" in lines[-1]
    assert "m.tmx" in lines[-1]


def test_the_page_has_all_of_them(report, tmp_path):
    write_documents_page(tmp_path / "page.html", report, "m.tmx")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("alone") == 30
    assert "&lt;a&gt;.md" in page
    assert "75 %" in page
    write_documents_page(tmp_path / "page.html", MemoryReport(languages=report.languages), "m.tmx")


def test_documents_are_named_by_path_or_by_name(tmp_path):
    sides = tuple(side(contents(3), language)[0] for language in ("de", "en"))
    path = tmp_path / "pairs.tsv"
    path.write_text("# source\ttarget\n\n0.md\t2.md\t0.5\n1.md\t0.md\n", encoding="utf-8")
    assert read_pairs_file(path, sides) == [(0, 2), (1, 0)]
    path.write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(DataError, match="pairs"):
        read_pairs_file(path, sides)
